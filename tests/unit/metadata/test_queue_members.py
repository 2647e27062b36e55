"""Which nodes have a replica of a quorum queue: at the declaration, after changes, and when nodes leave."""

import random
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace
from tests.seeds import SEEDS
from tests.sim.test_journal_replay import everything

from warren.limits_metadata import QUEUE_MEMBERS_MAX, REPLICA_NUMBER_MAX
from warren.metadata.commands import (
    DONE,
    EXISTING,
    MISSING,
    PARTLY,
    ChangeQueueMembers,
    CommandContext,
    DeclareQueue,
    DeleteQueue,
    LeadQueue,
    MetadataCommand,
    Outcome,
    PutVhost,
    RemoveReplicas,
    RemoveVhost,
    Reply,
    RestoreTopology,
)
from warren.metadata.difference import replace as replace_metadata
from warren.metadata.events import Event, QueueDeleted, QueueMembersChanged
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberDown, MemberUp, RemoveMember
from warren.metadata.proposals import LocalProposals
from warren.metadata.queues_per_node import QueuesPerNode
from warren.metadata.records import QueueMember, QueueRecord

Apply = Callable[[MetadataCommand], Reply]

NODES = 4
QUORUM = {"x-queue-type": "quorum"}
FORM = FormCluster(
    cluster_id=b"c" * 16, name="node 1", host="h", cluster_port=1, incarnation=1, feature_level=1
)


def form(apply: Apply, count: int = NODES) -> None:
    """Make a cluster of members that are up, with the ids 1 to `count`."""
    assert apply(FORM) is DONE
    for id in range(2, count + 1):
        admit = AdmitMember(name=f"node {id}", host="h", cluster_port=1, incarnation=7, feature_level=1)
        assert apply(admit) is DONE
        assert apply(MemberUp(id=id, incarnation=7, host="h", cluster_port=1, feature_level=1)) is DONE


@pytest.fixture
def cluster(metadata: Metadata, apply: Apply) -> Metadata:
    form(apply)
    return metadata


def declared(*members: int, name: str = "q", home: int = 0) -> DeclareQueue:
    return DeclareQueue(
        vhost="v", name=name, durable=True, arguments=QUORUM, home=home, members=tuple(members)
    )


def record(metadata: Metadata, name: str = "q") -> QueueRecord:
    return metadata.vhosts.by_name["v"].topology.queues[name]


def members(metadata: Metadata, name: str = "q") -> list[tuple[int, int]]:
    return [tuple(member) for member in record(metadata, name).members]


def counts(metadata: Metadata) -> tuple[dict[int, int], dict[int, int]]:
    homes, replicas = metadata.homes, metadata.replicas
    return tuple({node: count for node, count in found.items() if count} for found in (homes, replicas))  # type: ignore[return-value]


def change(
    metadata: Metadata, added: Sequence[int] = (), removed: Sequence[int] = (), name: str = "q"
) -> ChangeQueueMembers:
    return ChangeQueueMembers(
        vhost="v",
        queue=name,
        number=record(metadata, name).number,
        added=tuple(added),
        removed=tuple(removed),
    )


def begin(metadata: Metadata, apply: Apply, command: DeclareQueue) -> Reply:
    """Declare a queue, whose home leads it then."""
    reply = apply(command)
    queue = record(metadata, command.name)
    apply(LeadQueue(vhost="v", queue=queue.name, number=queue.number, node=queue.home))
    return reply


def test_the_members_of_a_declaration_have_replicas_in_its_order_and_the_first_is_the_home(
    cluster: Metadata, apply: Apply
) -> None:
    assert apply(declared(3, 1, 4)) is DONE
    queue = record(cluster)
    assert queue.members == (QueueMember(3, 1), QueueMember(1, 2), QueueMember(4, 3))
    assert (queue.home, queue.next_replica, queue.incarnation) == (3, 4, None)
    assert [queue.replica_on(node) for node in range(1, 5)] == [2, 0, 1, 3]
    assert queue.replicas == queue.members


