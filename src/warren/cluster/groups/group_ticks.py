"""Ticks of the groups that are awake, and the sleep of those that have nothing to do.

    no work for GROUP_SLEEP_TICKS, all members have and know everything ─▶ the leader sleeps, and says SLEEP
    SLEEP ─▶ who agrees sleeps as well; who does not says WAKE
    a message, a proposal, WAKE, a link that is silent or was lost, a difference ─▶ awake

A group that sleeps costs neither ticks nor heartbeats: what its followers watch in place of the leader is the
link to its node. So a leader sleeps only while all members are heard, and a link that is silent, or whose
session is lost, wakes the groups of both nodes. What was told of that and has not arrived is found by a
comparison of hashes (`sleeping_groups`), from time to time and for each pair of nodes.
"""

from collections.abc import Callable, Iterable, Mapping

from warren.cluster.groups.group_payloads import NUMBER, SLEEP_ROW, VERSION, GroupPayload
from warren.cluster.groups.parted_channel import PartedChannel
from warren.cluster.groups.raft_message_reader import RaftMessageReader
from warren.cluster.groups.replica_place import ReplicaPlace
from warren.cluster.groups.sleeping_groups import SleepingGroups
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink, PayloadError
from warren.limits_raft import GROUP_COMPARED_MS, GROUP_PAYLOAD_SIZE, GROUP_SLEEP_TICKS

_VERSION = bytes((VERSION,))
_ROWS_MAX = GROUP_PAYLOAD_SIZE // SLEEP_ROW.size


