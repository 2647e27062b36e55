"""Subscriptions of the stream protocol."""

import pytest
from tests.unit.session.streams.client import Node, StreamClient, data

from warren.limits import STREAM_ANSWER_MS
from warren.metadata.commands import SetPermissions
from warren.session.streams import command_handler as working_half
from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, OffsetType, ResponseCode
from warren.wire.streams.delivery import DeliverFrame
from warren.wire.streams.fields import Offset, Version

FIRST = Offset(OffsetType.FIRST)


@pytest.fixture
def node() -> Node:
    return Node()


def filled(node: Node, *chunks: tuple[bytes, ...]) -> StreamClient:
    """A client whose stream has these chunks."""
    client = node.stream()
    client.ask(commands.DeclarePublisher(1, "", "s"))
    for number, chunk in enumerate(chunks or ((b"a", b"b"), (b"c",), (b"d",))):
        client.now = 1_000 * (number + 1)
        client.publish(1, *[(0, data(body)) for body in chunk])
        node.write()
    client.hear()
    return client


def firsts(received: list[object]) -> list[int]:
    return [one.first for one in received if isinstance(one, DeliverFrame)]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (FIRST, [0, 2, 3]),
        (Offset(OffsetType.LAST), [3]),
        (Offset(OffsetType.NEXT), []),
        (Offset(OffsetType.OFFSET, 1), [0, 2, 3]),
        (Offset(OffsetType.OFFSET, 2), [2, 3]),
        (Offset(OffsetType.OFFSET, 1_000), []),
        (Offset(OffsetType.TIMESTAMP, 2_000), [2, 3]),
        (Offset(OffsetType.TIMESTAMP, -5), [0, 2, 3]),
        (Offset(OffsetType.TIMESTAMP, 9_000), []),
    ],
)
def test_a_subscription_begins_at_its_offset(node: Node, offset: Offset, expected: list[int]) -> None:
    client = filled(node)
    answer, *delivered = client.subscribe(1, offset)
    assert answer == (CommandKey.SUBSCRIBE, ResponseCode.OK)
    assert firsts(delivered) == expected
    client.publish(1, (0, data(b"new")))
    node.write()
    assert firsts(client.hear()) == [4]


def test_messages_are_delivered_as_they_were_published(node: Node) -> None:
    client = filled(node, (b"raw",))
    client.publish(1, (0, b"no amqp"), (0, b""))
    node.write()
    client.hear()
    _, *delivered = client.subscribe(7, FIRST)
    assert [list(one.messages) for one in delivered] == [[data(b"raw")], [b"no amqp", b""]]
    assert [(one.subscription, one.time) for one in delivered] == [(7, 1_000), (7, 1_000)]


def test_one_chunk_is_sent_per_credit(node: Node) -> None:
    client = filled(node)
    _, *delivered = client.subscribe(1, FIRST, credit=1)
    assert firsts(delivered) == [0]
    assert firsts(client.ask(commands.Credit(1, 1))) == [2]
    assert firsts(client.ask(commands.Credit(1, 100))) == [3]
    unknown = client.ask(commands.Credit(9, 1))
    assert unknown == [commands.CreditResponse(ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST, 9)]


def test_deliver_version_2_contains_the_committed_offset(node: Node) -> None:
    client = filled(node)
    for highest, expected in ((1, [None] * 3), (2, [3] * 3)):
        client.ask(commands.ExchangeCommandVersions((Version(CommandKey.DELIVER, 1, highest),)))
        received = client.subscribe(highest, FIRST)
        assert firsts(received) == [0, 2, 3]
        assert [one.committed for one in received if isinstance(one, DeliverFrame)] == expected
        client.ask(commands.Unsubscribe(highest))


def test_unsynced_messages_are_not_delivered(node: Node) -> None:
    client = filled(node)
    client.subscribe(1, Offset(OffsetType.NEXT))
    assert client.publish(1, (0, data(b"new"))) == []
    node.write()
    assert client.bodies() == [data(b"new")]


