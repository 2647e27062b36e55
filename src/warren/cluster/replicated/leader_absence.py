"""Those that wait for the leader of one quorum queue: until there is another one, or for too long."""

from collections.abc import Callable
from typing import Protocol

from warren.client.answer import Answer
from warren.errors import LeaderTimeout
from warren.model.turn import Turn

# How often it is checked who has waited for too long (ms).
_CHECK_MS = 500


class Bounded(Protocol):
    """Port: what is awaited."""

    is_done: bool

    def fail(self, error: Exception) -> None:
        """Raise `error` in who waits."""


class LeaderAbsence:
    """What methods of clients await: a leader, or its answer."""

    __slots__ = ("_after", "_answers", "_is_timed", "_turn", "_waiting")

    def __init__(self, turn: Turn, after: Callable[[int, Callable[[], None]], None]) -> None:
        """`after` calls an action after a time in milliseconds."""
        self._turn = turn
        self._after = after
        self._waiting: list[Answer[None]] = []
        # What is awaited -> until when (ms), and the error that follows.
        self._answers: dict[Bounded, tuple[int, str]] = {}
        self._is_timed = False

    def change(self, until: int, text: str) -> Answer[None]:
        """Complete when the leader has changed; LeaderTimeout with `text` at `until` (ms)."""
        answer: Answer[None] = Answer()
        self._waiting.append(answer)
        self.bound(answer, until, text)
        return answer

    def bound(self, answer: "Bounded", until: int, text: str) -> None:
        """Have `answer` fail with LeaderTimeout and `text` at `until` (ms), unless it is completed."""
        self._answers[answer] = until, text
        self._check_later()

    def changed(self) -> None:
        """The leader has changed."""
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            self._answers.pop(answer, None)
            answer.complete(None)

    def end(self, error: Exception) -> None:
        """Raise `error` in all that wait for a leader, since the queue was deleted."""
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            self._answers.pop(answer, None)
            answer.fail(error)

    def _check_later(self) -> None:
        if not self._is_timed and self._answers:
            self._is_timed = True
            self._after(_CHECK_MS, self._check)

    def _check(self) -> None:
        self._is_timed = False
        now = self._turn.now()
        for answer, (until, text) in list(self._answers.items()):
            if answer.is_done:
                del self._answers[answer]
            elif until <= now:
                del self._answers[answer]
                answer.fail(LeaderTimeout(text))
        self._waiting = [answer for answer in self._waiting if not answer.is_done]
        self._check_later()
