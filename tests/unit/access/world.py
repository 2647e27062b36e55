"""A world for logging in, without threads, time or chance."""

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from typing import TypeVar

from warren.access.authenticate import AuthenticationDependencies

Result = TypeVar("Result")


class Ready:
    """An answer that is there already, or comes with `arrive`."""

    def __init__(self, job: Callable[[], object], *, is_there: bool = True) -> None:
        self._job = job
        self._is_there = is_there
        self._callbacks: list[Callable[[object], None]] = []

    def __await__(self) -> Generator[object, None, object]:
        while not self._is_there:
            yield self
        return self._job()

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        if self._is_there:
            callback(self)
        else:
            self._callbacks.append(callback)

    def arrive(self) -> None:
        self._is_there = True
        for callback in self._callbacks:
            callback(self)


@dataclass
class Imagined:
    """What it is told by `now`, and how it is used."""

    now: int = 0
    is_slow: bool = False
    jobs: list[Ready] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)

    def world(self) -> AuthenticationDependencies:
        return AuthenticationDependencies(
            thread_pool=self._labour,
            now=lambda: self.now,
            random_octets=lambda size: b"salt" * (size // 4),
            wait=self._wait,
            report=self.reports.append,
        )

    def _labour(self, job: Callable[[], bool]) -> Ready:
        answer = Ready(job, is_there=not self.is_slow)
        self.jobs.append(answer)
        return answer

    def _wait(self, pause_ms: int) -> Ready:
        self.waits.append(pause_ms)
        self.now += pause_ms
        return Ready(lambda: None)


def finished(coroutine: Coroutine[object, None, Result]) -> Result:
    """What `coroutine`, which waits for nothing, gives."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits for something")
