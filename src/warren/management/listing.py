"""Lists with the query parameters of RabbitMQ: sorting, selected columns, filtering by name, and pages.

Records are filtered, sorted and encoded in slices of one turn of the event loop, so a long list does not
block it. Views are built only for the requested records: a page of 100,000 queues costs as much as a page.

page, page_size, name, use_regex | one page, inside an object with counts; else the bare list
sort, sort_reverse               | a column, or a field inside one: `message_stats.publish`
columns                          | separated by commas, with a dot before a nested field
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import compress, count, islice
from operator import itemgetter
from typing import Any, Generic, TypeVar

from aiohttp import web
from msgspec import Struct, field

from warren.limits import (
    NAMES_PER_TURN,
)
from warren.limits_http import (
    LISTED_PER_TURN,
    PAGE_SIZE_MAX,
    SHOWN_PER_TURN,
)
from warren.management.carried_request import CARRIED
from warren.management.name_filters import NameFilter, PatternError, name_filter
from warren.management.partial_sort import partial_argsort
from warren.management.replies import WHOLE, bad_request, encoded, reply, reply_in_parts

R = TypeVar("R")
T = TypeVar("T")
JsonObject = dict[str, object]
# Reads one value of each record.
Column = Callable[[Sequence[R]], Sequence[Any]]

_PAGE_SIZE = 100
# Sort key of a field that is absent: it counts as this number (RabbitMQ 3.10.8, measured).
_ABSENT = (0, 0)
_without_record = itemgetter(0, 1)


class Listing(Struct, Generic[R], frozen=True, kw_only=True):
    """A list that can be requested: its records, their views, and columns that are read without a view."""

    records: Iterable[R]
    view: Callable[[R], JsonObject]
    # Columns that are read without building a view; each has values of one type. They include `sort_keys`.
    columns: Mapping[str, Callable[[R], object]]
    # Columns that are read from many records at once, which takes a tenth of the time.
    bulk_columns: Mapping[str, Column[R]] = field(default_factory=dict)
    # The names of those bulk columns whose values are shown unchanged for every record.
    exact: frozenset[str] = frozenset()
    # The final sort keys, after the column that the client asks for.
    sort_keys: tuple[str, ...] = ("vhost", "name")
    # True if clients may request a page.
    is_paged: bool = False
    # True if `records` is a list in the order of `sort_keys` that does not change during the request.
    is_sorted: bool = False
    # The name of a column in whose order sorted records are, too.
    order: str = ""
    # The names of all fields of a view; None if they are not known.
    fields: frozenset[str] | None = None
    # Awaited with the records of the response before their views, for what takes long to compute.
    prepare: Callable[[Sequence[R]], Awaitable[None]] | None = None
    # False for a record that is found to be gone when `prepare` was awaited.
    has_view: Callable[[R], bool] | None = None
    # The id of a record, by which nodes name it to each other; it has to be given for lists of all nodes.
    identity: Callable[[R], str] | None = None

    def column(self, name: str) -> Column[R] | None:
        """A function that reads the column `name` of many records; None if the column needs a view."""
        if name in self.bulk_columns:
            return self.bulk_columns[name]
        read = self.columns.get(name)
        return None if read is None else lambda records: [read(record) for record in records]


async def reply_list(request: web.Request, listing: Listing[R]) -> web.StreamResponse:
    """The response with the list, or with the requested page of it."""
    columns = requested_columns(request)
    page = _page(request) if listing.is_paged else None
    records: Sequence[R] = listing.records if isinstance(listing.records, list) else list(listing.records)
    total = len(records)
    if page is not None and page.name is not None:
        records = await _filter_by_name(request, records, listing.column("name"), page.name)
    found = len(records)
    if page is not None and page.start >= found and page.number != 1:
        raise bad_request(
            f"Page out of range, page: {page.number} page size: {page.size}, len: {found}",
            "page_out_of_range",
        )
    if page is None:
        shown = await _sorted(request, listing, records)
    elif listing.is_sorted:
        end = min(page.start + page.size, found)
        shown = await _slice(request, listing, records, start=page.start, end=end)
    else:
        shown = (await _sorted(request, listing, records))[page.start : page.start + page.size]
    if listing.prepare is not None:
        await listing.prepare(shown)
    if listing.has_view is not None:
        shown = [record for record in shown if listing.has_view(record)]
    views, per_turn = row_maker(listing, columns)
    if page is None:
        return await reply_in_parts(request, await _written(request, shown, views, per_turn))
    items: list[JsonObject] = []
    for piece in pieces_of(shown, per_turn):
        items += views(piece)
        await next_turn(request)
    return reply(
        {
            "filtered_count": found,
            "item_count": len(items),
            "items": items,
            "page": page.number,
            "page_count": -(-found // page.size),
            "page_size": page.size,
            "total_count": total,
        }
    )


def reply_one(request: web.Request, facts: JsonObject) -> web.Response:
    """The response with one object, or with its requested columns."""
    return reply(select_columns(facts, requested_columns(request)))


def select_columns(facts: JsonObject, columns: Sequence[Sequence[str]] | None) -> JsonObject:
    """The fields of `facts` at the paths `columns`; all fields for None."""
    if columns is None:
        return facts
    chosen: JsonObject = {}
    for path in columns:
        if path[0] in facts:
            _select(chosen, facts, path)
    return chosen


def sort_value(facts: object, path: Sequence[str]) -> tuple[int, object]:
    """The sort key of the field at `path`: values are ordered within a type, and types as in Erlang."""
    value = facts
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return _ABSENT
        value = value[name]
    return sort_key(value)


class _Page(Struct, frozen=True):
    number: int
    size: int
    name: NameFilter | None

    @property
    def start(self) -> int:
        return (self.number - 1) * self.size


def _page(request: web.Request) -> _Page | None:
    number, size = _number(request, "page"), _number(request, "page_size")
    if number is None:
        return None
    if number < 1 or (size is not None and not 0 < size <= PAGE_SIZE_MAX):
        shown = "undefined" if size is None else size
        raise bad_request(
            f"Invalid pagination parameters: page number {number}, page size {shown}",
            "invalid_pagination_parameters",
        )
    return _Page(number, _PAGE_SIZE if size is None else size, _name_filter(request))


def _number(request: web.Request, name: str) -> int | None:
    written = request.query.get(name)
    if written is None:
        return None
    try:
        return int(written)
    except ValueError:
        raise _invalid() from None


def _name_filter(request: web.Request) -> NameFilter | None:
    name = request.query.get("name", "")
    if not name:
        return None
    try:
        return name_filter(name, is_pattern=request.query.get("use_regex", "") == "true")
    except PatternError as error:
        raise _invalid(str(error)) from None


def _invalid(message: str = "") -> Exception:
    return bad_request("Pagination parameters are invalid", message=message)


async def _filter_by_name(
    request: web.Request, records: Sequence[R], names_of: Column[R] | None, chosen: NameFilter
) -> Sequence[R]:
    """The records whose name fits `chosen`; raises RequestRefused if a pattern takes too long."""
    assert names_of is not None
    found: list[R] = []
    for piece in pieces_of(records, chosen.per_turn):
        try:
            found += compress(piece, chosen.fits([str(name) for name in names_of(piece)]))
        except PatternError as error:
            raise _invalid(str(error)) from None
        await next_turn(request)
    return found


async def _sorted(request: web.Request, listing: Listing[R], records: Sequence[R]) -> Sequence[R]:
    """All of `records` in the requested order, sorted in slices of one turn of the event loop."""
    is_reverse = request.query.get("sort_reverse", "") == "true"
    name = request.query.get("sort", "")
    names = [name for name in (name, *(() if listing.is_sorted else listing.sort_keys)) if name]
    if not names or (listing.is_sorted and _is_presorted(listing, name)):
        return records[::-1] if is_reverse else records
    columns = [listing.column(name) for name in names]
    runs: list[list[tuple[Any, int, R]]] = []
    places = count()
    for piece in pieces_of(records, LISTED_PER_TURN if None in columns else SHOWN_PER_TURN):
        keys = zip(*_keys(listing, names, piece), strict=True)
        # The unique number makes keys differ, so records are never compared.
        run = [(key, next(places), record) for key, record in zip(keys, piece, strict=True)]
        run.sort(key=_without_record, reverse=True)
        runs.append(run)
        await next_turn(request)
    merged: list[R] = []
    ordered = merge(*map(_drain, runs), key=_without_record)
    while piece := [record for _, _, record in islice(ordered, LISTED_PER_TURN)]:
        merged += piece
        await next_turn(request)
    if is_reverse:
        merged.reverse()
    return merged


def _drain(run: list[T]) -> Iterator[T]:
    """The items of `run` from its end; each is dropped at once, as dropping all together blocks the loop."""
    while run:
        yield run.pop()


async def _slice(
    request: web.Request, listing: Listing[R], records: Sequence[R], *, start: int, end: int
) -> Sequence[R]:
    """The records from `start` to `end` in the requested order; `records` are in the order of `sort_keys`."""
    is_reverse = request.query.get("sort_reverse", "") == "true"
    if is_reverse:
        start, end = len(records) - end, len(records) - start
    name = request.query.get("sort", "")
    if _is_presorted(listing, name):
        found = records[start:end]
    else:
        keys: list[Any] = []
        is_column = listing.column(name) is not None
        for piece in pieces_of(records, NAMES_PER_TURN if is_column else LISTED_PER_TURN):
            keys += _keys(listing, [name], piece)[0]
            await next_turn(request)
        found = [records[place] for place in await partial_argsort(keys, start, end)]
    return found[::-1] if is_reverse else found


def _is_presorted(listing: Listing[R], name: str) -> bool:
    """True if sorting by `name` keeps the order: the list is in its order, or no record has the field."""
    if not name or name == listing.order:
        return True
    return listing.fields is not None and name.partition(".")[0] not in listing.fields


def _keys(listing: Listing[R], names: Sequence[str], records: Sequence[R]) -> Sequence[Sequence[Any]]:
    """The sort keys of `records`: a row for each of `names`."""
    columns = [listing.column(name) for name in names]
    if None not in columns:
        rows = [column(records) for column in columns if column is not None]
        return rows if listing.is_sorted else [list(map(sort_key, row)) for row in rows]
    views = list(map(listing.view, records))
    return [[sort_value(facts, name.split(".")) for facts in views] for name in names]


def row_maker(
    listing: Listing[R], columns: Sequence[Sequence[str]] | None
) -> tuple[Callable[[Sequence[R]], list[JsonObject]], int]:
    """A function that makes the rows, and how many per turn; views are not built if columns suffice."""
    if columns is None:
        return lambda records: list(map(listing.view, records)), LISTED_PER_TURN
    names = [".".join(path) for path in columns]
    bulk_columns = [listing.bulk_columns[name] for name in names if name in listing.exact]
    if len(bulk_columns) < len(names):
        return lambda records: [
            select_columns(listing.view(record), columns) for record in records
        ], LISTED_PER_TURN

    def shown(records: Sequence[R]) -> list[JsonObject]:
        rows = zip(*(whole(records) for whole in bulk_columns), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    return shown, SHOWN_PER_TURN


async def _written(
    request: web.Request,
    records: Sequence[R],
    views: Callable[[Sequence[R]], list[JsonObject]],
    per_turn: int,
) -> list[bytes]:
    """The whole list as JSON, in parts."""
    parts = [b"["]
    for piece in pieces_of(records, per_turn):
        if len(parts) > 1:
            parts.append(b",")
        parts.append(encoded(views(piece))[1:-1])
        await next_turn(request)
    parts.append(b"]")
    return parts


async def next_turn(request: web.Request) -> None:
    """Yield to the event loop; raises ConnectionResetError if the client has disconnected."""
    await asyncio.sleep(0)
    if request.transport is None and WHOLE not in request and CARRIED not in request:
        raise ConnectionResetError("the client has disconnected")


def pieces_of(records: Sequence[R], size: int) -> Iterator[Sequence[R]]:
    """`records` in slices of `size`, the last one of which may be shorter."""
    return (records[at : at + size] for at in range(0, len(records), size))


def requested_columns(request: web.Request) -> Sequence[Sequence[str]] | None:
    """The paths of the columns that a request asks for; None for all."""
    written = request.query.get("columns")
    return None if written is None else [path.split(".") for path in written.split(",")]


def _select(chosen: JsonObject, facts: JsonObject, path: Sequence[str]) -> None:
    name, rest = path[0], path[1:]
    value = facts.get(name)
    if not rest or not isinstance(value, dict):
        chosen[name] = value
        return
    inner = chosen.setdefault(name, {})
    if isinstance(inner, dict) and rest[0] in value:
        _select(inner, value, rest)


def sort_key(value: object) -> tuple[int, object]:
    """The sort key of a value: its type, in the order of Erlang, and then the value."""
    # The order of types in Erlang is number < atom < map < list < binary; most values are names.
    if type(value) is str:
        return 4, value
    match value:
        case bool():
            return 1, str(value).lower()
        case int() | float():
            return 0, value
        case None:
            return 1, "null"
        case dict():
            # Maps are ordered by size first.
            return 2, (len(value), repr(value))
        case list() | tuple():
            return 3, repr(value)
        case _:
            return 4, str(value)
