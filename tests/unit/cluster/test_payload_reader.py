"""What a writer has written is read again, and nothing else: a damaged payload is an error or harmless."""

import random

import pytest
from tests.seeds import SEEDS

from warren.cluster.payload_reader import PayloadReader
from warren.cluster.payload_writer import PayloadWriter
from warren.cluster.remote_codec import (
    ANSWER,
    ATTACH,
    DELIVER,
    FAILED,
    HAS_DIED,
    NO_ACK,
    PUBLISH,
    SAME_QUEUES,
    SETTLE,
    WANTS_CONFIRM,
    MalformedPayload,
    encode_head,
)
from warren.limits_cluster import REMOTE_BATCH_PIECES, REMOTE_BATCH_SIZE
from warren.model.message import DIED, HAS_EXPIRATION, HAS_HEADERS, PERSISTENT, Message, StoredMessage
from warren.wire.properties import BasicProperties

HEAD = encode_head(7, 1 << 40, "vhost ä")
NOW = 1_700_000_000_000


def message(body: bytes, *, address: bytes = b"\x01e\x02kk", **properties: object) -> Message:
    listed = BasicProperties(**properties).encode_list()  # type: ignore[arg-type]
    return Message(address, listed, body + b"\xce", 0)


def reader_of(writer: PayloadWriter) -> PayloadReader:
    return PayloadReader(writer.take(HEAD))


def published(writer: PayloadWriter) -> list[tuple[Message, int, list[int]]]:
    """The messages of a payload of publishes, with their flags and queues."""
    reader = reader_of(writer)
    found = []
    queues: list[int] = []
    while reader.next():
        flags = reader.number(1)
        one = reader.published(flags, NOW, True)
        if not flags & SAME_QUEUES:
            queues = [reader.number(8) for _ in range(reader.number(2))]
        found.append((one, flags, queues))
    return found


def test_a_head_says_generation_index_and_virtual_host() -> None:
    reader = PayloadReader(HEAD)
    assert (reader.generation, reader.index, reader.vhost) == (7, 1 << 40, "vhost ä")
    assert reader.next() == 0


def test_a_message_for_several_queues_is_written_once() -> None:
    writer = PayloadWriter()
    large = message(b"x" * 1000)
    for queue in (1, 2, 1 << 33):
        writer.publish(large, queue, WANTS_CONFIRM)
    payload_size = writer.size
    [(found, flags, queues)] = published(writer)
    assert queues == [1, 2, 1 << 33]
    assert flags & WANTS_CONFIRM
    assert found.content == large.content
    assert payload_size < 1200