def test_a_queue_of_one_member_has_it_as_its_home_only(cluster: Metadata, apply: Apply) -> None:
    apply(declared(2))
    queue = record(cluster)
    assert (queue.home, queue.members, queue.next_replica) == (2, (), 0)
    assert queue.replicas == (QueueMember(2, 1),)
    assert (queue.replica_on(2), queue.replica_on(1)) == (1, 0)


def test_a_queue_without_members_is_on_its_home(cluster: Metadata, apply: Apply) -> None:
    apply(declared(home=3))
    assert (record(cluster).home, record(cluster).members) == (3, ())


@pytest.mark.parametrize(
    ("named", "found"),
    [
        # Named twice, and no members of the cluster.
        ((2, 3, 2, 9, 3), [(2, 1), (3, 2)]),
        ((9, 3, 2), [(3, 1), (2, 2)]),
        ((9, 3), []),
    ],
)
def test_nodes_that_cannot_be_members_are_left_out(
    cluster: Metadata, apply: Apply, named: Sequence[int], found: list[tuple[int, int]]
) -> None:
    assert apply(declared(*named)) is DONE
    assert members(cluster) == found
    assert record(cluster).home == (found[0][0] if found else 3)


def test_the_first_member_that_is_up_leads(cluster: Metadata, apply: Apply) -> None:
    for id in (2, 3):
        apply(MemberDown(id=id, incarnation=7))
    apply(declared(2, 4, 3))
    assert members(cluster) == [(4, 1), (2, 2), (3, 3)]
    assert record(cluster).home == 4


@pytest.mark.parametrize(("home", "found"), [(0, 1), (4, 4), (3, 1)])
def test_a_queue_none_of_whose_members_is_up_is_on_its_home(
    cluster: Metadata, apply: Apply, home: int, found: int
) -> None:
    for id in (2, 3):
        apply(MemberDown(id=id, incarnation=7))
    apply(declared(2, 3, 9, home=home))
    assert (record(cluster).home, record(cluster).members) == (found, ())


@pytest.mark.parametrize(
    "given",
    [
        {"arguments": {}},
        {"arguments": {"x-queue-type": "stream"}},
        {"durable": False},
        {"owner": "c"},
    ],
)
def test_only_a_quorum_queue_has_members(cluster: Metadata, apply: Apply, given: dict[str, object]) -> None:
    assert apply(replace(declared(3, 2, home=4), **given)) is DONE
    assert (record(cluster).home, record(cluster).members) == (4, ())


def test_the_queues_of_a_node_alone_have_no_members(metadata: Metadata, apply: Apply) -> None:
    apply(declared(1, 2, 3))
    assert (record(metadata).home, record(metadata).members) == (1, ())


def test_a_queue_has_a_bounded_number_of_members(metadata: Metadata, apply: Apply) -> None:
    form(apply, QUEUE_MEMBERS_MAX + 1)
    everybody = range(1, QUEUE_MEMBERS_MAX + 2)
    begin(metadata, apply, declared(*everybody))
    assert [node for node, _ in members(metadata)] == [*everybody][:-1]
    last = QUEUE_MEMBERS_MAX + 1
    text = f"a queue has at most {QUEUE_MEMBERS_MAX} members"
    assert apply(change(metadata, added=[last])) == Reply(Outcome.REFUSED, text)
    assert apply(change(metadata, added=[last], removed=[2])) is DONE


def test_members_are_added_and_removed_and_no_number_is_used_again(
    cluster: Metadata, apply: Apply, received: list[Event]
) -> None:
    begin(cluster, apply, declared(2, 3))
    before = record(cluster)
    assert apply(change(cluster, added=[1, 4], removed=[3])) is DONE
    assert members(cluster) == [(2, 1), (1, 3), (4, 4)]
    assert received[-1] == QueueMembersChanged("v", record(cluster), before)
    assert apply(change(cluster, removed=[4])) is DONE
    assert apply(change(cluster, added=[4, 3])) is DONE
    assert members(cluster) == [(2, 1), (1, 3), (4, 5), (3, 6)]
    assert record(cluster).next_replica == 7


def test_a_queue_of_one_node_gets_members(cluster: Metadata, apply: Apply) -> None:
    apply(declared(home=3))
    assert apply(change(cluster, added=[1])) is DONE
    assert members(cluster) == [(3, 1), (1, 2)]
    assert (record(cluster).home, record(cluster).next_replica) == (3, 3)


