"""Something that has to be true for a while before it is acted on, since a leader may be changing."""

from collections.abc import Callable

from warren.limits_raft import GROUP_LEAVING_MS


class LastingCondition:
    """Calls an action when a condition was met at two looks in a row, GROUP_LEAVING_MS apart."""

    __slots__ = ("_after", "_is_met", "_is_timed", "_then", "_was_met", "is_begun")

    def __init__(
        self,
        after: Callable[[int, Callable[[], None]], None],
        is_met: Callable[[], bool],
        then: Callable[[], None],
    ) -> None:
        """`after` calls an action after a time in milliseconds."""
        self._after = after
        self._is_met = is_met
        self._then = then
        # True from `begin` until `end`, or until the action is called.
        self.is_begun = False
        self._is_timed = False
        self._was_met = False

    def begin(self) -> None:
        """Begin to look, unless that has begun."""
        if not self.is_begun:
            self.is_begun = True
            self._was_met = False
            self._look_later()

    def end(self) -> None:
        """Look no more."""
        self.is_begun = False

    def _look_later(self) -> None:
        if not self._is_timed:
            self._is_timed = True
            self._after(GROUP_LEAVING_MS, self._look)

    def _look(self) -> None:
        self._is_timed = False
        if not self.is_begun:
            return
        was_met, self._was_met = self._was_met, self._is_met()
        if was_met and self._was_met:
            self.is_begun = False
            self._then()
        else:
            self._look_later()
