"""The traffic of the replicas of real queues between nodes."""

import pytest
from tests.sim.group_nodes import FIRST_GROUP, REPLICA, GroupNode, GroupNodes
from tests.unit.cluster.groups.memory_replica import MemoryReplica
from tests.unit.cluster.groups.test_replica_outbox import messages_in

from warren.cluster.groups.group_leaders import GroupLeader
from warren.cluster.groups.group_payloads import LEADER_ROW, VERSION, GroupPayload
from warren.cluster.groups.group_traffic import GroupTraffic, election_chance
from warren.cluster.groups.raft_message_writer import encode_message
from warren.cluster.hello import LinkPurpose
from warren.cluster.metadata_peers import MetadataPayload
from warren.cluster.node_link import NodeLink, PayloadError
from warren.cluster.node_queries import NodeQueries
from warren.cluster.node_states import NodeStates
from warren.cluster.remote_codec import FROM_HOME, PART, TO_HOME
from warren.limits_raft import GROUP_TICK_MS
from warren.replication.raft.raft_messages import MessageKind, RaftMessage, Snapshot


class Recorded(GroupNodes):
    """Nodes of which the payloads are recorded that arrive: node, purpose, kind and body."""

    def __init__(self, nodes: int = 3, groups: int = 1) -> None:
        self.arrived: list[tuple[int, LinkPurpose, int, bytes]] = []
        super().__init__(1, nodes, groups)
        self.settle()

    def received(self, node: GroupNode, purpose: LinkPurpose, kind: int, body: bytes) -> None:
        self.arrived.append((node.id, purpose, kind, body))

    def at(self, node: int, purpose: LinkPurpose) -> list[tuple[int, bytes]]:
        """Kinds and bodies of what has arrived at a node."""
        return [(kind, body) for id, where, kind, body in self.arrived if (id, where) == (node, purpose)]


def link_of(node: GroupNode, other: GroupNode) -> NodeLink:
    return node.links[other.id]


def send(node: GroupNode, other: GroupNode, message: RaftMessage, number: int = FIRST_GROUP) -> None:
    """Have a message of `other` arrive at `node`."""
    body = bytes((VERSION,)) + b"".join(encode_message(number, message))
    node.traffic.received(link_of(node, other), LinkPurpose.CONTROL, GroupPayload.MESSAGES, body)


def test_the_heartbeats_of_one_tick_are_one_payload_for_each_node() -> None:
    nodes = Recorded(groups=8)
    nodes.run_for(400)
    sender = nodes.nodes[1]
    led = [number for number, member in sender.members.items() if member.group.is_open]
    timers = {node.id: node.timers for node in nodes.running()}
    for node in nodes.running():
        node.timers = []
    nodes.run_for(100)
    nodes.arrived.clear()
    [(_, tick)] = timers[sender.id]
    tick()
    sender.timers.clear()
    nodes.run_for(150)
    for node in (2, 3):
        heartbeats = messages_in(nodes.at(node, LinkPurpose.CONTROL))
        assert [[group for group, _ in payload] for payload in heartbeats] == [led]
    # So are the answers of one turn.
    assert len(messages_in(nodes.at(1, LinkPurpose.CONTROL))) == 2


def test_what_is_proposed_in_one_turn_is_one_payload_for_each_node() -> None:
    nodes = Recorded(groups=8)
    nodes.run_for(400)
    nodes.arrived.clear()
    sender = nodes.nodes[1]
    led = [number for number, member in sender.members.items() if member.group.is_open]
    assert len(led) > 1
    for number in led:
        sender.members[number].publish(number, 10)
    sender.write(None)
    sender.turn()
    nodes.step(is_calm=True)
    payload = messages_in(nodes.at(2, LinkPurpose.DATA))[0]
    assert [group for group, _ in payload] == led
    assert all(message.kind is MessageKind.APPEND for _, message in payload)


