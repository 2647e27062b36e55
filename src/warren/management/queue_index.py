"""The queues of each virtual host in the order of their names, kept up to date: a page is a slice of it."""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import chain

from warren.limits import NAMES_PER_TURN
from warren.limits_metadata import POLICIES_MATCHED_PER_TURN
from warren.metadata.events import (
    Event,
    PoliciesChanged,
    QueueDeclared,
    QueueDeleted,
    QueueMembersChanged,
    VhostRemoved,
)
from warren.metadata.machine import Metadata
from warren.metadata.policies import Policy
from warren.metadata.records import QueueRecord
from warren.metadata.vhosts import VhostMetadata
from warren.model.arguments import QUORUM, STREAM
from warren.queues.vhost_queue import VhostQueue

# The largest size of a block; adding or removing a queue moves the entries behind it in one block.
_BLOCK = 1_024
_NEVER = -1
_RARE_KINDS = (STREAM, QUORUM)
# What matching a policy against a name costs, in names examined.
_MATCH_WORK = NAMES_PER_TURN // POLICIES_MATCHED_PER_TURN


class IndexedQueue:
    """A queue and its virtual host, with cached lookups."""

    __slots__ = ("_generation", "_live", "_policies", "_queues", "record", "vhost")

    def __init__(self, vhost: str, record: QueueRecord) -> None:
        self.vhost = vhost
        self.record = record
        self._queues: dict[str, VhostQueue] | None = None
        self._live: VhostQueue | None = None
        # The generation of all policies in which `_policies` was found; _NEVER if it was not yet.
        self._generation = _NEVER
        self._policies: tuple[Policy | None, Policy | None] = (None, None)

    def policies(self, vhost: VhostMetadata, generation: int) -> tuple[Policy | None, Policy | None]:
        """The policy and the operator policy of the queue, cached while `generation` stays the same."""
        if self._generation != generation:
            self._generation = generation
            # Finding them matches the name against the pattern of every policy.
            self._policies = vhost.policies_of(self.record.name, self.record.kind)
        return self._policies

    def knows_policies(self, generation: int) -> bool:
        """True if `policies` has a cached result of `generation`."""
        return self._generation == generation

    def live(self, queues: dict[str, VhostQueue]) -> VhostQueue | None:
        """The live queue in `queues`, which is a new dict after a restart of its virtual host; else None."""
        if self._live is None or self._queues is not queues:
            self._queues = queues
            # Cached: in a long list, looking up each queue by name takes longer than all else.
            self._live = queues.get(self.record.name)
        return None if self._live is None else self._live.led_here()


def live_queues(
    named: Iterable[IndexedQueue], queues: dict[str, VhostQueue], nothing: VhostQueue
) -> list[VhostQueue]:
    """The live queue of each of `named`; `nothing` in place of one that does not exist."""
    return [
        one._live.led_here()
        if one._live is not None and one._queues is queues
        else one.live(queues) or nothing
        for one in named
    ]


async def find_policies(named: Iterable[IndexedQueue], metadata: Metadata, order: "QueueIndex") -> None:
    """Find the policies of `named`, in slices: each name is matched against all policies."""
    left = NAMES_PER_TURN
    for one in named:
        vhost = metadata.vhost(one.vhost)
        left -= 1
        if vhost is not None and not one.knows_policies(order.policy_generation):
            one.policies(vhost, order.policy_generation)
            left -= (len(vhost.policies.by_name) + len(vhost.operator_policies.by_name)) * _MATCH_WORK
        if left <= 0:
            left = NAMES_PER_TURN
            await asyncio.sleep(0)


def existing_queues(named: Iterable[IndexedQueue], queues: dict[str, VhostQueue]) -> list[VhostQueue]:
    """The live queues of those of `named` that exist."""
    return [live for one in named if (live := one.live(queues)) is not None]


