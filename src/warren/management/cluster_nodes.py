"""Port: the other nodes of the cluster, as the HTTP API asks them."""

from typing import Protocol

from msgspec import Struct


class NodeNotAnswering(Exception):
    """A node has not answered a request; it may have obeyed it."""

    def __init__(self, reason: str, *, is_away: bool, is_too_large: bool = False) -> None:
        """`is_away` is True if the node was not there, `is_too_large` if its answer exceeds a bound."""
        super().__init__(reason)
        self.is_away = is_away
        self.is_too_large = is_too_large


class PeerTraffic(Struct, frozen=True, kw_only=True):
    """The link of this node to one other."""

    name: str
    # True if the other node is heard.
    is_up: bool
    bytes_received: int
    bytes_sent: int
    frames_received: int
    frames_sent: int


class HeldAnswers:
    """The size of the answers of other nodes that are held as a whole, in bytes."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0


class AnswerPieces(Protocol):
    """The answer of a node, as it comes."""

    async def next_piece(self) -> bytes | None:
        """The next piece of the answer; None at its end. Raises NodeNotAnswering."""

    def close(self) -> None:
        """Take no more of the answer."""


class ClusterNodes(Protocol):
    """The other nodes of the cluster."""

    @property
    def own_id(self) -> int:
        """The number of this node in its cluster."""

    def ask(self, node_id: int, arguments: bytes, *, timeout_ms: int) -> AnswerPieces:
        """Send an encoded request to a node, of which each piece is awaited for `timeout_ms`.

        Raises NodeNotAnswering if it is away.
        """

    def traffic(self) -> list[PeerTraffic]:
        """The links to all other members."""
