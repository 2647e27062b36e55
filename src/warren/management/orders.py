"""Queues in the order in which they are listed, kept between requests: a page is a slice of it."""

from typing import TypeAlias

from warren.metadata.events import Event, QueueDeclared, QueueDeleted, VhostRemoved
from warren.metadata.machine import Metadata
from warren.metadata.records import QueueRecord
from warren.metadata.vhosts import Vhost

# A virtual host, and a queue in it.
Named: TypeAlias = tuple[str, QueueRecord]


class QueueOrder:
    """The queues of each virtual host by name."""

    def __init__(self, metadata: Metadata) -> None:
        self._sorted: dict[str, list[Named]] = {}
        # The virtual hosts in which queues came or went since.
        self._changed: set[str] = set()
        metadata.listen(self._heed)

    def of(self, vhost: Vhost) -> list[Named]:
        """The queues of `vhost`; whoever asks leaves the list as it is."""
        known = self._sorted.get(vhost.name)
        if known is None or vhost.name in self._changed:
            self._changed.discard(vhost.name)
            queues = vhost.topology.queues
            names = [named[1].name for named in known or () if named[1].name in queues]
            names += sorted(queues.keys() - set(names))
            # Two runs, each in order: no more than a walk along both.
            names.sort()
            known = self._sorted[vhost.name] = [(vhost.name, queues[name]) for name in names]
        return known

    def _heed(self, event: Event) -> None:
        if isinstance(event, QueueDeclared | QueueDeleted):
            if event.vhost in self._sorted:
                self._changed.add(event.vhost)
        elif isinstance(event, VhostRemoved):
            self._sorted.pop(event.vhost, None)
            self._changed.discard(event.vhost)
