"""The leases of one vhost: which messages of a queue a client holds exclusively, and until when.

Invariants: a queue has one lease for each user and key, including ended ones that are remembered; a lease
ends once. The places of a settled lease are remembered as long as the lease is: after a crash some of its
messages may reappear, and must not be delivered again.
"""

from collections.abc import Iterator
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from warren.limits import LEASES_ENDED_MAX


class LeaseState(Enum):
    """The state of a lease; all but the first are final."""

    ACTIVE = "active"
    # Its messages are acknowledged.
    SETTLED = "settled"
    # Its messages were returned to the queue, on request or because the lease expired.
    REQUEUED = "requeued"
    EXPIRED = "expired"


class LeaseRecord(Struct, frozen=True, kw_only=True):
    """A lease as it was granted, and its state."""

    id: str
    queue: str
    # The user, and a key chosen by the user: another request with the same key returns the same lease.
    user: str
    key: str
    # Pairs: begin and end of each range of places of the queue that belong to it.
    places: tuple[int, ...]
    messages: int
    byte_count: int
    granted_at: int
    expires_at: int
    state: LeaseState = LeaseState.ACTIVE

    @property
    def is_active(self) -> bool:
        """True while its messages are reserved."""
        return self.state is LeaseState.ACTIVE


class Leases:
    """The leases of one vhost."""

    __slots__ = ("_by_key", "_ended", "by_id")

    def __init__(self) -> None:
        self.by_id: dict[str, LeaseRecord] = {}
        self._by_key: dict[tuple[str, str, str], LeaseRecord] = {}
        # Ended leases, in the order of ending.
        self._ended: dict[str, None] = {}

    def of_key(self, queue: str, user: str, key: str) -> LeaseRecord | None:
        """The lease of `queue` that `user` got for `key`; None if there is none."""
        return self._by_key.get((queue, user, key))

    def of_queue(self, queue: str) -> list[LeaseRecord]:
        """The leases of `queue`, oldest first."""
        return [lease for lease in self.by_id.values() if lease.queue == queue]

    def active(self) -> Iterator[LeaseRecord]:
        """The leases that have not ended."""
        return (lease for lease in self.by_id.values() if lease.is_active)

    def add(self, lease: LeaseRecord) -> bool:
        """Add `lease`; False if there is one with its key or id already."""
        if lease.id in self.by_id or self.of_key(lease.queue, lease.user, lease.key) is not None:
            return False
        self._put(lease)
        if not lease.is_active:
            self._note_end(lease)
        return True

    def renew(self, id: str, expires_at: int) -> bool:
        """Set the expiry of an active lease to `expires_at` (ms); False if there is none with the id."""
        lease = self.by_id.get(id)
        if lease is None or not lease.is_active:
            return False
        self._put(replace(lease, expires_at=expires_at))
        return True

    def end(self, id: str, state: LeaseState) -> LeaseRecord | None:
        """End an active lease; returns it as it was, None if there is none with the id."""
        lease = self.by_id.get(id)
        if lease is None or not lease.is_active:
            return None
        ended = replace(lease, state=state)
        if state is not LeaseState.SETTLED:
            ended = replace(ended, places=())
        self._put(ended)
        self._note_end(ended)
        return lease

    def forget_queue(self, queue: str) -> None:
        """Remove the leases of `queue`, which was deleted."""
        for lease in self.of_queue(queue):
            self._forget(lease)

    def _put(self, lease: LeaseRecord) -> None:
        self.by_id[lease.id] = lease
        self._by_key[lease.queue, lease.user, lease.key] = lease

    def _note_end(self, lease: LeaseRecord) -> None:
        self._ended[lease.id] = None
        while len(self._ended) > LEASES_ENDED_MAX:
            self._forget(self.by_id[next(iter(self._ended))])

    def _forget(self, lease: LeaseRecord) -> None:
        del self.by_id[lease.id]
        del self._by_key[lease.queue, lease.user, lease.key]
        self._ended.pop(lease.id, None)
