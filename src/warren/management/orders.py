"""Queues in the order in which they are listed, kept as they come and go: a page is a slice of it."""

from bisect import bisect_left
from itertools import chain

from warren.metadata.events import Event, QueueDeclared, QueueDeleted, VhostRemoved
from warren.metadata.machine import Metadata
from warren.metadata.records import QueueRecord
from warren.metadata.vhosts import Vhost
from warren.queues.classic import ClassicQueue

# Of so many entries at most are those moved behind which one comes or goes.
_BLOCK = 1_024


class Named:
    """A queue, and the virtual host that it is in."""

    __slots__ = ("_live", "_queues", "record", "vhost")

    def __init__(self, vhost: str, record: QueueRecord) -> None:
        self.vhost = vhost
        self.record = record
        self._queues: dict[str, ClassicQueue] | None = None
        self._live: ClassicQueue | None = None

    def live(self, queues: dict[str, ClassicQueue]) -> ClassicQueue | None:
        """What keeps its messages, of the `queues` of its virtual host, which are others after a restart."""
        if self._live is None or self._queues is not queues:
            self._queues = queues
            # Kept: for a list of very many, looking for each by its name takes longer than all else.
            self._live = queues.get(self.record.name)
        return self._live


class QueueOrder:
    """The queues of each virtual host by name."""

    def __init__(self, metadata: Metadata) -> None:
        self._by_vhost: dict[str, _Order] = {}
        for name, vhost in metadata.vhosts.by_name.items():
            for queue in vhost.topology.queues.values():
                self._add(name, queue)
        metadata.listen(self._heed)

    def of(self, vhost: Vhost) -> list[Named]:
        """The queues of `vhost`; the list stays as it is, whatever happens later."""
        order = self._by_vhost.get(vhost.name)
        return [] if order is None else order.whole()

    def _heed(self, event: Event) -> None:
        if isinstance(event, QueueDeclared):
            self._add(event.vhost, event.queue)
        elif isinstance(event, QueueDeleted):
            self._by_vhost[event.vhost].remove(event.queue.name)
        elif isinstance(event, VhostRemoved):
            self._by_vhost.pop(event.vhost, None)

    def _add(self, vhost: str, queue: QueueRecord) -> None:
        order = self._by_vhost.get(vhost)
        if order is None:
            order = self._by_vhost[vhost] = _Order()
        order.add(Named(vhost, queue))


class _Order:
    """Those of one virtual host, in blocks: all names of one come before all of the next."""

    __slots__ = ("_blocks", "_last", "_whole")

    def __init__(self) -> None:
        self._blocks: list[list[Named]] = []
        # The last name of each block.
        self._last: list[str] = []
        self._whole: list[Named] | None = []

    def add(self, named: Named) -> None:
        """A queue that is not there yet."""
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
        """A queue that is there."""
        self._whole = None
        at = bisect_left(self._last, name)
        block = self._blocks[at]
        del block[bisect_left(block, name, key=_name)]
        if block:
            self._last[at] = _name(block[-1])
        else:
            del self._blocks[at], self._last[at]

    def whole(self) -> list[Named]:
        """All of them."""
        if self._whole is None:
            self._whole = list(chain.from_iterable(self._blocks))
        return self._whole


def _name(named: Named) -> str:
    return named.record.name
