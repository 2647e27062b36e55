"""Exchanges, queues and bindings of a vhost, and what is deleted together with them."""

import tracemalloc
from collections.abc import Callable

import pytest

from warren.limits_metadata import QUEUE_NUMBERS_MAX, TRANSIENT_NUMBERS_FROM
from warren.metadata.commands import (
    DONE,
    EXISTING,
    MISSING,
    PARTLY,
    Bind,
    CommandContext,
    DeclareExchange,
    DeclareQueue,
    DeleteEphemeral,
    DeleteExchange,
    DeleteExclusiveQueues,
    DeleteQueue,
    MetadataCommand,
    Outcome,
    PauseQueue,
    Reply,
    RestoreTopology,
    Unbind,
)
from warren.metadata.declared_topology import DeclaredTopology
from warren.metadata.events import (
    BindingAdded,
    BindingRemoved,
    Event,
    ExchangeDeclared,
    ExchangeDeleted,
    QueueDeclared,
    QueueDeleted,
    QueuePaused,
)
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.records import BindingRecord, ExchangeRecord, QueueRecord
from warren.wire.table import Int8, Int32

Apply = Callable[[MetadataCommand], Reply]


def topology_of(metadata: Metadata) -> DeclaredTopology:
    vhost = metadata.vhost("v")
    assert vhost is not None
    return vhost.topology


def exchange(name: str, *, auto_delete: bool = False, durable: bool = False) -> DeclareExchange:
    return DeclareExchange(vhost="v", name=name, type="direct", auto_delete=auto_delete, durable=durable)


def queue(name: str, *, durable: bool = False, owner: str | None = None) -> DeclareQueue:
    return DeclareQueue(vhost="v", name=name, durable=durable, owner=owner)


def to_queue(source: str, destination: str, key: str = "") -> Bind:
    return Bind(vhost="v", source=source, destination=destination, routing_key=key)


def to_exchange(source: str, destination: str) -> Bind:
    return Bind(vhost="v", source=source, destination=destination, is_to_queue=False)


def test_a_vhost_has_the_seven_exchanges_of_rabbitmq(metadata: Metadata) -> None:
    exchanges = topology_of(metadata).exchanges.values()
    assert [(e.name, e.type, e.internal) for e in exchanges] == [
        ("", "direct", False),
        ("amq.direct", "direct", False),
        ("amq.fanout", "fanout", False),
        ("amq.headers", "headers", False),
        ("amq.match", "headers", False),
        ("amq.rabbitmq.trace", "topic", True),
        ("amq.topic", "topic", False),
    ]
    assert all(e.durable and not e.auto_delete for e in exchanges)


def test_a_second_declaration_changes_nothing(
    apply: Apply, metadata: Metadata, received: list[Event]
) -> None:
    assert apply(queue("q")) is DONE
    assert apply(queue("q", durable=True)) is EXISTING
    assert not topology_of(metadata).queues["q"].durable
    assert [type(event) for event in received] == [QueueDeclared]


def test_both_ends_of_a_binding_must_exist(apply: Apply) -> None:
    apply(queue("q"))
    assert apply(to_queue("nox", "q")) is MISSING
    assert apply(to_queue("amq.direct", "noq")) is MISSING
    assert apply(to_exchange("amq.direct", "nox")) is MISSING
    assert apply(to_queue("amq.direct", "q")) is DONE


def test_bindings_are_distinguished_by_their_typed_arguments(apply: Apply, metadata: Metadata) -> None:
    apply(queue("q"))

    def bind(arguments: dict[str, object]) -> Reply:
        return apply(Bind(vhost="v", source="amq.headers", destination="q", arguments=arguments))

    assert bind({"a": Int32(1), "b": "x"}) is DONE
    assert bind({"b": "x", "a": Int32(1)}) is EXISTING
    assert bind({"a": Int8(1), "b": "x"}) is DONE
    assert [dict(b.arguments) for b in topology_of(metadata).bindings()] == [{"a": 1, "b": "x"}] * 2
    assert apply(Unbind(vhost="v", source="amq.headers", destination="q", arguments={"a": 1})) is MISSING


def test_deleting_a_queue_removes_its_bindings_first(apply: Apply, received: list[Event]) -> None:
    apply(queue("q"))
    apply(to_queue("amq.direct", "q", "a"))
    apply(to_queue("amq.direct", "q", "b"))
    del received[:]
    assert apply(DeleteQueue(vhost="v", name="q")) is DONE
    assert [type(event) for event in received] == [BindingRemoved, BindingRemoved, QueueDeleted]
    assert apply(DeleteQueue(vhost="v", name="q")) is MISSING


