"""The live topology follows the metadata, policies included."""

from itertools import pairwise

from tests.unit.vhost.conftest import CountingQueue, LiveVhost

from warren.limits import POLICIES_PER_TURN, RECOVERED_PER_TURN, REMOVED_PER_TURN
from warren.limits_metadata import POLICIES_MATCHED_PER_TURN
from warren.metadata.commands import (
    Bind,
    ClearPolicy,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeleteQueue,
    PauseQueue,
    RemoveVhost,
    SetPolicy,
)
from warren.routing.router import Router
from warren.vhost.live_topology import LiveTopology, LiveTopologyDependencies


def test_every_queue_is_bound_to_the_default_exchange_by_its_name(live: LiveVhost) -> None:
    live.apply(DeclareQueue(vhost="v", name="q"))
    default = live.topology.router.exchanges[""]
    assert [(b.key, b.destination) for b in default.each_binding()] == [("q", live.queues["q"])]
    live.apply(DeleteQueue(vhost="v", name="q"))
    assert default.bindings == 0


def test_existing_objects_are_created_at_the_start(live: LiveVhost) -> None:
    live.apply(DeclareExchange(vhost="v", name="x", type="topic", arguments={"alternate-exchange": "ae"}))
    live.apply(DeclareQueue(vhost="v", name="q", arguments={"x-expires": 5}))
    live.apply(Bind(vhost="v", source="x", destination="q", routing_key="#"))
    live.apply(Bind(vhost="v", source="amq.direct", destination="x", is_to_queue=False))
    again = remade(live)
    restored: list[str] = []
    for _ in again.recover(lambda record, queue: restored.append(record.name)):
        pass
    assert restored == ["q"]
    exchange = again.router.exchanges["x"]
    assert (exchange.bindings, exchange.alternate) == (1, "ae")
    assert again.queues["q"].settings.expires_ms == 5
    assert again.router.exchanges["amq.direct"].bindings == 1


def remade(live: LiveVhost) -> LiveTopology[CountingQueue]:
    """Another topology of the same vhost, which is still empty."""
    parts: LiveTopologyDependencies[CountingQueue] = LiveTopologyDependencies(
        router=Router("v"),
        queues={},
        make_queue=CountingQueue,
        random_bytes=bytes,
        later=live.turns.append,
    )
    return LiveTopology(live.metadata, "v", parts)


def test_existing_objects_are_created_in_pieces_and_later_changes_follow(
    live: LiveVhost,
) -> None:
    names = [f"q{number}" for number in range(2 * RECOVERED_PER_TURN)]
    for name in names:
        live.apply(DeclareQueue(vhost="v", name=name))
        live.apply(Bind(vhost="v", source="amq.fanout", destination=name))
    again = remade(live)
    live.apply(DeclareQueue(vhost="v", name="before"))
    restored: list[str] = []
    pieces = again.recover(lambda record, queue: restored.append(record.name))
    sizes = []
    for _ in pieces:
        if len(again.queues) == RECOVERED_PER_TURN:
            live.apply(DeleteQueue(vhost="v", name=names[0]))
            live.apply(DeleteQueue(vhost="v", name=names[-1]))
            live.apply(DeclareQueue(vhost="v", name="meanwhile"))
            live.apply(Bind(vhost="v", source="amq.fanout", destination="meanwhile"))
            assert len(again.queues) == RECOVERED_PER_TURN
        sizes.append(len(again.queues))
    assert restored == [*names, "before"]
    assert sorted(set(sizes)) == [0, RECOVERED_PER_TURN, 2 * RECOVERED_PER_TURN, 2 * RECOVERED_PER_TURN + 1]
    assert list(again.queues) == [*names[1:-1], "before", "meanwhile"]
    fanout = again.router.exchanges["amq.fanout"]
    assert fanout.bindings == len(names) - 1
    live.apply(DeclareQueue(vhost="v", name="after"))
    assert "after" in again.queues