def test_the_next_member_is_the_home_of_a_queue_whose_home_is_removed(
    cluster: Metadata, apply: Apply
) -> None:
    begin(cluster, apply, declared(2, 3, 1))
    apply(change(cluster, removed=[2]))
    assert (members(cluster), record(cluster).home) == ([(3, 2), (1, 3)], 3)
    # The numbers are kept also when one member is left, since it is not the first replica.
    apply(change(cluster, removed=[3]))
    assert (members(cluster), record(cluster).home) == ([(1, 3)], 1)
    apply(change(cluster, added=[2]))
    assert members(cluster) == [(1, 3), (2, 4)]


@pytest.mark.parametrize(
    ("added", "removed", "text"),
    [
        ([9], [], "node 9 is not a member of the cluster"),
        ([2], [], "node 2 is a member of queue 'q' already"),
        ([4, 2], [], "node 2 is a member of queue 'q' already"),
        ([], [4], "node 4 is not a member of queue 'q'"),
        ([4, 4], [], "a node is named twice"),
        ([], [3, 3], "a node is named twice"),
        ([], [2, 3], "the last member of queue 'q' cannot be removed"),
        # The new replicas are empty.
        ([1, 4], [2, 3], "the last member of queue 'q' cannot be removed"),
    ],
)
def test_a_change_that_is_refused_changes_nothing(
    cluster: Metadata,
    apply: Apply,
    received: list[Event],
    added: Sequence[int],
    removed: Sequence[int],
    text: str,
) -> None:
    begin(cluster, apply, declared(2, 3))
    before = record(cluster)
    received.clear()
    assert apply(change(cluster, added, removed)) == Reply(Outcome.REFUSED, text)
    assert record(cluster) is before
    assert not received


def test_a_change_of_nothing_has_no_event(cluster: Metadata, apply: Apply, received: list[Event]) -> None:
    begin(cluster, apply, declared(2, 3))
    received.clear()
    assert apply(change(cluster)) is EXISTING
    assert not [event for event in received if isinstance(event, QueueMembersChanged)]


def test_only_the_queue_that_was_meant_is_changed(cluster: Metadata, apply: Apply) -> None:
    apply(declared(2, 3))
    meant = change(cluster, added=[4])
    apply(DeleteQueue(vhost="v", name="q"))
    text = "queue 'q' in vhost 'v' does not exist"
    assert apply(meant) == Reply(Outcome.MISSING, text)
    apply(declared(2, 3))
    text = "queue 'q' in vhost 'v' was deleted and declared again"
    assert apply(meant) == Reply(Outcome.MISSING, text)
    assert apply(replace(meant, vhost="w")).outcome is Outcome.MISSING
    assert members(cluster) == [(2, 1), (3, 2)]


def test_only_a_quorum_queue_is_changed(cluster: Metadata, apply: Apply) -> None:
    apply(DeclareQueue(vhost="v", name="q", durable=True))
    refused = Reply(Outcome.REFUSED, "queue 'q' is not a quorum queue")
    assert apply(change(cluster, added=[2])) == refused


def test_the_numbers_of_replicas_have_an_end(cluster: Metadata, apply: Apply) -> None:
    begin(cluster, apply, declared(2, 3))
    queue = record(cluster)
    topology = cluster.vhosts.by_name["v"].topology
    topology.queues["q"] = replace(queue, next_replica=REPLICA_NUMBER_MAX)
    apply(change(cluster, removed=[3]))
    text = "all numbers of replicas of queue 'q' are used up"
    assert apply(change(cluster, added=[3])) == Reply(Outcome.REFUSED, text)


