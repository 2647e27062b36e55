"""The payloads of queries between nodes, on the control connection of a link.

    QUERY  │ query u32 │ operation u16 │ pieces u16 │ arguments
    ANSWER │ query u32 │ flags u8 │ a piece of the answer, or the text of a refusal
    MORE   │ query u32 │ pieces u16
    CANCEL │ query u32

A query has a number of its session. The answering node sends as many pieces as it was asked for.
"""

import struct
from enum import IntEnum, IntFlag

from msgspec import Struct

from warren.cluster.node_link import PayloadError
from warren.limits_cluster import (
    ANSWER_PIECE_SIZE,
    ANSWER_PIECES_MAX,
    QUERY_REFUSAL_SIZE_MAX,
    QUERY_SIZE_MAX,
)

_QUERY = struct.Struct(">IHH")
_ANSWER = struct.Struct(">IB")
_MORE = struct.Struct(">IH")
_CANCEL = struct.Struct(">I")


class QueryPayload(IntEnum):
    """The kinds of payloads of queries; the numbers are those on the wire, beside `MetadataPayload`."""

    QUERY = 16
    ANSWER = 17
    MORE = 18
    CANCEL = 19


class AnswerFlag(IntFlag):
    """What a piece of an answer is."""

    # No piece follows.
    LAST = 1
    # The query is not answered; the piece is a text that says why.
    REFUSED = 2


class QueryHead(Struct, frozen=True):
    """The payload QUERY."""

    id: int
    operation: int
    pieces: int
    arguments: bytes


class AnswerPiece(Struct, frozen=True):
    """The payload ANSWER."""

    id: int
    is_last: bool
    # True if `data` is the text of a refusal.
    is_refusal: bool
    data: bytes


def encode_query(query: QueryHead) -> bytes:
    """The payload of `query`."""
    assert len(query.arguments) <= QUERY_SIZE_MAX
    return _QUERY.pack(query.id, query.operation, query.pieces) + query.arguments


def decode_query(body: bytes) -> QueryHead:
    """The query in a payload; PayloadError if there is none."""
    if not _QUERY.size <= len(body) <= _QUERY.size + QUERY_SIZE_MAX:
        raise PayloadError(f"a QUERY has {len(body)} bytes")
    id, operation, pieces = _QUERY.unpack_from(body)
    if not 0 < pieces <= ANSWER_PIECES_MAX:
        raise PayloadError(f"a QUERY asks for {pieces} pieces")
    return QueryHead(id, operation, pieces, body[_QUERY.size :])


def encode_answer(id: int, data: bytes, flags: AnswerFlag) -> bytes:
    """The payload with a piece of the answer to query `id`."""
    assert len(data) <= ANSWER_PIECE_SIZE
    return _ANSWER.pack(id, flags) + data


def encode_refusal(id: int, reason: str) -> bytes:
    """The payload that says that query `id` is not answered, and why."""
    text = reason.encode("utf-8", "replace")[:QUERY_REFUSAL_SIZE_MAX]
    return encode_answer(id, text, AnswerFlag.LAST | AnswerFlag.REFUSED)


def decode_answer(body: bytes) -> AnswerPiece:
    """The piece in a payload; PayloadError if there is none."""
    if not _ANSWER.size <= len(body) <= _ANSWER.size + ANSWER_PIECE_SIZE:
        raise PayloadError(f"an ANSWER has {len(body)} bytes")
    id, number = _ANSWER.unpack_from(body)
    flags = AnswerFlag(number & (AnswerFlag.LAST | AnswerFlag.REFUSED))
    is_last, is_refusal = AnswerFlag.LAST in flags, AnswerFlag.REFUSED in flags
    data = body[_ANSWER.size :]
    if flags != number or (is_refusal and (not is_last or len(data) > QUERY_REFUSAL_SIZE_MAX)):
        raise PayloadError(f"an ANSWER has the flags {number} and {len(data)} bytes")
    return AnswerPiece(id, is_last, is_refusal, data)


def encode_more(id: int, pieces: int) -> bytes:
    """The payload that asks for more pieces of the answer to query `id`."""
    return _MORE.pack(id, pieces)


def decode_more(body: bytes) -> tuple[int, int]:
    """The number of a query, and how many more pieces are asked for; PayloadError if there are none."""
    if len(body) != _MORE.size:
        raise PayloadError(f"a MORE has {len(body)} bytes")
    id, pieces = _MORE.unpack(body)
    if not 0 < pieces <= ANSWER_PIECES_MAX:
        raise PayloadError(f"a MORE asks for {pieces} pieces")
    return id, pieces


def encode_cancel(id: int) -> bytes:
    """The payload that says that the answer to query `id` is not needed any more."""
    return _CANCEL.pack(id)


def decode_cancel(body: bytes) -> int:
    """The number of the query in a payload; PayloadError if there is none."""
    if len(body) != _CANCEL.size:
        raise PayloadError(f"a CANCEL has {len(body)} bytes")
    (id,) = _CANCEL.unpack(body)
    return int(id)