def test_creation_ends_when_the_vhost_is_deleted(live: LiveVhost) -> None:
    for number in range(2 * RECOVERED_PER_TURN):
        live.apply(DeclareQueue(vhost="v", name=f"q{number}"))
    again = remade(live)
    pieces = again.recover(lambda record, queue: None)
    while not again.queues:
        next(pieces)
    made = list(again.queues.values())
    live.apply(RemoveVhost(name="v"))
    assert list(pieces) == []
    while live.turns:
        live.turns.pop(0)(0)
    assert len(made) == RECOVERED_PER_TURN
    assert all(queue.is_deleted for queue in made)
    assert not again.queues


def test_the_queues_of_a_deleted_vhost_end_in_turns(live: LiveVhost) -> None:
    for number in range(2 * REMOVED_PER_TURN + 1):
        live.apply(DeclareQueue(vhost="v", name=f"q{number}"))
    queues = list(live.queues.values())
    live.apply(RemoveVhost(name="v"))
    ended = [sum(queue.is_deleted for queue in queues)]
    while live.turns:
        live.turns.pop(0)(0)
        ended.append(sum(queue.is_deleted for queue in queues))
    assert ended == [REMOVED_PER_TURN, 2 * REMOVED_PER_TURN, 2 * REMOVED_PER_TURN + 1]


def test_policies_are_applied_to_matching_queues_and_removed_again(live: LiveVhost) -> None:
    live.apply(DeclareQueue(vhost="v", name="q1", arguments={"x-max-length": 50}))
    live.apply(DeclareQueue(vhost="v", name="other"))
    live.apply(DeclareExchange(vhost="v", name="q-exchange", type="fanout"))
    definition = {"max-length": 10, "alternate-exchange": "ae"}
    live.apply(SetPolicy(vhost="v", name="p", pattern="^q", definition=definition))
    live.apply(SetPolicy(vhost="v", name="o", pattern="^q", definition={"max-length": 7}, is_operator=True))
    live.apply(DeclareQueue(vhost="v", name="q2"))
    assert live.queues["q1"].settings.length_max == 7
    assert live.queues["q2"].settings.length_max == 7
    assert live.queues["other"].settings.length_max is None
    assert live.topology.router.exchanges["q-exchange"].alternate == "ae"
    assert live.topology.router.exchanges["amq.direct"].alternate is None
    live.apply(ClearPolicy(vhost="v", name="o", is_operator=True))
    assert live.queues["q1"].settings.length_max == 10
    live.apply(ClearPolicy(vhost="v", name="p"))
    assert live.queues["q1"].settings.length_max == 50
    assert live.topology.router.exchanges["q-exchange"].alternate is None


def test_a_policy_is_applied_to_many_queues_in_turns_and_a_new_change_takes_precedence(
    live: LiveVhost,
) -> None:
    names = [f"q{number:03}" for number in range(2 * POLICIES_PER_TURN + 1)]
    for name in names:
        live.apply(DeclareQueue(vhost="v", name=name))

    def limited(length: int) -> int:
        return sum(queue.settings.length_max == length for queue in live.queues.values())

    live.apply(SetPolicy(vhost="v", name="p", pattern="^q", definition={"max-length": 5}))
    assert limited(5) == POLICIES_PER_TURN
    live.apply(DeleteQueue(vhost="v", name=names[POLICIES_PER_TURN]))
    live.apply(DeclareQueue(vhost="v", name="q-new"))
    live.turns.pop(0)(0)
    # All of this turn but the deleted one, and the new queue from its start.
    assert limited(5) == 2 * POLICIES_PER_TURN
    live.apply(SetPolicy(vhost="v", name="p", pattern="^q", definition={"max-length": 6}))
    while live.turns:
        live.turns.pop(0)(0)
    assert (limited(5), limited(6)) == (0, len(live.queues))


