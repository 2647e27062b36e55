"""The traffic of all replicas on this node with those on the others: see docs/internals/groups.md.

    control │ votes, heartbeats and answers to them; SLEEP, WAKE and comparisons of what sleeps
    data    │ appends and their answers; who leads
    bulk    │ snapshots

Messages of one turn to one node leave together, at its end. What a link does not take is dropped or waits:
see `replica_outbox`. A replica whose messages were dropped is told that the other one is unreachable.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from warren.cluster.groups.group_leaders import GroupLeaders
from warren.cluster.groups.group_payloads import KINDS, GroupPayload
from warren.cluster.groups.group_replica import GroupReplica
from warren.cluster.groups.group_ticks import GroupTicks
from warren.cluster.groups.parted_channel import PartedChannel
from warren.cluster.groups.raft_message_reader import RaftMessageReader
from warren.cluster.groups.replica_outbox import EncodedEntries, ReplicaOutbox
from warren.cluster.groups.replica_place import ReplicaPlace
from warren.cluster.groups.snapshot_receiver import SnapshotReceiver
from warren.cluster.groups.snapshot_sender import SnapshotSender
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink, PayloadError
from warren.limits_raft import GROUP_EARLY_MESSAGES_MAX, GROUP_TICK_MS
from warren.model.coroutine_driver import Later
from warren.replication.raft.raft_messages import MessageKind, RaftMessage

_TICKED = frozenset((GroupPayload.SLEEP, GroupPayload.WAKE, GroupPayload.DIGEST, GroupPayload.SLEEPING))
_HEARTBEATS = frozenset({MessageKind.HEARTBEAT, MessageKind.HEARTBEAT_RESPONSE})
_CHANCE_SIZE = 8


class GroupTrafficDependencies(Struct, frozen=True, kw_only=True):
    """The parts of this node that the traffic of its replicas needs."""

    # The number of this node, and the links to the other members, by their numbers.
    node: int
    links: Mapping[int, NodeLink]
    later: Later
    # Calls an action after a time in milliseconds.
    after: Callable[[int, Callable[[], None]], None]
    # Called with what an operator should know.
    report: Callable[[str], None]


class GroupTraffic:
    """All replicas on this node, by the numbers of their groups."""

    def __init__(self, dependencies: GroupTrafficDependencies) -> None:
        self._node = dependencies.node
        self._links = dependencies.links
        self._later = dependencies.later
        self._after = dependencies.after
        self._is_tick_due = False
        self._places: dict[int, ReplicaPlace] = {}
        self._outboxes: dict[int, ReplicaOutbox] = {}
        self._bulk: dict[int, PartedChannel] = {}
        self._is_flush_due = False
        self.ticks = GroupTicks(
            self._node, self._links, self._places, lambda node: self._outbox(node).control,
            awake=self._tick_later,
        )  # fmt: skip
        # Who leads which group.
        self.leaders = GroupLeaders(self._node, self._flush_later, self._leader_ended)
        bulk, report = self._bulk_channel, dependencies.report
        self._snapshots = SnapshotSender(self._places, bulk, self._later, report)
        self._received = SnapshotReceiver(self._places, bulk, self._later, report)
        # Messages for groups of which this node has not heard yet, and those of the time before.
        self._early: dict[int, list[tuple[int, RaftMessage]]] = {}
        self._earlier: dict[int, list[tuple[int, RaftMessage]]] = {}
        self._early_count = 0
        # Messages that concern no replica here, such as one that has left.
        self.dropped_count = 0

    def is_awake(self, number: int) -> bool:
        """True if the replica of a group is ticked."""
        place = self._places.get(number)
        return place is not None and place.is_awake

    def waiting_count(self, node: int) -> int:
        """The number of messages that wait for the link to `node`."""
        return self._outbox(node).waiting_count

    @property
    def transfer_count(self) -> int:
        """The number of snapshots that are sent, wait to be sent, or are received."""
        return self._snapshots.count + self._received.count

    # --- what replicas call ---------------------------------------------------------------------------

    def add(self, replica: GroupReplica, nodes: Mapping[int, int]) -> None:
        """Let a replica take part; `nodes` has the node of each replica of its group."""
        self.remove(replica.number)
        number = replica.number
        place = self._places[number] = ReplicaPlace(replica, dict(nodes))
        self.ticks.begin(place)
        early = [*self._earlier.pop(number, ()), *self._early.pop(number, ())]
        if early:
            self._later(lambda _: self._step_early(number, early))

    def move(self, number: int, nodes: Mapping[int, int]) -> None:
        """The replicas of a group are on other nodes from now on."""
        place = self._places[number]
        self.ticks.worked(place)
        place.nodes = dict(nodes)

    def remove(self, number: int) -> None:
        """Forget the replica of a group, which has ended here; others are told if it was the leader."""
        place = self._places.pop(number, None)
        if place is None:
            return
        if place.leads:
            self.leaders.resigned(number, place.replica.term)
        self.ticks.end(place)
        for outbox in self._outboxes.values():
            outbox.forget(number)
        self._snapshots.forget(number)
        self._received.forget(number)

    def proposed(self, number: int) -> None:
        """Something is about to be proposed or read at a replica: it has to be awake."""
        place = self._places.get(number)
        if place is not None:
            self.ticks.worked(place)

    def send(self, number: int, messages: Sequence[RaftMessage]) -> None:
        """Send messages of the replica of a group to others."""
        place = self._places.get(number)
        if place is not None:
            for message in messages:
                self._send(place, message)
            self._flush_later()

    def tick(self, elapsed_ms: int) -> None:
        """Note that some time has passed; groups that are awake have a timer of their own."""
        self.ticks.compare(elapsed_ms)
        self.dropped_count += sum(map(len, self._earlier.values()))
        self._earlier, self._early, self._early_count = self._early, {}, 0

    # --- what the links tell --------------------------------------------------------------------------

    @staticmethod
    def takes(kind: int) -> bool:
        """True if payloads of `kind` are for `received`, on whatever connection."""
        return kind in KINDS

    def received(self, link: NodeLink, purpose: LinkPurpose, kind: int, body: bytes) -> None:
        """Take a payload of another node. PayloadError."""
        node = link.peer.node_id
        whole = self._channel(node, purpose).received(kind, body)
        if whole is None:
            return
        if purpose is LinkPurpose.BULK:
            if not self._snapshots.received(node, kind, whole):
                self._received.received(node, kind, whole)
        elif kind == GroupPayload.MESSAGES:
            reader = RaftMessageReader(whole)
            while not reader.is_at_end:
                number, message = reader.message()
                self._step(node, number, message)
        elif kind == GroupPayload.LEADERS and purpose is LinkPurpose.DATA:
            self.leaders.received(node, whole)
        elif kind in _TICKED and purpose is LinkPurpose.CONTROL:
            self.ticks.received(node, kind, whole)
        else:
            raise PayloadError(f"payload of kind {kind} on a {purpose.name} connection")

    def session_began(self, link: NodeLink, purpose: LinkPurpose) -> None:
        """Tell a node what it does not know."""
        if purpose is LinkPurpose.DATA:
            self.leaders.session_began(link.peer.node_id)

    def session_lost(self, link: NodeLink, purpose: LinkPurpose) -> None:
        """Note that what was sent may not have arrived, and what was to be received will not come."""
        node = link.peer.node_id
        self._channel(node, purpose).lost()
        if purpose is LinkPurpose.BULK:
            self._snapshots.session_lost(node)
            self._received.session_lost(node)
            return
        if purpose is LinkPurpose.DATA:
            self.leaders.session_lost(node)
        outbox = self._outbox(node)
        outbox.drop()
        outbox.take_lost()
        self.ticks.wake_with(node)
        for place in list(self._places.values()):
            if place.leads:
                for replica, at in place.nodes.items():
                    if at == node:
                        place.replica.unreachable(replica)

    def silent(self, link: NodeLink) -> None:
        """Watch the leaders on a node by ticks again, and follow another one at once if it has ended."""
        node = link.peer.node_id
        self.ticks.wake_with(node)
        if link.is_gone:
            for place in list(self._places.values()):
                if place.leader_node == node:
                    self.ticks.leader_ended(place)

    def heard(self, link: NodeLink) -> None:
        """Tell a node what it could not be told while it was silent."""
        self._flush_later()

    def writable(self, link: NodeLink, purpose: LinkPurpose) -> None:
        """Go on with what waits for the link."""
        self._channel(link.peer.node_id, purpose).continue_sending()
        if purpose is LinkPurpose.BULK:
            self._snapshots.writable(link.peer.node_id)
        else:
            self._flush_later()

    # --- private --------------------------------------------------------------------------------------

    def _send(self, place: ReplicaPlace, message: RaftMessage) -> None:
        if message.kind not in _HEARTBEATS or message.context:
            self.ticks.worked(place)
        node = place.nodes.get(message.to, self._node)
        if node == self._node:
            # It is no member any more, or not yet one by the record of the queue.
            self.dropped_count += 1
            return
        if message.snapshot is not None:
            self._snapshots.send(place, node, message)
        else:
            self._outbox(node).add(place.replica, message)

    def _step(self, node: int, number: int, message: RaftMessage) -> None:
        """Hand a message to the replica that it is for."""
        place = self._places.get(number)
        if place is None and not message.entries and self._early_count < GROUP_EARLY_MESSAGES_MAX:
            # Who declares a queue may be faster than the metadata are here.
            self._early_count += 1
            self._early.setdefault(number, []).append((node, message))
            return
        if place is None or message.to != place.replica.replica or place.nodes.get(message.sender) != node:
            self.dropped_count += 1
            return
        if message.snapshot is not None:
            raise PayloadError("a snapshot without its messages")
        if not place.is_awake and message.kind is MessageKind.HEARTBEAT_RESPONSE and not message.context:
            # The answer to what this leader has sent before it fell asleep.
            return
        if message.kind in _HEARTBEATS:
            self.ticks.wake(place)
        else:
            self.ticks.worked(place)
        self._received.step(place, message)

    def _step_early(self, number: int, early: Sequence[tuple[int, RaftMessage]]) -> None:
        """Hand messages to the replica that has begun after they came."""
        for node, message in early:
            if number in self._places:
                self._step(node, number, message)

    def _tick_later(self) -> None:
        """Tick the groups that are awake, GROUP_TICK_MS from now on; while all sleep there is no timer."""
        if not self._is_tick_due:
            self._is_tick_due = True
            self._after(GROUP_TICK_MS, self._tick_groups)

    def _tick_groups(self) -> None:
        self._is_tick_due = False
        try:
            self.ticks.tick()
            self._received.tick()
            self._snapshots.tick()
            self._flush()
        finally:
            # An error of this tick is not the last of all groups.
            if self.ticks.awake_count:
                self._tick_later()

    def _leader_ended(self, number: int, node: int, term: int) -> None:
        """Follow another leader at once, since that one has ended while its node goes on."""
        place = self._places.get(number)
        if place is not None and place.leader_node == node and place.replica.term == term:
            self.ticks.leader_ended(place)

    def _flush_later(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._later(self._flush_due)

    def _flush_due(self, _: int) -> None:
        if self._is_flush_due:
            self._flush()

    def _flush(self) -> None:
        """Send what has been collected."""
        self._is_flush_due = False
        encoded: EncodedEntries = {}
        is_more = False
        lost: list[tuple[GroupReplica, int]] = []
        for node in sorted({*self._outboxes, *self._links}):
            outbox = self._outbox(node)
            link = self._links.get(node)
            if link is None or link.is_silent:
                outbox.drop()
            else:
                self.leaders.flush(node, outbox.data)
                is_more = outbox.flush(encoded) or is_more
            lost += outbox.take_lost()
        for replica, to in lost:
            replica.unreachable(to)
        if is_more:
            self._flush_later()

    def _outbox(self, node: int) -> ReplicaOutbox:
        found = self._outboxes.get(node)
        if found is None:
            found = self._outboxes[node] = ReplicaOutbox(lambda: self._links.get(node))
        return found

    def _bulk_channel(self, node: int) -> PartedChannel:
        found = self._bulk.get(node)
        if found is None:
            found = self._bulk[node] = PartedChannel(LinkPurpose.BULK, lambda: self._links.get(node))
        return found

    def _channel(self, node: int, purpose: LinkPurpose) -> PartedChannel:
        if purpose is LinkPurpose.BULK:
            return self._bulk_channel(node)
        outbox = self._outbox(node)
        return outbox.data if purpose is LinkPurpose.DATA else outbox.control


def election_chance(random_bytes: Callable[[int], bytes]) -> Callable[[int], int]:
    """Numbers below an argument, for the timeouts of elections, from the random bytes of a node."""
    return lambda below: int.from_bytes(random_bytes(_CHANCE_SIZE), "big") % below
