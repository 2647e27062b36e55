"""Nodes that form a cluster: admission, members of the metadata group, and who is up."""

import pytest
from tests.seeds import SEEDS
from tests.sim.simulated_cluster import ClusterNode, SimulatedCluster
from tests.sim.test_journal_replay import everything

from warren.cluster.groups.group_leaders import GroupLeader
from warren.cluster.hello import LinkPurpose
from warren.errors import AmqpError
from warren.journal import metadata_log
from warren.limits_cluster import CLUSTER_CONNECTION_GOOD_MS
from warren.limits_metadata import METADATA_TICK_MS
from warren.metadata.commands import DeclareQueue, Outcome, Reply
from warren.metadata.member_commands import RemoveMember
from warren.store.disk import SyncFile, WriteFile


def formed(seed: int, count: int = 3) -> tuple[SimulatedCluster, list[ClusterNode]]:
    """A cluster of so many nodes, all of them voters and up."""
    cluster = SimulatedCluster(seed)
    first = cluster.add("one@here")
    for number in range(2, count + 1):
        node = cluster.add(f"node{number}@here")
        node.join(first)
        assert cluster.run(lambda node=node: bool(node.answers))
        assert not node.answers[0].refusal
        assert cluster.run(lambda number=number: is_settled(cluster, number)), states(cluster)
    return cluster, cluster.nodes


def states(cluster: SimulatedCluster) -> list[object]:
    return [
        (
            node.name, node.node_id, node.metadata.index, node.journal.group.leader,
            node.journal.group.replica.configuration, list(node.metadata.members.by_id.values()),
        )
        for node in cluster.nodes
    ]  # fmt: skip


def is_settled(cluster: SimulatedCluster, count: int) -> bool:
    """True if all nodes agree on so many members that are up and vote."""
    for node in cluster.nodes[:count]:
        members = node.metadata.members.by_id
        voters = node.journal.group.replica.configuration.voters
        if len(members) != count or len(voters) != count or not all(one.is_up for one in members.values()):
            return False
        if node.metadata.index != cluster.nodes[0].metadata.index:
            return False
        if any(members[other.node_id].incarnation != other.run for other in cluster.nodes[:count]):
            return False
    return True


@pytest.mark.parametrize("count", [2, 3, 5])
def test_nodes_join_the_first_one_and_all_have_its_metadata(count: int) -> None:
    cluster, nodes = formed(count, count)
    replies: list[Reply | AmqpError] = []
    nodes[-1].propose(DeclareQueue(vhost="/", name="q", durable=True), replies)
    assert cluster.run(lambda: bool(replies))
    assert isinstance(replies[0], Reply)
    assert replies[0].outcome is Outcome.DONE
    assert cluster.run(lambda: is_settled(cluster, count))
    for node in nodes:
        vhost = node.metadata.vhost("/")
        assert vhost is not None
        assert list(vhost.topology.queues) == ["q"]


def test_a_node_that_is_admitted_and_has_not_heard_it_is_told_again() -> None:
    cluster = SimulatedCluster(1)
    first, other = cluster.add("one@here"), cluster.add("two@here")
    other.join(first)
    assert cluster.run(lambda: 2 in first.metadata.members.by_id)
    other.stop(is_power_lost=True)
    other.start()
    other.answers.clear()
    other.join(first)
    assert cluster.run(lambda: bool(other.answers))
    assert (other.answers[0].refusal, other.answers[0].node_id) == ("", 2)
    assert cluster.run(lambda: is_settled(cluster, 2)), states(cluster)


def test_a_name_is_that_of_one_member() -> None:
    cluster, nodes = formed(2, 2)
    third = cluster.add(nodes[1].name)
    third.join(nodes[0])
    assert cluster.run(lambda: bool(third.answers))
    assert third.answers[0].refusal == "'node2@here' is a member of the cluster already"


def test_a_member_that_is_gone_is_declared_down_and_what_was_only_its_own_is_deleted() -> None:
    cluster, nodes = formed(3)
    one, two, three = nodes
    replies: list[Reply | AmqpError] = []
    three.propose(DeclareQueue(vhost="/", name="transient"), replies)
    three.propose(DeclareQueue(vhost="/", name="durable", durable=True), replies)
    assert cluster.run(lambda: len(replies) == 2)
    three.stop(is_power_lost=True)
    assert cluster.run(lambda: not two.metadata.members.by_id[3].is_up)
    assert cluster.run(lambda: queues(two) == queues(one) == ["durable"])
    three.start()
    assert cluster.run(lambda: is_settled(cluster, 3)), states(cluster)
    assert two.metadata.members.by_id[3].incarnation == three.run


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_process_that_has_ended_is_declared_down_as_soon_as_a_leader_is_there(place: int) -> None:
    cluster, nodes = formed(4 + place)
    number = nodes[place].node_id
    is_leader = nodes[place].journal.group.is_leader
    others = [node for node in nodes if node is not nodes[place]]
    nodes[place].stop(is_power_lost=False)
    began_at = cluster.network.time
    assert cluster.run(lambda: not any(node.metadata.members.by_id[number].is_up for node in others))
    # Without a leader the others elect one before, with the next tick of one of them.
    assert cluster.network.time - began_at < (1_100 if is_leader else 500)