@pytest.mark.parametrize("count_max", [1, 2, 9])
@pytest.mark.parametrize("is_forgotten", [True, False])
def test_a_node_that_leaves_is_no_member_of_a_queue_that_has_another_one(
    cluster: Metadata, apply: Apply, count_max: int, is_forgotten: bool
) -> None:
    apply(PutVhost(name="w"))
    apply(declared(2, 3, 4, name="a"))
    apply(declared(3, 2, name="b"))
    apply(declared(3, name="only there"))
    apply(declared(1, 2, name="not there"))
    apply(replace(declared(1, 3), vhost="w"))
    outcomes = []
    while (reply := apply(RemoveReplicas(node=3, count_max=count_max))) is PARTLY:
        outcomes.append(reply)
    assert reply is DONE
    assert len(outcomes) == 3 // count_max
    assert apply(RemoveMember(id=3, is_forgotten=is_forgotten)) is DONE
    assert [members(cluster, name) for name in ("a", "b", "not there")] == [
        [(2, 1), (4, 3)], [(2, 2)], [(1, 1), (2, 2)],
    ]  # fmt: skip
    assert record(cluster, "b").home == 2
    assert (record(cluster, "only there").home, record(cluster, "only there").members) == (3, ())
    assert cluster.vhosts.by_name["w"].topology.queues["q"].members == (QueueMember(1, 1),)
    assert counts(cluster) == ({1: 2, 2: 2, 3: 1}, {1: 2, 2: 3, 3: 1, 4: 1})


def test_replicas_are_removed_in_the_order_of_names(cluster: Metadata, apply: Apply) -> None:
    """Each node does the same part at once, whatever happened to the queues before."""
    for name in "cab":
        apply(declared(1, 2, name=name))
    assert apply(RemoveReplicas(node=2, count_max=1)) is PARTLY
    assert [len(members(cluster, name)) for name in "abc"] == [1, 2, 2]


def test_a_node_that_is_forgotten_at_once_is_no_member_any_more(cluster: Metadata, apply: Apply) -> None:
    apply(declared(2, 3))
    assert apply(RemoveMember(id=2, is_forgotten=True)) is DONE
    assert (members(cluster), record(cluster).home) == ([(3, 2)], 3)


def test_a_queue_whose_last_member_was_forgotten_gets_no_other_one(cluster: Metadata, apply: Apply) -> None:
    begin(cluster, apply, declared(2, 3))
    for id in (3, 2):
        apply(RemoveMember(id=id, is_forgotten=True))
    assert (members(cluster), record(cluster).home) == ([(2, 1)], 2)
    refused = Reply(Outcome.REFUSED, "no member of queue 'q' is a member of the cluster")
    assert apply(change(cluster, added=[1])) == refused
    assert apply(DeleteQueue(vhost="v", name="q")) is DONE


def test_replicas_are_counted_as_they_come_and_go(cluster: Metadata, apply: Apply) -> None:
    apply(PutVhost(name="w"))
    begin(cluster, apply, declared(2, 3))
    begin(cluster, apply, declared(home=4, name="alone"))
    apply(DeclareQueue(vhost="v", name="classic", durable=True, home=2))
    apply(replace(declared(1, 2), vhost="w"))
    assert counts(cluster) == ({1: 1, 2: 2, 4: 1}, {1: 1, 2: 2, 3: 1, 4: 1})
    apply(change(cluster, added=[4], removed=[2]))
    assert counts(cluster) == ({1: 1, 2: 1, 3: 1, 4: 1}, {1: 1, 2: 1, 3: 1, 4: 2})
    apply(RemoveVhost(name="w"))
    apply(DeleteQueue(vhost="v", name="alone"))
    assert counts(cluster) == ({2: 1, 3: 1}, {3: 1, 4: 1})


def test_the_members_in_a_snapshot_are_those_of_the_queue(cluster: Metadata, apply: Apply) -> None:
    apply(declared(2, 3))
    saved = replace(record(cluster), home=4, members=(QueueMember(4, 7),), next_replica=8)
    apply(RestoreTopology(vhost="v", queues=(saved,)))
    assert record(cluster) == saved
    # Another queue, or one with other properties, is kept.
    for other in (replace(saved, number=99, home=1), replace(saved, user="another", home=1)):
        apply(RestoreTopology(vhost="v", queues=(other,)))
        assert record(cluster) == saved
    assert counts(cluster) == ({4: 1}, {4: 1})


