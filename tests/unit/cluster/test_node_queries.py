"""Queries between two nodes: answers in pieces, refusals, nodes that are away, late or hostile."""

from collections.abc import Callable

import pytest
from tests.unit.cluster.link_nodes import Network

from warren.cluster.answer_writer import AnswerWriter
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink, PayloadError
from warren.cluster.node_queries import NodeQueries, NotAnswered, PendingQuery, QueryOperation
from warren.cluster.node_query_codec import (
    AnswerFlag,
    QueryHead,
    QueryPayload,
    decode_answer,
    encode_answer,
    encode_more,
    encode_query,
)
from warren.limits_cluster import (
    ANSWER_PIECE_SIZE,
    ANSWER_PIECES_AHEAD,
    ANSWER_PIECES_MAX,
    CLUSTER_SESSION_MS,
    CLUSTER_SILENT_MS,
    QUERIES_MAX,
    QUERY_REFUSAL_SIZE_MAX,
    QUERY_SIZE_MAX,
)

CONTROL = LinkPurpose.CONTROL
ECHO, NEVER, LARGE, REFUSE = 1, 2, 3, 4
TIMEOUT_MS = 2_000
LARGE_SIZE = 40 * ANSWER_PIECE_SIZE + 1


class Answer:
    """Listens to the answer to a query, and takes what comes unless it is told not to."""

    def __init__(self, *, takes: bool = True) -> None:
        self.pieces: list[bytes] = []
        self.failures: list[NotAnswered | None] = []
        self.query: PendingQuery | None = None
        self.takes = takes

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)

    def answered(self, piece: bytes) -> None:
        assert not self.failures
        self.pieces.append(piece)
        if self.takes:
            assert self.query is not None
            self.query.take(1)

    def ended(self, failure: NotAnswered | None) -> None:
        self.failures.append(failure)


class QueriedNode:
    """A node whose control connection carries queries."""

    def __init__(self, network: Network) -> None:
        self.writers: list[AnswerWriter] = []
        self.asked: list[bytes] = []
        self.by_node: dict[int, NodeLink] = {}
        operations: dict[int, QueryOperation] = {
            ECHO: self._echo, NEVER: self._never, LARGE: self._large, REFUSE: self._refuse,
        }  # fmt: skip
        self.queries = NodeQueries(self.by_node, lambda: network.now, operations)

    def ask(self, operation: int, arguments: bytes = b"", *, takes: bool = True) -> Answer:
        """Ask the other node."""
        answer = Answer(takes=takes)
        (node_id,) = self.by_node
        query = self.queries.ask(node_id, operation, arguments, answer, timeout_ms=TIMEOUT_MS)
        if isinstance(query, NotAnswered):
            answer.failures.append(query)
        else:
            answer.query = query
        return answer

    def receive(self, link: NodeLink, kind: int, body: bytes) -> None:
        if NodeQueries.takes(kind):
            self.queries.received(link, kind, body)

    def _echo(self, writer: AnswerWriter, arguments: bytes) -> None:
        self.asked.append(arguments)
        writer.end(arguments)

    def _never(self, writer: AnswerWriter, arguments: bytes) -> None:
        self.writers.append(writer)

    def _large(self, writer: AnswerWriter, arguments: bytes) -> None:
        self.writers.append(writer)
        writer.end(bytes(LARGE_SIZE))

    def _refuse(self, writer: AnswerWriter, arguments: bytes) -> None:
        writer.write(b"the beginning")
        writer.refuse("no such thing" + "!" * 1_000)


class QueriedPair:
    """Two nodes that ask each other."""

    def __init__(self) -> None:
        self.network = Network()
        one, two, to_two, to_one = self.network.pair()
        self.one, self.two = QueriedNode(self.network), QueriedNode(self.network)
        self.to_two, self.to_one = to_two, to_one
        self.one.by_node[2], self.two.by_node[1] = to_two, to_one
        # The links tell the nodes that they were made with.
        for told, node in ((one, self.one), (two, self.two)):
            told.received = self._received(node)  # type: ignore[method-assign]
            told.session_lost = self._lost(node)  # type: ignore[method-assign]
            told.writable = self._writable(node)  # type: ignore[method-assign]

    def run(self, ms: int = 0) -> None:
        """Let time pass, with the ticks of the queries."""
        end = self.network.now + ms
        while True:
            self.network.run(min(100, end - self.network.now))
            self.one.queries.tick()
            self.two.queries.tick()
            if self.network.now >= end:
                return

    def _received(self, node: QueriedNode) -> Callable[[NodeLink, LinkPurpose, int, bytes], None]:
        return lambda link, purpose, kind, body: node.receive(link, kind, body)

    def _lost(self, node: QueriedNode) -> Callable[[NodeLink, LinkPurpose], None]:
        return lambda link, purpose: node.queries.session_lost(link) if purpose is CONTROL else None

    def _writable(self, node: QueriedNode) -> Callable[[NodeLink, LinkPurpose], None]:
        return lambda link, purpose: node.queries.writable(link)


@pytest.fixture
def pair() -> QueriedPair:
    return QueriedPair()


