"""The operations on a cluster, on simulated nodes: status, leaving, forgetting and maintenance."""

from collections.abc import Coroutine

import pytest
from tests.sim.simulated_cluster import ClusterNode, SimulatedCluster
from tests.sim.test_cluster import formed, is_settled, queues, states
from tests.unit.session.client import Broker

from warren.errors import AmqpError
from warren.management.cluster_controls import ClusterStatus, LeaderlessQueues, UnavailableQueues
from warren.management.controls import ControlRefused
from warren.metadata.commands import DeclareQueue, Reply
from warren.metadata.incarnation import Incarnation
from warren.metadata.member_commands import RemoveMember
from warren.metadata.records import QueueMember
from warren.model.coroutine_driver import drive
from warren.node.client_access import ClientAccess
from warren.node.cluster_controls import ClusterActions, ClusterControlsDependencies, NodeClusterControls
from warren.node.cluster_status import ClusterView
from warren.node.node_identity import NodeIdentity


class NoClients(ClientAccess):
    """The access of clients to a node that has none, and no event loop to close them in."""

    def __init__(self) -> None:
        super().__init__([], Broker().server, lambda _: None)
        self.reasons: list[str] = []

    async def suspend(self, cause: str, reason: str) -> None:
        self._causes.add(cause)
        self.reasons.append(reason)


class Operator:
    """Who operates one node."""

    def __init__(self, node: ClusterNode) -> None:
        self.node = node
        self.access = NoClients()
        self.joined: list[tuple[str, int]] = []
        self.is_erased = False
        # The nodes that lead quorum queues, if those are not their homes.
        self.leaders: dict[str, int | None] = {}
        view = ClusterView(
            identity=NodeIdentity(node.name, Incarnation(node.node_id, node.run)),
            metadata=node.metadata,
            journal=node.journal,
            links=node.peers.links,
            cluster_name=lambda: "simulated",
            leader_of=lambda queue: self.leaders.get(queue.name, queue.home),
        )
        controlled = ClusterControlsDependencies(
            server=Broker().server,
            proposals=node.journal,
            client_access=self.access,
            actions=ClusterActions(join=self._join, erase=self._erase),
            default_vhost="/",
            default_user="guest",
        )
        self.controls = NodeClusterControls(view, controlled)

    @property
    def status(self) -> ClusterStatus:
        return self.controls.status()

    def does(self, operation: Coroutine[object, None, object]) -> list[str]:
        """What becomes of an operation, when it has ended: empty, or the error."""
        ended: list[str] = []

        async def run() -> None:
            try:
                await operation
                ended.append("")
            except (AmqpError, ControlRefused) as error:
                ended.append(str(error))

        drive(run())
        return ended

    def refused(self, operation: Coroutine[object, None, object]) -> str:
        """The refusal of an operation, which is told at once."""
        (text,) = self.does(operation)
        return text

    async def _join(self, host: str, port: int) -> None:
        self.joined.append((host, port))

    def _erase(self) -> None:
        self.is_erased = True


def declare(cluster: SimulatedCluster, node: ClusterNode, *names: str, durable: bool = True) -> None:
    replies: list[Reply | AmqpError] = []
    for name in names:
        node.propose(DeclareQueue(vhost="/", name=name, durable=durable), replies)
    assert cluster.run(lambda: len(replies) == len(names))


def leader_of(cluster: SimulatedCluster) -> ClusterNode:
    return next(node for node in cluster.nodes if node.journal.group.is_leader)


def test_all_nodes_see_the_same_members_and_the_same_leader() -> None:
    cluster, nodes = formed(1)
    assert cluster.run(lambda: not any(Operator(node).status.problems for node in nodes))
    for node in nodes:
        status = Operator(node).status
        assert (status.node, status.leader) == (node.name, leader_of(cluster).name)
        assert status.cluster_id == nodes[0].metadata.members.cluster_id.hex()
        assert [member.name for member in status.members] == [one.name for one in nodes]
        assert {member.role for member in status.members} == {"voter"}
        links = {member.name: member.link for member in status.members}
        assert links.pop(node.name) == "self"
        assert set(links.values()) == {"connected"}
        assert not status.is_in_minority


