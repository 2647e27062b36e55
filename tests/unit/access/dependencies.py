"""The dependencies of authentication for tests, without threads, real time or randomness."""

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from typing import TypeVar

from warren.access.authenticate import AuthenticationDependencies
from warren.metadata.refusal_check import RefusalCheck

Result = TypeVar("Result")


class FakeFuture:
    """An awaitable result that is available at once, or after `arrive` is called."""

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
class FakeDependencies:
    """Dependencies of authentication with the time `now`; records jobs, waits and reports."""

    now: int = 0
    is_slow: bool = False
    jobs: list[FakeFuture] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)

    def authentication(self, refusal_check: RefusalCheck | None = None) -> AuthenticationDependencies:
        return AuthenticationDependencies(
            thread_pool=self._run_in_thread,
            now=lambda: self.now,
            random_bytes=lambda size: b"salt" * (size // 4),
            wait=self._wait,
            report=self.reports.append,
            refusal_check=refusal_check,
        )

    def _run_in_thread(self, job: Callable[[], bool]) -> FakeFuture:
        answer = FakeFuture(job, is_there=not self.is_slow)
        self.jobs.append(answer)
        return answer

    def _wait(self, pause_ms: int) -> FakeFuture:
        self.waits.append(pause_ms)
        self.now += pause_ms
        return FakeFuture(lambda: None)


def finished(coroutine: Coroutine[object, None, Result]) -> Result:
    """The result of `coroutine`, which must not suspend."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the coroutine suspended")
