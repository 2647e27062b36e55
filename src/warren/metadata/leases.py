"""Leases of one vhost: which messages of a queue somebody works on, and until when nobody else gets them.

Invariants: a queue has one lease of a key and user, ended ones that are remembered included; a lease ends
once. Of one that ended by acknowledging the places are remembered, as long as the lease is: after a crash
some of its messages may be there, and are not to be handed out again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from warren.limits import LEASES_ENDED_MAX


class LeaseState(Enum):
    """How a lease is; all but the first are ends."""

    ACTIVE = "active"
    # Its messages are done with.
    SETTLED = "settled"
    # They went back, as somebody wanted it, or as nobody wanted anything in time.
    REQUEUED = "requeued"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """A lease as it was granted, and what became of it."""

    id: str
    queue: str
    # Who has it, and what for: asked for again by the same user, the same key is the same lease.
    user: str
    key: str
    # Pairs: where places of the queue begin that belong to it, and where they end.
    places: tuple[int, ...]
    messages: int
    octets: int
    granted_at: int
    expires_at: int
    state: LeaseState = LeaseState.ACTIVE

    @property
    def is_active(self) -> bool:
        """True while nobody else gets its messages."""
        return self.state is LeaseState.ACTIVE


class Leases:
    """The leases of one vhost."""

    __slots__ = ("_by_key", "_ended", "by_id")

    def __init__(self) -> None:
        self.by_id: dict[str, LeaseRecord] = {}
        self._by_key: dict[tuple[str, str, str], LeaseRecord] = {}
        # Those that ended, in this order.
        self._ended: dict[str, None] = {}

    def of_key(self, queue: str, user: str, key: str) -> LeaseRecord | None:
        """The lease of `queue` that `user` got for `key`."""
        return self._by_key.get((queue, user, key))

    def of_queue(self, queue: str) -> list[LeaseRecord]:
        """The leases of `queue`, the eldest first."""
        return [lease for lease in self.by_id.values() if lease.queue == queue]

    def active(self) -> Iterator[LeaseRecord]:
        """Those that have not ended."""
        return (lease for lease in self.by_id.values() if lease.is_active)

    def add(self, lease: LeaseRecord) -> bool:
        """Have `lease`; False if there is one of its key, or id, already."""
        if lease.id in self.by_id or self.of_key(lease.queue, lease.user, lease.key) is not None:
            return False
        self._put(lease)
        if not lease.is_active:
            self._note_end(lease)
        return True

    def renew(self, id: str, expires_at: int) -> bool:
        """Have an active lease end at `expires_at`, unless it is ended before."""
        lease = self.by_id.get(id)
        if lease is None or not lease.is_active:
            return False
        self._put(replace(lease, expires_at=expires_at))
        return True

    def end(self, id: str, state: LeaseState) -> LeaseRecord | None:
        """End an active lease; answers it as it was, None if there is no such."""
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
        """`queue` is gone, and its leases with it."""
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