def test_each_node_is_answered_by_the_other(pair: QueriedPair) -> None:
    of_one, of_two = pair.one.ask(ECHO, b"from one"), pair.two.ask(ECHO, b"from two")
    pair.run()
    assert (of_one.pieces, of_one.failures) == ([b"from one"], [None])
    assert (of_two.pieces, of_two.failures) == ([b"from two"], [None])
    assert pair.two.asked == [b"from one"]


def test_an_empty_answer_has_no_piece(pair: QueriedPair) -> None:
    answer = pair.one.ask(ECHO)
    pair.run()
    assert (answer.pieces, answer.failures) == ([], [None])


def test_a_large_answer_comes_in_pieces_as_it_is_taken(pair: QueriedPair) -> None:
    answer = pair.one.ask(LARGE, takes=False)
    pair.run()
    assert answer.pieces == [bytes(ANSWER_PIECE_SIZE)] * ANSWER_PIECES_AHEAD
    # A reader that takes nothing is not late, since the other node may not send.
    pair.run(2 * TIMEOUT_MS)
    assert not answer.failures
    assert answer.query is not None
    answer.query.take(2)
    pair.run()
    assert len(answer.pieces) == ANSWER_PIECES_AHEAD + 2
    answer.takes = True
    answer.query.take(1)
    pair.run()
    assert (len(answer.data), answer.failures) == (LARGE_SIZE, [None])


def test_an_answer_waits_for_a_link_that_takes_no_more(pair: QueriedPair) -> None:
    pair.to_two.send(CONTROL, 1, bytes(3_000_000))
    pair.to_two.send(CONTROL, 1, bytes(3_000_000))
    pair.to_one.send(CONTROL, 1, bytes(5_000_000))
    answers = [pair.one.ask(ECHO, b"a"), pair.two.ask(ECHO, b"b")]
    assert [answer.failures[0] for answer in answers if answer.failures] == [
        NotAnswered("node 'two' does not answer", is_away=True),
        NotAnswered("node 'one' does not answer", is_away=True),
    ]
    pair.run()
    large = pair.one.ask(LARGE)
    pair.run()
    assert len(large.data) == LARGE_SIZE


def test_a_refused_query_tells_why_in_one_line(pair: QueriedPair) -> None:
    answer = pair.one.ask(REFUSE)
    pair.run()
    (failure,) = answer.failures
    assert failure is not None
    assert failure.reason.startswith("no such thing!")
    assert len(failure.reason) == QUERY_REFUSAL_SIZE_MAX
    assert not failure.is_away


def test_an_operation_that_is_not_known_is_refused(pair: QueriedPair) -> None:
    answer = pair.one.ask(77)
    pair.run()
    assert answer.failures == [NotAnswered("operation 77 is not known here", is_away=False)]


def test_a_node_that_never_answers_is_given_up_after_the_time(pair: QueriedPair) -> None:
    answer = pair.one.ask(NEVER)
    pair.run(TIMEOUT_MS - 100)
    assert not answer.failures
    pair.run(200)
    assert answer.failures == [NotAnswered("node 'two' did not answer in time", is_away=False)]
    # The other node is told, and what it says then is not sent.
    assert pair.two.writers[0].is_over
    pair.two.writers[0].write(b"late")
    pair.two.writers[0].end()
    pair.run()
    assert answer.pieces == []


def test_a_node_that_is_silent_is_not_asked(pair: QueriedPair) -> None:
    pair.network.silence()
    pair.run(CLUSTER_SILENT_MS + 100)
    assert pair.one.ask(ECHO).failures == [NotAnswered("node 'two' does not answer", is_away=True)]


def test_a_node_without_a_link_is_away(pair: QueriedPair) -> None:
    failure = pair.one.queries.ask(9, ECHO, b"", Answer(), timeout_ms=TIMEOUT_MS)
    assert failure == NotAnswered("node 9 does not answer", is_away=True)


def test_a_lost_session_ends_queries_and_answers_at_once(pair: QueriedPair) -> None:
    answer = pair.one.ask(NEVER)
    pair.run()
    ended: list[bool] = []
    pair.two.writers[0].on_over = lambda: ended.append(True)
    pair.to_two.end_session(CONTROL, "for the test")
    assert answer.failures == [NotAnswered("node 'two' does not answer", is_away=True)]
    pair.run(CLUSTER_SESSION_MS)
    assert pair.two.writers[0].is_over
    assert ended == [True]
    again = pair.one.ask(ECHO, b"again")
    pair.run()
    assert again.pieces == [b"again"]


def test_a_cancelled_query_tells_nothing_more(pair: QueriedPair) -> None:
    answer = pair.one.ask(LARGE, takes=False)
    pair.run()
    assert answer.query is not None
    answer.query.cancel()
    answer.query.take(1)
    pair.run(TIMEOUT_MS)
    assert len(answer.pieces) == ANSWER_PIECES_AHEAD
    assert not answer.failures
    assert pair.two.writers[0].is_over