def test_an_auto_delete_exchange_is_deleted_with_its_last_binding(apply: Apply, metadata: Metadata) -> None:
    apply(exchange("x", auto_delete=True))
    apply(queue("q"))
    apply(to_queue("x", "q", "a"))
    apply(to_queue("x", "q", "b"))
    apply(Unbind(vhost="v", source="x", destination="q", routing_key="a"))
    assert "x" in topology_of(metadata).exchanges
    apply(Unbind(vhost="v", source="x", destination="q", routing_key="b"))
    assert "x" not in topology_of(metadata).exchanges


def test_an_auto_delete_exchange_that_was_never_bound_stays(apply: Apply, metadata: Metadata) -> None:
    apply(exchange("x", auto_delete=True))
    apply(to_exchange("amq.direct", "x"))
    apply(Unbind(vhost="v", source="amq.direct", destination="x", is_to_queue=False))
    assert "x" in topology_of(metadata).exchanges


def test_deleting_a_queue_deletes_a_chain_of_auto_delete_exchanges(apply: Apply, metadata: Metadata) -> None:
    for name in "abc":
        apply(exchange(name, auto_delete=True))
    apply(queue("q"))
    apply(to_exchange("a", "b"))
    apply(to_exchange("b", "c"))
    apply(to_queue("c", "q"))
    apply(DeleteQueue(vhost="v", name="q"))
    assert topology_of(metadata).exchanges.keys().isdisjoint("abc")
    assert list(topology_of(metadata).bindings()) == []


def test_a_cycle_of_auto_delete_exchanges_is_deleted_once(apply: Apply, received: list[Event]) -> None:
    apply(exchange("a", auto_delete=True))
    apply(exchange("b", auto_delete=True))
    apply(to_exchange("a", "b"))
    apply(to_exchange("b", "a"))
    del received[:]
    assert apply(DeleteExchange(vhost="v", name="a")) is DONE
    assert sorted(e.exchange.name for e in received if isinstance(e, ExchangeDeleted)) == ["a", "b"]
    assert sum(isinstance(e, BindingRemoved) for e in received) == 2


def test_a_used_exchange_is_not_deleted_with_if_unused(apply: Apply) -> None:
    apply(exchange("x"))
    apply(queue("q"))
    apply(to_queue("x", "q"))
    reply = apply(DeleteExchange(vhost="v", name="x", if_unused=True))
    assert (reply.outcome, reply.text) == (Outcome.REFUSED, "in use")
    apply(to_exchange("amq.direct", "x"))
    apply(DeleteQueue(vhost="v", name="q"))
    assert apply(DeleteExchange(vhost="v", name="x", if_unused=True)) is DONE
    assert apply(DeleteExchange(vhost="v", name="x")) is MISSING


def exclusive_to(metadata: Metadata, owner: str) -> list[str]:
    """The names of the queues that are exclusive to the connection `owner`."""
    command = DeleteExclusiveQueues(vhost="v", owner=owner, count_max=9)
    return topology_of(metadata).exclusive_part(command)[0]


def test_exclusive_queues_are_found_by_their_owner(apply: Apply, metadata: Metadata) -> None:
    apply(queue("a", owner="c1"))
    apply(queue("b", owner="c1"))
    apply(queue("c", owner="c2"))
    assert exclusive_to(metadata, "c1") == ["a", "b"]
    apply(DeleteQueue(vhost="v", name="a"))
    apply(DeleteQueue(vhost="v", name="c"))
    assert exclusive_to(metadata, "c1") == ["b"]
    assert exclusive_to(metadata, "c2") == []


def test_a_restart_removes_transient_objects_and_keeps_durable_ones(apply: Apply, metadata: Metadata) -> None:
    apply(queue("durable", durable=True))
    apply(queue("transient"))
    apply(queue("exclusive", durable=True, owner="c"))
    apply(exchange("x", durable=True, auto_delete=True))
    apply(exchange("y"))
    apply(to_queue("x", "transient"))
    apply(to_queue("y", "durable"))
    apply(to_queue("amq.direct", "durable", "kept"))
    assert apply(DeleteEphemeral(node=1, incarnation=2, count_max=100)) is DONE
    topology = topology_of(metadata)
    assert list(topology.queues) == ["durable"]
    assert "x" in topology.exchanges
    assert "y" not in topology.exchanges
    assert [b.routing_key for b in topology.bindings()] == ["kept"]


