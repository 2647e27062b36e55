"""Long Arrow responses pause between pieces while other clients are active."""

import asyncio
from collections.abc import Iterator

from warren.limits import ARROW_PAUSE_S_MIN
from warren.management.arrow_responses import ArrowResponses

PIECES = 20


async def seconds_for(arrow_responses: ArrowResponses) -> float:
    """The time in seconds until all pieces have been read."""
    pieces: Iterator[object] = iter(range(PIECES))
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for expected in range(PIECES):
        assert await arrow_responses.next_piece(pieces) == expected
    return loop.time() - begun


def test_while_other_clients_are_active_each_piece_is_followed_by_a_pause() -> None:
    is_shared = True
    arrow_responses = ArrowResponses(lambda: is_shared)
    assert asyncio.run(seconds_for(arrow_responses)) >= PIECES * ARROW_PAUSE_S_MIN


def test_without_other_clients_there_is_no_pause() -> None:
    asked = 0

    def is_shared() -> bool:
        nonlocal asked
        asked += 1
        return False

    arrow_responses = ArrowResponses(is_shared)
    turns = 0

    async def read() -> None:
        nonlocal turns
        reading = asyncio.create_task(seconds_for(arrow_responses))
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        await reading

    asyncio.run(read())
    assert asked == PIECES
    # Each piece takes one turn of the loop, and none is delayed.
    assert turns <= 3 * PIECES
