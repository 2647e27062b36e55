"""The other nodes of the cluster, asked over their links: implements port `ClusterNodes`."""

import asyncio
from collections import deque
from collections.abc import Mapping

from warren.cluster.node_link import NodeLink
from warren.cluster.node_queries import AnswerListener, NodeQueries, NotAnswered, PendingQuery
from warren.management.carried_request_server import HTTP_REQUEST
from warren.management.cluster_nodes import AnswerPieces, ClusterNodes, NodeNotAnswering, PeerTraffic


class QueriedNodes(ClusterNodes):
    """The members to which this node has links."""

    def __init__(self, own_id: int, links: Mapping[int, NodeLink], queries: NodeQueries) -> None:
        """`links` has the links to the other members, by their numbers."""
        self._own_id = own_id
        self._links = links
        self._queries = queries

    @property
    def own_id(self) -> int:
        """The number of this node in its cluster."""
        return self._own_id

    def ask(self, node_id: int, arguments: bytes, *, timeout_ms: int) -> AnswerPieces:
        """Send an encoded request to a node. Raises NodeNotAnswering if it is away."""
        answer = _Answer()
        query = self._queries.ask(node_id, HTTP_REQUEST, arguments, answer, timeout_ms=timeout_ms)
        if isinstance(query, NotAnswered):
            raise NodeNotAnswering(query.reason, is_away=query.is_away)
        answer.query = query
        return answer

    def traffic(self) -> list[PeerTraffic]:
        """The links to all other members."""
        return [
            PeerTraffic(
                name=link.peer.name,
                is_up=not link.is_silent,
                bytes_received=link.counters.bytes_received,
                bytes_sent=link.counters.bytes_sent,
                frames_received=link.counters.frames_received,
                frames_sent=link.counters.frames_sent,
            )
            for link in self._links.values()
        ]


class _Answer(AnswerListener, AnswerPieces):
    """The pieces of an answer that have come, for a coroutine that waits for them."""

    def __init__(self) -> None:
        self.query: PendingQuery | None = None
        self._pieces: deque[bytes] = deque()
        self._is_over = False
        self._failure: NotAnswered | None = None
        self._changed = asyncio.Event()

    def answered(self, piece: bytes) -> None:
        """Keep a piece."""
        self._pieces.append(piece)
        self._changed.set()

    def ended(self, failure: NotAnswered | None) -> None:
        """Note that no piece follows."""
        self._is_over = True
        self._failure = failure
        self._changed.set()

    async def next_piece(self) -> bytes | None:
        """The next piece; None at the end. Raises NodeNotAnswering."""
        while not self._pieces:
            if self._failure is not None:
                raise NodeNotAnswering(self._failure.reason, is_away=self._failure.is_away)
            if self._is_over:
                return None
            self._changed.clear()
            await self._changed.wait()
        if self.query is not None:
            self.query.take(1)
        return self._pieces.popleft()

    def close(self) -> None:
        """Take no more."""
        if self.query is not None:
            self.query.cancel()
