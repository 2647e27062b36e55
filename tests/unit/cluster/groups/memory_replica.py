"""A replica in memory: it records what it is told, and says what a test has set."""

from collections.abc import Callable, Sequence

from tests.unit.cluster.link_nodes import Network, TestNode

from warren.cluster.groups.group_replica import GroupReplica
from warren.cluster.groups.parted_channel import PartedChannel
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink
from warren.model.message import StoredMessage
from warren.replication.raft.raft_messages import Entry, RaftMessage


class MemoryReplica(GroupReplica):
    """Replica 1 of a group, which leads in term 3 unless a test says otherwise."""

    def __init__(self, number: int, *, leader: int = 1) -> None:
        self._number = number
        self._leader = leader
        self.commit = 0
        self.is_agreeing = True
        self.calls: list[object] = []
        # Messages on the disk by location, and locations by position in level 0.
        self.disk: dict[int, StoredMessage] = {}
        self.rows: dict[int, int] = {}
        self.entries: dict[int, list[StoredMessage | int | None]] = {}
        self.received: dict[tuple[int, int], StoredMessage] = {}
        self.reads = 0
        self.has_failed = False

    @property
    def number(self) -> int:
        return self._number

    @property
    def replica(self) -> int:
        return 1

    @property
    def term(self) -> int:
        return 3

    @property
    def leader(self) -> int:
        return self._leader

    def step(self, message: RaftMessage) -> None:
        self.calls.append(message)

    def tick(self) -> None:
        self.calls.append("tick")

    def resume_ticks(self) -> None:
        self.calls.append("resume")

    def unreachable(self, replica: int) -> None:
        self.calls.append(("unreachable", replica))

    def forget_leader(self) -> None:
        self._leader = 0

    def leader_ended(self) -> None:
        self.calls.append("leader ended")

    def snapshot_sent(self, replica: int, *, is_done: bool) -> None:
        self.calls.append(("snapshot", replica, is_done))

    def quiet_commit(self) -> int:
        return self.commit

    def agrees(self, term: int, commit: int) -> bool:
        return self.is_agreeing and term == self.term

    def members(self) -> Sequence[int]:
        return (1, 2)

    def contents(self, entry: Entry) -> Sequence[StoredMessage | int | None] | None:
        return self.entries.get(entry.index)

    def read(self, location: int) -> StoredMessage | None:
        self.reads += 1
        return self.disk.get(location)

    def live(self, level: int, position: int, count: int) -> list[tuple[int, int]] | None:
        if self.has_failed:
            return None
        return [row for row in sorted(self.rows.items()) if row[0] >= position][:count]

    def location(self, level: int, position: int) -> int:
        return self.rows.get(position, 0)

    def is_behind(self, message: RaftMessage) -> bool:
        return True

    def ends(self) -> dict[int, int]:
        return {0: max(self.rows) + 1} if self.rows else {}

    def receive(self, message: StoredMessage, level: int, position: int) -> None:
        self.received[level, position] = message

    def when_received(self, callback: Callable[[], None]) -> None:
        self.calls.append(callback)

    def discard_received(self) -> None:
        self.calls.append("discard")
        self.received.clear()


class Pair:
    """Two linked nodes, 1 and 2, with a channel of a purpose at each."""

    def __init__(self, purpose: LinkPurpose) -> None:
        self.network = Network()
        self.one, self.two, self.link, self.back = self.network.pair()
        self.purpose = purpose
        self.channel = PartedChannel(purpose, lambda: self.link)

    def arrived(self, node: TestNode | None = None) -> list[tuple[int, bytes]]:
        """Kinds and bodies of the payloads that have arrived at a node, 2 if none is named."""
        self.network.run(50)
        return [
            (told[1], told[2])
            for told in (node or self.two).told
            if isinstance(told, tuple) and len(told) == 3 and told[0] is self.purpose
        ]

    def find(self) -> NodeLink:
        """The link of node 1."""
        return self.link