@pytest.mark.parametrize(
    ("size", "count"), [(10, REMOTE_BATCH_PIECES // 2), (1_000, REMOTE_BATCH_SIZE // 1_000)]
)
def test_a_payload_is_full_with_many_small_messages_or_with_fewer_large_ones(size: int, count: int) -> None:
    writer = PayloadWriter()
    while not writer.is_full():
        writer.publish(message(b"x" * size), 5, 0)
    found = published(writer)
    assert 0.9 * count < len(found) <= count + 1
    assert not writer.is_full()


def test_equal_messages_that_are_not_the_same_are_written_each() -> None:
    writer = PayloadWriter()
    for _ in range(2):
        writer.publish(message(b"x"), 5, 0)
    found = published(writer)
    assert [queues for _, _, queues in found] == [[5], [5]]
    assert found[1][1] & SAME_QUEUES
    assert found[0][0].address is found[1][0].address


def test_the_queues_are_repeated_when_they_change() -> None:
    writer = PayloadWriter()
    one, two = message(b"1"), message(b"2")
    writer.publish(one, 5, 0)
    writer.publish(two, 6, 0)
    writer.publish(two, 7, 0)
    writer.publish(message(b"3"), 7, 0)
    writer.publish(message(b"4"), 8, 0)
    assert [queues for _, _, queues in published(writer)] == [[5], [6, 7], [7], [8]]


def test_flags_and_priority_are_those_of_the_properties() -> None:
    writer = PayloadWriter()
    writer.publish(message(b"a", delivery_mode=2, priority=9, headers={"h": 1}, expiration="5"), 1, HAS_DIED)
    writer.publish(message(b"b"), 1, 0)
    (first, *_), (second, *_) = published(writer)
    assert isinstance(first, StoredMessage)
    assert first.flags == PERSISTENT | HAS_HEADERS | HAS_EXPIRATION | DIED
    assert first.priority == 9
    assert first.published_at == NOW
    assert not isinstance(second, StoredMessage)
    assert (second.flags, second.priority) == (0, 0)


def test_deliveries_settled_one_after_the_other_are_one_item() -> None:
    writer = PayloadWriter()
    for number in (4, 5, 6, 9):
        writer.settle(0, number)
    writer.settle(1, 10)
    reader = reader_of(writer)
    runs = []
    while reader.next() == SETTLE:
        runs.append((reader.number(1), reader.number(8), reader.number(4)))
    assert runs == [(0, 4, 3), (0, 9, 1), (1, 10, 1)]


def test_a_publish_ends_a_run_so_that_the_order_is_kept() -> None:
    writer = PayloadWriter()
    writer.settle(0, 1)
    writer.publish(message(b"a"), 1, 0)
    writer.settle(0, 2)
    reader = reader_of(writer)
    assert reader.next() == SETTLE
    reader.octets(13)
    assert reader.next() == PUBLISH
    reader.published(reader.number(1), NOW, False)
    reader.octets(10)
    assert reader.next() == SETTLE


def test_a_delivery_has_its_attempts_and_its_flags() -> None:
    writer = PayloadWriter()
    one = message(b"a", headers={"h": 1})
    one.flags = HAS_HEADERS
    writer.deliver(one, 3, 2, NO_ACK)
    reader = reader_of(writer)
    assert reader.next() == DELIVER
    assert reader.number(4) == 3
    flags = reader.number(1)
    assert flags & NO_ACK
    assert reader.number(4) == 2
    found = reader.delivered(flags, reader.number(1), NOW)
    assert (found.address, found.property_list, found.content) == (
        one.address,
        one.property_list,
        one.content,
    )
    assert found.flags == HAS_HEADERS


def test_texts_and_signed_numbers() -> None:
    writer = PayloadWriter()
    writer.add_named(ATTACH, "tag", 1, 2, 0, -5)
    writer.fail(9, 404, "not here")
    writer.add(ANSWER, 1, 2, 3, 4)
    reader = reader_of(writer)
    assert reader.next() == ATTACH
    assert (reader.number(4), reader.number(8), reader.number(1), reader.signed()) == (1, 2, 0, -5)
    assert reader.text() == "tag"
    assert reader.next() == FAILED
    assert (reader.number(4), reader.number(2), reader.long_text()) == (9, 404, "not here")
    assert reader.next() == ANSWER


def test_nothing_of_a_payload_remains_after_it_was_taken() -> None:
    writer = PayloadWriter()
    writer.publish(message(b"a"), 1, 0)
    writer.take(HEAD)
    assert writer.is_empty()
    assert writer.take(HEAD) == b""
    writer.publish(message(b"b"), 1, 0)
    [(found, _, queues)] = published(writer)
    assert (found.body, queues) == (b"b", [1])


@pytest.mark.parametrize(
    "change",
    [
        {"delivery_mode": 3},
        {"expiration": "soon"},
        {"expiration": "-5"},
        {"expiration": str(1 << 60)},
    ],
)
def test_properties_that_no_channel_accepts_are_refused(change: dict[str, object]) -> None:
    writer = PayloadWriter()
    writer.publish(message(b"a", **change), 1, 0)
    with pytest.raises(MalformedPayload):
        published(writer)


@pytest.mark.parametrize("address", [b"", b"\x01", b"\x05abc", b"\x01e\x03kk", b"\x01e\x01kk"])
def test_an_address_is_two_short_strings(address: bytes) -> None:
    writer = PayloadWriter()
    writer.publish(message(b"a", address=address), 1, 0)
    with pytest.raises(MalformedPayload, match="exchange and routing key"):
        published(writer)


def test_content_ends_with_its_end() -> None:
    writer = PayloadWriter()
    writer.publish(Message(b"\0\0", b"\0\0", b"abc", 0), 1, 0)
    with pytest.raises(MalformedPayload, match="without its end"):
        published(writer)


def test_another_version_is_refused() -> None:
    with pytest.raises(MalformedPayload, match="version 2"):
        PayloadReader(b"\x02" + HEAD[1:])


@pytest.mark.seeds(SEEDS)
def test_a_damaged_payload_raises_nothing_but_a_payload_error(seed: int) -> None:
    chance = random.Random(seed)
    writer = PayloadWriter()
    for number in range(chance.randrange(1, 6)):
        body = chance.randbytes(chance.randrange(20))
        writer.publish(message(body, headers={"n": number}, priority=number), chance.randrange(3), 0)
    payload = bytearray(writer.take(HEAD))
    for _ in range(chance.randrange(1, 4)):
        if chance.random() < 0.3:
            del payload[chance.randrange(len(payload)) + 1 :]
        else:
            payload[chance.randrange(len(payload))] = chance.randrange(256)
    try:
        reader = PayloadReader(bytes(payload))
        while reader.next():
            flags = reader.number(1)
            reader.published(flags, NOW, True)
            if not flags & SAME_QUEUES:
                reader.octets(8 * reader.number(2))
    except MalformedPayload:
        pass