def history(*more: MetadataCommand) -> Metadata:
    """Metadata with a cluster and two queues, after the commands `more`."""
    metadata = Metadata()
    apply = LocalProposals(metadata, lambda: 0).apply
    apply(PutVhost(name="v"))
    form(apply)
    begin(metadata, apply, declared(2, 3))
    begin(metadata, apply, declared(1, 2, name="same"))
    for command in more:
        apply(command)
    return metadata


def test_a_queue_with_other_members_goes_on_when_metadata_are_replaced() -> None:
    current, change_it = history(), change(history(), added=[4], removed=[2])
    target = history(change_it)
    before = record(current)
    events: list[Event] = []
    current.listen(events.append)
    replace_metadata(current, target, target.index)
    assert events == [QueueMembersChanged("v", record(history(change_it)), before)]
    assert counts(current) == ({1: 1, 3: 1}, {1: 1, 2: 1, 3: 1, 4: 1})
    context = CommandContext(index=current.index + 1, now=0)
    assert current.apply(RemoveReplicas(node=2, count_max=9), context) is DONE
    assert members(current, "same") == [(1, 1)]


def test_nothing_is_changed_before_the_group_has_begun(cluster: Metadata, apply: Apply) -> None:
    apply(declared(3, 1, 4))
    assert record(cluster).initial_replicas == 3
    text = "the members of queue 'q' have not agreed on a leader yet: try again soon"
    assert apply(change(cluster, added=[2])) == Reply(Outcome.REFUSED, text)


@pytest.mark.parametrize(
    ("named", "removed", "never_begins"),
    [((3, 1), [1], True), ((3, 1, 4), [3], False), ((3, 1, 4), [3, 1], True), ((3, 1, 4, 2), [1, 2], True)],
)
def test_a_group_never_begins_without_a_majority_of_its_first_members(
    cluster: Metadata, apply: Apply, named: Sequence[int], removed: Sequence[int], never_begins: bool
) -> None:
    apply(declared(*named))
    for node in removed:
        assert apply(RemoveReplicas(node=node, count_max=9)) is DONE
    queue = record(cluster)
    assert queue.never_begins is never_begins
    led = LeadQueue(vhost="v", queue="q", number=queue.number, node=queue.home)
    assert apply(led) is (MISSING if never_begins else DONE)
    assert ("delete the queue, and" in apply(change(cluster, added=removed)).text) is never_begins


@pytest.mark.parametrize("named", [(3,), (3, 1)])
def test_a_group_that_has_begun_may_lose_all_members_but_one(
    cluster: Metadata, apply: Apply, named: Sequence[int]
) -> None:
    begin(cluster, apply, declared(*named))
    apply(RemoveReplicas(node=1, count_max=9))
    assert not record(cluster).never_begins


def test_the_home_is_the_node_that_leads(cluster: Metadata, apply: Apply) -> None:
    begin(cluster, apply, declared(3, 1, 4))
    assert (record(cluster).home, record(cluster).initial_replicas) == (3, 0)
    led = LeadQueue(vhost="v", queue="q", number=record(cluster).number, node=4)
    assert apply(led) is DONE
    assert (record(cluster).home, members(cluster)) == (4, [(4, 3), (3, 1), (1, 2)])
    assert counts(cluster)[0] == {4: 1}
    assert apply(led) is EXISTING


@pytest.mark.parametrize(("node", "number"), [(2, 0), (1, 1)])
def test_only_a_member_leads(cluster: Metadata, apply: Apply, node: int, number: int) -> None:
    begin(cluster, apply, declared(3, 1, 4))
    led = LeadQueue(vhost="v", queue="q", number=record(cluster).number + number, node=node)
    assert apply(led) is MISSING
    assert apply(LeadQueue(vhost="v", queue="gone", number=1, node=1)) is MISSING


def test_a_node_that_has_lost_its_replica_gets_another_one(cluster: Metadata, apply: Apply) -> None:
    begin(cluster, apply, declared(3, 1, 4))
    assert apply(change(cluster, added=[3], removed=[3])) is DONE
    assert (record(cluster).home, members(cluster)) == (1, [(1, 2), (4, 3), (3, 4)])


