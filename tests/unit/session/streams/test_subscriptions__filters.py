"""Subscriptions with filter values: chunks that contain none of the values are skipped."""

import pytest
from tests.unit.queues.samples import sent
from tests.unit.session.streams.client import Node, StreamClient, data, with_filters

from warren import limits
from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, OffsetType, ResponseCode
from warren.wire.streams.delivery import DeliverFrame
from warren.wire.streams.fields import Offset

FIRST = Offset(OffsetType.FIRST)
Value = str | None


@pytest.fixture
def node() -> Node:
    return Node()


def write(node: Node, client: StreamClient, *values: Value) -> None:
    """Write a chunk with a message for each of `values`; the body of each is its value."""
    entries = [(number, value, data(str(value).encode())) for number, value in enumerate(values)]
    client.say(with_filters(*entries))
    node.write()
    client.hear()


def filled(node: Node, *chunks: tuple[Value, ...]) -> StreamClient:
    """A client whose stream has these chunks."""
    client = node.stream()
    client.ask(commands.DeclarePublisher(1, "", "s"))
    for number, values in enumerate(chunks or (("eu",), ("us", "eu"), (None,), ("us",), ("us", None))):
        client.now = 1_000 * (number + 1)
        write(node, client, *values)
    return client


def wanting(
    client: StreamClient, *values: str, offset: Offset = FIRST, credit: int = 10, unfiltered: str = "false"
) -> list[object]:
    """Subscribe with filter values; returns the answers."""
    named = {f"filter.{number}": value for number, value in enumerate(values)}
    return client.ask(
        commands.Subscribe(1, "s", offset, credit, {**named, "match-unfiltered": unfiltered, "name": "n"})
    )


def firsts(received: list[object]) -> list[int]:
    return [one.first for one in received if isinstance(one, DeliverFrame)]


def rested(node: Node, client: StreamClient) -> tuple[int, list[object]]:
    """How many more turns it takes until everything is sent, and what was sent."""
    turns, vhost = 0, node.services.vhost
    received = client.hear()
    while vhost.expiry.earliest() is not None:
        vhost.expire()
        turns += 1
        received += client.hear()
    return turns, received


# The chunks begin at 0 (eu), 1 (us, eu), 3 (none), 4 (us) and 5 (us, none).
@pytest.mark.parametrize(
    ("values", "unfiltered", "expected"),
    [
        (["eu"], "false", [0, 1]),
        (["us"], "false", [1, 4, 5]),
        (["apac", "eu"], "false", [0, 1]),
        (["apac"], "false", []),
        (["apac"], "true", [3, 5]),
        (["eu"], "true", [0, 1, 3, 5]),
        (["eu"], "TRUE", [0, 1]),
        # Without filter values every chunk is delivered.
        ([], "true", [0, 1, 3, 4, 5]),
        ([], "false", [0, 1, 3, 4, 5]),
    ],
)
def test_only_chunks_with_a_requested_value_are_delivered(
    node: Node, values: list[str], unfiltered: str, expected: list[int]
) -> None:
    client = filled(node)
    answer, *delivered = wanting(client, *values, unfiltered=unfiltered)
    assert answer == (CommandKey.SUBSCRIBE, ResponseCode.OK)
    assert firsts(delivered) == expected


def test_a_matching_chunk_is_delivered_entirely(node: Node) -> None:
    client = filled(node)
    _, *delivered = wanting(client, "eu")
    assert [list(one.messages) for one in delivered] == [[data(b"eu")], [data(b"us"), data(b"eu")]]


def test_a_skipped_chunk_uses_no_credit(node: Node) -> None:
    client = filled(node, ("us",), ("us",), ("eu",), ("us",), ("eu",), ("us",), ("eu",))
    assert firsts(wanting(client, "eu", credit=1)) == [2]
    assert firsts(client.ask(commands.Credit(1, 1))) == [4]
    assert firsts(client.ask(commands.Credit(1, 2))) == [6]
    write(node, client, "us")
    client.say(with_filters((0, "eu", data(b"new"))))
    node.write()
    assert firsts(client.hear()) == [8]
    write(node, client, "eu")
    assert firsts(client.ask(commands.Credit(1, 1))) == [9]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (Offset(OffsetType.OFFSET, 1), [1]),
        # Within a chunk, which is delivered entirely.
        (Offset(OffsetType.OFFSET, 2), [1]),
        (Offset(OffsetType.OFFSET, 3), []),
        (Offset(OffsetType.TIMESTAMP, 2_000), [1]),
        (Offset(OffsetType.LAST), []),
        (Offset(OffsetType.NEXT), []),
    ],
)
def test_a_filtered_subscription_begins_at_its_offset(
    node: Node, offset: Offset, expected: list[int]
) -> None:
    client = filled(node)
    _, *delivered = wanting(client, "eu", offset=offset)
    assert firsts(delivered) == expected
    client.say(with_filters((0, "us", data(b"us"))), with_filters((0, "eu", data(b"eu"))))
    node.write()
    assert firsts(client.hear()) == [7]


