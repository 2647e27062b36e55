"""What this node knows of the others by their pings: their alarms, which block publishers here, and the rest.

It is forgotten when a node falls silent, is down or removed: a node that is gone has no alarm.
"""

from collections.abc import Callable, Mapping

from warren.cluster.node_digest import NodeDigest, decode_digest
from warren.cluster.node_link import NodeLink
from warren.flow.alarms import Alarms
from warren.metadata.machine import Metadata


class OtherNodes:
    """The last digest of each other member that is up and heard."""

    def __init__(self, metadata: Metadata, alarms: Alarms, report: Callable[[str], None]) -> None:
        """`report` is called with what an operator should know."""
        self._metadata = metadata
        self._alarms = alarms
        self._report = report
        self._digests: dict[int, NodeDigest] = {}
        # The digests as they were received: most are like the one before.
        self._received: dict[int, bytes] = {}
        self._names: dict[int, str] = {}

    @property
    def digests(self) -> Mapping[int, NodeDigest]:
        """The digests, by the ids of their nodes."""
        return self._digests

    def pinged(self, link: NodeLink, data: bytes) -> None:
        """Take the digest of a ping; an empty one says nothing. Raises PayloadError if it is malformed."""
        node = link.peer.node_id
        if not data or self._received.get(node) == data:
            return
        digest = decode_digest(data)
        if self._metadata.members.run_of(node) is None:
            # The others do not count on it; it says the same again when it is up.
            return
        self._received[node] = data
        self._digests[node] = digest
        self._names[node] = link.peer.name
        self._tell_alarms(node, digest)

    def forget(self, node: int) -> None:
        """Forget what a node has told."""
        if self._digests.pop(node, None) is not None:
            del self._received[node]
            self._tell_alarms(node, NodeDigest())
            del self._names[node]

    def _tell_alarms(self, node: int, digest: NodeDigest) -> None:
        name = self._names[node]
        before = self._alarms.others.get(name, ())
        self._alarms.tell(name, digest.alarms)
        for resource in digest.alarms:
            if resource not in before:
                self._report(f"{resource.value} alarm of {name}: publishers wait until it is cleared there")
        for resource in before:
            if resource not in digest.alarms:
                self._report(f"no {resource.value} alarm of {name} any more")
