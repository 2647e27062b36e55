"""What the home of a stream answers to the nodes of its clients: sequences, offsets and statistics.

    question │ kind u8 │ offset u64 │ virtual host │ stream │ reference, each a size u16 and UTF-8
    answer   │ code u16 │ numbers u64 …

The node of the client has checked the permissions.
"""

import struct
from enum import IntEnum

from msgspec import Struct

from warren.errors import AmqpError
from warren.queues.capabilities import stream_queue
from warren.queues.stream import StreamQueue
from warren.session.server import Server
from warren.wire.streams.codes import ResponseCode

_QUESTION = struct.Struct(">BQ")
_SIZE = struct.Struct(">H")
_CODE = struct.Struct(">H")
_NUMBER = struct.Struct(">Q")
_TEXTS = 3


class QuestionKind(IntEnum):
    """What is asked; the numbers are those on the wire."""

    # The last number that a publisher has published: one number, 0 if there is none.
    SEQUENCE = 1
    # The stored offset of a consumer: one number, none if none is stored.
    OFFSET = 2
    # To store that offset.
    STORE_OFFSET = 3
    # Its first offset, the offset of its last chunk, and the last one that is committed; none if it is empty.
    STATISTICS = 4


class StreamQuestion(Struct, frozen=True, kw_only=True):
    """A question about a stream; `reference` is the name of a publisher or consumer."""

    kind: QuestionKind
    vhost: str
    stream: str
    reference: str = ""
    offset: int = 0


class StreamAnswer(Struct, frozen=True):
    """The answer: a code, and numbers if that is OK."""

    code: ResponseCode
    numbers: tuple[int, ...] = ()


def encode_question(question: StreamQuestion) -> bytes:
    """Encode a question."""
    parts = [_QUESTION.pack(question.kind, question.offset)]
    for text in (question.vhost, question.stream, question.reference):
        data = text.encode("utf-8", "surrogateescape")
        parts += (_SIZE.pack(len(data)), data)
    return b"".join(parts)


def decode_question(data: bytes) -> StreamQuestion:
    """Decode a question. Raises ValueError if it is malformed."""
    try:
        kind, offset = _QUESTION.unpack_from(data)
        at = _QUESTION.size
        texts = []
        for _ in range(_TEXTS):
            (size,) = _SIZE.unpack_from(data, at)
            at += _SIZE.size + size
            texts.append(data[at - size : at].decode("utf-8", "surrogateescape"))
    except struct.error as error:
        raise ValueError(f"a malformed question about a stream: {error}") from None
    if at != len(data):
        raise ValueError("a malformed question about a stream: its size is wrong")
    vhost, stream, reference = texts
    return StreamQuestion(
        kind=QuestionKind(kind), vhost=vhost, stream=stream, reference=reference, offset=offset
    )


def encode_answer(answer: StreamAnswer) -> bytes:
    """Encode an answer."""
    return _CODE.pack(answer.code) + b"".join(map(_NUMBER.pack, answer.numbers))


def decode_answer(data: bytes) -> StreamAnswer:
    """Decode an answer. Raises ValueError if it is malformed."""
    try:
        (code,) = _CODE.unpack_from(data)
        numbers = tuple(number for (number,) in _NUMBER.iter_unpack(data[_CODE.size :]))
    except struct.error as error:
        raise ValueError(f"a malformed answer about a stream: {error}") from None
    return StreamAnswer(ResponseCode(code), numbers)


def answer_of(stream: StreamQueue, question: StreamQuestion) -> StreamAnswer:
    """What `stream`, which is on this node, says to `question`."""
    match question.kind:
        case QuestionKind.SEQUENCE:
            return StreamAnswer(ResponseCode.OK, (stream.producer_sequence(question.reference) or 0,))
        case QuestionKind.OFFSET:
            offset = stream.stored_offset(question.reference)
            return StreamAnswer(ResponseCode.OK, () if offset is None else (offset,))
        case QuestionKind.STORE_OFFSET:
            stream.store_offset(question.reference, question.offset)
            return StreamAnswer(ResponseCode.OK)
        case QuestionKind.STATISTICS:
            log = stream.log
            last = log.last_chunk()
            return StreamAnswer(ResponseCode.OK, () if last < 0 else (log.first, last, log.committed - 1))


async def answer_here(server: Server, question: StreamQuestion) -> StreamAnswer:
    """What this node answers to `question` of another one, which may have heard of the stream before."""
    answer = _found(server, question)
    services = server.vhost_services.get(question.vhost)
    if answer.code == ResponseCode.STREAM_DOES_NOT_EXIST and services is not None:
        check = services.refusal_check
        if await check.is_outdated(check.index):
            return _found(server, question)
    return answer


def _found(server: Server, question: StreamQuestion) -> StreamAnswer:
    services = server.vhost_services.get(question.vhost)
    if services is None:
        return StreamAnswer(ResponseCode.STREAM_NOT_AVAILABLE)
    queue = services.vhost.queues.get(question.stream)
    if queue is None:
        return StreamAnswer(ResponseCode.STREAM_DOES_NOT_EXIST)
    stream = stream_queue(queue)
    if stream is None:
        return StreamAnswer(ResponseCode.STREAM_NOT_AVAILABLE)
    try:
        return answer_of(stream, question)
    except AmqpError:
        return StreamAnswer(ResponseCode.INTERNAL_ERROR)