def test_filter_values_of_messages_published_with_amqp_count(node: Node) -> None:
    client = filled(node, ("us",))
    stream = node.services.vhost.queues["s"]
    for headers in ({}, {"x-stream-filter-value": "eu"}):
        stream.publish(sent(b"", headers=headers), None, 0)
        node.write()
    _, *delivered = wanting(client, "eu")
    assert firsts(delivered) == [2]


def test_a_long_stream_is_skipped_in_several_turns_and_the_result_is_remembered(node: Node) -> None:
    count = 3 * limits.STREAM_WORK_PER_TURN_MAX // limits.STREAM_CHUNK_WORK
    client = filled(node, *[("us",)] * count, ("eu",))
    assert wanting(client, "eu", credit=1) == [(CommandKey.SUBSCRIBE, ResponseCode.OK)]
    turns, received = rested(node, client)
    assert (turns, firsts(received)) == (3, [count])
    # The result is shared: another subscription with this filter finds the chunk at once.
    client.ask(commands.Unsubscribe(1))
    assert firsts(wanting(client, "eu", credit=1)) == [count]


def test_credit_does_not_interrupt_the_pause_of_a_skipping_subscription(node: Node) -> None:
    client = filled(node, *[("us",)] * limits.STREAM_WORK_PER_TURN_MAX, ("eu",))
    wanting(client, "eu", credit=1)
    (subscription,) = client.connection.command_handler.subscriptions  # type: ignore[union-attr]
    passed = subscription.next
    assert client.ask(commands.Credit(1, 1)) == []
    assert subscription.next == passed


def test_skipping_subscriptions_take_turns(node: Node) -> None:
    count = 4 * limits.STREAM_WORK_PER_TURN_MAX // limits.STREAM_CHUNK_WORK
    client, other = filled(node, *[("us",)] * count, ("eu",)), node.stream("t")
    wanting(client, "eu")
    wanting(other, "eu")
    both = [next(iter(one.connection.command_handler.subscriptions)) for one in (client, other)]
    vhost = node.services.vhost
    while vhost.expiry.earliest() is not None:
        before = [one.next for one in both]
        vhost.expire()
        assert sum(one.next > passed for one, passed in zip(both, before, strict=True)) == 1
    assert [firsts(one.hear()) for one in (client, other)] == [[count], [count]]


def test_a_subscription_removed_during_its_pause_receives_nothing(node: Node) -> None:
    client = filled(node, *[("us",)] * limits.STREAM_WORK_PER_TURN_MAX, ("eu",))
    wanting(client, "eu")
    client.ask(commands.Unsubscribe(1))
    assert firsts(rested(node, client)[1]) == []


def test_the_number_of_filter_values_is_bounded(node: Node) -> None:
    client = filled(node)
    values = [f"v{number}" for number in range(limits.STREAM_FILTERS_MAX)]
    refused = wanting(client, *values, "eu")
    assert refused == [(CommandKey.SUBSCRIBE, ResponseCode.PRECONDITION_FAILED)]
    assert firsts(wanting(client, *values[1:], "eu"))[:2] == [0, 1]


def test_partitions_of_a_super_stream_are_filtered(node: Node) -> None:
    client = filled(node)
    client.ask(commands.CreateSuperStream("super", ("p0", "p1"), ("0", "1"), {}))
    for number, name in enumerate(("p0", "p1")):
        client.ask(commands.DeclarePublisher(2 + number, "", name))
        for value in ("us", "eu"):
            frame = bytearray(with_filters((0, value, data(value.encode()))))
            frame[8] = 2 + number
            client.say(bytes(frame))
            node.write()
    client.hear()
    for number, name in enumerate(("p0", "p1")):
        properties = {
            "name": "g",
            "single-active-consumer": "true",
            "super-stream": "super",
            "filter.0": "eu",
        }
        client.ask(commands.Subscribe(number, name, FIRST, 10, properties))
        client.say(commands.ConsumerUpdateResponse(ResponseCode.OK, FIRST).encode(1 + number))
        assert [(one.subscription, one.first) for one in client.hear()] == [(number, 1)]  # type: ignore[attr-defined]
