"""The numbers of clients for which there are limits, on this node and on the others of its cluster.

A limit is compared with the sum. What the others have is what they said last, so that clients who connect to
several nodes at the same moment can exceed a limit by a few.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import TypeAlias


class ClientCountKind(IntEnum):
    """What is counted; the numbers are those on the wire between nodes."""

    USER_CONNECTIONS = 1
    USER_CHANNELS = 2
    VHOST_CONNECTIONS = 3


# What is counted, and the name of the user or virtual host.
CountKey: TypeAlias = tuple[ClientCountKind, str]


def _nobody(key: CountKey) -> None:
    """The default listener, which does nothing."""


class ClientCounts:
    """The counts of one node, and the sums with those of the others; counts of zero are not kept."""

    __slots__ = ("_here", "elsewhere", "on_changed")

    def __init__(self) -> None:
        self._here: dict[CountKey, int] = {}
        # The counts of each other node that is there, by its id.
        self.elsewhere: dict[int, Mapping[CountKey, int]] = {}
        # Called when a count of this node has changed.
        self.on_changed: Callable[[CountKey], None] = _nobody

    def add(self, kind: ClientCountKind, name: str, change: int) -> None:
        """Add `change` to a count of this node."""
        key = kind, name
        count = self._here.get(key, 0) + change
        if count:
            self._here[key] = count
        else:
            self._here.pop(key, None)
        self.on_changed(key)

    def here(self, key: CountKey) -> int:
        """A count of this node."""
        return self._here.get(key, 0)

    def keys(self) -> Iterable[CountKey]:
        """What this node counts at present."""
        return self._here.keys()

    def total(self, kind: ClientCountKind, name: str) -> int:
        """A count of all nodes."""
        key = kind, name
        count = self._here.get(key, 0)
        for counts in self.elsewhere.values():
            count += counts.get(key, 0)
        return count