def test_others_elect_a_leader_at_once_when_the_process_of_the_leader_has_ended() -> None:
    took = []
    for seed in range(20):
        cluster, nodes = formed(seed)
        leader = next(node for node in nodes if node.journal.group.is_leader)
        others = [node for node in nodes if node is not leader]
        leader.stop(is_power_lost=False)
        began_at = cluster.network.time
        assert cluster.run(lambda others=others: any(node.journal.group.is_leader for node in others))
        took.append(cluster.network.time - began_at)
    # Two may begin at the same time; then it takes as long as without knowing.
    assert sorted(took)[17] < 2 * METADATA_TICK_MS, took


def test_a_process_that_has_ended_is_declared_down_by_a_leader_that_does_not_dial_it() -> None:
    cluster, nodes = formed(3)
    leader = next(node for node in nodes if node.journal.group.is_leader)
    while leader is nodes[0]:
        leader.stop(is_power_lost=False)
        assert cluster.run(lambda: any(node.journal.group.is_leader for node in nodes[1:]))
        leader.start()
        assert cluster.run(lambda: is_settled(cluster, 3)), states(cluster)
        leader = next(node for node in nodes if node.journal.group.is_leader)
    # So that the next attempt to connect follows the shortest pause.
    cluster.run(lambda: False, ms_max=2 * CLUSTER_CONNECTION_GOOD_MS)
    nodes[0].stop(is_power_lost=False)
    began_at = cluster.network.time
    assert cluster.run(lambda: not leader.metadata.members.by_id[1].is_up)
    assert cluster.network.time - began_at < 500


def test_a_member_that_the_network_hides_is_declared_down_after_the_silence() -> None:
    cluster, nodes = formed(3)
    leader = next(node for node in nodes if node.journal.group.is_leader)
    hidden = next(node for node in nodes if node is not leader)
    hidden.is_up = False
    for owner, socket in cluster.sockets:
        if owner is hidden:
            socket.is_silenced = True
    cluster.hidden.add(hidden.port)
    assert not cluster.run(lambda: not leader.metadata.members.by_id[hidden.node_id].is_up, ms_max=4_500)
    assert cluster.run(lambda: not leader.metadata.members.by_id[hidden.node_id].is_up, ms_max=2_500)


def test_members_hear_of_the_leaders_of_groups_in_each_session() -> None:
    cluster, nodes = formed(1, 2)
    one, two = (node.member.group_traffic.leaders for node in nodes)
    one.opened(7, 5)
    known = GroupLeader(nodes[0].node_id, 5)
    assert cluster.run(lambda: two.leader(7) == known, ms_max=1_000)
    cluster.network.part(8_000)
    assert cluster.run(lambda: two.leader(7).is_away, ms_max=8_000)
    assert cluster.run(lambda: two.leader(7) == known, ms_max=15_000)


def test_members_hear_of_a_leader_after_a_silence_in_which_no_session_was_lost() -> None:
    cluster, nodes = formed(1, 2)
    one, two = (node.member.group_traffic.leaders for node in nodes)
    cluster.network.part(3_500)
    link = nodes[0].peers.links[nodes[1].node_id]
    assert cluster.run(lambda: link.is_silent, ms_max=2_000)
    one.opened(7, 5)
    assert cluster.run(lambda: two.leader(7) == GroupLeader(nodes[0].node_id, 5), ms_max=8_000)
    assert link.session_number(LinkPurpose.DATA) == 0


def test_a_short_break_of_the_network_declares_nobody_down() -> None:
    cluster, nodes = formed(3)
    before = nodes[0].metadata.members.by_id
    cluster.network.part(1_500)
    cluster.run(lambda: False, ms_max=10_000)
    assert nodes[0].metadata.members.by_id == before


def queues(node: ClusterNode) -> list[str]:
    vhost = node.metadata.vhost("/")
    return [] if vhost is None else list(vhost.topology.queues)


# Many short runs find more than a few long ones.
STEPS = 20


