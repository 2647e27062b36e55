"""The fuzz target of whole stream protocol sessions: the broker answers with frames or closes the
connection.
"""

from contextlib import suppress

from tests.stream_delivery import decode_deliver
from tests.unit.session.streams.client import Node, StreamClient, data, with_filters

from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, MalformedFrame, OffsetType
from warren.wire.streams.fields import Offset, Version
from warren.wire.streams.frames import framed
from warren.wire.streams.publish import Publication, SubEntryBatch, encode_publish

FRAME_SIZE_MAX = 4096
# Expiry is bounded: a deadline that does not move is a finding.
EXPIRATIONS_MAX = 50


def check_stream_session(data: bytes) -> None:
    """The first byte selects how the rest is sent: before or after login, as bytes or as frames, in
    pieces.
    """
    if not data:
        return
    mode, rest = data[0], data[1:]
    node = Node()
    witness = node.stream("s")
    suspect = StreamClient(node)
    if mode & 1:
        suspect.open(frame_size_max=FRAME_SIZE_MAX)
    if mode & 2:
        rest = _framed(rest)
    step = len(rest) if mode & 4 else mode % 61 + 1
    said = b""
    for at in range(0, len(rest), max(1, step)):
        suspect.say(rest[at : at + step])
        node.write()
        said += _received(suspect)
        _received(witness)
        if suspect.connection.is_finished:
            break
    _expire(suspect)
    said += _received(suspect)
    _expect_frames(said)
    surprises = [report for report in node.reports if report.startswith("unexpected")]
    assert not surprises, "\n".join(surprises)
    suspect.connection.lost()
    _expect_service(node)


def _framed(rest: bytes) -> bytes:
    """`rest` as valid frames: two bytes determine the size of each."""
    out = b""
    while len(rest) > 2:
        size = int.from_bytes(rest[:2], "big") % 512
        out += framed(rest[2 : 2 + size])
        rest = rest[2 + size :]
    return out


def _unframed(said: bytes) -> bytes:
    """The input from which `_framed` makes `said`."""
    out, at = b"", 0
    while at < len(said):
        size = int.from_bytes(said[at : at + 4], "big")
        out += size.to_bytes(2, "big") + said[at + 4 : at + 4 + size]
        at += 4 + size
    return out


def _received(client: StreamClient) -> bytes:
    said = b""
    while part := b"".join(client.connection.take_output()):
        said += part
        client.connection.output_written()
    return said


def _expire(client: StreamClient) -> None:
    """Advance the time until nothing is due within an hour."""
    for _ in range(EXPIRATIONS_MAX):
        due = client.connection.deadline()
        if due is None or due > 3_600_000 or client.connection.is_finished:
            return
        client.expire(due)
        _received(client)
    raise AssertionError("a deadline does not move")


def _expect_frames(said: bytes) -> None:
    """The broker's output consists of whole frames of known commands, and of valid chunks."""
    at = 0
    while at < len(said):
        size = int.from_bytes(said[at : at + 4], "big")
        frame = said[at + 4 : at + 4 + size]
        assert len(frame) == size, "a truncated frame"
        key = CommandKey(int.from_bytes(frame[:2], "big") & 0x7FFF)
        if key is CommandKey.DELIVER:
            with suppress(MalformedFrame):
                # Compressed batches are not decoded.
                decode_deliver(frame)
        at += 4 + size


def _expect_service(node: Node) -> None:
    """A new client publishes, and is confirmed."""
    client = StreamClient(node)
    client.open()
    client.ask(commands.Create("fresh", {}))
    client.ask(commands.DeclarePublisher(1, "", "fresh"))
    client.publish(1, (1, data(b"x")))
    node.write()
    confirms = [each.sequences for each in client.hear() if isinstance(each, commands.PublishConfirm)]
    assert [list(sequences) for sequences in confirms] == [[1]], confirms


def stream_session_seeds() -> list[bytes]:
    """Typical operations of clients, after login, as frames and as bytes; and a login."""
    publish = framed(
        encode_publish(
            Publication(1, [(1, data(b"a")), (2, SubEntryBatch(0, 1, 5, b"\0\0\0\1x")), (3, data(b"b"))])
        )
    )
    every = [
        commands.PeerProperties({"product": "x"}), commands.SaslHandshake(),
        commands.SaslAuthenticate("PLAIN", b"\0guest\0guest"), commands.Tune(4096, 10), commands.Open("/"),
    ]  # fmt: skip
    login = b"".join(command.encode(number) for number, command in enumerate(every, 1))
    deeds = [
        [commands.DeclarePublisher(1, "p", "s"), publish, commands.QueryPublisherSequence("p", "s"),
         commands.DeletePublisher(1)],
        [commands.DeclarePublisher(1, "", "s"), with_filters((1, "f", data(b"a")), (2, None, data(b"b")))],
        [commands.Subscribe(1, "s", Offset(OffsetType.FIRST, 0), 5, {"name": "n", "filter.0": "f"}),
         commands.DeclarePublisher(1, "", "s"), publish, commands.Credit(1, 5), commands.Unsubscribe(1)],
        [commands.StoreOffset("n", "s", 5), commands.QueryOffset("n", "s"), commands.Metadata(("s", "none"))],
        [commands.Create("t", {"max-length-bytes": "1000", "max-age": "1h"}), commands.StreamStats("t"),
         commands.Delete("t")],
        [commands.ExchangeCommandVersions((Version(1, 1, 1), Version(2, 1, 2))), commands.Heartbeat(),
         commands.Close(1, "bye")],
    ]  # fmt: skip
    said = [
        b"".join(
            each if isinstance(each, bytes) else each.encode(number) for number, each in enumerate(deed, 9)
        )
        for deed in deeds
    ]
    framed_seeds = [bytes([7]) + _unframed(one) for one in said]
    return [b"\x04" + login, b"\x10" + login, *(bytes([5]) + one for one in said), *framed_seeds]
