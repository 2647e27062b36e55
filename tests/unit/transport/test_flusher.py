"""Who is written, and who goes on, in which turn of the loop."""

import asyncio
from collections.abc import Callable

from warren.transport.flusher import Flusher


class Owner:
    """Notes what it is called for."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name = name
        self.calls = calls

    def flush(self) -> None:
        self.calls.append(f"{self.name} flushed")

    def process_more(self) -> None:
        self.calls.append(f"{self.name} goes on")


def after_turns(start: Callable[[Flusher, list[str]], None]) -> list[str]:
    """What was called, in order, when three turns of the loop have passed."""
    calls: list[str] = []

    async def scenario() -> None:
        start(Flusher(asyncio.get_running_loop()), calls)
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(scenario())
    return calls


def test_output_is_written_before_the_busy_go_on() -> None:
    def start(flusher: Flusher, calls: list[str]) -> None:
        flusher.mark_busy(Owner("busy", calls))
        flusher.mark(Owner("owed", calls))

    assert after_turns(start) == ["owed flushed", "busy goes on"]


def test_who_is_marked_while_others_are_written_is_written_in_the_turn_after() -> None:
    def start(flusher: Flusher, calls: list[str]) -> None:
        class Again(Owner):
            def flush(self) -> None:
                super().flush()
                if len(calls) == 1:
                    flusher.mark(self)

        flusher.mark(Again("first", calls))
        flusher.mark(Owner("second", calls))

    assert after_turns(start) == ["first flushed", "second flushed", "first flushed"]


def test_the_full_are_written_when_the_read_is_over_and_only_once() -> None:
    def start(flusher: Flusher, calls: list[str]) -> None:
        flusher.mark_full(Owner("full", calls))
        flusher.flush_full()
        calls.append("read on")
        flusher.flush_full()

    assert after_turns(start) == ["full flushed", "read on"]