def test_a_full_outbox_pauses_a_subscription(node: Node) -> None:
    client = filled(node, *[(bytes(200),) * 500 for _ in range(20)])
    client.connection.pause_output()
    client.say(commands.Subscribe(1, "s", FIRST, 1_000, {}).encode(1))
    assert len(client.connection.take_output()) == 1
    client.connection.resume_output()
    assert sum(len(body) for body in client.bodies()) == 20 * 500 * 205


def test_subscription_ids_are_unique(node: Node) -> None:
    client = filled(node)
    client.subscribe(1, FIRST, credit=0)
    assert client.subscribe(1, FIRST) == [(CommandKey.SUBSCRIBE, ResponseCode.SUBSCRIPTION_ID_ALREADY_EXISTS)]
    assert client.ask(commands.Unsubscribe(1)) == [(CommandKey.UNSUBSCRIBE, ResponseCode.OK)]
    assert client.ask(commands.Unsubscribe(1)) == [
        (CommandKey.UNSUBSCRIBE, ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST)
    ]
    assert client.subscribe(1, FIRST, stream="none") == [
        (CommandKey.SUBSCRIBE, ResponseCode.STREAM_DOES_NOT_EXIST)
    ]
    node.write()


def test_subscribing_requires_read_permission_on_the_stream(node: Node) -> None:
    client = filled(node)
    node.proposals.apply(SetPermissions(user="guest", vhost="/", configure=".*", write=".*", read="^$"))
    assert client.subscribe(1, FIRST) == [(CommandKey.SUBSCRIBE, ResponseCode.ACCESS_REFUSED)]
    for command, answer in (
        (commands.QueryOffset("c", "s"), commands.QueryOffsetResponse(ResponseCode.ACCESS_REFUSED, 0)),
        (commands.StreamStats("s"), commands.StreamStatsResponse(ResponseCode.ACCESS_REFUSED, ())),
        (
            commands.QueryPublisherSequence("p", "s"),
            commands.QueryPublisherSequenceResponse(ResponseCode.ACCESS_REFUSED, 0),
        ),
    ):
        assert client.ask(command) == [answer]
    client.ask(commands.StoreOffset("c", "s", 5))
    assert node.services.vhost.queues["s"].stored_offset("c") is None


def test_a_consumer_is_notified_of_the_deletion_of_its_stream(node: Node) -> None:
    client = filled(node)
    client.subscribe(1, FIRST)
    client.ask(commands.DeletePublisher(1))
    assert client.ask(commands.Delete("s")) == [
        (CommandKey.DELETE, ResponseCode.OK),
        commands.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s"),
    ]
    assert client.ask(commands.Unsubscribe(1)) == [
        (CommandKey.UNSUBSCRIBE, ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST)
    ]


def test_offsets_are_stored_and_queried(node: Node) -> None:
    client = filled(node)
    assert client.ask(commands.QueryOffset("c", "s")) == [
        commands.QueryOffsetResponse(ResponseCode.NO_OFFSET, 0)
    ]
    assert client.ask(commands.StoreOffset("c", "s", 2)) == []
    assert client.ask(commands.QueryOffset("c", "s")) == [commands.QueryOffsetResponse(ResponseCode.OK, 2)]
    assert client.ask(commands.StoreOffset("c", "none", 2)) == []
    missing = commands.QueryOffsetResponse(ResponseCode.STREAM_DOES_NOT_EXIST, 0)
    assert client.ask(commands.QueryOffset("c", "none")) == [missing]
    client.ask(commands.StoreOffset("x" * 256, "s", 2))
    client.ask(commands.StoreOffset("", "s", 2))
    assert node.services.vhost.queues["s"].stored_offset("") is None


def single(client: StreamClient, number: int, **more: str) -> list[object]:
    return client.subscribe(number, FIRST, name="g", single_active_consumer="true", **more)


def answer(client: StreamClient, correlation: int, offset: Offset) -> list[object]:
    client.say(commands.ConsumerUpdateResponse(ResponseCode.OK, offset).encode(correlation))
    return client.hear()