class QueueIndex:
    """The queues of each virtual host, sorted by name."""

    def __init__(self, metadata: Metadata) -> None:
        # Changes whenever the policies of a virtual host change.
        self.policy_generation = 0
        self._by_vhost: dict[str, _SortedQueues] = {}
        # (virtual host, type) -> the queues of a type that may be rare among very many queues.
        self._by_kind: dict[tuple[str, str], _SortedQueues] = {}
        # (virtual host, number of a node) -> how many of its queues are there.
        self._counts: dict[tuple[str, int], int] = {}
        for vhost in metadata.vhosts.by_name.values():
            self._add_all(vhost)
        metadata.listen(
            self._on_event,
            (QueueDeclared, QueueDeleted, QueueMembersChanged, VhostRemoved, PoliciesChanged),
        )

    def of(self, vhost: VhostMetadata) -> list[IndexedQueue]:
        """The queues of `vhost` as a list that does not change later."""
        order = self._by_vhost.get(vhost.name)
        return [] if order is None else order.whole()

    def of_kind(self, vhost: str, kind: str) -> list[IndexedQueue]:
        """The streams or quorum queues of `vhost` as a list that does not change later."""
        assert kind in _RARE_KINDS
        order = self._by_kind.get((vhost, kind))
        return [] if order is None else order.whole()

    def count_at(self, vhost: str, home: int) -> int:
        """The number of queues of `vhost` whose home is the node `home`."""
        return self._counts.get((vhost, home), 0)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, QueueDeclared):
            self._add(event.vhost, event.queue)
        elif isinstance(event, QueueDeleted):
            self._remove(event.vhost, event.queue)
        elif isinstance(event, QueueMembersChanged):
            self._remove(event.vhost, event.before)
            self._add(event.vhost, event.queue)
        elif isinstance(event, VhostRemoved):
            self._by_vhost.pop(event.vhost, None)
            self._counts = {at: count for at, count in self._counts.items() if at[0] != event.vhost}
            for kind in _RARE_KINDS:
                self._by_kind.pop((event.vhost, kind), None)
        elif isinstance(event, PoliciesChanged):
            self.policy_generation += 1

    def _add_all(self, vhost: VhostMetadata) -> None:
        """Add the queues that `vhost` has: sorting them once is faster than adding them one by one."""
        queues = [IndexedQueue(vhost.name, queue) for queue in vhost.topology.queues.values()]
        queues.sort(key=_name)
        self._by_vhost[vhost.name] = _SortedQueues(queues)
        of_kind: dict[str, list[IndexedQueue]] = {kind: [] for kind in _RARE_KINDS}
        for named in queues:
            self._count(vhost.name, named.record)
            kind = named.record.kind
            if kind in of_kind:
                of_kind[kind].append(named)
        for kind, rare in of_kind.items():
            self._by_kind[vhost.name, kind] = _SortedQueues(rare)

    def _count(self, vhost: str, queue: QueueRecord) -> None:
        at = vhost, queue.home
        self._counts[at] = self._counts.get(at, 0) + 1

    def _add(self, vhost: str, queue: QueueRecord) -> None:
        named = IndexedQueue(vhost, queue)
        self._count(vhost, queue)
        self._by_vhost.setdefault(vhost, _SortedQueues()).add(named)
        if queue.kind in _RARE_KINDS:
            self._by_kind.setdefault((vhost, queue.kind), _SortedQueues()).add(named)

    def _remove(self, vhost: str, queue: QueueRecord) -> None:
        self._by_vhost[vhost].remove(queue.name)
        self._counts[vhost, queue.home] -= 1
        if queue.kind in _RARE_KINDS:
            self._by_kind[vhost, queue.kind].remove(queue.name)


class _SortedQueues:
    """The queues of one virtual host, in sorted blocks: all names of a block precede those of the next."""

    __slots__ = ("_blocks", "_last", "_whole")

    def __init__(self, queues: Sequence[IndexedQueue] = ()) -> None:
        """`queues` are sorted by name."""
        # Half full, so that the first to be added need not divide a block.
        starts = range(0, len(queues), _BLOCK // 2)
        self._blocks = [[*queues[start : start + _BLOCK // 2]] for start in starts]
        # The last name of each block.
        self._last = [_name(block[-1]) for block in self._blocks]
        self._whole: list[IndexedQueue] | None = None

    def add(self, named: IndexedQueue) -> None:
        """Add a queue that is not in the index."""
        self._whole = None
        name = named.record.name
        at = bisect_left(self._last, name)
        if at == len(self._blocks):
            if not at:
                self._blocks.append([])
                self._last.append(name)
            else:
                at -= 1
        block = self._blocks[at]
        block.insert(bisect_left(block, name, key=_name), named)
        if len(block) > _BLOCK:
            self._blocks[at : at + 1] = [block[: _BLOCK // 2], block[_BLOCK // 2 :]]
            self._last.insert(at, _name(block[_BLOCK // 2 - 1]))
            at += 1
        self._last[at] = _name(self._blocks[at][-1])

    def remove(self, name: str) -> None:
        """Remove a queue that is in the index."""
        self._whole = None
        at = bisect_left(self._last, name)
        block = self._blocks[at]
        del block[bisect_left(block, name, key=_name)]
        if block:
            self._last[at] = _name(block[-1])
        else:
            del self._blocks[at], self._last[at]

    def whole(self) -> list[IndexedQueue]:
        """All queues in order, as a list that does not change later."""
        if self._whole is None:
            self._whole = list(chain.from_iterable(self._blocks))
        return self._whole


def _name(named: IndexedQueue) -> str:
    return named.record.name