def at(metadata: Metadata, node: int, number: int) -> Apply:
    """Commands that a run of a node proposes."""
    return LocalProposals(metadata, lambda: 0, Incarnation(node, number)).apply


def test_what_ends_with_a_run_of_a_node_is_what_that_run_declared(metadata: Metadata) -> None:
    for node, number in ((1, 6), (1, 7), (1, 8), (2, 6)):
        apply, run = at(metadata, node, number), Incarnation(node, number)
        apply(queue(f"transient {node}.{number}"))
        apply(queue(f"exclusive {node}.{number}", owner=run.owner(5)))
        apply(queue(f"durable {node}.{number}", durable=True))
        apply(exchange(f"x {node}.{number}"))
    assert at(metadata, 2, 6)(DeleteEphemeral(node=1, incarnation=8, count_max=100)) is DONE
    topology = topology_of(metadata)
    assert [name for name in topology.queues if not name.startswith("durable")] == [
        "transient 1.8", "exclusive 1.8", "transient 2.6", "exclusive 2.6",
    ]  # fmt: skip
    assert [name for name in topology.exchanges if name.startswith("x")] == ["x 1.8", "x 2.6"]
    assert len(topology.queues) == 8


@pytest.mark.parametrize("count_max", [1, 2, 3, 7])
def test_what_ended_is_deleted_in_pieces_with_its_bindings(metadata: Metadata, count_max: int) -> None:
    apply = at(metadata, 1, 1)
    apply(exchange("x"))
    apply(queue("kept", durable=True))
    for name in ("a", "b"):
        apply(queue(name))
        for key in ("1", "2", "3"):
            apply(to_queue("x", name, key))
    apply(to_queue("x", "kept"))
    topology = topology_of(metadata)
    before = topology.binding_count + len(topology.queues) + len(topology.exchanges)
    replies = 0
    while apply(DeleteEphemeral(node=1, incarnation=2, count_max=count_max)) is PARTLY:
        after = topology.binding_count + len(topology.queues) + len(topology.exchanges)
        assert before - after == count_max
        before, replies = after, replies + 1
    assert replies == 10 // count_max
    assert (list(topology.queues), topology.binding_count, "x" in topology.exchanges) == (["kept"], 0, False)


def test_a_deleted_object_is_forgotten_with_its_run(metadata: Metadata) -> None:
    apply = at(metadata, 1, 1)
    apply(queue("q"))
    apply(exchange("x"))
    apply(DeleteQueue(vhost="v", name="q"))
    apply(DeleteExchange(vhost="v", name="x"))
    apply(queue("q", durable=True))
    apply(exchange("x", durable=True))
    assert apply(DeleteEphemeral(node=1, incarnation=2, count_max=100)) is DONE
    assert "q" in topology_of(metadata).queues
    assert "x" in topology_of(metadata).exchanges


def test_a_queue_with_a_binding_takes_less_than_800_bytes(metadata: Metadata) -> None:
    topology = topology_of(metadata)
    tracemalloc.start()
    for number in range(5_000):
        name = f"queue-{number}"
        topology.declare_queue(DeclareQueue(vhost="v", name=name, durable=True, user="u"), number)
        topology.bind(Bind(vhost="v", source="amq.direct", destination=name, routing_key=name))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / 5_000 < 800


def test_queues_that_survive_a_restart_and_others_are_counted_each(metadata: Metadata) -> None:
    for name, durable, owner in (
        ("kept", True, None), ("kept", True, None), ("transient", False, None), ("own", True, "c"),
        ("next", True, None),
    ):  # fmt: skip
        command = DeclareQueue(vhost="v", name=name, durable=durable, owner=owner)
        metadata.apply(command, CommandContext(index=70, now=0))
    queues = topology_of(metadata).queues
    other = TRANSIENT_NUMBERS_FROM
    assert {name: queue.number for name, queue in queues.items()} == {
        "kept": 1, "transient": other, "own": other + 1, "next": 2,
    }  # fmt: skip
    assert [queue.stored_number for queue in queues.values()] == [1, 0, 0, 2]
    assert [name for name, queue in queues.items() if queue.survives_restart] == ["kept", "next"]


