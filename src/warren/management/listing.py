"""Lists as clients ask for them: sorted, some columns only, one page of those whose name matches.

Nothing takes the loop for long, however long the list is: it is looked at, sorted and written in pieces. What
is shown is made of the records that are asked for only: a page of a hundred thousand queues costs its page.

page, page_size, name, use_regex | one page, inside an object that counts; else the bare list
sort, sort_reverse               | by a column, or a field in one: `message_stats.publish`
columns                          | a comma between, and a dot before a field
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Generic, TypeVar

import regex
from aiohttp import web

from warren.limits import LISTED_PER_TURN, PAGE_SIZE_MAX, PATTERN_TIME_S
from warren.management.replies import bad_request, encoded, reply, reply_in_parts

R = TypeVar("R")
Facts = dict[str, object]
SortKey = tuple[tuple[int, object], ...]

_PAGE_SIZE = 100
# Records of which only a cheap column is looked at, in one turn: a millisecond.
_CHEAP_PER_TURN = 1_024
_UNDEFINED = (1, "undefined")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[R]):
    """What can be listed: records, what is shown of each, and what can be known of it without."""

    records: Iterable[R]
    view: Callable[[R], Facts]
    # Columns that cost less than a view, among them those that `sorts` names.
    columns: Mapping[str, Callable[[R], object]]
    # What the list is sorted by in the end.
    sorts: tuple[str, ...] = ("vhost", "name")
    # Whether clients may ask for a page.
    is_paged: bool = False
    # The records are a sequence that is in the order of `sorts` already, and nobody changes it meanwhile.
    is_sorted: bool = False
    # Called with those that are shown before they are, if a view needs what takes long to find out.
    prepare: Callable[[Sequence[R]], Awaitable[None]] | None = None


async def reply_list(request: web.Request, listing: Listing[R]) -> web.StreamResponse:
    """The list, or a page of it."""
    columns = _columns(request)
    page = _page(request) if listing.is_paged else None
    records: Sequence[R] = listing.records if isinstance(listing.records, list) else list(listing.records)
    total = len(records)
    if page is not None and page.name is not None:
        records = await _matching(records, listing.columns["name"], page.name)
    count = len(records)
    if page is not None and page.start >= count and page.number != 1:
        raise bad_request(
            f"Page out of range, page: {page.number} page size: {page.size}, len: {count}",
            "page_out_of_range",
        )
    records = await _sorted(request, listing, records, None if page is None else page.start + page.size)
    if listing.prepare is not None:
        await listing.prepare(records if page is None else records[page.start : page.start + page.size])
    if page is None:
        return await reply_in_parts(request, await _written(records, listing.view, columns))
    shown = records[page.start : page.start + page.size]
    items = [selected(listing.view(record), columns) for record in shown]
    return reply(
        {
            "filtered_count": count,
            "item_count": len(items),
            "items": items,
            "page": page.number,
            "page_count": -(-count // page.size),
            "page_size": page.size,
            "total_count": total,
        }
    )


def reply_one(request: web.Request, facts: Facts) -> web.Response:
    """One object, or the columns of it that are asked for."""
    return reply(selected(facts, _columns(request)))


def selected(facts: Facts, columns: Sequence[Sequence[str]] | None) -> Facts:
    """Of `facts` the `columns`, each a path; all for None."""
    if columns is None:
        return facts
    chosen: Facts = {}
    for path in columns:
        if path[0] in facts:
            _select(chosen, facts, path)
    return chosen


def sort_value(facts: object, path: Sequence[str]) -> tuple[int, object]:
    """What a list is sorted by: values of one kind among themselves, and kinds as Erlang has them."""
    value = facts
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return _UNDEFINED
        value = value[name]
    return _ordered(value)


@dataclass(frozen=True, slots=True)
class _Page:
    number: int
    size: int
    name: "regex.Pattern[str] | None"

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
    return _Page(number, _PAGE_SIZE if size is None else size, _name_pattern(request))


def _number(request: web.Request, name: str) -> int | None:
    written = request.query.get(name)
    if written is None:
        return None
    try:
        return int(written)
    except ValueError:
        raise _invalid() from None


def _name_pattern(request: web.Request) -> "regex.Pattern[str] | None":
    name = request.query.get("name", "")
    if not name:
        return None
    is_pattern = request.query.get("use_regex", "") == "true"
    try:
        return regex.compile(name if is_pattern else regex.escape(name), regex.IGNORECASE)
    except regex.error:
        raise _invalid() from None


def _invalid() -> Exception:
    return bad_request("Pagination parameters are invalid")


async def _matching(
    records: Sequence[R], name_of: Callable[[R], object], pattern: "regex.Pattern[str]"
) -> Sequence[R]:
    """The records whose name has `pattern` in it; one that takes its time is refused."""
    found: list[R] = []
    loop = asyncio.get_running_loop()
    left = PATTERN_TIME_S
    for piece in _pieces(records):
        for record in piece:
            start = loop.time()
            try:
                if pattern.search(str(name_of(record)), timeout=left):
                    found.append(record)
            except TimeoutError:
                raise _invalid() from None
            left -= loop.time() - start
            if left <= 0:
                raise _invalid()
        await asyncio.sleep(0)
    return found


async def _sorted(
    request: web.Request, listing: Listing[R], records: Sequence[R], end: int | None
) -> Sequence[R]:
    """All of `records` in order, or at least those up to `end`."""
    if listing.is_sorted:
        return await _ordered_by(request, listing, records, end)
    paths = [name.split(".") for name in (request.query.get("sort", ""), *listing.sorts) if name]
    is_cheap = all(len(path) == 1 and path[0] in listing.columns for path in paths)

    def key_of(record: R) -> SortKey:
        if is_cheap:
            return tuple(_ordered(listing.columns[path[0]](record)) for path in paths)
        facts = listing.view(record)
        return tuple(sort_value(facts, path) for path in paths)

    runs: list[list[tuple[SortKey, int, R]]] = []
    for piece in _pieces(records):
        # The place makes every key another, so that records are never compared.
        run = [(key_of(record), len(runs) * LISTED_PER_TURN + at, record) for at, record in enumerate(piece)]
        run.sort(key=_without_record)
        runs.append(run)
        await asyncio.sleep(0)
    merged: list[R] = []
    ordered = merge(*runs, key=_without_record)
    while piece := [record for _, _, record in islice(ordered, LISTED_PER_TURN)]:
        merged += piece
        await asyncio.sleep(0)
    if request.query.get("sort_reverse", "") == "true":
        merged.reverse()
    return merged


async def _ordered_by(
    request: web.Request, listing: Listing[R], records: Sequence[R], end: int | None
) -> Sequence[R]:
    """The same of records that are in order but for the column that the client asks for, if any."""
    is_reverse = request.query.get("sort_reverse", "") == "true"
    name = request.query.get("sort", "")
    if not name:
        if is_reverse:
            return records[::-1] if end is None else records[: -end - 1 : -1]
        return records
    column = listing.columns.get(name)
    piece_size = _CHEAP_PER_TURN if column is not None else LISTED_PER_TURN
    path = name.split(".")

    def key_of(record: R) -> tuple[int, object]:
        if column is None:
            return sort_value(listing.view(record), path)
        value = column(record)
        # As `_ordered` would have it, which looks for longer.
        return (0, value) if type(value) is int else _ordered(value)

    # What is beyond `end` need not be sorted with the rest; where keys are equal the place decides.
    best: list[tuple[tuple[int, object], int]] = []
    for at in range(0, len(records), piece_size):
        best += [(key_of(record), place) for place, record in enumerate(records[at : at + piece_size], at)]
        best.sort(reverse=is_reverse)
        best = best[:end]
        await asyncio.sleep(0)
    return [records[place] for _, place in best]


def _without_record(entry: tuple[SortKey, int, object]) -> tuple[SortKey, int]:
    return entry[0], entry[1]


async def _written(
    records: Sequence[R], view: Callable[[R], Facts], columns: Sequence[Sequence[str]] | None
) -> list[bytes]:
    """The whole list as JSON, in parts."""
    parts = [b"["]
    for piece in _pieces(records):
        if len(parts) > 1:
            parts.append(b",")
        parts.append(encoded([selected(view(record), columns) for record in piece])[1:-1])
        await asyncio.sleep(0)
    parts.append(b"]")
    return parts


def _pieces(records: Sequence[R]) -> Iterator[Sequence[R]]:
    return (records[at : at + LISTED_PER_TURN] for at in range(0, len(records), LISTED_PER_TURN))


def _columns(request: web.Request) -> Sequence[Sequence[str]] | None:
    written = request.query.get("columns")
    return None if written is None else [path.split(".") for path in written.split(",")]


def _select(chosen: Facts, facts: Facts, path: Sequence[str]) -> None:
    name, rest = path[0], path[1:]
    value = facts.get(name)
    if not rest or not isinstance(value, dict):
        chosen[name] = value
        return
    inner = chosen.setdefault(name, {})
    if isinstance(inner, dict) and rest[0] in value:
        _select(inner, value, rest)


def _ordered(value: object) -> tuple[int, object]:
    # Erlang: number < atom < map < list < binary. Most are names.
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
            return 2, repr(value)
        case list() | tuple():
            return 3, repr(value)
        case _:
            return 4, str(value)
