"""Publishing over the stream protocol."""

import gzip

import pytest
from tests.unit.session.streams.client import Node, data, with_filters

from warren.metadata.commands import SetPermissions
from warren.model.message import FROM_STREAM, UNWRAPPED
from warren.wire import amqp1
from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, OffsetType, ResponseCode
from warren.wire.streams.fields import Offset, PublishingError
from warren.wire.streams.publish import SubEntryBatch


@pytest.fixture
def node() -> Node:
    return Node()


def declared(node: Node, reference: str = "") -> object:
    client = node.stream()
    answer = client.ask(commands.DeclarePublisher(1, reference, "s"))
    assert answer == [(CommandKey.DECLARE_PUBLISHER, ResponseCode.OK)]
    return client


def kept(node: Node) -> list[object]:
    return [peeked.message for peeked in node.services.vhost.queues["s"].peek(0, 1_000)]


def packed(*messages: bytes) -> bytes:
    return b"".join(len(message).to_bytes(4, "big") + message for message in messages)


def test_a_message_is_confirmed_when_it_is_synced(node: Node) -> None:
    client = declared(node)
    assert client.publish(1, (7, data(b"a")), (9, data(b"b"))) == []
    node.write()
    assert client.hear() == [commands.PublishConfirm(1, (7, 9))]
    assert [message.body for message in kept(node)] == [b"a", b"b"]
    assert [(message.exchange, message.routing_key) for message in kept(node)] == [("", "s")] * 2


def test_bytes_that_are_not_amqp_1_0_are_a_body(node: Node) -> None:
    client = declared(node)
    client.publish(1, (1, b"raw"), (2, data(b"wrapped")))
    node.write()
    assert [(message.body, message.flags) for message in kept(node)] == [
        (b"raw", FROM_STREAM | UNWRAPPED),
        (b"wrapped", FROM_STREAM),
    ]


def test_with_a_reference_duplicates_are_discarded(node: Node) -> None:
    client = declared(node, "ref")
    client.publish(1, (5, data(b"a")), (6, data(b"b")), (6, data(b"dup")), (4, data(b"old")))
    node.write()
    [confirm] = client.hear()
    assert sorted(confirm.sequences) == [4, 5, 6, 6]
    assert [message.body for message in kept(node)] == [b"a", b"b"]
    sequence = client.ask(commands.QueryPublisherSequence("ref", "s"))
    assert sequence == [commands.QueryPublisherSequenceResponse(ResponseCode.OK, 6)]
    unknown = client.ask(commands.QueryPublisherSequence("nobody", "s"))
    assert unknown == [commands.QueryPublisherSequenceResponse(ResponseCode.OK, 0)]


def test_a_duplicate_is_not_confirmed_before_the_original(node: Node) -> None:
    client = declared(node, "ref")
    client.publish(1, (1, data(b"a")))
    node.store.commit()
    client.publish(1, (1, data(b"a")))
    assert client.hear() == []
    node.write()
    assert [confirm.sequences for confirm in client.hear()] == [(1, 1)]
    assert client.publish(1, (1, data(b"a"))) == []
    node.write()
    assert client.hear() == [commands.PublishConfirm(1, (1,))]


@pytest.mark.parametrize("reference", ["", "ref"])
def test_the_messages_of_a_batch_are_stored_singly_and_confirmed_together(node: Node, reference: str) -> None:
    client = declared(node, reference)
    raw = packed(data(b"a"), data(b"b"), data(b"c"))
    client.publish(
        1,
        (1, SubEntryBatch(1, 3, len(raw), gzip.compress(raw))),
        (2, SubEntryBatch(0, 3, len(raw), raw)),
    )
    node.write()
    assert client.hear() == [commands.PublishConfirm(1, (1, 2))]
    assert [message.body for message in kept(node)] == [b"a", b"b", b"c"] * 2


def test_with_a_reference_a_batch_is_deduplicated(node: Node) -> None:
    client = declared(node, "ref")
    raw = packed(data(b"a"), data(b"b"))
    for _ in range(2):
        client.publish(1, (1, SubEntryBatch(0, 2, len(raw), raw)))
        node.write()
        assert client.hear() == [commands.PublishConfirm(1, (1,))]
    assert len(kept(node)) == 2


@pytest.mark.parametrize(
    "batch",
    [SubEntryBatch(3, 1, 1, b"x"), SubEntryBatch(1, 1, 1, b"no gzip"), SubEntryBatch(0, 0, 0, b"")],
    ids=["lz4", "broken", "empty"],
)
def test_an_undecodable_batch_is_refused_without_affecting_others(node: Node, batch: SubEntryBatch) -> None:
    client = declared(node)
    refused = client.publish(1, (1, batch), (2, data(b"a")))
    assert refused == [commands.PublishError(1, (PublishingError(1, ResponseCode.PRECONDITION_FAILED),))]
    node.write()
    assert client.hear() == [commands.PublishConfirm(1, (2,))]