def test_a_writer_says_when_it_takes_more(pair: QueriedPair) -> None:
    answer = pair.one.ask(NEVER, takes=False)
    pair.run()
    (writer,) = pair.two.writers
    told: list[bool] = []
    writer.on_writable = lambda: told.append(writer.is_writable)
    writer.write(bytes(ANSWER_PIECE_SIZE * ANSWER_PIECES_AHEAD))
    assert writer.is_writable
    writer.write(bytes(ANSWER_PIECE_SIZE))
    assert not writer.is_writable
    told.clear()
    pair.run()
    assert answer.query is not None
    answer.query.take(1)
    pair.run()
    assert told == [True]


def test_queries_to_one_node_are_bounded_at_both_ends(pair: QueriedPair) -> None:
    for _ in range(QUERIES_MAX):
        assert not pair.one.ask(NEVER).failures
    reason = f"node 'two' has not answered {QUERIES_MAX} queries yet"
    assert pair.one.ask(ECHO).failures == [NotAnswered(reason, is_away=False)]
    pair.run()
    # A node that asks more nevertheless is refused.
    pair.to_two.send(CONTROL, QueryPayload.QUERY, encode_query(QueryHead(9_999, ECHO, 1, b"")))
    refusals: list[bytes] = []
    pair.one.receive = lambda link, kind, body: refusals.append(body)  # type: ignore[method-assign]
    pair.run()
    assert decode_answer(refusals[0]).data == f"{QUERIES_MAX} queries are being answered: ask later".encode()


def test_arguments_that_are_too_large_are_not_sent(pair: QueriedPair) -> None:
    assert not pair.one.ask(ECHO, bytes(QUERY_SIZE_MAX)).failures
    reason = f"a query of {QUERY_SIZE_MAX + 1} bytes is larger than {QUERY_SIZE_MAX}"
    assert pair.one.ask(ECHO, bytes(QUERY_SIZE_MAX + 1)).failures == [NotAnswered(reason, is_away=False)]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (QueryPayload.QUERY, b"short"),
        (QueryPayload.QUERY, b"\0\0\0\1\0\1\0\0"),
        (QueryPayload.QUERY, b"\0\0\0\1\0\1\0\1" + bytes(QUERY_SIZE_MAX + 1)),
        (QueryPayload.ANSWER, b"\0\0\0\1"),
        (QueryPayload.ANSWER, b"\0\0\0\1\4"),
        (QueryPayload.ANSWER, b"\0\0\0\1\2text"),
        (QueryPayload.ANSWER, b"\0\0\0\1\3" + bytes(QUERY_REFUSAL_SIZE_MAX + 1)),
        (QueryPayload.ANSWER, b"\0\0\0\1\0" + bytes(ANSWER_PIECE_SIZE + 1)),
        (QueryPayload.MORE, b"\0\0\0\1\0"),
        (QueryPayload.MORE, b"\0\0\0\1\0\0"),
        (QueryPayload.MORE, b"\0\0\0\1\xff\xff"),
        (QueryPayload.CANCEL, b"\0\0\0"),
        (QueryPayload.CANCEL, b"\0\0\0\0\0"),
    ],
)  # fmt: skip
def test_a_payload_that_is_none_is_refused(pair: QueriedPair, kind: int, body: bytes) -> None:
    with pytest.raises(PayloadError):
        pair.two.queries.received(pair.to_one, kind, body)


def test_pieces_that_nobody_asked_for_are_refused(pair: QueriedPair) -> None:
    answer = pair.one.ask(NEVER, takes=False)
    assert answer.query is not None
    body = encode_answer(answer.query.id, b"x", AnswerFlag(0))
    for _ in range(ANSWER_PIECES_AHEAD):
        pair.one.queries.received(pair.to_two, QueryPayload.ANSWER, body)
    with pytest.raises(PayloadError, match="not asked for"):
        pair.one.queries.received(pair.to_two, QueryPayload.ANSWER, body)


def test_more_pieces_than_a_node_may_ask_for_are_refused(pair: QueriedPair) -> None:
    pair.two.queries.received(pair.to_one, QueryPayload.QUERY, encode_query(QueryHead(1, NEVER, 8, b"")))
    with pytest.raises(PayloadError, match="beside 8"):
        pair.two.queries.received(pair.to_one, QueryPayload.MORE, encode_more(1, ANSWER_PIECES_MAX))


def test_a_query_with_the_number_of_another_is_refused(pair: QueriedPair) -> None:
    query = encode_query(QueryHead(1, NEVER, 8, b""))
    pair.two.queries.received(pair.to_one, QueryPayload.QUERY, query)
    with pytest.raises(PayloadError, match="query 1 is asked again"):
        pair.two.queries.received(pair.to_one, QueryPayload.QUERY, query)


def test_answers_and_demands_for_what_is_over_are_passed_over(pair: QueriedPair) -> None:
    queries = pair.two.queries
    queries.received(pair.to_one, QueryPayload.ANSWER, encode_answer(5, b"late", AnswerFlag.LAST))
    queries.received(pair.to_one, QueryPayload.MORE, encode_more(5, 1))
    queries.received(pair.to_one, QueryPayload.CANCEL, b"\0\0\0\5")
    queries.session_lost(pair.to_one)