class GroupTicks:
    """Which groups of this node are awake."""

    def __init__(
        self,
        node: int,
        links: Mapping[int, NodeLink],
        places: Mapping[int, ReplicaPlace],
        control: Callable[[int], PartedChannel],
        *,
        awake: Callable[[], None] = lambda: None,
    ) -> None:
        """`places` has all replicas of this `node`, and `control` the control connection to another node.

        `awake` is called when a group has to be ticked.
        """
        self._node = node
        self._links = links
        self._places = places
        self._control = control
        self._awake: dict[int, ReplicaPlace] = {}
        self._sleeping: dict[int, SleepingGroups] = {}
        self._on_awake = awake
        # Time since the last comparison.
        self._compared_ms = 0

    @property
    def awake_count(self) -> int:
        """The number of groups that are ticked."""
        return len(self._awake)

    def begin(self, place: ReplicaPlace) -> None:
        """Tick a replica from now on."""
        place.is_awake = True
        self._awake[place.number] = place
        self._on_awake()

    def end(self, place: ReplicaPlace) -> None:
        """Forget a replica."""
        if place.is_awake:
            self._awake.pop(place.number, None)
        else:
            self._forget_sleep(place)

    def worked(self, place: ReplicaPlace) -> None:
        """Something has happened to a group, so that it is awake for a while."""
        place.idle_ticks = 0
        self.wake(place)

    def wake(self, place: ReplicaPlace) -> None:
        """Tick a group again that may sleep."""
        if place.is_awake:
            return
        self._forget_sleep(place)
        place.idle_ticks = 0
        self.begin(place)
        place.replica.resume_ticks()

    def wake_with(self, node: int) -> None:
        """Wake the groups that this node leads with a member on `node`, and those that are led there."""
        for place in list(self._places.values()):
            if not place.is_awake and (place.leader_node == node or (place.leads and place.concerns(node))):
                self.wake(place)

    def tick(self) -> None:
        """Tick all groups that are awake; what they send follows."""
        sleepy: dict[int, list[bytes]] = {}
        heard: dict[int, bool] = {}
        for place in list(self._awake.values()):
            if place.leads and self._sleeps(place, heard):
                self._fall_asleep(place)
                row = SLEEP_ROW.pack(place.number, *place.quiet)
                for node in self._others(place):
                    sleepy.setdefault(node, []).append(row)
            else:
                if place.campaign_in:
                    self._count_down(place)
                place.replica.tick()
        for node, rows in sleepy.items():
            self._send(node, GroupPayload.SLEEP, rows)

    def compare(self, elapsed_ms: int) -> None:
        """Note that some time has passed, and begin a comparison of what sleeps if it is due."""
        self._compared_ms += elapsed_ms
        if self._compared_ms >= GROUP_COMPARED_MS:
            self._compared_ms = 0
            self._compare()

    def leader_ended(self, place: ReplicaPlace) -> None:
        """The leader of a group has ended: the members campaign one after the other, until one leads."""
        self.worked(place)
        place.campaign_in = 1 + place.rank()
        place.replica.forget_leader()

    # --- what other nodes tell ------------------------------------------------------------------------

    def received(self, node: int, kind: int, body: bytes) -> None:
        """Take a payload of a node. PayloadError."""
        if kind == GroupPayload.SLEEP:
            self._told_to_sleep(node, body)
        elif kind == GroupPayload.WAKE:
            reader = RaftMessageReader(body)
            while not reader.is_at_end:
                place = self._places.get(reader.number(NUMBER.size))
                if place is not None and place.concerns(node):
                    self.worked(place)
        elif kind == GroupPayload.DIGEST:
            ours = self._sleeping_with(node)
            for payload in ours.lists(ours.differing(body)):
                self._send_whole(node, GroupPayload.SLEEPING, payload)
        elif kind == GroupPayload.SLEEPING:
            self._wake_both(node, self._sleeping_with(node).differences(body))
        else:
            raise PayloadError(f"payload of the unknown kind {kind}")

    def _told_to_sleep(self, node: int, body: bytes) -> None:
        reader = RaftMessageReader(body)
        disagreeing: list[int] = []
        while not reader.is_at_end:
            number, term, commit = reader.numbers(SLEEP_ROW)
            place = self._places.get(number)
            if place is None or not place.concerns(node):
                continue
            if place.leader_node == node and place.replica.agrees(term, commit):
                self._fall_asleep(place)
            else:
                disagreeing.append(number)
        self._tell_to_wake(node, disagreeing)

    # --- private --------------------------------------------------------------------------------------

    def _count_down(self, place: ReplicaPlace) -> None:
        place.campaign_in -= 1
        if place.replica.leader:
            place.campaign_in = 0
        elif not place.campaign_in:
            place.replica.leader_ended()

    def _sleeps(self, place: ReplicaPlace, heard: dict[int, bool]) -> bool:
        """True if a leader has had nothing to do for long enough, and may rely on the links."""
        commit = place.replica.quiet_commit()
        quiet = place.replica.term, commit
        if not commit or quiet != place.quiet:
            place.quiet = quiet
            place.idle_ticks = 0
            return False
        place.idle_ticks += 1
        if place.idle_ticks < GROUP_SLEEP_TICKS:
            return False
        nodes = place.nodes
        return all(
            member in nodes and self._is_heard(nodes[member], heard) for member in place.replica.members()
        )

    def _is_heard(self, node: int, known: dict[int, bool]) -> bool:
        """True if `node` is heard, as the link said at the first question of a tick."""
        found = known.get(node)
        if found is None:
            link = self._links.get(node)
            found = known[node] = node == self._node or (
                link is not None and not link.is_silent and link.is_writable(LinkPurpose.CONTROL)
            )
        return found

    def _fall_asleep(self, place: ReplicaPlace) -> None:
        if not place.is_awake:
            return
        place.is_awake = False
        del self._awake[place.number]
        place.slept = place.replica.term, place.replica.leader
        for node in self._others(place):
            self._sleeping_with(node).add(place.number, *place.slept)

    def _forget_sleep(self, place: ReplicaPlace) -> None:
        for node in self._others(place):
            self._sleeping_with(node).remove(place.number)

    def _others(self, place: ReplicaPlace) -> Iterable[int]:
        """The nodes of the other replicas, in ascending order."""
        return sorted({*place.nodes.values()} - {self._node})

    def _sleeping_with(self, node: int) -> SleepingGroups:
        found = self._sleeping.get(node)
        if found is None:
            found = self._sleeping[node] = SleepingGroups()
        return found

    def _compare(self) -> None:
        """Begin a comparison with the nodes whose numbers are higher: one for each pair."""
        for node in sorted(self._sleeping):
            if node > self._node:
                self._send_whole(node, GroupPayload.DIGEST, self._sleeping[node].digest())

    def _wake_both(self, node: int, numbers: Iterable[int]) -> None:
        """Wake groups here and at `node`, which do not agree about their sleep."""
        found = []
        for number in numbers:
            place = self._places.get(number)
            if place is not None and place.concerns(node):
                self.worked(place)
                found.append(number)
        self._tell_to_wake(node, found)

    def _tell_to_wake(self, node: int, numbers: Iterable[int]) -> None:
        self._send(node, GroupPayload.WAKE, list(map(NUMBER.pack, numbers)))

    def _send(self, node: int, kind: GroupPayload, rows: list[bytes]) -> None:
        for at in range(0, len(rows), _ROWS_MAX):
            self._send_whole(node, kind, _VERSION + b"".join(rows[at : at + _ROWS_MAX]))

    def _send_whole(self, node: int, kind: GroupPayload, payload: bytes) -> None:
        """Send a payload that need not arrive: what is not told is found out later."""
        channel = self._control(node)
        if channel.is_writable:
            channel.send(kind, payload)
