"""When a node that has lost a connection to another dials it again."""

from collections.abc import Callable

from warren.limits_cluster import CLUSTER_CONNECTION_GOOD_MS, CLUSTER_REDIAL_MAX_MS, CLUSTER_REDIAL_MIN_MS

# A random byte takes up to a half from each pause, so that nodes that have lost one peer come one by one.
_JITTER = 512


class Redial:
    """The pauses between the attempts for one connection, of which each is twice the one before."""

    __slots__ = ("_connected_at", "_pause", "_random_bytes", "due", "refused_count")

    def __init__(self, random_bytes: Callable[[int], bytes], now: int) -> None:
        self._random_bytes = random_bytes
        self._pause = CLUSTER_REDIAL_MIN_MS
        self._connected_at = now
        # When the next attempt is due.
        self.due = now
        # How many attempts in a row have found that nobody listens there.
        self.refused_count = 0

    def connected(self, now: int) -> None:
        """Note that an attempt has succeeded."""
        self._connected_at = now
        self.refused_count = 0

    def lost(self, now: int) -> None:
        """Note that the connection was lost."""
        if now - self._connected_at >= CLUSTER_CONNECTION_GOOD_MS:
            self._pause = CLUSTER_REDIAL_MIN_MS
        self.failed(now)

    def failed(self, now: int, *, is_refused: bool = False) -> None:
        """Note that an attempt has failed, perhaps because the host says that nobody listens there."""
        self.refused_count = self.refused_count + 1 if is_refused else 0
        self.due = now + self._pause - self._pause * self._random_bytes(1)[0] // _JITTER
        self._pause = min(2 * self._pause, CLUSTER_REDIAL_MAX_MS)
