"""The replicas of quorum queues over HTTP: who has one, their state, and changes, at any node."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from msgspec.structs import replace
from tests.integration.dialing import run
from tests.integration.managed_cluster import ManagedCluster, managed_cluster

from warren.metadata.commands import ChangeQueueMembers, DeleteQueue, LeadQueue
from warren.metadata.member_commands import RemoveMember, SetMemberDraining
from warren.metadata.records import QueueRecord
from warren.queues.replication_status import ReplicationStatus, in_memory

Test = Callable[[ManagedCluster], Awaitable[None]]
QUORUM = {"x-queue-type": "quorum"}
NAMES = ["a@test", "b@test", "c@test"]


class KnownGroups:
    """Groups whose leaders and replicas are said by a test: port `GroupStatus` of one node."""

    def __init__(self, cluster: ManagedCluster, own: int) -> None:
        self._own = own
        self._cluster = cluster
        # The leader of each queue; that of others is not known.
        self.leaders: dict[str, int] = {}
        # The replicas of all nodes, by queue and node.
        self.replicas: dict[tuple[str, int], ReplicationStatus] = {}

    def leader_of(self, record: QueueRecord) -> int | None:
        return self.leaders.get(record.name)

    def own_replica(self, vhost: str, record: QueueRecord) -> ReplicationStatus | None:
        return self.replicas.get((record.name, self._own))

    async def transfer(self, vhost: str, record: QueueRecord, node: int) -> bool:
        self.leaders[record.name] = node
        return True


def in_cluster(test: Test) -> Callable[[], None]:
    """Run a test with a cluster of three nodes."""

    @wraps(test)
    def wrapper() -> None:
        async def work() -> None:
            async with managed_cluster() as cluster:
                await test(cluster)

        run(work())

    del wrapper.__wrapped__  # type: ignore[attr-defined]
    return wrapper


def with_groups(cluster: ManagedCluster, **leaders: int) -> list[KnownGroups]:
    """Let all nodes know the leaders of these queues."""
    known = [KnownGroups(cluster, node.id) for node in cluster.nodes]
    for groups, node in zip(known, cluster.nodes, strict=True):
        groups.leaders = leaders
        groups.replicas = known[0].replicas
        node.managed.groups = groups
    return known


async def declare(cluster: ManagedCluster, name: str, *nodes: int) -> QueueRecord:
    """Declare a queue, which the first of `nodes` leads."""
    await cluster.declare(name, nodes[0], arguments=QUORUM, members=nodes)
    led = record(cluster, name)
    await cluster.apply(LeadQueue(vhost="/", queue=name, number=led.number, node=nodes[0]))
    return record(cluster, name)


def record(cluster: ManagedCluster, name: str) -> QueueRecord:
    return cluster.nodes[0].broker.metadata.vhosts.by_name["/"].topology.queues[name]


def members(cluster: ManagedCluster, name: str) -> list[int]:
    return [member.node for member in record(cluster, name).replicas]


async def replicas(cluster: ManagedCluster, what: str, queue: str, node: Any) -> tuple[int, Any]:
    """The status, and the value, of a request to the second node to add or delete a replica."""
    method = "POST" if what == "add" else "DELETE"
    answer = await cluster.ask(2, f"{method} /queues/quorum/%2F/{queue}/replicas/{what}", {"node": node})
    return answer.status, answer.value


@in_cluster
async def test_a_queue_has_its_members_its_leader_and_those_that_are_up(cluster: ManagedCluster) -> None:
    await declare(cluster, "q", 1, 3, 2)
    with_groups(cluster, q=3)
    await cluster.down(cluster.nodes[1])
    for at in (1, 3):
        for found in (
            await cluster.get(at, "/queues/%2F/q"),
            (await cluster.get(at, "/queues"))[0],
            await cluster.get(at, "/queues/%2F/q?disable_stats=true"),
        ):
            assert (found["leader"], found["node"], found["type"]) == ("c@test", "c@test", "quorum")
            assert found["members"] == ["a@test", "c@test", "b@test"]
            assert found["online"] == ["a@test", "c@test"]


@in_cluster
async def test_a_queue_that_nobody_leads_is_down(cluster: ManagedCluster) -> None:
    await declare(cluster, "q", 1, 2, 3)
    with_groups(cluster)
    (found,) = await cluster.get(1, "/queues?disable_stats=true")
    assert (found["leader"], found["state"], found["members"]) == (None, "down", NAMES)


@in_cluster
async def test_the_health_check_names_each_queue_that_nobody_leads_once(cluster: ManagedCluster) -> None:
    for name in ("led", "stuck"):
        await declare(cluster, name, 1, 2, 3)
    with_groups(cluster, led=2)
    path = "GET /health/checks/quorum-queues-without-elected-leaders/all-vhosts"
    answer = await cluster.ask(1, path)
    assert answer.status == 503
    assert answer.value["queues"] == [{"name": "stuck", "vhost": "/", "type": "quorum"}]
    assert (await cluster.ask(1, f"{path}/pattern/^led")).status == 200


@in_cluster
async def test_a_node_is_added_to_the_members_and_removed_from_them(cluster: ManagedCluster) -> None:
    await declare(cluster, "q", 1)
    assert await replicas(cluster, "add", "q", "b@test") == (204, None)
    assert members(cluster, "q") == [1, 2]
    # One that is a member already, and one that is none any more.
    assert await replicas(cluster, "add", "q", "b@test") == (204, None)
    assert await replicas(cluster, "delete", "q", "b@test") == (204, None)
    assert await replicas(cluster, "delete", "q", "b@test") == (204, None)
    assert members(cluster, "q") == [1]


@in_cluster
async def test_what_cannot_be_added_or_deleted_is_refused_with_what_to_do(cluster: ManagedCluster) -> None:
    await declare(cluster, "q", 1)
    await cluster.declare("c", 1)
    await cluster.down(cluster.nodes[2])
    for what, queue, node, status, reason, message in (
        ("add", "q", "c@test", 400, "node_not_running", "node 'c@test' is down: start it first, or choose"),
        (
            "add",
            "q",
            "d@test",
            400,
            "node_not_running",
            "no node 'd@test': its nodes are a@test, b@test",
        ),
        ("delete", "q", "d@test", 400, "node_not_running", "the cluster has no node 'd@test'"),
        ("delete", "q", "a@test", 400, "last_node", "add one there first, with 'warren queues add-member'"),
        ("add", "c", "a@test", 400, "Cannot add members to a classic queue", ""),
        ("delete", "c", "a@test", 400, "Cannot add members to a classic queue", ""),
        ("add", "nosuch", "a@test", 404, "no queue 'nosuch' in vhost '/'", ""),
    ):
        found, value = await replicas(cluster, what, queue, node)
        assert (found, value["reason"]) == (status, reason), (what, queue, node)
        assert message in value.get("message", "")
    assert (await replicas(cluster, "add", "q", 5))[0] == 400
    assert (await cluster.ask(1, "POST /queues/quorum/%2F/q/replicas/add", {})).status == 400
    assert members(cluster, "q") == [1]


@in_cluster
async def test_a_former_node_is_deleted_without_an_error(cluster: ManagedCluster) -> None:
    await declare(cluster, "q", 1, 3)
    await cluster.down(cluster.nodes[2])
    await cluster.apply(RemoveMember(id=3, is_forgotten=True))
    assert await replicas(cluster, "delete", "q", "c@test") == (204, None)
    assert (await replicas(cluster, "add", "q", "c@test"))[0] == 400
    assert (await cluster.ask(1, "DELETE /queues/quorum/replicas/on/c%40test/shrink")).value == []


@in_cluster
async def test_the_status_has_the_replica_of_each_node(cluster: ManagedCluster) -> None:
    await declare(cluster, "q", 1, 2, 3)
    groups = with_groups(cluster, q=2)[0]
    groups.replicas["q", 2] = replace(in_memory(), term=4, last_index=9, commit_index=8)
    groups.replicas["q", 1] = replace(in_memory(), role="follower", is_voter=False, last_index=5)
    for at in (1, 2, 3):
        rows = await cluster.get(at, "/queues/quorum/%2F/q/status")
        assert [row["Node Name"] for row in rows] == NAMES
        assert [row["Raft State"] for row in rows] == ["follower", "leader", "noproc"]
        assert [row["Membership"] for row in rows] == ["non_voter", "voter", ""]
        assert [row["Last Log Index"] for row in rows] == [5, 9, ""]
        assert [row["Term"] for row in rows] == [0, 4, ""]
    await cluster.down(cluster.nodes[2])
    rows = await cluster.get(1, "/queues/quorum/%2F/q/status", user="guest")
    assert [row["Raft State"] for row in rows] == ["follower", "leader", "nodedown"]


@in_cluster
async def test_a_replica_that_is_to_leave_is_shown_as_long_as_it_is_there(cluster: ManagedCluster) -> None:
    found = await declare(cluster, "q", 1, 2)
    groups = with_groups(cluster, q=1)[0]
    for node in (1, 2):
        groups.replicas["q", node] = in_memory()
    await cluster.apply(ChangeQueueMembers(vhost="/", queue="q", number=found.number, removed=(2,)))
    rows = await cluster.get(3, "/queues/quorum/%2F/q/status")
    assert [row["Node Name"] for row in rows] == ["a@test", "b@test"]


@in_cluster
async def test_the_only_replica_of_a_queue_leads_on_its_home(cluster: ManagedCluster) -> None:
    await declare(cluster, "q", 2)
    for at in (1, 2, 3):
        (row,) = await cluster.get(at, "/queues/quorum/%2F/q/status")
        assert (row["Node Name"], row["Raft State"]) == ("b@test", "leader")
        (found,) = await cluster.get(at, "/queues")
        assert (found["leader"], found["members"], found["online"]) == ("b@test", ["b@test"], ["b@test"])


@in_cluster
async def test_queues_grow_on_a_node(cluster: ManagedCluster) -> None:
    await declare(cluster, "one", 1)
    await declare(cluster, "two", 1, 2)
    await declare(cluster, "there", 3)
    await cluster.declare("classic", 1)
    path = "POST /queues/quorum/replicas/on/c%40test/grow"
    answer = await cluster.ask(2, path, {"strategy": "even"})
    assert answer.value == [{"vhost": "/", "name": "two", "size": 3, "result": "ok"}]
    answer = await cluster.ask(2, path, {"strategy": "all", "queue_pattern": "^nosuch"})
    assert answer.value == []
    answer = await cluster.ask(2, path, {"strategy": "all", "vhost_pattern": "nosuch"})
    assert answer.value == []
    answer = await cluster.ask(2, path, {"strategy": "all"})
    assert answer.value == [{"vhost": "/", "name": "one", "size": 2, "result": "ok"}]
    assert members(cluster, "one") == [1, 3]
    assert members(cluster, "two") == [1, 2, 3]
    for body, reason in (
        ({"strategy": "odd"}, "strategy 'odd' is not recognised."),
        ({}, "[{key_missing,strategy}]"),
        ({"strategy": "all", "queue_pattern": "("}, "'(' is not a regular expression: "),
    ):
        answer = await cluster.ask(1, path, body)
        assert answer.status == 400
        assert answer.value["reason"].startswith(reason)
    for node, reason in (("d", "node_not_running"), ("b", "node_not_running")):
        if node == "b":
            await cluster.down(cluster.nodes[1])
        answer = await cluster.ask(1, path.replace("c%40", f"{node}%40"), {"strategy": "all"})
        assert (answer.status, answer.value["reason"]) == (400, reason)


@in_cluster
async def test_queues_shrink_on_a_node_and_keep_the_replicas_that_they_need(cluster: ManagedCluster) -> None:
    await declare(cluster, "q", 1, 2, 3)
    await declare(cluster, "pair", 1, 3)
    await declare(cluster, "last", 3)
    await declare(cluster, "elsewhere", 1, 2)
    await cluster.down(cluster.nodes[2])
    answer = await cluster.ask(1, "DELETE /queues/quorum/replicas/on/c%40test/shrink")
    shrunk = {row["name"]: (row["size"], row["result"]) for row in answer.value}
    assert shrunk["q"] == (2, "ok")
    assert shrunk["pair"][0] == 2
    assert "have no majority to agree on it" in shrunk["pair"][1]
    assert shrunk["last"][0] == 1
    assert "no replica on another node" in shrunk["last"][1]
    assert members(cluster, "q") == [1, 2]
    assert members(cluster, "pair") == [1, 3]
    assert members(cluster, "last") == [3]
    assert members(cluster, "elsewhere") == [1, 2]


@in_cluster
async def test_leaders_are_spread_over_the_nodes_that_take_queues(cluster: ManagedCluster) -> None:
    for name in ("q1", "q2", "q3", "q4"):
        await declare(cluster, name, 1, 2, 3)
    groups = with_groups(cluster, q1=1, q2=1, q3=1, q4=1)[0]
    await cluster.apply(SetMemberDraining(id=3, is_draining=True))
    assert (await cluster.ask(2, "POST /rebalance/queues", {})).status == 204
    assert sorted(groups.leaders.values()) == [1, 1, 2, 2]


@in_cluster
async def test_a_node_without_which_a_queue_has_no_majority_is_critical(cluster: ManagedCluster) -> None:
    await declare(cluster, "q", 1, 2, 3)
    path = "GET /health/checks/node-is-quorum-critical"
    assert (await cluster.ask(1, path)).value == {"status": "ok"}
    await cluster.down(cluster.nodes[2])
    for at, status in ((1, 503), (2, 503)):
        answer = await cluster.ask(at, path)
        assert answer.status == status
        assert answer.value["reason"] == (
            "There are quorum queues that would lose their quorum if the target node is shut down"
        )
        assert answer.value["queues"] == [
            {"name": "q", "readable_name": "queue 'q' in vhost '/'", "type": "quorum", "virtual_host": "/"}
        ]
        assert "1 quorum queue " in answer.value["message"]
    await cluster.apply(DeleteQueue(vhost="/", name="q"))
    await declare(cluster, "there", 2)
    assert (await cluster.ask(1, path)).status == 200
    # As with RabbitMQ, also a queue that has one replica on purpose.
    assert (await cluster.ask(2, path)).status == 503


@in_cluster
async def test_only_administrators_change_replicas(cluster: ManagedCluster) -> None:
    await declare(cluster, "q", 1)
    for user, allowed in (("joe", 401), ("watcher", 401)):
        for line, body in (
            ("POST /queues/quorum/%2F/q/replicas/add", {"node": "b@test"}),
            ("DELETE /queues/quorum/%2F/q/replicas/delete", {"node": "b@test"}),
            ("POST /queues/quorum/replicas/on/b%40test/grow", {"strategy": "all"}),
            ("DELETE /queues/quorum/replicas/on/b%40test/shrink", None),
            ("POST /rebalance/queues", {}),
        ):
            assert (await cluster.ask(1, line, body, user=user)).status == allowed, line
    assert members(cluster, "q") == [1]
