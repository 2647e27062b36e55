"""Streams over HTTP: their offsets, and their messages as rows of Arrow, from any offset or time."""

from collections.abc import Iterator
from typing import Annotated, TypedDict

from aiohttp import web

from warren.arrow.message_rows import MessageRows, RowFilter, rows_of_chunk
from warren.management.api.messages import readable_queue
from warren.management.api.peek import channels_of, query_number
from warren.management.api.queue_rows import (
    NUMBER_MAX,
    ROWS,
    RowFilterQuery,
    limit_rows,
    row_filter,
    row_format,
)
from warren.management.arrow_responses import CONTENT_TYPE, RowsGone
from warren.management.auth import login_vhosts, user_of
from warren.management.cluster_lists import reply_cluster_list
from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.listing import Listing
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.operation import (
    ErrorShape,
    Operation,
    PageQuery,
    doc,
    documented,
    documented_as,
    paged,
)
from warren.management.replies import RequestRefused, error_reply, reply
from warren.management.request_context import request_context
from warren.management.views.consumers import consumers_of
from warren.management.views.streams import (
    ListedStreamShape,
    StreamClientIndex,
    StreamClientsShape,
    StreamShape,
    listed_stream_view,
    stream_clients_view,
    stream_view,
    streams_in,
)
from warren.queues.capabilities import stream_queue
from warren.queues.stream import StreamQueue

# The response header with the offset from which to continue.
_NEXT = "warren-next-offset"


class StreamQuery(TypedDict, total=False):
    """A time whose offset is returned."""

    timestamp: Annotated[
        int,
        doc("Unix time in ms; `offset` in the response is that of the first chunk written since."),
    ]


class RangeQuery(RowFilterQuery, total=False):
    """Which messages of a stream are returned."""

    start: Annotated[int, doc("Offset of the first message to return.")]
    end: Annotated[int, doc("Offset after the last message to return.")]
    epoch: Annotated[str, doc("The expected epoch: 409 if the stream was deleted and declared again since.")]


deprecate(RangeQuery, octets_max="max_bytes")


class OffsetGoneShape(ErrorShape):
    """The requested offset has been deleted; `first_offset` is the oldest one that is left."""

    first_offset: int


deprecate(OffsetGoneShape, first="first_offset")


@documented(query=PageQuery, response=paged(ListedStreamShape))
async def streams(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the streams of a virtual host, or of all in which the user has permissions."""
    if "vhost" in request.match_info:
        names = [vhost_in_path(request, node).name]
    else:
        names = login_vhosts(node, user_of(request))
    alive = [node.server.vhost_services[name].vhost for name in names if name in node.server.vhost_services]
    clients = StreamClientIndex(node)
    listing: Listing[StreamQueue] = Listing(
        records=[queue for vhost in alive for queue in streams_in(node, vhost)],
        view=lambda queue: listed_stream_view(queue, clients),
        columns={
            "name": lambda queue: queue.name,
            "vhost": lambda queue: queue.vhost_name,
            "first_offset": lambda queue: queue.log.first,
            "committed_offset": lambda queue: queue.log.committed,
            "messages": lambda queue: queue.message_count,
            "bytes": lambda queue: queue.log.byte_count,
            "segments": lambda queue: len(queue.log.segments),
        },
        is_paged=True,
        identity=lambda queue: f"{queue.vhost_name}\0{queue.name}",
    )
    return await reply_cluster_list(request, node, listing)


@documented(query=StreamQuery, response=StreamShape)
def stream(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the offsets and segments of a stream; a stream declared again has another `epoch`."""
    queue = _named(request, node)
    view = stream_view(queue)
    if "timestamp" in request.query:
        view["offset"] = queue.log.offset_at(query_number(request, "timestamp", 0, NUMBER_MAX))
    return reply(view)


@documented(response=StreamClientsShape)
def clients(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the consumers of a stream with their lag, its publishers, and its stored offsets and sequences."""
    queue = _named(request, node)
    consuming = [one for opened in channels_of(node, queue) for one in consumers_of(opened)]
    consuming = [one for one in consuming if one[2].queue is queue]
    return reply(stream_clients_view(queue, consuming, StreamClientIndex(node)))


@documented_as(
    Operation(
        query=RangeQuery,
        responses={**ROWS, 409: ErrorShape, 410: OffsetGoneShape},
        response_type=CONTENT_TYPE,
    )
)
async def read(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Read committed messages of a stream by offset, as rows; the same offsets give the same rows.

    The header `warren-next-offset` is the offset to continue from; it is absent if `max_bytes` is given.
    """
    queue = _named(request, node)
    log = queue.log
    epoch = request.query.get("epoch")
    if epoch is not None and epoch != queue.epoch:
        raise RequestRefused(
            error_reply(
                409,
                "conflict",
                f"stream '{queue.name}' was deleted and declared again: its epoch is {queue.epoch}",
            )
        )
    start = query_number(request, "start", log.first, NUMBER_MAX)
    end = min(query_number(request, "end", NUMBER_MAX, NUMBER_MAX), log.committed)
    bytes_max = query_number(request, "max_bytes", NUMBER_MAX, NUMBER_MAX)
    wanted = row_filter(request)
    columns, compression = row_format(request)
    encoder = (await node.arrow_responses.encoder())(queue.name, columns, compression)
    source = limit_rows(_range(queue, start, end, wanted), NUMBER_MAX, bytes_max)
    headers = {_NEXT: str(max(start, end))} if bytes_max == NUMBER_MAX else None
    return await node.arrow_responses.answer(request, encoder, source, headers)


def _range(queue: StreamQueue, start: int, end: int, wanted: RowFilter) -> Iterator[MessageRows]:
    log = queue.log
    cursor = log.cursor()
    while True:
        if queue.is_deleted:
            raise RowsGone(f"stream '{queue.name}' is deleted", **_gone(end))
        if start < log.first:
            raise RowsGone(
                f"the messages before offset {log.first} were deleted by retention", **_gone(log.first)
            )
        if start >= end:
            return
        found = cursor.read(start, end) or log.read(start)
        if found is None:
            return
        yield rows_of_chunk(queue.name, found, start, end, wanted=wanted)
        start = max(found.end, start + 1)


def _gone(first: int) -> dict[str, object]:
    return with_deprecated(OffsetGoneShape, {"first_offset": first})


def _named(request: web.Request, node: ManagedNode) -> StreamQueue:
    name = request.match_info["queue"]
    queue = stream_queue(readable_queue(request_context(request, node), name))
    if queue is None:
        raise RequestRefused(error_reply(404, "not_found", f"queue '{name}' is not a stream"))
    return queue
