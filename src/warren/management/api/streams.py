"""Streams over HTTP: where they begin and end, and their messages as rows of Arrow, any range, any time."""

from collections.abc import Iterator
from typing import Annotated, TypedDict

from aiohttp import web

from warren.management.api.messages import readable_queue
from warren.management.api.peek import channels_of, number_asked
from warren.management.api.rows import NUMBER_MAX, ROWS, SomeQuery, cut, form_asked, wanted_asked
from warren.management.arrow.readers import CONTENT_TYPE, RowsGone
from warren.management.arrow.rows import Rows, Wanted, rows_of_chunk
from warren.management.asking import asking
from warren.management.auth import login_vhosts, user_of
from warren.management.describing import (
    Description,
    PageQuery,
    Refusal,
    described,
    described_as,
    meant,
    paged,
)
from warren.management.listing import Listing, reply_list
from warren.management.managed import Managed
from warren.management.proposing import vhost_of
from warren.management.replies import Refused, refused, reply
from warren.management.views.consumers import consumers_of
from warren.management.views.streams import (
    Clients,
    ClientsShape,
    ListedStreamShape,
    StreamShape,
    clients_facts,
    listed_facts,
    stream_facts,
    streams_in,
)
from warren.queues.stream import StreamQueue

# Where the answer says with which offset to go on.
_NEXT = "warren-next-offset"


class StreamQuery(TypedDict, total=False):
    """What else is asked of a stream."""

    timestamp: Annotated[int, meant("Milliseconds: `offset` is the first that was written then or later")]


class RangeQuery(SomeQuery, total=False):
    """Which messages of a stream are sent."""

    start: Annotated[int, meant("The offset of the first")]
    end: Annotated[int, meant("Where to end: the offset behind the last")]
    epoch: Annotated[str, meant("Only if the stream is the one that had this epoch")]


class PassedShape(Refusal):
    """What was asked for has been given up; `first` is there still."""

    first: int


@described(query=PageQuery, gives=paged(ListedStreamShape))
async def streams(request: web.Request, node: Managed) -> web.StreamResponse:
    """The streams of all virtual hosts that the user may work in, or of one."""
    if "vhost" in request.match_info:
        names = [vhost_of(request, node).name]
    else:
        names = login_vhosts(node, user_of(request))
    alive = [node.server.domains[name].vhost for name in names if name in node.server.domains]
    clients = Clients(node)
    listing: Listing[StreamQueue] = Listing(
        records=[queue for vhost in alive for queue in streams_in(node, vhost)],
        view=lambda queue: listed_facts(queue, clients),
        columns={
            "name": lambda queue: queue.name,
            "vhost": lambda queue: queue.vhost_name,
            "first": lambda queue: queue.log.first,
            "committed": lambda queue: queue.log.committed,
            "messages": lambda queue: queue.message_count,
            "octets": lambda queue: queue.log.octets,
            "segments": lambda queue: len(queue.log.segments),
        },
        is_paged=True,
    )
    return await reply_list(request, listing)


@described(query=StreamQuery, gives=StreamShape)
def stream(request: web.Request, node: Managed) -> web.StreamResponse:
    """Where a stream begins and ends, and its files. Another of the same name has another `epoch`."""
    queue = _named(request, node)
    view = stream_facts(queue)
    if "timestamp" in request.query:
        view["offset"] = queue.log.offset_at(number_asked(request, "timestamp", 0, NUMBER_MAX))
    return reply(view)


@described(gives=ClientsShape)
def clients(request: web.Request, node: Managed) -> web.StreamResponse:
    """Who reads a stream, and how far behind; who publishes to it; and what it remembers of both."""
    queue = _named(request, node)
    consuming = [one for opened in channels_of(node, queue) for one in consumers_of(opened)]
    consuming = [one for one in consuming if one[2].queue is queue]
    return reply(clients_facts(queue, consuming, Clients(node)))


@described_as(
    Description(query=RangeQuery, answers={**ROWS, 409: Refusal, 410: PassedShape}, answer_type=CONTENT_TYPE)
)
async def read(request: web.Request, node: Managed) -> web.StreamResponse:
    """The messages of a stream at some offsets as rows: those that are safe, and the same each time.

    The header `warren-next-offset` says where to go on, unless `octets_max` ends the rows before.
    """
    queue = _named(request, node)
    log = queue.log
    epoch = request.query.get("epoch")
    if epoch is not None and epoch != queue.epoch:
        raise Refused(refused(409, "conflict", f"stream '{queue.name}' is another one: {queue.epoch}"))
    start = number_asked(request, "start", log.first, NUMBER_MAX)
    end = min(number_asked(request, "end", NUMBER_MAX, NUMBER_MAX), log.committed)
    octets_max = number_asked(request, "octets_max", NUMBER_MAX, NUMBER_MAX)
    wanted = wanted_asked(request)
    columns, compression = form_asked(request)
    encoder = (await node.readers.encoder())(queue.name, columns, compression)
    source = cut(_range(queue, start, end, wanted), NUMBER_MAX, octets_max)
    headers = {_NEXT: str(max(start, end))} if octets_max == NUMBER_MAX else None
    return await node.readers.answer(request, encoder, source, headers)


def _range(queue: StreamQueue, start: int, end: int, wanted: Wanted) -> Iterator[Rows]:
    log = queue.log
    cursor = log.cursor()
    while True:
        if queue.is_deleted:
            raise RowsGone(f"stream '{queue.name}' is deleted", first=end)
        if start < log.first:
            raise RowsGone(f"what is before offset {log.first} has been given up", first=log.first)
        if start >= end:
            return
        found = cursor.read(start, end) or log.read(start)
        if found is None:
            return
        yield rows_of_chunk(queue.name, found, start, end, wanted=wanted)
        start = max(found.end, start + 1)


def _named(request: web.Request, node: Managed) -> StreamQueue:
    name = request.match_info["queue"]
    queue = readable_queue(asking(request, node), name)
    if not isinstance(queue, StreamQueue):
        raise Refused(refused(404, "not_found", f"queue '{name}' is no stream"))
    return queue
