"""The handshake of a connection between two nodes: both say who they are, and prove to know the cookie.

    dialer ─ HELLO ─▶ listener         proof │ HMAC-SHA-256(key, role │ HELLO of dialer │ HELLO of listener) │
    dialer ◀─ HELLO ─ listener         key   │ HKDF-SHA-256(cookie, info "warren cluster"), 32 bytes │
    dialer ─ PROOF ─▶ listener         role  │ "dialer" or "listener" │
    dialer ◀─ PROOF ─ listener         REFUSAL │ code u8 │ if REMOVED: proof, role "removed" │ text │

A proof covers both HELLOs with their nonces, and the role of its sender: it is of no use on another
connection, nor for another role. That a dialer was removed from the cluster is proved, since it acts on that;
no other refusal is. The cookie itself is never sent. Whatever else could be said against a
peer is said after its proof only; before it, a refusal has a code and no more.
"""

import hashlib
import hmac
from collections.abc import Callable
from enum import IntEnum

from msgspec import Struct

from warren.cluster.hello import NO_CLUSTER, NO_NODE, Hello, LinkPurpose, LocalNode, decode_hello
from warren.cluster.link_frames import LinkFrame, LinkFrameError, LinkFrameKind, encode_frame
from warren.limits_cluster import CLUSTER_REFUSAL_SIZE_MAX

_INFO = b"warren cluster"
_DIALER, _LISTENER, _REMOVED = b"dialer", b"listener", b"removed"
_KEY_SIZE = 32
_PROOF_SIZE = 32
# The whole text before a proof.
_NO_REASON = "refused"


class RefusalCode(IntEnum):
    """Why a connection is refused or given up."""

    COOKIE = 1
    CLUSTER = 2
    VERSION = 3
    NODE = 4
    ITSELF = 5
    INCARNATION = 6
    PURPOSE = 7
    MALFORMED = 8
    TIMEOUT = 9
    BUSY = 10
    CERTIFICATE = 11
    INTERNAL = 12
    # The dialer is no member of the cluster any more.
    REMOVED = 13
    # The dialer is a member, which was the inquiry.
    MEMBER = 14
    # The peer says so with a code that this version does not know.
    OTHER = 255


_CODES = {int(code): code for code in RefusalCode}


class LinkRefusal(Exception):
    """A connection is refused; `code` and the text say why."""

    def __init__(self, code: RefusalCode, text: str) -> None:
        super().__init__(text)
        self.code = code

    def encode(self, *, is_proven: bool, proof: bytes = b"") -> bytes:
        """Return the frame for the peer, which is told the reason only if it has proved itself.

        A refusal with the code REMOVED has a `proof`.
        """
        text = str(self) if is_proven else _NO_REASON
        raw = text.encode(errors="replace")[:CLUSTER_REFUSAL_SIZE_MAX]
        return encode_frame(LinkFrameKind.REFUSAL, bytes((self.code,)), proof + raw)


class ReceivedRefusal(Struct, frozen=True):
    """A refusal as the peer has sent it; nobody vouches for it before the proof of the peer."""

    code: RefusalCode
    text: str
    # Only with the code REMOVED.
    proof: bytes = b""


def decode_refusal(body: bytes) -> ReceivedRefusal:
    """Decode the body of a REFUSAL; LinkFrameError if it is not one."""
    code = _CODES.get(body[0], RefusalCode.OTHER) if body else RefusalCode.OTHER
    text_at = 1 + (_PROOF_SIZE if code is RefusalCode.REMOVED else 0)
    if not text_at <= len(body) <= text_at + CLUSTER_REFUSAL_SIZE_MAX:
        raise LinkFrameError("a REFUSAL has a wrong size")
    text = body[text_at:].decode(errors="replace")
    printable = "".join(one if one.isprintable() else "?" for one in text)
    return ReceivedRefusal(code, printable, body[1:text_at])


def derive_key(secret: bytes, info: bytes = _INFO) -> bytes:
    """Return 32 bytes derived from `secret` by HKDF-SHA-256 (RFC 5869) without a salt."""
    extracted = hmac.digest(bytes(hashlib.sha256().digest_size), secret, "sha256")
    return hmac.digest(extracted, info + b"\x01", "sha256")


