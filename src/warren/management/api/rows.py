"""Messages as rows of Arrow over HTTP: those that wait in a queue, which stay as they are."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypedDict

from aiohttp import web

from warren.limits import ARROW_BROWSED_PER_TURN, NAME_SIZE_MAX
from warren.management.api.messages import readable_queue
from warren.management.api.peek import number_asked
from warren.management.arrow.columns import columns_asked
from warren.management.arrow.readers import CONTENT_TYPE
from warren.management.arrow.rows import Rows, Wanted, rows_of_messages
from warren.management.asking import asking
from warren.management.describing import Description, Refusal, described_as, meant
from warren.management.managed import Managed
from warren.management.replies import bad_request
from warren.queues.local import LocalQueue
from warren.vhost.looking import Looking

_COMPRESSIONS = ("zstd", "lz4")
# As many as there are, and from the first on, where nothing is said.
NUMBER_MAX = (1 << 63) - 1


class FormQuery(TypedDict, total=False):
    """How rows are sent."""

    columns: Annotated[str, meant("Columns of the rows: `offset,routing_key,body`; all if nothing is said")]
    compression: Annotated[Literal["zstd", "lz4"], meant("How the columns are compressed")]


class SomeQuery(FormQuery, total=False):
    """Which rows are sent."""

    octets_max: Annotated[int, meant("Octets of the bodies of all rows; there is one row at least")]
    exchange: Annotated[list[str], meant("Only what was published to one of these")]
    routing_key: Annotated[list[str], meant("Only what was published with one of these")]


class BrowseQuery(SomeQuery, total=False):
    """Which messages of a queue are sent."""

    first: Annotated[int, meant("A place: the first that is looked at")]
    count: Annotated[int, meant("How many rows at most")]


# No JSON: nothing says more of it than its type.
ROWS = {200: Any, 501: Refusal}


@described_as(Description(query=BrowseQuery, answers=ROWS, answer_type=CONTENT_TYPE))
async def browse(request: web.Request, node: Managed) -> web.StreamResponse:
    """The messages that wait in a queue, in order, as rows; nothing changes by it.

    What comes after the request is not among them. `offset` is the place of a message.
    """
    asks = asking(request, node)
    name = request.match_info["queue"]
    queue = readable_queue(asks, name)
    first = number_asked(request, "first", 0, NUMBER_MAX)
    count = number_asked(request, "count", NUMBER_MAX, NUMBER_MAX)
    octets_max = number_asked(request, "octets_max", NUMBER_MAX, NUMBER_MAX)
    wanted = wanted_asked(request)
    columns, compression = form_asked(request)
    encoder = (await node.readers.encoder())(name, columns, compression)
    source = cut(_waiting(queue, first, wanted), count, octets_max)
    return await node.readers.answer(request, encoder, source)


def _waiting(queue: LocalQueue, first: int, wanted: Wanted) -> Iterator[Rows]:
    looking = Looking(queue, first)
    while not looking.is_over:
        found = looking.look(ARROW_BROWSED_PER_TURN)
        messages = [(peeked.place, peeked.message, peeked.attempts > 0) for peeked in found]
        yield rows_of_messages(queue.name, messages, wanted)


def cut(source: Iterator[Rows], count: int, octets_max: int) -> Iterator[Rows]:
    """The first `count` rows of `source`, and of these no more than have `octets_max` octets, but one."""
    has_any = False
    for rows in source:
        kept = rows if rows.count <= count else rows.part(0, count)
        kept = kept.within(octets_max)
        if has_any and kept.octets > octets_max:
            return
        yield kept
        has_any = has_any or kept.count > 0
        count -= kept.count
        octets_max -= kept.octets
        if not count or kept.count < rows.count:
            return


def form_asked(request: web.Request) -> tuple[tuple[str, ...], str | None]:
    """The columns and the compression that `request` wants."""
    compression = request.query.get("compression")
    if compression is not None and compression not in _COMPRESSIONS:
        raise bad_request(f"compression is {' or '.join(_COMPRESSIONS)}, not '{compression[:40]}'")
    try:
        return columns_asked(request.query.get("columns")), compression
    except ValueError as error:
        raise bad_request(str(error)) from None


def wanted_asked(request: web.Request) -> Wanted:
    """Which rows `request` wants."""
    return Wanted(exchanges=_names(request, "exchange"), routing_keys=_names(request, "routing_key"))


def _names(request: web.Request, name: str) -> frozenset[bytes] | None:
    given = [text.encode("utf-8", "surrogateescape") for text in request.query.getall(name, [])]
    if any(len(octets) > NAME_SIZE_MAX for octets in given):
        raise bad_request(f"{name} is too long")
    return frozenset(given) or None