def test_with_more_policies_fewer_names_are_matched_in_a_turn(live: LiveVhost) -> None:
    for number in range(3 * POLICIES_PER_TURN):
        live.apply(DeclareQueue(vhost="v", name=f"q{number:03}"))
        live.apply(DeclareExchange(vhost="v", name=f"q{number:03}", type="direct"))
    for number in range(POLICIES_MATCHED_PER_TURN // 2):
        live.apply(SetPolicy(vhost="v", name=f"p{number}", pattern="^p", definition={"max-length": 5}))
    while live.turns:
        live.turns.pop(0)(0)
    definition = {"max-length": 6, "alternate-exchange": "ae"}
    live.apply(SetPolicy(vhost="v", name="q", pattern="^q", definition=definition))
    reached = []
    while True:
        queues = sum(queue.settings.length_max == 6 for queue in live.queues.values())
        exchanges = sum(one.alternate == "ae" for one in live.topology.router.exchanges.values())
        reached.append((queues, exchanges))
        if not live.turns:
            break
        live.turns.pop(0)(0)
    assert reached[-1] == (3 * POLICIES_PER_TURN, 3 * POLICIES_PER_TURN)
    assert max(after[0] - before[0] for before, after in pairwise(reached)) == 1
    assert max(after[1] - before[1] for before, after in pairwise(reached)) == 1


def test_a_policy_change_during_the_deletion_of_a_vhost_has_no_effect(live: LiveVhost) -> None:
    for number in range(POLICIES_PER_TURN + 1):
        live.apply(DeclareQueue(vhost="v", name=f"q{number:03}"))
    live.apply(SetPolicy(vhost="v", name="p", pattern="^q", definition={"max-length": 5}))
    live.apply(RemoveVhost(name="v"))
    while live.turns:
        live.turns.pop(0)(0)
    assert not live.queues


def test_deleting_an_exchange_removes_its_bindings_from_the_router(live: LiveVhost) -> None:
    live.apply(DeclareExchange(vhost="v", name="x", type="direct"))
    live.apply(DeclareQueue(vhost="v", name="q"))
    live.apply(Bind(vhost="v", source="x", destination="q", routing_key="k"))
    live.apply(Bind(vhost="v", source="amq.direct", destination="x", is_to_queue=False))
    live.apply(DeleteExchange(vhost="v", name="x"))
    assert "x" not in live.topology.router.exchanges
    assert live.topology.router.exchanges["amq.direct"].bindings == 0
    assert len(live.topology.router.bindings_of(live.queues["q"])) == 1


def test_deleting_a_vhost_ends_its_queues(live: LiveVhost) -> None:
    live.apply(DeclareQueue(vhost="v", name="q"))
    queue = live.queues["q"]
    live.apply(RemoveVhost(name="v"))
    live.topology.close()
    assert queue.is_deleted
    assert live.queues == {}


def test_queues_with_equal_arguments_share_their_settings(live: LiveVhost) -> None:
    arguments = {"x-max-length": 5}
    for name, each in (("q1", arguments), ("q2", arguments), ("q3", {"x-max-length": 6}), ("q4", {})):
        live.apply(DeclareQueue(vhost="v", name=name, arguments=each))
    settings = [queue.settings for queue in live.queues.values()]
    assert settings[0] is settings[1]
    assert [each.length_max for each in settings] == [5, 5, 6, None]
    live.apply(SetPolicy(vhost="v", name="p", pattern="q2", definition={"max-length": 4}))
    live.apply(DeclareQueue(vhost="v", name="q22", arguments=arguments))
    assert [queue.settings.length_max for queue in live.queues.values()] == [5, 4, 6, None, 4]


def test_a_queue_is_paused_by_a_command_and_by_recovered_metadata(live: LiveVhost) -> None:
    for name in ("a", "b"):
        live.apply(DeclareQueue(vhost="v", name=name))
        live.apply(PauseQueue(vhost="v", name=name))
    assert live.queues["a"].is_paused
    live.apply(PauseQueue(vhost="v", name="a", is_paused=False))
    assert not live.queues["a"].is_paused
    again = remade(live)
    for _ in again.recover(lambda record, queue: None):
        pass
    assert {name: queue.is_paused for name, queue in again.queues.items()} == {"a": False, "b": True}