def test_messages_come_from_the_node_of_their_sender_and_are_for_the_replica_here() -> None:
    nodes = Recorded()
    leader = nodes.leader(FIRST_GROUP).node
    node, other = [each for each in nodes.running() if each is not leader]
    term = nodes.leader(FIRST_GROUP).told

    def vote(to: int, sender: int, number: int = FIRST_GROUP) -> None:
        message = RaftMessage(MessageKind.VOTE, to, sender, term + 5, 99, term, is_forced=True)
        send(node, other, message, number)

    before = node.traffic.dropped_count
    vote(REPLICA + node.id, REPLICA + leader.id)
    vote(REPLICA + other.id, REPLICA + other.id)
    vote(REPLICA + node.id, REPLICA + 9)
    vote(REPLICA + node.id, REPLICA + other.id, FIRST_GROUP + 1)
    assert node.traffic.dropped_count == before + 3
    # The other group may be declared soon.
    for _ in range(2):
        node.traffic.tick(0)
    assert node.traffic.dropped_count == before + 4
    assert node.members[FIRST_GROUP].group.driver.replica.hard_state.term == term
    vote(REPLICA + node.id, REPLICA + other.id)
    assert node.members[FIRST_GROUP].group.driver.replica.hard_state.term == term + 5


def test_messages_for_a_replica_that_is_nowhere_are_dropped() -> None:
    nodes = Recorded()
    leader = nodes.leader(FIRST_GROUP)
    before = leader.node.traffic.dropped_count
    heartbeat = RaftMessage(MessageKind.HEARTBEAT, 99, REPLICA + leader.node.id, 1)
    leader.node.traffic.send(FIRST_GROUP, [heartbeat])
    leader.node.traffic.send(FIRST_GROUP + 1, [heartbeat])
    assert leader.node.traffic.dropped_count == before + 1


def test_a_replica_may_move_and_end() -> None:
    nodes = Recorded()
    leader = nodes.leader(FIRST_GROUP)
    nodes.fall_asleep()
    traffic = leader.node.traffic
    traffic.move(FIRST_GROUP, {REPLICA + leader.node.id: leader.node.id})
    assert traffic.is_awake(FIRST_GROUP)
    traffic.remove(FIRST_GROUP)
    traffic.remove(FIRST_GROUP)
    assert not traffic.is_awake(FIRST_GROUP)
    assert traffic.ticks.awake_count == 0
    # What its replica still sends goes nowhere.
    leader.group.tick()
    nodes.run_for(1_000)
    assert traffic.waiting_count(1 + leader.node.id % 3) == 0


def test_others_follow_at_once_when_the_replica_of_a_sleeping_leader_ends() -> None:
    nodes = Recorded()
    leader = nodes.leader(FIRST_GROUP)
    nodes.fall_asleep()
    leader.node.traffic.remove(FIRST_GROUP)
    others = [node for node in nodes.running() if node is not leader.node]
    nodes.run_for(900)
    assert sum(node.members[FIRST_GROUP].group.is_open for node in others) == 1
    assert nodes.leader(FIRST_GROUP).told == leader.told + 1


def test_a_leader_of_a_former_term_that_ends_changes_nothing() -> None:
    nodes = Recorded()
    leader = nodes.leader(FIRST_GROUP)
    other = nodes.nodes[1 + leader.node.id % 3]
    nodes.fall_asleep()
    row = LEADER_ROW.pack(FIRST_GROUP, leader.told + 1, 0)
    other.traffic.received(
        link_of(other, leader.node), LinkPurpose.DATA, GroupPayload.LEADERS, bytes((VERSION,)) + row
    )
    assert not other.traffic.is_awake(FIRST_GROUP)


def test_a_proposal_wakes_a_group() -> None:
    nodes = Recorded()
    nodes.fall_asleep()
    traffic = nodes.leader(FIRST_GROUP).node.traffic
    traffic.proposed(FIRST_GROUP)
    traffic.proposed(FIRST_GROUP + 1)
    assert traffic.is_awake(FIRST_GROUP)