def test_the_status_says_which_queues_are_unavailable_and_which_node_is_missing() -> None:
    cluster, (one, two, three) = formed(2)
    declare(cluster, three, *(f"q{number}" for number in range(7)))
    three.stop(is_power_lost=False)
    assert cluster.run(lambda: not two.metadata.members.by_id[3].is_up)
    status = Operator(two).status
    assert status.unavailable == (
        UnavailableQueues(
            vhost="/", node=three.name, is_member=True, count=7, names=("q0", "q1", "q2", "q3", "q4")
        ),
    )
    assert status.problems == (
        f"'{three.name}' is down: start it; 7 queues on it are unavailable until then",
    )
    assert not status.is_in_minority
    three.start()
    assert cluster.run(lambda: is_settled(cluster, 3)), states(cluster)
    assert Operator(one).status.unavailable == ()


def test_the_status_says_which_quorum_queues_have_no_majority_and_which_have_lost_it() -> None:
    cluster, (one, two, three) = formed(4)
    replies: list[Reply | AmqpError] = []
    arguments = {"x-queue-type": "quorum"}
    for name, members in (("of-two", (1, 3)), ("of-three", (1, 2, 3))):
        command = DeclareQueue(vhost="/", name=name, durable=True, arguments=arguments, members=members)
        one.propose(command, replies)
    assert cluster.run(lambda: len(replies) == 2)
    assert Operator(one).status.leaderless == ()
    three.stop(is_power_lost=False)
    assert cluster.run(lambda: not two.metadata.members.by_id[3].is_up)
    status = Operator(two).status
    assert status.leaderless == (
        LeaderlessQueues(vhost="/", missing=(three.name,), count=1, names=("of-two",)),
    )
    assert status.problems == (
        f"1 quorum queue has no majority while '{three.name}' is down: start it",
        f"'{three.name}' is down: start it",
    )
    two.propose(RemoveMember(id=3, is_forgotten=True), replies)
    assert cluster.run(lambda: 3 not in two.metadata.members.by_id)
    operator = Operator(two)
    assert operator.status.leaderless == ()
    # Its replica at the first node does not lead yet, or never.
    operator.leaders["of-two"] = None
    assert operator.status.leaderless == (
        LeaderlessQueues(vhost="/", missing=(), count=1, names=("of-two",)),
    )
    advice = (
        "1 quorum queue has lost the nodes without which nobody leads it: 'warren queues recover' goes on "
        "with the replica that is left"
    )
    assert advice in operator.status.problems


def test_a_node_that_hears_no_majority_says_so_and_refuses_changes_at_once() -> None:
    cluster, (one, two, three) = formed(3)
    one.stop(is_power_lost=False)
    two.stop(is_power_lost=False)
    operator = Operator(three)
    assert cluster.run(lambda: operator.status.leader is None)
    status = operator.status
    assert status.is_in_minority
    assert status.problems[0].startswith("this node is in the minority")
    assert (
        f"hears 1 of 3 voters, of which 2 are needed; missing: '{one.name}', '{two.name}'"
        in status.problems[0]
    )
    assert operator.refused(operator.controls.leave("u", is_loss_accepted=True)) == status.problems[0]


