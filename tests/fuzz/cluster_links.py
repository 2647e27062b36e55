"""Fuzz targets of links between nodes: whatever a peer sends, only its connection ends, and nothing grows."""

import struct

from tests.unit.cluster.link_nodes import MemorySocket, Network

from warren.cluster.hello import NONCE_SIZE, LinkPurpose, LocalNode
from warren.cluster.link_connection import LinkConnection
from warren.cluster.link_frames import LinkFrame, LinkFrameError, LinkFrameKind, LinkFrameReader, encode_frame
from warren.limits_cluster import CLUSTER_FRAME_SIZE_MAX

# A frame in the input of a target: its kind, its flags, and the size of its body.
_WRITTEN = struct.Struct(">BBH")
_BEGIN = struct.pack(">QQQI", 5, 0, 0, 1 << 22)


def check_link_frames(data: bytes) -> None:
    """Frames do not depend on how the input is cut; the first byte selects the size of the pieces."""
    if not data:
        return
    step, raw = data[0] % 32 + 1, data[1:]
    pieces = [raw[at : at + step] for at in range(0, len(raw), step)]
    assert _read(pieces) == _read([raw])


def _read(pieces: list[bytes]) -> tuple[list[LinkFrame], str]:
    reader, frames = LinkFrameReader(), []
    try:
        for piece in pieces:
            for frame in reader.cut(piece):
                frames.append(frame)
                if frame.kind is LinkFrameKind.PROOF:
                    reader.proved()
    except LinkFrameError as error:
        return frames, str(error)
    return frames, ""


def check_link(data: bytes) -> None:
    """The first byte selects whether the rest is sent as bytes or as frames, before or after the proof."""
    if not data:
        return
    mode, raw = data[0], data[1:]
    if mode & 1:
        raw = _framed(raw)
    network = Network()
    if mode & 2:
        _, node, _, link = network.pair()
        connection = _of(network, LinkPurpose.CONTROL if mode & 4 else LinkPurpose.DATA)
        if mode & 8:
            connection.lost()
            network.nodes[0].links.tick(network.now + 100)
            network.run(100)
            connection = _of(network, LinkPurpose.DATA)
    else:
        node = network.add(2, "two")
        link = None
        socket = MemorySocket(lambda: network.now)
        connection = socket.connection = node.links.accept(socket, network.now)
    step = mode // 16 * 7 + 1
    for at in range(0, len(raw), step):
        connection.receive(raw[at : at + step], network.now)
        connection.take_output()
    assert mode & 2 or not connection.is_proven
    if link is not None:
        assert link.kept_size <= len(raw)
    # The node is there for another connection.
    fresh = node.links.accept(MemorySocket(lambda: network.now), network.now)
    assert not fresh.is_finished


def _of(network: Network, purpose: LinkPurpose) -> LinkConnection:
    found = [socket.connection for socket in network.sockets[1::2]]
    return next(one for one in found if one is not None and one.is_proven and one.purpose is purpose)


def _framed(raw: bytes) -> bytes:
    """Give each frame in the input a right checksum."""
    frames, at = [], 0
    while at + _WRITTEN.size <= len(raw):
        kind, flags, size = _WRITTEN.unpack_from(raw, at)
        at += _WRITTEN.size
        # Kinds that do not exist stay in the input, where they are rare.
        kind = kind if kind > 200 else kind % len(LinkFrameKind) + 1
        frames.append(encode_frame(kind, raw[at : at + size], flags=flags))  # type: ignore[arg-type]
        at += size
    return b"".join(frames)


def _written(kind: LinkFrameKind, body: bytes, flags: int = 0) -> bytes:
    return _WRITTEN.pack(kind - 1, flags, len(body)) + body


def link_frame_seeds() -> list[bytes]:
    """Frames, whole and cut, too large and of no kind."""
    ping = encode_frame(LinkFrameKind.PING, b"digest")
    proof = encode_frame(LinkFrameKind.PROOF, bytes(32))
    large = (CLUSTER_FRAME_SIZE_MAX + 1).to_bytes(4, "big") + ping[4:10]
    streams = (ping + ping, proof + bytes(5000) + ping, large, ping[:-1] + b"?" + ping)
    return [b"\x07" + stream for stream in streams]


def link_seeds() -> list[bytes]:
    """Handshakes, sessions and payloads, as bytes and as frames."""
    node = LocalNode(cluster_id=b"c" * 16, node_id=1, name="one", incarnation=1, feature_level=1)
    hello = node.hello(LinkPurpose.DATA, bytes(NONCE_SIZE)).encode()
    part = struct.pack(">QB", 1, 7) + b"payload"
    later = struct.pack(">QB", 2, 7) + b"payload"
    obeyed = struct.pack(">QQ", 1, 1)
    kinds = LinkFrameKind
    frames = [
        _written(kinds.HELLO, hello) + _written(kinds.PROOF, bytes(32)),
        _written(kinds.BEGIN, _BEGIN) + _written(kinds.PART, part, 1) + _written(kinds.OBEYED, obeyed),
        _written(kinds.PART, part) + _written(kinds.PART, later, 1) + _written(kinds.PING, b"digest"),
        _written(kinds.REFUSAL, b"\x0alater"),
        _written(kinds.WANT, b"\x03") + _written(kinds.PROOF, b""),
    ]
    modes = (1, 3, 7, 11, 0x73)
    return [bytes((mode,)) + one for mode in modes for one in frames] + [b"\x40" + _framed(frames[0])]
