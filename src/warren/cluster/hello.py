"""What the ends of a connection between two nodes say about themselves first.

    HELLO │ "WRNL" │ version min u16 │ version max u16 │ feature level u16 │ cluster 16 bytes │ node u16 │
          │ incarnation u64 │ purpose u8 │ nonce 32 bytes │ size u16 │ name │

The layout is that of all versions: what a later one has to add follows in frames of its own. Nothing in a
HELLO is true before its sender has proved that it knows the cookie.
"""

import struct
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from warren.cluster.link_frames import LinkFrameError
from warren.limits_cluster import CLUSTER_NODE_NAME_SIZE_MAX

_MAGIC = b"WRNL"
_HELLO = struct.Struct(">4sHHH16sHQB32sH")
# The versions of the protocol that this build speaks.
LINK_VERSION_MIN = 1
LINK_VERSION_MAX = 1
# What this build knows: commands, records and messages of a higher level are not used before all members do.
FEATURE_LEVEL = 1
# Random bytes of each end, so that no handshake is like another.
NONCE_SIZE = 32
# The id of the cluster of a node that is in none, and the number of a node in it.
NO_CLUSTER = bytes(16)
NO_NODE = 0


class LinkPurpose(IntEnum):
    """What a connection between two nodes is for."""

    CONTROL = 1
    DATA = 2
    BULK = 3
    JOIN = 4
    # Asks whether the peer is there and has this node as a member; the answer is a refusal.
    INQUIRY = 5


_PURPOSES = {int(purpose): purpose for purpose in LinkPurpose}


class LocalNode(Struct, frozen=True, kw_only=True):
    """What this node is in its cluster; one that is in none has NO_CLUSTER and NO_NODE."""

    cluster_id: bytes
    node_id: int
    name: str
    incarnation: int
    feature_level: int

    @property
    def introduced(self) -> "LocalNode":
        """How this node introduces itself: without a number while it is in no cluster."""
        if self.cluster_id != NO_CLUSTER:
            return self
        return replace(self, node_id=NO_NODE)

    def hello(self, purpose: LinkPurpose, nonce: bytes) -> "Hello":
        """Return the HELLO of a new connection."""
        return Hello(
            version_min=LINK_VERSION_MIN,
            version_max=LINK_VERSION_MAX,
            feature_level=self.feature_level,
            cluster_id=self.cluster_id,
            node_id=self.node_id,
            name=self.name,
            incarnation=self.incarnation,
            purpose=purpose,
            nonce=nonce,
        )


class Hello(Struct, frozen=True, kw_only=True):
    """The HELLO of one end."""

    version_min: int
    version_max: int
    feature_level: int
    cluster_id: bytes
    node_id: int
    name: str
    incarnation: int
    purpose: LinkPurpose
    nonce: bytes

    def encode(self) -> bytes:
        """Return the body of the frame."""
        name = self.name.encode()
        assert len(name) <= CLUSTER_NODE_NAME_SIZE_MAX
        head = _HELLO.pack(
            _MAGIC,
            self.version_min,
            self.version_max,
            self.feature_level,
            self.cluster_id,
            self.node_id,
            self.incarnation,
            self.purpose,
            self.nonce,
            len(name),
        )
        return head + name


def decode_hello(body: bytes) -> Hello:
    """Decode the body of a HELLO; LinkFrameError if it is not exactly one."""
    if len(body) < _HELLO.size:
        raise LinkFrameError("a HELLO is too short")
    magic, low, high, level, cluster, node, incarnation, purpose, nonce, size = _HELLO.unpack_from(body)
    if magic != _MAGIC:
        raise LinkFrameError("a HELLO does not begin as one of Warren")
    if not 0 < low <= high:
        raise LinkFrameError(f"a HELLO has the versions {low} to {high}")
    if purpose not in _PURPOSES:
        raise LinkFrameError(f"a HELLO has the unknown purpose {purpose}")
    if not 0 < size <= CLUSTER_NODE_NAME_SIZE_MAX or len(body) != _HELLO.size + size:
        raise LinkFrameError("a HELLO has a name of a wrong size")
    try:
        name = body[_HELLO.size :].decode()
    except UnicodeDecodeError:
        raise LinkFrameError("the name in a HELLO is not UTF-8") from None
    if not name.isprintable():
        raise LinkFrameError("the name in a HELLO is not printable")
    return Hello(
        version_min=low,
        version_max=high,
        feature_level=level,
        cluster_id=cluster,
        node_id=node,
        name=name,
        incarnation=incarnation,
        purpose=_PURPOSES[purpose],
        nonce=nonce,
    )