def test_publishing_to_an_unknown_publisher_is_refused(node: Node) -> None:
    client = node.stream()
    failures = tuple(PublishingError(n, ResponseCode.PUBLISHER_DOES_NOT_EXIST) for n in (5, 4))
    assert client.publish(9, (5, b""), (4, b"")) == [commands.PublishError(9, failures)]


def test_publisher_ids_and_references_are_unique(node: Node) -> None:
    client = declared(node, "ref")
    for number, reference in ((1, ""), (2, "ref"), (3, "x" * 256)):
        answer = client.ask(commands.DeclarePublisher(number, reference, "s"))
        assert answer == [(CommandKey.DECLARE_PUBLISHER, ResponseCode.PRECONDITION_FAILED)]
    assert client.ask(commands.DeletePublisher(1)) == [(CommandKey.DELETE_PUBLISHER, ResponseCode.OK)]
    assert client.ask(commands.DeletePublisher(1)) == [
        (CommandKey.DELETE_PUBLISHER, ResponseCode.PUBLISHER_DOES_NOT_EXIST)
    ]
    assert client.ask(commands.DeclarePublisher(2, "ref", "s")) == [
        (CommandKey.DECLARE_PUBLISHER, ResponseCode.OK)
    ]


def test_a_client_cannot_use_a_reference_of_staged_publishing(node: Node) -> None:
    client = declared(node)
    answer = client.ask(commands.DeclarePublisher(2, "staged:query", "s"))
    assert answer == [(CommandKey.DECLARE_PUBLISHER, ResponseCode.ACCESS_REFUSED)]
    assert client.ask(commands.DeclarePublisher(2, "staged", "s")) == [
        (CommandKey.DECLARE_PUBLISHER, ResponseCode.OK)
    ]


def test_publishing_requires_write_permission_on_the_stream(node: Node) -> None:
    client = node.stream()
    node.proposals.apply(SetPermissions(user="guest", vhost="/", configure=".*", write="^$", read=".*"))
    answer = client.ask(commands.DeclarePublisher(1, "", "s"))
    assert answer == [(CommandKey.DECLARE_PUBLISHER, ResponseCode.ACCESS_REFUSED)]


def test_a_publisher_is_notified_of_the_deletion_of_its_stream(node: Node) -> None:
    client, other = declared(node), node.stream("t")
    assert other.ask(commands.Delete("s")) == [(CommandKey.DELETE, ResponseCode.OK)]
    assert client.hear() == [commands.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s")]
    failure = PublishingError(1, ResponseCode.PUBLISHER_DOES_NOT_EXIST)
    assert client.publish(1, (1, b"")) == [commands.PublishError(1, (failure,))]


def test_the_client_that_deletes_a_stream_gets_the_response_before_the_notification(node: Node) -> None:
    client = declared(node)
    assert client.ask(commands.Delete("s")) == [
        (CommandKey.DELETE, ResponseCode.OK),
        commands.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s"),
    ]


def test_a_filter_value_is_a_header_in_amqp_and_invisible_to_stream_clients(node: Node) -> None:
    client = declared(node)
    room = (("utf8", "room"), ("int", 7))
    own = amqp1.encode_section(amqp1.APPLICATION_PROPERTIES, ("map", (room,))) + data(b"c")
    entries = (1, "eu", data(b"a")), (2, None, data(b"b")), (3, "eu", own), (4, "us", b"raw")
    client.say(with_filters(*entries))
    node.write()
    client.hear()
    found = [message.headers().get("x-stream-filter-value") for message in kept(node)]
    assert found == ["eu", None, "eu", "us"]
    assert kept(node)[2].headers()["room"] == 7
    reader = node.stream()
    answer, *delivered = reader.subscribe(1, Offset(OffsetType.FIRST))
    assert answer == (CommandKey.SUBSCRIBE, ResponseCode.OK)
    messages = [message for chunk in delivered for message in chunk.messages]
    assert messages == [message for _, _, message in entries]


def test_a_message_with_a_filter_value_that_is_too_long_is_refused(node: Node) -> None:
    client = declared(node)
    client.say(with_filters((1, "x" * 256, data(b"a")), (2, "x" * 255, data(b"b"))))
    node.write()
    received = client.hear()
    assert commands.PublishError(1, (PublishingError(1, ResponseCode.PRECONDITION_FAILED),)) in received
    assert [message.body for message in kept(node)] == [b"b"]
