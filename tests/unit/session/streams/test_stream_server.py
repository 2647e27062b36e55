"""Encoding of delivered chunks: each message with its size and the header of its AMQP 1.0 section."""

from tests.unit.queues.samples import sent

from warren.model.message import BODY_END, FROM_STREAM, UNWRAPPED, encode_address, new_message
from warren.session.streams.stream_server import encode_entries
from warren.store.streams.chunk import Chunk, ChunkBuilder, read_head
from warren.wire.streams.conversion import MessageConverter

# Around 256 bytes the head of a body is another one.
SIZES = (0, 1, 255, 256, 255, 1, 70_000, 0)


def chunk(*messages: object) -> Chunk:
    builder = ChunkBuilder(0)
    for message in messages:
        builder.add(message)  # type: ignore[arg-type]
    data = builder.encode(1, 2, 0)
    head = read_head(data, 0, 1, 2)
    assert head is not None
    return Chunk(data, 0, head)


def entries(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found


def data(body: bytes) -> bytes:
    """`body` as the body of an AMQP 1.0 message."""
    if len(body) < 256:
        return b"\0\x53\x75\xa0" + bytes((len(body),)) + body
    return b"\0\x53\x75\xb0" + len(body).to_bytes(4, "big") + body


def test_messages_of_one_shape_have_section_headers_by_body_size() -> None:
    bodies = [bytes((at,)) * size for at, size in enumerate(SIZES)]
    address = encode_address("", "s")
    made = []
    for body in bodies:
        message = new_message(address, b"\0\0", body + BODY_END, 1)
        message.flags = FROM_STREAM
        made.append(message)
    assert chunk(*made).kinds is None
    assert entries(encode_entries(chunk(*made))) == [data(body) for body in bodies]


def test_messages_of_several_shapes_have_their_own_section_headers() -> None:
    raw = new_message(encode_address("", "s"), b"\0\0", b"raw" + BODY_END, 1)
    raw.flags = FROM_STREAM | UNWRAPPED
    messages = [
        sent(b"abc", message_id="1"),
        raw,
        sent(b"abc", message_id="2"),
        raw,
        sent(b"abc", message_id="1"),
    ]
    found = entries(encode_entries(chunk(*messages)))
    assert found[1] == found[3] == b"raw"
    assert found[0] == found[4] != found[2]
    ids = []
    for entry in (found[0], found[2]):
        head, begin, end, is_data = MessageConverter().split(entry)
        assert (entry[begin:end], is_data) == (b"abc", True)
        ids.append(head.property_list)
    assert [b"1" in ids[0], b"2" in ids[1]] == [True, True]


def test_a_chunk_without_messages_is_not_delivered() -> None:
    assert encode_entries(chunk()) == b""