def test_a_member_is_forgotten_when_it_is_down_and_its_queues_stay_unavailable() -> None:
    cluster, (one, _, three) = formed(4)
    declare(cluster, three, "lost")
    declare(cluster, three, "transient", durable=False)
    replies: list[Reply | AmqpError] = []
    shared = {"durable": True, "arguments": {"x-queue-type": "quorum"}, "members": (3, 1, 2)}
    one.propose(DeclareQueue(vhost="/", name="shared", **shared), replies)
    assert cluster.run(lambda: replies != [])
    operator = Operator(one)
    forget = operator.controls.forget
    assert "is up: stop it before it is forgotten" in operator.refused(forget("u", three.name))
    assert "no member 'nobody'; its members: 'one@here'" in operator.refused(forget("u", "nobody"))
    assert "does not forget itself" in operator.refused(forget("u", one.name))
    three.stop(is_power_lost=True)
    assert cluster.run(lambda: not one.metadata.members.by_id[3].is_up)
    ended = operator.does(forget("u", three.name))
    assert cluster.run(lambda: ended == [""]), ended
    assert cluster.run(lambda: len(one.journal.group.replica.configuration.members) == 2)
    assert queues(one) == ["lost", "shared"]
    queue = one.metadata.vhosts.by_name["/"].topology.queues["shared"]
    assert (queue.home, queue.members) == (1, (QueueMember(1, 2), QueueMember(2, 3)))
    (unavailable,) = operator.status.unavailable
    assert (unavailable.node, unavailable.is_member, unavailable.names) == (three.name, False, ("lost",))
    problems = operator.status.problems
    assert f"1 queue on the former member '{three.name}' is lost: delete them" in problems
    assert any(problem.startswith("two nodes agree on changes") for problem in problems)


@pytest.mark.parametrize("is_leader", [True, False])
def test_a_node_in_maintenance_leads_nothing_and_all_know_it(is_leader: bool) -> None:
    cluster, nodes = formed(5)
    node = next(one for one in nodes if one.journal.group.is_leader == is_leader)
    operator = Operator(node)
    ended = operator.does(operator.controls.drain("u"))
    assert cluster.run(lambda: ended == [""]), ended
    assert operator.access.reasons == ["Node was put into maintenance mode"]
    assert not operator.controls.accepts_clients
    others = [Operator(one) for one in nodes if one is not node]
    assert cluster.run(lambda: all(one.status.leader not in (None, node.name) for one in others))
    for other in others:
        assert [member.name for member in other.status.members if member.is_draining] == [node.name]
    ended = operator.does(operator.controls.revive("u"))
    assert cluster.run(lambda: ended == [""]), ended
    assert operator.controls.accepts_clients
    assert cluster.run(lambda: not any(one.status.problems for one in others))


@pytest.mark.parametrize("is_leader", [True, False])
def test_a_node_that_leaves_is_removed_and_takes_its_ephemeral_queues_with_it(is_leader: bool) -> None:
    cluster, nodes = formed(6)
    node = next(one for one in nodes if one.journal.group.is_leader == is_leader)
    others = [one for one in nodes if one is not node]
    declare(cluster, node, "durable")
    declare(cluster, node, "transient", durable=False)
    operator = Operator(node)
    text = operator.refused(operator.controls.leave("u", is_loss_accepted=False))
    assert text.startswith("leaving would lose the queues on this node: 2, with 0 messages")
    ended = operator.does(operator.controls.leave("u", is_loss_accepted=True))
    assert cluster.run(lambda: bool(ended)), states(cluster)
    assert ended == [""], states(cluster)
    node.stop(is_power_lost=False)
    ids = tuple(sorted(one.node_id for one in others))
    assert cluster.run(
        lambda: all(one.journal.group.replica.configuration.members == ids for one in others)
    ), states(cluster)
    for other in others:
        assert tuple(other.metadata.members.by_id) == ids
        assert queues(other) == ["durable"]


def test_a_member_that_is_reset_leaves_its_cluster_and_is_not_erased_before_it_is_removed() -> None:
    cluster, nodes = formed(6)
    node, *others = nodes
    declare(cluster, node, "durable")
    operator = Operator(node)
    text = operator.refused(operator.controls.reset("u", is_loss_accepted=False))
    assert text.startswith("leaving would lose the queues on this node: 1, with 0 messages")
    ended = operator.does(operator.controls.reset("u", is_loss_accepted=True))
    assert cluster.run(lambda: bool(ended)), states(cluster)
    assert (ended, operator.is_erased) == ([""], False)
    assert cluster.run(lambda: all(len(one.metadata.members.by_id) == 2 for one in others)), states(cluster)