class Histories:
    """Metadata of a cluster, with random changes of the queues in it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.metadata = Metadata()
        self.apply = LocalProposals(self.metadata, lambda: 0).apply
        self.apply(PutVhost(name="v"))
        form(self.apply, 6)
        # Which replicas each queue ever had, by its number.
        self.replicas: dict[int, set[QueueMember]] = {}

    def nodes(self, count_max: int) -> tuple[int, ...]:
        """Some nodes, perhaps twice, and perhaps such that have left."""
        return tuple(self.chance.choices(range(1, 8), k=self.chance.randrange(count_max)))

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
            self.check()

    def step(self) -> None:
        chance, name = self.chance, self.chance.choice("abcdef")
        queue = self.metadata.vhosts.by_name["v"].topology.queues.get(name)
        match chance.choice(
            ["change"] * 8 + ["declare", "lead"] * 4 + ["delete", "leave", "part", "down", "up"]
        ):
            case "declare":
                self.apply(declared(*self.nodes(6), name=name, home=chance.randrange(7)))
            case "change" if queue is not None:
                self.apply(change(self.metadata, self.nodes(3), self.nodes(3), name))
            case "lead" if queue is not None:
                node = chance.randrange(1, 7)
                self.apply(LeadQueue(vhost="v", queue=name, number=queue.number, node=node))
            case "delete":
                self.apply(DeleteQueue(vhost="v", name=name))
            case "leave" if chance.random() < 0.3:
                self.apply(RemoveMember(id=chance.randrange(2, 7), is_forgotten=True))
            case "part":
                self.apply(RemoveReplicas(node=chance.randrange(1, 7), count_max=2))
            case "down":
                self.apply(MemberDown(id=chance.randrange(2, 7), incarnation=7))
            case "up":
                self.apply(
                    MemberUp(
                        id=chance.randrange(2, 7), incarnation=7, host="h", cluster_port=1, feature_level=1
                    )
                )
            case _:
                pass

    def check(self) -> None:
        """Assert what is true of all queues at any time."""
        found = QueuesPerNode()
        for queue in self.metadata.vhosts.by_name["v"].topology.queues.values():
            found.add(queue)
            nodes = [member.node for member in queue.replicas]
            assert queue.home == nodes[0]
            assert len(set(nodes)) == len(nodes) <= QUEUE_MEMBERS_MAX
            assert len(nodes) == 1 or set(nodes) <= self.metadata.members.by_id.keys()
            ever = self.replicas.setdefault(queue.number, set())
            ever.update(queue.replicas)
            assert len({member.replica for member in ever}) == len(ever), "a number was used twice"
            assert not queue.members or queue.next_replica > max(member.replica for member in ever)
        homes, replicas = counts(self.metadata)
        assert (homes, replicas) == (dict(found.homes), dict(found.replicas))


@pytest.mark.seeds(SEEDS // 4)
def test_members_stay_consistent_and_metadata_are_replaced_by_those_of_a_snapshot(seed: int) -> None:
    current, target, same = (Histories(seed) for _ in range(3))
    common, only_there = current.chance.randrange(80), current.chance.randrange(80)
    for history in (target, same):
        history.chance.setstate(current.chance.getstate())
        history.go_on(common)
    for history in (target, same):
        history.go_on(only_there)
    current.go_on(common)
    known, wanted = (
        {queue.number: queue for queue in one.metadata.vhosts.by_name["v"].topology.queues.values()}
        for one in (current, target)
    )
    events: list[Event] = []
    current.metadata.listen(events.append)
    replace_metadata(current.metadata, same.metadata, same.metadata.index)
    assert everything(current.metadata) == everything(target.metadata)
    # A queue that both have goes on, whatever members it has.
    deleted = {event.queue.number for event in events if isinstance(event, QueueDeleted)}
    changed = {event.queue.number for event in events if isinstance(event, QueueMembersChanged)}
    assert deleted == known.keys() - wanted.keys()
    assert changed == {number for number in known.keys() & wanted.keys() if known[number] != wanted[number]}
    # Both go on alike.
    current.chance.setstate(target.chance.getstate())
    for _ in range(20):
        current.step()
        target.step()
        assert everything(current.metadata) == everything(target.metadata)
