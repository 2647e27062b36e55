"""Requests that this node makes at others, for a client of its own: whole answers, and relayed ones.

A node that does not answer is named in the header `warren-nodes-missing` of the response.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from aiohttp import web
from msgspec import Struct

from warren.limits_cluster import (
    ANSWER_PIECE_SIZE,
    ANSWER_SIZE_MAX,
    ANSWERS_SIZE_MAX,
    QUERY_ACTION_MS,
    QUERY_MS,
)
from warren.management.auth import user_of
from warren.management.carried_request import (
    CARRIED,
    AnswerHead,
    CarriedRequest,
    CarriedRequestError,
    ListPart,
    carried_user,
    encode_request,
    split_head,
)
from warren.management.cluster_nodes import AnswerPieces, NodeNotAnswering
from warren.management.managed_node import ManagedNode
from warren.management.operation import JSON, OPERATION, Operation
from warren.management.replies import WHOLE, break_off, error_reply
from warren.management.request_body import read_bytes
from warren.management.web_interface import PREFIX
from warren.metadata.records import MemberRecord

T = TypeVar("T")

# The response header that names the nodes without which a response was made.
NODES_MISSING = "warren-nodes-missing"
# Headers of a request that its handler reads.
_REQUEST_HEADERS = ("accept", "content-type", "x-reason")
# Headers of an answer that belong to a connection, or are set by this node.
_OWN_HEADERS = frozenset(("connection", "content-encoding", "date", "server", "transfer-encoding"))
_READ = ("GET", "HEAD")


class NodeAnswer(Struct, frozen=True):
    """The whole answer of a node."""

    head: AnswerHead
    body: bytes


def other_nodes(request: web.Request, node: ManagedNode) -> list[MemberRecord]:
    """The other members of the cluster; none for a request that has come from one of them."""
    if node.cluster is None or CARRIED in request:
        return []
    own = node.cluster.own_id
    return [member for member in node.metadata.members.by_id.values() if member.id != own]


def carried(
    request: web.Request,
    node: ManagedNode,
    *,
    path: str | None = None,
    body: bytes = b"",
    part: ListPart = ListPart.NONE,
    names: Sequence[str] = (),
) -> CarriedRequest:
    """`request` as it is sent to another node, for another `path` if one is given."""
    raw = path if path is not None else request.rel_url.raw_path_qs.removeprefix(request.app[PREFIX])
    headers = {name: request.headers[name] for name in _REQUEST_HEADERS if name in request.headers}
    return CarriedRequest(
        method=request.method,
        path=raw,
        user=carried_user(node.metadata, user_of(request), request.match_info.get("vhost")),
        headers=headers,
        body=body,
        part=part,
        names=tuple(names),
    )


async def fetch(node: ManagedNode, to: MemberRecord, asked: CarriedRequest) -> NodeAnswer:
    """The whole answer of another node; raises NodeNotAnswering, also if it is too large."""
    pieces = _ask(node, to, asked)
    try:
        head, body = await _head(to, pieces)
        return NodeAnswer(head, await _whole(node, to, body, pieces))
    finally:
        pieces.close()


async def relay(request: web.Request, node: ManagedNode, to: MemberRecord) -> web.StreamResponse:
    """The response to `request`, which another node handles. Raises NodeNotAnswering."""
    asked = carried(request, node, body=await read_bytes(request))
    operation: Operation = request[OPERATION]
    # Rows are made by a library that takes a while to load.
    pieces = _ask(node, to, asked, is_slow=operation.response_type != JSON)
    try:
        head, body = await _head(to, pieces)
        if not head.is_stream or WHOLE in request:
            return respond(NodeAnswer(head, await _whole(node, to, body, pieces)))
        response = web.StreamResponse(status=head.status, headers=_headers(head))
        await response.prepare(request)
        await _relay_body(request, response, body, pieces)
        return response
    finally:
        pieces.close()


def respond(answer: NodeAnswer) -> web.Response:
    """The answer of a node as the response of this one."""
    return web.Response(status=answer.head.status, headers=_headers(answer.head), body=answer.body)


async def gather_answers(
    request: web.Request, members: Sequence[MemberRecord], answers: Sequence[Awaitable[T]]
) -> list[tuple[MemberRecord, T]]:
    """What the `members` have answered, all asked at once; those that have not are noted in the response."""
    results = await asyncio.gather(*answers, return_exceptions=True)
    found: list[tuple[MemberRecord, T]] = []
    for member, result in zip(members, results, strict=True):
        if isinstance(result, NodeNotAnswering):
            note_missing(request, member.name)
        elif isinstance(result, BaseException):
            raise result
        else:
            found.append((member, result))
    return found


def note_missing(request: web.Request, name: str) -> None:
    """Name a node in the response that it is made without."""
    missing = request.get(NODES_MISSING, "")
    if name not in missing.split(", "):
        request[NODES_MISSING] = f"{missing}, {name}" if missing else name


def not_answering(error: NodeNotAnswering) -> web.Response:
    """The response to a request that only a node could handle that has not answered."""
    return error_reply(503, "service_unavailable", str(error))


def _ask(
    node: ManagedNode, to: MemberRecord, asked: CarriedRequest, *, is_slow: bool = False
) -> AnswerPieces:
    assert node.cluster is not None
    if not to.is_up:
        raise NodeNotAnswering(f"node '{to.name}' is down", is_away=True)
    timeout = QUERY_MS if asked.method in _READ and not is_slow else QUERY_ACTION_MS
    return node.cluster.ask(to.id, encode_request(asked), timeout_ms=timeout)


async def _relay_body(
    request: web.Request, response: web.StreamResponse, body: bytes, pieces: AnswerPieces
) -> None:
    """Send `body` and what follows as fast as the client reads; the connection is broken if it ends early."""
    try:
        if body:
            await response.write(body)
        while (piece := await pieces.next_piece()) is not None:
            await response.write(piece)
    except NodeNotAnswering:
        break_off(request)


def _headers(head: AnswerHead) -> dict[str, str]:
    return {name: value for name, value in head.headers.items() if name.lower() not in _OWN_HEADERS}


async def _head(to: MemberRecord, pieces: AnswerPieces) -> tuple[AnswerHead, bytes]:
    """The head of an answer, and what came of its body with it."""
    data = b""
    while (piece := await pieces.next_piece()) is not None:
        data += piece
        try:
            found = split_head(data)
        except CarriedRequestError:
            break
        if found is not None:
            return found
        if len(data) > ANSWER_PIECE_SIZE:
            break
    raise NodeNotAnswering(f"the answer of node '{to.name}' cannot be used", is_away=False)


async def _whole(node: ManagedNode, to: MemberRecord, body: bytes, pieces: AnswerPieces) -> bytes:
    """The rest of an answer, which begins with `body`."""
    held = node.held_answers
    size = 0
    data: list[bytes] = []
    piece: bytes | None = body
    try:
        while piece is not None:
            data.append(piece)
            size += len(piece)
            held.size += len(piece)
            if size > ANSWER_SIZE_MAX or held.size > ANSWERS_SIZE_MAX:
                reason = f"the answer of node '{to.name}' is too large: request a page"
                raise NodeNotAnswering(reason, is_away=False, is_too_large=True)
            piece = await pieces.next_piece()
    finally:
        held.size -= size
    return b"".join(data)