@pytest.mark.seeds(SEEDS * 3)
def test_a_cluster_agrees_whatever_fails(seed: int) -> None:
    count = 5 if seed % 10 == 9 else 3
    cluster, nodes = formed(seed, count)
    chance, network = cluster.chance, cluster.network
    proposed: list[tuple[str, list[Reply | AmqpError]]] = []

    def propose() -> None:
        node = chance.choice([node for node in nodes if node.is_up])
        name = f"q{len(proposed)}"
        proposed.append((name, []))
        node.propose(DeclareQueue(vhost="/", name=name, durable=True), proposed[-1][1])

    def crash() -> None:
        up = [node for node in nodes if node.is_up]
        if len(up) > 1:
            chance.choice(up).stop(is_power_lost=chance.random() < 0.5)

    def start() -> None:
        for node in nodes:
            if not node.is_up:
                node.start()

    def fail_disk() -> None:
        node = chance.choice(nodes)
        node.disk.fault = (chance.choice([SyncFile, WriteFile]), chance.choice([5, 28]))

    kinds = {
        propose: 30, crash: 2, start: 3, fail_disk: 1, network.corrupt: 2, network.silence: 2,
        lambda: network.cut(is_told_late=True): 3,
        lambda: network.part(chance.choice([500, 3_000, 8_000])): 1,
    }  # fmt: skip
    for _ in range(STEPS):
        chance.choices(list(kinds), list(kinds.values()))[0]()
        cluster.run(lambda: False, ms_max=chance.choice([20, 100, 1_000]))
    start()
    for node in nodes:
        node.disk.fault = None
    assert cluster.run(lambda: is_settled(cluster, count)), states(cluster)
    done = {name for name, replies in proposed for reply in replies if isinstance(reply, Reply)}
    for node in nodes:
        found = queues(node)
        assert done <= set(found)
        assert len(found) == len(set(found))
        assert everything(node.metadata) == everything(nodes[0].metadata)


def lead(cluster: SimulatedCluster, node: ClusterNode) -> None:
    """Have a member lead."""

    def leads() -> bool:
        for other in cluster.nodes:
            if other.is_up and other is not node and other.journal.group.is_leader:
                other.journal.group.replica.transfer(node.node_id)
        return node.journal.group.is_leader

    assert cluster.run(leads)


def test_a_member_finds_a_leader_that_has_joined_while_it_was_away() -> None:
    cluster, nodes = formed(2)
    away = nodes[1]
    away.stop(is_power_lost=False)
    newest = cluster.add("four")
    newest.join(nodes[0])
    assert cluster.run(lambda: 4 in newest.journal.group.replica.configuration.voters)
    lead(cluster, newest)
    away.start()
    assert cluster.run(lambda: is_settled(cluster, 4), ms_max=10_000), states(cluster)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_others_go_on_without_a_member_that_was_removed(place: int) -> None:
    cluster, nodes = formed(4)
    removed = nodes[place]
    rest = [node for node in nodes if node is not removed]
    replies: list[Reply | AmqpError] = []
    rest[0].propose(RemoveMember(id=removed.node_id), replies)
    ids = tuple(node.node_id for node in rest)
    assert cluster.run(
        lambda: all(node.journal.group.replica.configuration.voters == ids for node in rest)
    ), states(cluster)
    assert [reply.outcome for reply in replies if isinstance(reply, Reply)] == [Outcome.DONE]
    rest[1].propose(DeclareQueue(vhost="/", name="q", durable=True), replies)
    assert cluster.run(lambda: all(queues(node) == ["q"] for node in rest)), states(cluster)
    assert queues(removed) == []
    # One of the two may fail now.
    assert all(list(node.metadata.members.by_id) == list(ids) for node in rest)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_member_hears_that_it_was_removed_before_the_others_close_their_links(place: int) -> None:
    cluster, nodes = formed(7)
    removed = nodes[place]
    rest = [node for node in nodes if node is not removed]
    replies: list[Reply | AmqpError] = []
    removed.propose(RemoveMember(id=removed.node_id), replies)
    assert cluster.run(lambda: bool(replies)), states(cluster)
    assert [reply.outcome for reply in replies if isinstance(reply, Reply)] == [Outcome.DONE]
    assert removed.node_id not in removed.metadata.members.by_id
    assert cluster.run(lambda: not any(removed.node_id in node.peers.links for node in rest))


def test_a_member_that_is_gone_for_good_is_forgotten_and_its_number_is_not_given_again() -> None:
    cluster, nodes = formed(5)
    one, two, three = nodes
    three.stop(is_power_lost=True)
    replies: list[Reply | AmqpError] = []
    two.propose(RemoveMember(id=3, is_forgotten=True), replies)
    assert cluster.run(lambda: two.journal.group.replica.configuration.voters == (1, 2))
    cluster.nodes.remove(three)
    four = cluster.add("four@here", port=9)
    four.join(one)
    assert cluster.run(lambda: is_settled(cluster, 3)), states(cluster)
    assert [node.node_id for node in cluster.nodes] == [1, 2, 4]


def test_a_member_that_was_away_for_long_is_sent_the_metadata_over_its_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata_log, "METADATA_ENTRIES_KEPT", 4)
    cluster, nodes = formed(6)
    three = nodes[2]
    three.stop(is_power_lost=False)
    replies: list[Reply | AmqpError] = []
    for number in range(200):
        nodes[0].propose(DeclareQueue(vhost="/", name=f"q{number}", durable=True), replies)
    assert cluster.run(lambda: len(replies) == 200)
    three.start()
    assert cluster.run(lambda: is_settled(cluster, 3)), states(cluster)
    assert queues(three) == queues(nodes[0])
