"""Ready messages of a queue as rows of an Arrow stream over HTTP; the queue is not changed."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypedDict

from aiohttp import web

from warren.arrow.columns import parse_columns
from warren.arrow.message_rows import MessageRows, RowFilter, rows_of_messages
from warren.limits import ARROW_BROWSED_PER_TURN, NAME_SIZE_MAX
from warren.management.api.messages import readable_queue, restored
from warren.management.api.peek import query_number
from warren.management.arrow_responses import CONTENT_TYPE
from warren.management.deprecated_fields import deprecate
from warren.management.managed_node import ManagedNode
from warren.management.operation import ErrorShape, Operation, doc, documented_as
from warren.management.replies import bad_request
from warren.management.request_context import request_context
from warren.queues.local import LocalQueue
from warren.vhost.queue_scan import QueueScan

_COMPRESSIONS = ("zstd", "lz4")
# By default a range begins at the first row and has no limit of rows.
NUMBER_MAX = (1 << 63) - 1


class RowFormatQuery(TypedDict, total=False):
    """The columns and the compression of rows."""

    columns: Annotated[
        str, doc("Columns to return, separated by commas: `offset,routing_key,body`; all by default.")
    ]
    compression: Annotated[Literal["zstd", "lz4"], doc("Compression of the columns; none by default.")]


class RowFilterQuery(RowFormatQuery, total=False):
    """Which rows are returned."""

    max_bytes: Annotated[
        int, doc("Maximum bytes of all bodies together; one row is returned even if it is larger.")
    ]
    exchange: Annotated[
        list[str], doc("Only messages that were published to this exchange; may be repeated.")
    ]
    routing_key: Annotated[
        list[str], doc("Only messages that were published with this routing key; may be repeated.")
    ]


deprecate(RowFilterQuery, octets_max="max_bytes")


class BrowseQuery(RowFilterQuery, total=False):
    """Which messages of a queue are returned."""

    first: Annotated[int, doc("Position from which to read.")]
    count: Annotated[int, doc("Maximum number of rows to return.")]


deprecate(BrowseQuery, octets_max="max_bytes")


# The response is an Arrow stream, which JSON schema does not describe.
ROWS = {200: Any, 501: ErrorShape}


@documented_as(Operation(query=BrowseQuery, responses=ROWS, response_type=CONTENT_TYPE))
async def browse(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Read the ready messages of a queue in order, as rows, without removing them.

    Messages published after the request are not included. `offset` is the position of a message.
    """
    context = request_context(request, node)
    name = request.match_info["queue"]
    queue = await restored(readable_queue(context, name))
    first = query_number(request, "first", 0, NUMBER_MAX)
    count = query_number(request, "count", NUMBER_MAX, NUMBER_MAX)
    bytes_max = query_number(request, "max_bytes", NUMBER_MAX, NUMBER_MAX)
    wanted = row_filter(request)
    columns, compression = row_format(request)
    encoder = (await node.arrow_responses.encoder())(name, columns, compression)
    source = limit_rows(_waiting(queue, first, wanted), count, bytes_max)
    return await node.arrow_responses.answer(request, encoder, source)


def _waiting(queue: LocalQueue, first: int, wanted: RowFilter) -> Iterator[MessageRows]:
    queue_scan = QueueScan(queue, first)
    while not queue_scan.is_over:
        found = queue_scan.next_messages(ARROW_BROWSED_PER_TURN)
        messages = [(peeked.place, peeked.message, peeked.attempts > 0) for peeked in found]
        yield rows_of_messages(queue.name, messages, wanted)


def limit_rows(source: Iterator[MessageRows], count: int, bytes_max: int) -> Iterator[MessageRows]:
    """The first `count` rows of `source`, of at most `bytes_max` bytes together, but at least one row."""
    has_any = False
    for rows in source:
        kept = rows if rows.count <= count else rows.part(0, count)
        kept = kept.within(bytes_max)
        if has_any and kept.byte_count > bytes_max:
            return
        yield kept
        has_any = has_any or kept.count > 0
        count -= kept.count
        bytes_max -= kept.byte_count
        if not count or kept.count < rows.count:
            return


def row_format(request: web.Request) -> tuple[tuple[str, ...], str | None]:
    """The columns and the compression in the query of `request`."""
    compression = request.query.get("compression")
    if compression is not None and compression not in _COMPRESSIONS:
        raise bad_request(f"compression must be {' or '.join(_COMPRESSIONS)}, not '{compression[:40]}'")
    try:
        return parse_columns(request.query.get("columns")), compression
    except ValueError as error:
        raise bad_request(str(error)) from None


def row_filter(request: web.Request) -> RowFilter:
    """The filter by exchanges and routing keys in the query of `request`."""
    return RowFilter(exchanges=_names(request, "exchange"), routing_keys=_names(request, "routing_key"))


def _names(request: web.Request, name: str) -> frozenset[bytes] | None:
    given = [text.encode("utf-8", "surrogateescape") for text in request.query.getall(name, [])]
    if any(len(data) > NAME_SIZE_MAX for data in given):
        raise bad_request(f"{name} is too long")
    return frozenset(given) or None
