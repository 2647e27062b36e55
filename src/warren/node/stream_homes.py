"""Asks the homes of streams on behalf of clients of the stream protocol, and answers other nodes."""

from warren.client.answer import Answer
from warren.cluster.answer_writer import AnswerWriter
from warren.cluster.node_queries import NodeQueries, NotAnswered
from warren.limits_cluster import QUERY_MS
from warren.model.coroutine_driver import drive
from warren.session.server import Server
from warren.session.streams.stream_questions import (
    StreamAnswer,
    StreamQuestion,
    answer_here,
    decode_answer,
    decode_question,
    encode_answer,
    encode_question,
)

# The number of the operation of `NodeQueries`.
STREAM_QUESTION = 2


class StreamHomes:
    """The homes of streams on other nodes, as this node asks them."""

    def __init__(self, queries: NodeQueries) -> None:
        self._queries = queries

    async def ask(self, home: int, question: StreamQuestion) -> StreamAnswer | None:
        """The answer of node `home` to `question`; None if it gives none in time."""
        answer = _WholeAnswer()
        asked = self._queries.ask(
            home, STREAM_QUESTION, encode_question(question), answer, timeout_ms=QUERY_MS
        )
        if isinstance(asked, NotAnswered):
            return None
        data = await answer.whole
        if data is None:
            return None
        try:
            return decode_answer(data)
        except ValueError:
            return None


class StreamQuestionServer:
    """Answers the questions of other nodes about streams of this one."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def answer(self, writer: AnswerWriter, arguments: bytes) -> None:
        """Begin to answer an encoded question: operation STREAM_QUESTION."""
        drive(self._answer(writer, arguments))

    async def _answer(self, writer: AnswerWriter, arguments: bytes) -> None:
        try:
            question = decode_question(arguments)
        except ValueError as error:
            writer.refuse(str(error))
            return
        writer.end(encode_answer(await answer_here(self._server, question)))


class _WholeAnswer:
    """Collects an answer: implements port `AnswerListener`."""

    def __init__(self) -> None:
        # Completes with the bytes, or None if there is no complete answer.
        self.whole: Answer[bytes | None] = Answer()
        self._pieces: list[bytes] = []

    def answered(self, piece: bytes) -> None:
        """Take a piece."""
        self._pieces.append(piece)

    def ended(self, failure: NotAnswered | None) -> None:
        """There is no other piece."""
        self.whole.complete(b"".join(self._pieces) if failure is None else None)
