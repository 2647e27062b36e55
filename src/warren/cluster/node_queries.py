"""Queries between nodes: what one asks another to tell or to do, and the answers.

    ask ─▶ QUERY ─▶ the operation of the other node ─▶ ANSWER, piece by piece as the asker takes them

The operations are a fixed table: a query has the number of one and bytes that the operation reads itself. A
query fails at once if the other node is not heard, when the session is lost in which it was sent, and when no
piece comes in time. Then it may have been obeyed or not.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from msgspec import Struct

from warren.cluster.answer_writer import AnswerWriter
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink, PayloadError
from warren.cluster.node_query_codec import (
    AnswerPiece,
    QueryHead,
    QueryPayload,
    decode_answer,
    decode_cancel,
    decode_more,
    decode_query,
    encode_cancel,
    encode_more,
    encode_query,
    encode_refusal,
)
from warren.limits_cluster import ANSWER_PIECES_AHEAD, ANSWER_PIECES_MAX, QUERIES_MAX, QUERY_SIZE_MAX

_CONTROL = LinkPurpose.CONTROL
_KINDS = frozenset(QueryPayload)
_ID_MAX = 0xFFFFFFFF

# Begins to answer a query with these arguments; it writes to the answer now or later.
QueryOperation: TypeAlias = Callable[[AnswerWriter, bytes], None]


class NotAnswered(Struct, frozen=True):
    """Why a query has no answer, or no complete one."""

    reason: str
    # True if the other node was not there to answer; False if it was late, or has refused.
    is_away: bool


class AnswerListener(Protocol):
    """Port: who has asked."""

    def answered(self, piece: bytes) -> None:
        """Called with each piece of the answer, in order; `PendingQuery.take` asks for more."""

    def ended(self, failure: NotAnswered | None) -> None:
        """Called once, behind the last piece: the answer is complete, or there is none."""


class PendingQuery:
    """A query that this node waits for."""

    __slots__ = ("_ahead", "_deadline", "_listener", "_queries", "_timeout_ms", "id", "link")

    def __init__(
        self, queries: "NodeQueries", link: NodeLink, id: int, listener: AnswerListener, *, timeout_ms: int
    ) -> None:
        """Query `id` to the peer of `link`, whose next piece is awaited for `timeout_ms`."""
        self._queries = queries
        self.link = link
        self.id = id
        self._listener = listener
        self._timeout_ms = timeout_ms
        # Pieces that the other node may send.
        self._ahead = ANSWER_PIECES_AHEAD
        self._deadline = queries.now() + timeout_ms

    def take(self, pieces: int) -> None:
        """Let the other node send `pieces` more, since so many were used."""
        if self._queries.is_waiting(self):
            if not self._ahead:
                self._deadline = self._queries.now() + self._timeout_ms
            self._ahead += pieces
            assert self._ahead <= ANSWER_PIECES_MAX
            self.link.send(_CONTROL, QueryPayload.MORE, encode_more(self.id, pieces))

    def cancel(self) -> None:
        """Wait no more; the listener hears nothing of it."""
        if self._queries.is_waiting(self):
            self._queries.forget(self)
            self.link.send(_CONTROL, QueryPayload.CANCEL, encode_cancel(self.id))

    def received(self, piece: AnswerPiece) -> None:
        """Take a piece. Raises PayloadError if it was not asked for."""
        if piece.is_refusal:
            self._queries.forget(self)
            self._listener.ended(NotAnswered(piece.data.decode("utf-8", "replace"), is_away=False))
            return
        if not self._ahead:
            raise PayloadError(f"a piece of the answer to query {self.id} that was not asked for")
        self._ahead -= 1
        self._deadline = self._queries.now() + self._timeout_ms
        if piece.is_last:
            self._queries.forget(self)
        if piece.data:
            self._listener.answered(piece.data)
        if piece.is_last:
            self._listener.ended(None)

    def fail(self, reason: str, *, is_away: bool) -> None:
        """Tell the listener that there is no answer."""
        self._queries.forget(self)
        self._listener.ended(NotAnswered(reason, is_away=is_away))

    def is_late(self, now: int) -> bool:
        """True if a piece was to be here. The other node does not send what this one does not take."""
        return bool(self._ahead) and now >= self._deadline


class NodeQueries:
    """The queries of this node to all others, and theirs to it."""

    def __init__(
        self, links: Mapping[int, NodeLink], now: Callable[[], int], operations: Mapping[int, QueryOperation]
    ) -> None:
        """`links` has the links to the other members, by their numbers, and `now` is the time in ms."""
        self._links = links
        self.now = now
        self._operations = operations
        self._last_id = 0
        # By the number of the other node: what it is asked, and what it has asked.
        self._asked: dict[int, dict[int, PendingQuery]] = {}
        self._answers: dict[int, dict[int, AnswerWriter]] = {}

    def ask(
        self, node_id: int, operation: int, arguments: bytes, listener: AnswerListener, *, timeout_ms: int
    ) -> PendingQuery | NotAnswered:
        """Ask a node; NotAnswered at once if it is away, or if too many or too large queries are asked."""
        link = self._links.get(node_id)
        if link is None or link.is_silent or not link.is_writable(_CONTROL):
            name = f"node {node_id}" if link is None else f"node '{link.peer.name}'"
            return NotAnswered(f"{name} does not answer", is_away=True)
        asked = self._asked.setdefault(node_id, {})
        if len(asked) >= QUERIES_MAX:
            return NotAnswered(
                f"node '{link.peer.name}' has not answered {len(asked)} queries yet", is_away=False
            )
        if len(arguments) > QUERY_SIZE_MAX:
            return NotAnswered(
                f"a query of {len(arguments)} bytes is larger than {QUERY_SIZE_MAX}", is_away=False
            )
        id = self._last_id = self._last_id % _ID_MAX + 1
        query = asked[id] = PendingQuery(self, link, id, listener, timeout_ms=timeout_ms)
        head = QueryHead(id, operation, ANSWER_PIECES_AHEAD, arguments)
        link.send(_CONTROL, QueryPayload.QUERY, encode_query(head))
        return query

    # --- what the links call --------------------------------------------------------------------------

    @staticmethod
    def takes(kind: int) -> bool:
        """True if payloads of `kind` are for `received`."""
        return kind in _KINDS

    def received(self, link: NodeLink, kind: int, body: bytes) -> None:
        """Handle a payload of the control connection. Raises PayloadError."""
        match QueryPayload(kind):
            case QueryPayload.QUERY:
                self._begin(link, decode_query(body))
            case QueryPayload.ANSWER:
                piece = decode_answer(body)
                query = self._asked.get(link.peer.node_id, {}).get(piece.id)
                # The answer to a query that was cancelled may be on its way.
                if query is not None:
                    query.received(piece)
            case QueryPayload.MORE:
                id, pieces = decode_more(body)
                writer = self._answers.get(link.peer.node_id, {}).get(id)
                if writer is not None:
                    writer.more(pieces)
            case QueryPayload.CANCEL:
                writer = self._answers.get(link.peer.node_id, {}).get(decode_cancel(body))
                if writer is not None:
                    writer.cancel()

    def session_lost(self, link: NodeLink) -> None:
        """The session of the control connection has ended: nothing of it is answered any more."""
        for query in list(self._asked.get(link.peer.node_id, {}).values()):
            query.fail(f"node '{link.peer.name}' does not answer", is_away=True)
        for writer in list(self._answers.get(link.peer.node_id, {}).values()):
            writer.cancel()

    def writable(self, link: NodeLink) -> None:
        """The control connection takes more."""
        for writer in list(self._answers.get(link.peer.node_id, {}).values()):
            writer.send()

    def tick(self) -> None:
        """Give up queries that are late; called some times in a second."""
        now = self.now()
        for asked in self._asked.values():
            for query in [query for query in asked.values() if query.is_late(now)]:
                query.cancel()
                query.fail(f"node '{query.link.peer.name}' did not answer in time", is_away=False)

    # --- what queries call ----------------------------------------------------------------------------

    def is_waiting(self, query: PendingQuery) -> bool:
        """True if `query` is not answered yet, and nobody has given it up."""
        return self._asked.get(query.link.peer.node_id, {}).get(query.id) is query

    def forget(self, query: PendingQuery) -> None:
        """Wait for `query` no more."""
        self._asked[query.link.peer.node_id].pop(query.id, None)

    # --- private --------------------------------------------------------------------------------------

    def _begin(self, link: NodeLink, query: QueryHead) -> None:
        answers = self._answers.setdefault(link.peer.node_id, {})
        if query.id in answers:
            raise PayloadError(f"query {query.id} is asked again")
        operation = self._operations.get(query.operation)
        if operation is None:
            self._refuse(link, query.id, f"operation {query.operation} is not known here")
        elif len(answers) >= QUERIES_MAX:
            self._refuse(link, query.id, f"{len(answers)} queries are being answered: ask later")
        else:
            writer = answers[query.id] = AnswerWriter(link, query.id, query.pieces, self._answer_ended)
            operation(writer, query.arguments)

    def _refuse(self, link: NodeLink, id: int, reason: str) -> None:
        link.send(_CONTROL, QueryPayload.ANSWER, encode_refusal(id, reason))

    def _answer_ended(self, writer: AnswerWriter) -> None:
        self._answers[writer.peer].pop(writer.id, None)