def test_one_consumer_of_a_group_is_active_and_chooses_its_offset(node: Node) -> None:
    client, other = filled(node), node.stream("t")
    assert single(client, 1) == [(CommandKey.SUBSCRIBE, ResponseCode.OK), commands.ConsumerUpdate(1, 1)]
    assert single(other, 5) == [(CommandKey.SUBSCRIBE, ResponseCode.OK)]
    assert firsts(answer(client, 1, Offset(OffsetType.OFFSET, 3))) == [3]
    inactive = other.ask(commands.Credit(5, 1))
    assert inactive == [commands.CreditResponse(ResponseCode.PRECONDITION_FAILED, 5)]
    client.connection.lost()
    assert other.hear() == [commands.ConsumerUpdate(5, 1)]
    assert firsts(answer(other, 1, Offset(OffsetType.NONE))) == [0, 2, 3]


def test_nobody_becomes_active_once_the_node_stops(node: Node) -> None:
    client, other = filled(node), node.stream("t")
    single(client, 1)
    single(other, 5)
    node.stream_server.groups.end()
    client.connection.lost()
    assert other.hear() == []


def test_a_single_active_consumer_requires_a_name(node: Node) -> None:
    client = filled(node)
    refused = client.subscribe(1, FIRST, single_active_consumer="true")
    assert refused == [(CommandKey.SUBSCRIBE, ResponseCode.PRECONDITION_FAILED)]
    too_long = client.subscribe(1, FIRST, name="x" * 256)
    assert too_long == [(CommandKey.SUBSCRIBE, ResponseCode.PRECONDITION_FAILED)]


def test_an_unsolicited_response_is_ignored(node: Node) -> None:
    client = filled(node)
    assert answer(client, 9, FIRST) == []
    assert client.connection.is_open


def test_the_partitions_of_a_super_stream_are_distributed_over_consumers(node: Node) -> None:
    client = filled(node)
    client.ask(commands.CreateSuperStream("super", ("p0", "p1"), ("0", "1"), {}))
    first, second = node.stream("t"), node.stream("u")
    for number, stream in enumerate(("p0", "p1")):
        single(first, number, stream=stream, super_stream="super")
        answer(first, number + 1, FIRST)
    assert single(second, 0, stream="p0", super_stream="super") == [(CommandKey.SUBSCRIBE, ResponseCode.OK)]
    assert single(second, 1, stream="p1", super_stream="super") == [(CommandKey.SUBSCRIBE, ResponseCode.OK)]
    # The second consumer of the second partition shall become active, after the first one has stopped.
    assert first.hear() == [commands.ConsumerUpdate(1, 0)]
    assert second.hear() == []
    answer(first, 3, Offset(OffsetType.NONE))
    assert second.hear() == [commands.ConsumerUpdate(1, 1)]


def test_a_response_to_an_earlier_update_does_not_mean_that_a_consumer_has_stopped(node: Node) -> None:
    client = filled(node)
    client.ask(commands.CreateSuperStream("super", ("p0", "p1"), ("0", "1"), {}))
    first, second = node.stream("t"), node.stream("u")
    assert single(first, 1, stream="p1", super_stream="super")[1:] == [commands.ConsumerUpdate(1, 1)]
    single(second, 1, stream="p1", super_stream="super")
    assert first.hear() == [commands.ConsumerUpdate(1, 0)]
    # The response to the activation; the client had not received the deactivation yet.
    assert answer(first, 1, FIRST) == []
    assert second.hear() == []
    answer(first, 2, Offset(OffsetType.NONE))
    assert second.hear() == [commands.ConsumerUpdate(1, 1)]


def test_unsubscribe_is_answered_before_the_next_consumer_is_activated(node: Node) -> None:
    client = filled(node)
    single(client, 1)
    single(client, 2)
    assert client.ask(commands.Unsubscribe(1)) == [
        (CommandKey.UNSUBSCRIBE, ResponseCode.OK),
        commands.ConsumerUpdate(2, 1),
    ]