def test_a_durable_queue_without_a_number_in_the_stores_is_refused(metadata: Metadata) -> None:
    metadata.next_number = QUEUE_NUMBERS_MAX
    outcomes = [
        metadata.apply(
            DeclareQueue(vhost="v", name=name, durable=True), CommandContext(index=1, now=0)
        ).outcome
        for name in ("last", "more")
    ]
    assert outcomes == [Outcome.DONE, Outcome.REFUSED]


def test_the_exclusive_queues_of_a_connection_are_deleted_together(apply: Apply, metadata: Metadata) -> None:
    for name, owner in (("a", "c"), ("b", "c"), ("other", "d"), ("shared", None)):
        apply(DeclareQueue(vhost="v", name=name, owner=owner))
    assert apply(DeleteExclusiveQueues(vhost="v", owner="c", count_max=9)) is DONE
    assert list(topology_of(metadata).queues) == ["other", "shared"]


def test_exclusive_queues_are_deleted_with_their_bindings_in_bounded_steps(
    apply: Apply, metadata: Metadata
) -> None:
    for number in range(3):
        apply(DeclareQueue(vhost="v", name=f"q{number}", owner="c"))
    for number in range(5):
        apply(Bind(vhost="v", source="amq.topic", destination="q1", routing_key=str(number)))
    topology = topology_of(metadata)
    left = []
    while apply(DeleteExclusiveQueues(vhost="v", owner="c", count_max=3)) is PARTLY:
        left.append((list(topology.queues), len(topology.bindings_to_queue("q1"))))
    assert left == [(["q1", "q2"], 3), (["q1", "q2"], 0)]
    assert not topology.queues
    assert apply(DeleteExclusiveQueues(vhost="v", owner="c", count_max=3)) is DONE


def test_a_deletion_in_a_log_of_effects_deletes_no_other_objects(apply: Apply, metadata: Metadata) -> None:
    apply(DeclareExchange(vhost="v", name="x", type="fanout", auto_delete=True))
    apply(DeclareQueue(vhost="v", name="q"))
    apply(Bind(vhost="v", source="x", destination="q"))
    metadata.is_cascading = False
    apply(DeleteQueue(vhost="v", name="q"))
    assert "x" in topology_of(metadata).exchanges


def test_restored_objects_keep_their_numbers_and_existing_ones_are_unchanged(
    metadata: Metadata, apply: Apply
) -> None:
    apply(queue("there", durable=True))
    number = topology_of(metadata).queues["there"].number
    received: list[Event] = []
    metadata.listen(received.append, vhost="v")
    exchange_record = ExchangeRecord("x", "fanout", True, False, False, {}, "u")
    queue_record = QueueRecord("q", True, False, None, {"x-max-priority": 3}, "u", 17)
    whole = BindingRecord("x", True, "q", "k", b"")
    restore = RestoreTopology(
        vhost="v",
        exchanges=(exchange_record,),
        queues=(queue_record, QueueRecord("there", True, True, None, {}, "other", 18)),
        bindings=(whole, BindingRecord("x", True, "missing", "k", b"")),
    )
    assert apply(restore) is DONE
    topology = topology_of(metadata)
    assert topology.exchanges["x"] is exchange_record
    assert topology.queues["q"] is queue_record
    assert topology.queues["there"].number == number
    assert list(topology.bindings()) == [whole]
    assert received == [
        ExchangeDeclared("v", exchange_record), QueueDeclared("v", queue_record), BindingAdded("v", whole),
    ]  # fmt: skip
    assert apply(restore) is DONE
    assert len(received) == 3


def test_a_pause_is_announced_once_and_ends_with_its_queue(
    apply: Apply, metadata: Metadata, received: list[Event]
) -> None:
    assert apply(PauseQueue(vhost="v", name="q")) is MISSING
    apply(queue("q"))
    assert apply(PauseQueue(vhost="v", name="q", is_paused=False)) is EXISTING
    assert apply(PauseQueue(vhost="v", name="q")) is DONE
    assert apply(PauseQueue(vhost="v", name="q")) is EXISTING
    assert [event.is_paused for event in received if isinstance(event, QueuePaused)] == [True]
    apply(DeleteQueue(vhost="v", name="q"))
    apply(queue("q"))
    assert not topology_of(metadata).paused
    apply(PauseQueue(vhost="v", name="q"))
    assert apply(PauseQueue(vhost="v", name="q", is_paused=False)) is DONE
    assert not topology_of(metadata).paused
