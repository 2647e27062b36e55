"""In which turn of the loop output is written and connections resume."""

import asyncio
from collections.abc import Callable

from warren.transport.flusher import Flusher


class Owner:
    """Records the calls that it receives."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name = name
        self.calls = calls

    def flush(self) -> None:
        self.calls.append(f"{self.name} flushed")

    def process_more(self) -> None:
        self.calls.append(f"{self.name} goes on")


def after_turns(start: Callable[[Flusher, list[str]], None]) -> list[str]:
    """The calls, in order, after three turns of the loop."""
    calls: list[str] = []

    async def scenario() -> None:
        start(Flusher(asyncio.get_running_loop()), calls)
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(scenario())
    return calls


def test_output_is_written_before_busy_connections_resume() -> None:
    def start(flusher: Flusher, calls: list[str]) -> None:
        flusher.mark_busy(Owner("busy", calls))
        flusher.mark(Owner("owed", calls))

    assert after_turns(start) == ["owed flushed", "busy goes on"]


def test_an_owner_marked_during_writing_is_written_in_the_next_turn() -> None:
    def start(flusher: Flusher, calls: list[str]) -> None:
        class Again(Owner):
            def flush(self) -> None:
                super().flush()
                if len(calls) == 1:
                    flusher.mark(self)

        flusher.mark(Again("first", calls))
        flusher.mark(Owner("second", calls))

    assert after_turns(start) == ["first flushed", "second flushed", "first flushed"]


def test_full_owners_are_written_once_when_the_read_ends() -> None:
    def start(flusher: Flusher, calls: list[str]) -> None:
        flusher.mark_full(Owner("full", calls))
        flusher.flush_full()
        calls.append("read on")
        flusher.flush_full()

    assert after_turns(start) == ["full flushed", "read on"]
