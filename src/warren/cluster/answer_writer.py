"""The answer of this node to a query of another one, which is sent as that one takes it."""

from collections.abc import Callable

from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink, PayloadError
from warren.cluster.node_query_codec import AnswerFlag, QueryPayload, encode_answer, encode_refusal
from warren.limits_cluster import ANSWER_PIECE_SIZE, ANSWER_PIECES_MAX

_CONTROL = LinkPurpose.CONTROL


class AnswerWriter:
    """Takes an answer in parts of any size, and sends it in pieces."""

    __slots__ = (
        "_buffer",
        "_finished",
        "_is_ending",
        "_link",
        "_pieces",
        "id",
        "is_over",
        "on_over",
        "on_writable",
        "peer",
    )

    def __init__(
        self, link: NodeLink, id: int, pieces: int, finished: Callable[["AnswerWriter"], None]
    ) -> None:
        """Answer query `id` of the peer of `link`, which takes `pieces`; `finished` is called at its end."""
        self._link = link
        self.peer = link.peer.node_id
        self.id = id
        self._pieces = pieces
        self._finished = finished
        self._buffer = bytearray()
        self._is_ending = False
        # True when nothing more is sent: all was, or the other node does not wait for it any more.
        self.is_over = False
        # Called when the answer takes more again, and when it is over; may be replaced.
        self.on_writable: Callable[[], None] = _do_nothing
        self.on_over: Callable[[], None] = _do_nothing

    @property
    def is_writable(self) -> bool:
        """True if less than a piece waits: a caller that asks keeps a piece and one part at most."""
        return len(self._buffer) < ANSWER_PIECE_SIZE

    def write(self, data: bytes) -> None:
        """Add `data` to the answer; without effect when it is over."""
        assert not self._is_ending
        if not self.is_over:
            self._buffer += data
            self.send()

    def end(self, data: bytes = b"") -> None:
        """Add `data`, with which the answer is complete."""
        if not self.is_over:
            self._is_ending = True
            self._buffer += data
            self.send()

    def refuse(self, reason: str) -> None:
        """End the answer: what was sent of it is not valid, because of `reason`."""
        if not self.is_over:
            # It needs no piece that was asked for, since it is small and the last.
            self._link.send(_CONTROL, QueryPayload.ANSWER, encode_refusal(self.id, reason))
            self._end()

    def more(self, pieces: int) -> None:
        """The other node takes more pieces. Raises PayloadError."""
        if self._pieces + pieces > ANSWER_PIECES_MAX:
            raise PayloadError(f"a MORE asks for {pieces} pieces beside {self._pieces}")
        self._pieces += pieces
        self.send()

    def cancel(self) -> None:
        """The other node does not wait for the answer any more."""
        if not self.is_over:
            self._end()

    def send(self) -> None:
        """Send what was asked for, and what the link takes."""
        if self.is_over:
            return
        was_full = not self.is_writable
        while (self._buffer or self._is_ending) and self._pieces and self._link.is_writable(_CONTROL):
            is_last = self._is_ending and len(self._buffer) <= ANSWER_PIECE_SIZE
            piece = bytes(memoryview(self._buffer)[:ANSWER_PIECE_SIZE])
            del self._buffer[:ANSWER_PIECE_SIZE]
            self._pieces -= 1
            flags = AnswerFlag.LAST if is_last else AnswerFlag(0)
            self._link.send(_CONTROL, QueryPayload.ANSWER, encode_answer(self.id, piece, flags))
            if is_last:
                self._end()
                return
        if was_full and self.is_writable and not self.is_over:
            self.on_writable()

    def _end(self) -> None:
        self.is_over = True
        self._buffer.clear()
        self._finished(self)
        self.on_over()


def _do_nothing() -> None:
    """Nobody waits."""