@pytest.mark.parametrize("is_lost", [True, False])
def test_an_offset_stored_by_the_active_consumer_is_known_when_the_next_becomes_active(
    node: Node, is_lost: bool
) -> None:
    client, other = filled(node), node.stream("t")
    single(client, 1)
    single(other, 1)
    answer(client, 1, FIRST)
    last = commands.StoreOffset("g", "s", 3).encode()
    if is_lost:
        client.say(last)
        client.connection.lost()
    else:
        client.say(last + commands.Unsubscribe(1).encode(7))
    assert other.hear() == [commands.ConsumerUpdate(1, 1)]
    assert other.ask(commands.QueryOffset("g", "s")) == [commands.QueryOffsetResponse(ResponseCode.OK, 3)]


def test_no_consumer_of_a_deleted_stream_is_activated(node: Node) -> None:
    client, other = filled(node), node.stream("t")
    single(client, 1)
    single(client, 2)
    single(other, 1)
    gone = commands.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s")
    client.ask(commands.DeletePublisher(1))
    assert client.ask(commands.Delete("s")) == [(CommandKey.DELETE, ResponseCode.OK), gone]
    assert other.hear() == [gone]


def test_unanswered_updates_of_a_closed_client_are_discarded(node: Node) -> None:
    client = filled(node)
    for _ in range(3):
        single(client, 1)
        client.ask(commands.Unsubscribe(1))
    command_handler = client.connection.command_handler
    assert command_handler is not None
    assert command_handler.subscriptions.pending_update_count == 0


def run_later_at(node: Node, now: int) -> None:
    """Run the actions that are due later, at the time `now`."""
    while node.turns:
        node.turns.pop(0)(now)


@pytest.mark.parametrize("is_leaving", [False, True])
def test_a_client_that_does_not_answer_an_update_is_dropped_and_another_consumer_activated(
    node: Node, is_leaving: bool
) -> None:
    client = filled(node)
    client.ask(commands.CreateSuperStream("super", ("p0", "p1"), ("0", "1"), {}))
    first, second = node.stream("t"), node.stream("u")
    for number, one in enumerate((first, second)):
        single(one, 1, stream="p1" if is_leaving else "p0", super_stream="super")
        run_later_at(node, 5_000 * (number + 1))
    first.hear()
    due = first.connection.deadline()
    # The timeout of the first update continues when a second one is sent.
    assert due == 5_000 + STREAM_ANSWER_MS
    assert second.connection.deadline() is None
    first.expire(due - 1)
    assert first.connection.is_open
    first.expire(due)
    assert first.connection.is_finished
    assert second.hear() == [commands.ConsumerUpdate(1, 1)]
    run_later_at(node, due)
    assert second.connection.deadline() == due + STREAM_ANSWER_MS
    answer(second, 1, FIRST)
    assert second.connection.deadline() is None


def test_a_client_whose_socket_was_not_read_has_more_time_to_answer(node: Node) -> None:
    client = filled(node)
    single(client, 1)
    run_later_at(node, 0)
    node.block("memory")
    assert client.connection.is_reading_paused
    client.expire(STREAM_ANSWER_MS)
    assert client.connection.is_open
    assert client.connection.deadline() == 2 * STREAM_ANSWER_MS
    node.block("")
    client.expire(2 * STREAM_ANSWER_MS)
    assert client.connection.is_finished


def test_the_number_of_consumers_of_a_stream_is_bounded(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    client = filled(node)
    monkeypatch.setattr(working_half.limits, "QUEUE_CONSUMERS_MAX", 2)
    for number in (1, 2):
        client.subscribe(number, Offset(OffsetType.NEXT))
    refused = client.subscribe(3, Offset(OffsetType.NEXT))
    assert refused == [(CommandKey.SUBSCRIBE, ResponseCode.PRECONDITION_FAILED)]
    client.ask(commands.Unsubscribe(1))
    assert client.subscribe(3, Offset(OffsetType.NEXT)) == [(CommandKey.SUBSCRIBE, ResponseCode.OK)]
