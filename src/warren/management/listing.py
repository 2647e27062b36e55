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
from itertools import compress, islice
from typing import Any, Generic, TypeVar

from aiohttp import web

from warren.limits import LISTED_PER_TURN, NAMES_PER_TURN, PAGE_SIZE_MAX
from warren.management.names import NameFilter, PatternError, name_filter
from warren.management.replies import bad_request, encoded, reply, reply_in_parts

R = TypeVar("R")
Facts = dict[str, object]
SortKey = tuple[tuple[int, object], ...]

_PAGE_SIZE = 100
_UNDEFINED = (1, "undefined")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[R]):
    """What can be listed: records, what is shown of each, and what can be known of it without."""

    records: Iterable[R]
    view: Callable[[R], Facts]
    # Columns that cost less than a view, each with values of one kind, among them those that `sorts` names.
    columns: Mapping[str, Callable[[R], object]]
    # Those of them whose values are shown as they are, whatever the record.
    exact: frozenset[str] = frozenset()
    # What the list is sorted by in the end.
    sorts: tuple[str, ...] = ("vhost", "name")
    # Whether clients may ask for a page.
    is_paged: bool = False
    # The records are a list that is in the order of `sorts` already, and nobody changes it meanwhile.
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
        records = await _chosen(records, listing.columns["name"], page.name)
    count = len(records)
    if page is not None and page.start >= count and page.number != 1:
        raise bad_request(
            f"Page out of range, page: {page.number} page size: {page.size}, len: {count}",
            "page_out_of_range",
        )
    if page is None:
        shown = await _sorted(request, listing, records)
    elif listing.is_sorted:
        shown = await _slice(request, listing, records, (page.start, page.start + page.size))
    else:
        shown = (await _sorted(request, listing, records))[page.start : page.start + page.size]
    if listing.prepare is not None:
        await listing.prepare(shown)
    view = _view(listing, columns)
    if page is None:
        return await reply_in_parts(request, await _written(shown, view))
    items: list[Facts] = []
    for piece in _pieces(shown):
        items += map(view, piece)
        await asyncio.sleep(0)
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
    except PatternError:
        raise _invalid() from None


def _invalid() -> Exception:
    return bad_request("Pagination parameters are invalid")


async def _chosen(records: Sequence[R], name_of: Callable[[R], object], chosen: NameFilter) -> Sequence[R]:
    """The records whose name is `chosen`; a pattern that takes its time is refused."""
    found: list[R] = []
    for piece in _pieces(records, chosen.per_turn):
        try:
            found += compress(piece, chosen.fits([str(name_of(record)) for record in piece]))
        except PatternError:
            raise _invalid() from None
        await asyncio.sleep(0)
    return found


async def _sorted(request: web.Request, listing: Listing[R], records: Sequence[R]) -> Sequence[R]:
    """All of `records` in order."""
    is_reverse = request.query.get("sort_reverse", "") == "true"
    name = request.query.get("sort", "")
    if listing.is_sorted:
        if not name:
            return records[::-1] if is_reverse else records
        paths = [name.split(".")]
    else:
        paths = [name.split(".") for name in (name, *listing.sorts) if name]
    is_cheap = all(".".join(path) in listing.columns for path in paths)

    def key_of(record: R) -> SortKey:
        if is_cheap:
            return tuple(_ordered(listing.columns[".".join(path)](record)) for path in paths)
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
    if is_reverse:
        merged.reverse()
    return merged


async def _slice(
    request: web.Request, listing: Listing[R], records: Sequence[R], shown: tuple[int, int]
) -> Sequence[R]:
    """From one place to another of `records`, which are in order but for what the client sorts them by."""
    start, end = shown[0], min(shown[1], len(records))
    is_reverse = request.query.get("sort_reverse", "") == "true"
    name = request.query.get("sort", "")
    # From the nearer end: in the other order it is the other way round.
    is_turned = start > len(records) - end
    count = len(records) - start if is_turned else end
    places = await _first(listing, records, (name, is_reverse != is_turned), count)
    places = places[len(records) - end :] if is_turned else places[start:]
    return [records[place] for place in (reversed(places) if is_turned else places)]


async def _first(
    listing: Listing[R], records: Sequence[R], order: tuple[str, bool], count: int
) -> Sequence[int]:
    """The places of the first `count` of `records`, sorted by a column, perhaps in reverse."""
    name, is_reverse = order
    if not name:
        places = range(len(records))
        return places[::-1][:count] if is_reverse else places[:count]
    column = listing.columns.get(name)
    per_turn = LISTED_PER_TURN if column is None else NAMES_PER_TURN
    path = name.split(".")
    best: list[tuple[Any, int]] = []
    starts = range(0, len(records), per_turn)
    for at in reversed(starts) if is_reverse else starts:
        piece = records[at : at + per_turn]
        if column is None:
            keys: list[Any] = [sort_value(listing.view(record), path) for record in piece]
        else:
            keys = [column(record) for record in piece]
        if len(best) < count:
            best += zip(keys, range(at, at + len(keys)), strict=True)
        else:
            # Where keys are equal the place decides, and the pieces come in the order of that.
            worst = best[-1][0]
            best += [
                (key, place)
                for place, key in enumerate(keys, at)
                if (key > worst if is_reverse else key < worst)
            ]
        best.sort(reverse=is_reverse)
        del best[count:]
        await asyncio.sleep(0)
    return [place for _, place in best]


def _without_record(entry: tuple[SortKey, int, object]) -> tuple[SortKey, int]:
    return entry[0], entry[1]


def _view(listing: Listing[R], columns: Sequence[Sequence[str]] | None) -> Callable[[R], Facts]:
    """What is shown of each record: without its view, if all that is asked for is known without."""
    if columns is None:
        return listing.view
    names = [".".join(path) for path in columns]
    if listing.exact.issuperset(names):
        read = [(name, listing.columns[name]) for name in names]
        return lambda record: {name: column(record) for name, column in read}
    return lambda record: selected(listing.view(record), columns)


async def _written(records: Sequence[R], view: Callable[[R], Facts]) -> list[bytes]:
    """The whole list as JSON, in parts."""
    parts = [b"["]
    for piece in _pieces(records):
        if len(parts) > 1:
            parts.append(b",")
        parts.append(encoded(list(map(view, piece)))[1:-1])
        await asyncio.sleep(0)
    parts.append(b"]")
    return parts


def _pieces(records: Sequence[R], size: int = LISTED_PER_TURN) -> Iterator[Sequence[R]]:
    return (records[at : at + size] for at in range(0, len(records), size))


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