class LinkHandshake:
    """The handshake of one end of one connection."""

    def __init__(
        self,
        node: LocalNode,
        key: bytes,
        nonce: bytes,
        check: Callable[[Hello], None],
        *,
        dialed: LinkPurpose | None = None,
    ) -> None:
        """`dialed` is the purpose of a connection that this node dials; without it, this end listens.

        `check` is given the HELLO of a peer that has proved itself, and raises LinkRefusal if that peer is
        not expected.
        """
        assert len(key) == _KEY_SIZE
        self._node = node
        self._key = key
        self._nonce = nonce
        self._check = check
        self._is_dialer = dialed is not None
        self._own = None if dialed is None else node.hello(dialed, nonce)
        # The HELLO of the peer, which is believed if `is_proven`.
        self.peer: Hello | None = None
        self.is_proven = False
        # The version that both speak.
        self.version = 0

    @property
    def purpose(self) -> LinkPurpose | None:
        """What the connection is for; None at a listener that has not been told."""
        return None if self._own is None else self._own.purpose

    def start(self) -> list[bytes]:
        """Return the frames to send at once: the HELLO of a dialer."""
        return [] if self._own is None else [encode_frame(LinkFrameKind.HELLO, self._own.encode())]

    def receive(self, frame: LinkFrame) -> list[bytes]:
        """Handle the next frame of the handshake, and return those to send.

        The handshake is complete when `is_proven`. Raises LinkFrameError for a frame that is not the next
        one, and LinkRefusal for a peer that is not accepted.
        """
        assert not self.is_proven
        match frame.kind:
            case LinkFrameKind.HELLO if self.peer is None:
                return self._hello(decode_hello(frame.body))
            case LinkFrameKind.PROOF if self.peer is not None:
                return self._proof(frame.body)
            case _:
                raise LinkFrameError(f"a {frame.kind.name} in the handshake")

    def refusal_frame(self, refusal: LinkRefusal) -> bytes:
        """Return the frame that tells the peer of a refusal."""
        proof = self._digest(_REMOVED) if refusal.code is RefusalCode.REMOVED else b""
        return refusal.encode(is_proven=self.is_proven, proof=proof)

    def proves_removal(self, refusal: ReceivedRefusal) -> bool:
        """True if a listener that knows the cookie says that this node was removed from the cluster."""
        if refusal.code is not RefusalCode.REMOVED or not self._is_dialer or self.peer is None:
            return False
        return hmac.compare_digest(self._digest(_REMOVED), refusal.proof)

    def _hello(self, peer: Hello) -> list[bytes]:
        self.peer = peer
        if self._own is None:
            self._own = self._node.hello(peer.purpose, self._nonce)
            sent = [encode_frame(LinkFrameKind.HELLO, self._own.encode())]
        else:
            if peer.purpose is not self._own.purpose:
                raise LinkRefusal(RefusalCode.PURPOSE, "another purpose than the dialed one")
            sent = [encode_frame(LinkFrameKind.PROOF, self._digest(_DIALER))]
        # Both ends can tell this from the HELLOs alone, so that no secret is kept by waiting.
        self.version = _common_version(self._own, peer)
        return sent

    def _proof(self, proof: bytes) -> list[bytes]:
        role = _LISTENER if self._is_dialer else _DIALER
        if not hmac.compare_digest(self._digest(role), proof):
            raise LinkRefusal(RefusalCode.COOKIE, "the peer has another cookie")
        self.is_proven = True
        assert self._own is not None
        assert self.peer is not None
        dialer, listener = (self._own, self.peer) if self._is_dialer else (self.peer, self._own)
        _check_pair(dialer, listener)
        self._check(self.peer)
        return [] if self._is_dialer else [encode_frame(LinkFrameKind.PROOF, self._digest(_LISTENER))]

    def _digest(self, role: bytes) -> bytes:
        assert self._own is not None
        assert self.peer is not None
        dialer, listener = (self._own, self.peer) if self._is_dialer else (self.peer, self._own)
        return hmac.digest(self._key, role + dialer.encode() + listener.encode(), "sha256")


def _common_version(own: Hello, peer: Hello) -> int:
    version = min(own.version_max, peer.version_max)
    if version < max(own.version_min, peer.version_min):
        raise LinkRefusal(
            RefusalCode.VERSION,
            f"this node speaks versions {own.version_min} to {own.version_max}, "
            f"'{peer.name}' {peer.version_min} to {peer.version_max}",
        )
    return version


def _check_pair(dialer: Hello, listener: Hello) -> None:
    """Raise LinkRefusal if these two nodes have no business with each other, at whichever end."""
    if dialer.name == listener.name:
        raise LinkRefusal(RefusalCode.ITSELF, f"both ends are called '{dialer.name}'")
    if dialer.purpose is LinkPurpose.JOIN:
        if dialer.cluster_id != NO_CLUSTER or dialer.node_id != NO_NODE:
            raise LinkRefusal(RefusalCode.PURPOSE, f"'{dialer.name}' is in a cluster, and cannot join one")
        return
    if dialer.cluster_id != listener.cluster_id or dialer.cluster_id == NO_CLUSTER:
        raise LinkRefusal(
            RefusalCode.CLUSTER,
            f"'{dialer.name}' is in cluster {dialer.cluster_id.hex()}, "
            f"'{listener.name}' in {listener.cluster_id.hex()}",
        )
    if NO_NODE in (dialer.node_id, listener.node_id) or dialer.node_id == listener.node_id:
        raise LinkRefusal(
            RefusalCode.NODE,
            f"'{dialer.name}' is node {dialer.node_id}, '{listener.name}' {listener.node_id}",
        )
