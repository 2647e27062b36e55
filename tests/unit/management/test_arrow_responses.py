"""Who reads rows leaves the loop to others while they are at work."""

import asyncio
from collections.abc import Iterator

from warren.limits import ARROW_PAUSE_S_MIN
from warren.management.arrow_responses import ArrowResponses

PIECES = 20


async def seconds_for(arrow_responses: ArrowResponses) -> float:
    """How long it takes to be given all pieces."""
    pieces: Iterator[object] = iter(range(PIECES))
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for expected in range(PIECES):
        assert await arrow_responses.next_piece(pieces) == expected
    return loop.time() - begun


def test_while_others_are_at_work_each_piece_is_followed_by_a_pause() -> None:
    is_shared = True
    arrow_responses = ArrowResponses(lambda: is_shared)
    assert asyncio.run(seconds_for(arrow_responses)) >= PIECES * ARROW_PAUSE_S_MIN


def test_alone_there_is_none() -> None:
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
    # A turn of the loop for each piece, and no time between.
    assert turns <= 3 * PIECES