def test_a_node_that_has_met_no_other_is_erased_by_a_reset() -> None:
    cluster = SimulatedCluster(6)
    node = cluster.add("one@here")
    assert cluster.run(lambda: node.journal.group.is_leader), states(cluster)
    declare(cluster, node, "durable")
    operator = Operator(node)
    text = operator.refused(operator.controls.reset("u", is_loss_accepted=False))
    assert text.startswith("a reset would delete what this node has: 1 queue; export what is needed")
    assert not operator.is_erased
    assert operator.refused(operator.controls.reset("u", is_loss_accepted=True)) == ""
    assert operator.is_erased
    assert operator.access.reasons == ["Node was put into maintenance mode"]


class LeavingNode(ClusterNode):
    """A node that starts again without its metadata as soon as it is told that it was removed."""

    def removed(self) -> None:
        self.later(lambda _: self.stop(is_power_lost=False))


class LeavingCluster(SimulatedCluster):
    node_type = LeavingNode


@pytest.mark.parametrize("seed", range(10))
def test_the_last_member_goes_on_alone_when_the_other_one_has_left(seed: int) -> None:
    cluster = LeavingCluster(seed)
    one, two = cluster.add("one@here"), cluster.add("two@here")
    two.join(one)
    assert cluster.run(lambda: is_settled(cluster, 2)), states(cluster)
    leaving, staying = (one, two) if seed % 2 else (two, one)
    operator = Operator(leaving)
    ended = operator.does(operator.controls.leave("u", is_loss_accepted=True))
    assert cluster.run(lambda: not leaving.is_up), states(cluster)
    assert ended == [""]
    declare(cluster, staying, "q")
    assert tuple(staying.journal.group.replica.configuration.members) == (staying.node_id,)


def test_a_node_does_not_leave_others_that_could_agree_on_nothing_without_it() -> None:
    cluster, (one, _, three) = formed(7)
    three.stop(is_power_lost=False)
    operator = Operator(one)
    assert cluster.run(lambda: operator.status.members[2].link == "silent")
    text = operator.refused(operator.controls.leave("u", is_loss_accepted=True))
    assert text == (
        "the others could not agree on anything without this node: start 'node3@here'; "
        "see 'warren cluster status'"
    )
    assert operator.access.reasons == []


def test_a_member_joins_no_other_cluster_and_its_own_one_only_once() -> None:
    _, (one, two) = formed(8, 2)
    operator = Operator(two)
    join = operator.controls.join
    assert operator.refused(join("u", "elsewhere", 1, is_reset=True)) == (
        "this node is a member of a cluster with 'one@here': leave it first, with 'warren cluster leave'"
    )
    assert operator.refused(join("u", "here", two.port, is_reset=True)).startswith(
        "a node cannot join itself"
    )
    joined: list[bool] = []

    async def again() -> None:
        joined.append(await join("u", "here", one.port, is_reset=False))

    drive(again())
    assert (joined, operator.joined) == ([False], [])


def test_a_node_alone_gives_up_what_it_has_only_if_told_to() -> None:
    cluster = SimulatedCluster(9)
    node = cluster.add("one@here")
    declare(cluster, node, "q")
    operator = Operator(node)
    assert operator.refused(operator.controls.leave("u", is_loss_accepted=True)).startswith(
        "this node is in no cluster"
    )
    text = operator.refused(operator.controls.join("u", "there", 1, is_reset=False))
    assert text.startswith("joining would delete what this node has: 1 queue; export what is needed")
    ended = operator.does(operator.controls.join("u", "there", 1, is_reset=True))
    assert (ended, operator.joined) == ([""], [("there", 1)])