def test_a_late_answer_to_a_heartbeat_does_not_wake_a_leader() -> None:
    nodes = Recorded()
    leader = nodes.leader(FIRST_GROUP)
    other = nodes.nodes[1 + leader.node.id % 3]
    nodes.fall_asleep()
    answer = RaftMessage(
        MessageKind.HEARTBEAT_RESPONSE, REPLICA + leader.node.id, REPLICA + other.id, leader.told
    )
    send(leader.node, other, answer)
    assert leader.is_asleep
    send(leader.node, other, RaftMessage(MessageKind.PRE_VOTE, answer.to, answer.sender, leader.told + 1))
    assert not leader.is_asleep


def test_a_leader_is_told_that_a_member_is_unreachable_when_its_session_is_lost() -> None:
    nodes = Recorded()
    leader = nodes.leader(FIRST_GROUP)
    other = nodes.nodes[1 + leader.node.id % 3]
    nodes.publish(FIRST_GROUP)
    nodes.run_for(500)
    progress = leader.group.driver.replica.progress[REPLICA + other.id]
    assert progress.state.value == "replicate"
    leader.node.traffic.session_lost(link_of(leader.node, other), LinkPurpose.DATA)
    assert progress.state.value == "probe"
    assert leader.node.traffic.leaders.leader(FIRST_GROUP) == GroupLeader(leader.node.id, leader.told)
    other.traffic.session_lost(link_of(other, leader.node), LinkPurpose.DATA)
    assert other.traffic.leaders.leader(FIRST_GROUP).is_away


def test_a_snapshot_comes_over_the_bulk_connection_with_its_messages() -> None:
    nodes = Recorded()
    leader = nodes.leader(FIRST_GROUP)
    other = nodes.nodes[1 + leader.node.id % 3]
    snapshot = leader.group.driver.replica.log.take_snapshot()
    assert isinstance(snapshot, Snapshot)
    message = RaftMessage(
        MessageKind.SNAPSHOT, REPLICA + other.id, REPLICA + leader.node.id, leader.told, snapshot=snapshot
    )
    with pytest.raises(PayloadError, match="a snapshot without its messages"):
        send(other, leader.node, message)


@pytest.mark.parametrize(
    ("purpose", "kind"),
    [(LinkPurpose.CONTROL, GroupPayload.LEADERS), (LinkPurpose.DATA, GroupPayload.SLEEP),
     (LinkPurpose.BULK, GroupPayload.MESSAGES)],
)  # fmt: skip
def test_payloads_come_on_their_connection(purpose: LinkPurpose, kind: int) -> None:
    nodes = Recorded()
    one, other = nodes.nodes[1], nodes.nodes[2]
    with pytest.raises(PayloadError):
        one.traffic.received(link_of(one, other), purpose, kind, bytes((VERSION,)) * 9)


def test_no_other_payload_has_a_kind_of_groups() -> None:
    others = {*MetadataPayload, PART, TO_HOME, FROM_HOME}
    assert not any(map(GroupTraffic.takes, others))
    for kind in GroupPayload:
        assert GroupTraffic.takes(kind)
        assert not NodeStates.takes(kind)
        assert not NodeQueries.takes(kind)


def test_an_error_of_a_tick_is_not_the_last_tick_of_all_groups() -> None:
    nodes = Recorded()
    node = nodes.nodes[1]
    ticks: list[str] = []

    class BrokenOnce(MemoryReplica):
        def tick(self) -> None:
            ticks.append("tick")
            if len(ticks) == 1:
                raise IndexError("planted")

    node.traffic.add(BrokenOnce(99), {1: node.id})
    with pytest.raises(IndexError, match="planted"):
        nodes.run_for(GROUP_TICK_MS)
    nodes.run_for(2 * GROUP_TICK_MS)
    assert len(ticks) > 1


def test_chances_are_below_their_bound() -> None:
    numbers = iter(range(100))
    chance = election_chance(lambda size: next(numbers).to_bytes(size, "big"))
    assert {chance(5) for _ in range(100)} == {0, 1, 2, 3, 4}
    assert GROUP_TICK_MS == 200
