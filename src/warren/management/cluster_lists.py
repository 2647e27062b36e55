"""Lists of the objects of all nodes, made at one of them: sorted, filtered and paged as `listing` does.

A list is made in two steps, so that a page costs a page. First each other node sends the id of each of its
records with the columns that filtering and sorting need: part KEYS. The rows that are shown follow, from the
nodes that have them: part ROWS. The route of the list answers both itself, with the rights of its user.

A node that does not answer is named in the response, and what it has is not in the list.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct

from warren.limits_cluster import QUERY_ROWS_MAX
from warren.limits_http import LISTED_PER_TURN, SHOWN_PER_TURN
from warren.management.carried_request import CARRIED, CarriedRequest, ListPart
from warren.management.cluster_nodes import NodeNotAnswering
from warren.management.listing import (
    JsonObject,
    Listing,
    next_turn,
    pieces_of,
    reply_list,
    requested_columns,
    row_maker,
)
from warren.management.managed_node import ManagedNode
from warren.management.node_requests import (
    NodeAnswer,
    carried,
    fetch,
    gather_answers,
    other_nodes,
)
from warren.management.replies import reply
from warren.metadata.records import MemberRecord

R = TypeVar("R")
T = TypeVar("T")
_OK = 200
_NAME = "name"


class _Keys(Struct):
    """Part KEYS: a value of each record in each column."""

    ids: list[str]
    columns: dict[str, list[Any]]


class _Rows(Struct):
    """Part ROWS: the fields of each row, not decoded, and the ids of the rows that are there."""

    ids: list[str]
    rows: list[dict[str, msgspec.Raw]]


_keys = msgspec.json.Decoder(_Keys)
_rows = msgspec.json.Decoder(_Rows)
_objects = msgspec.json.Decoder(list[dict[str, Any]])


class RemoteRecord:
    """A record of another node in a list: what it is sorted by, and its row when that was fetched."""

    __slots__ = ("id", "member", "row", "values")

    def __init__(self, member: MemberRecord, id: str, values: tuple[object, ...]) -> None:
        """`values` are those of the columns that were asked for, in their order."""
        self.member = member
        self.id = id
        self.values = values
        self.row: JsonObject | None = None


async def reply_cluster_list(
    request: web.Request, node: ManagedNode, listing: Listing[R]
) -> web.StreamResponse:
    """The response with the records of all nodes, or with what another node asks for of this one."""
    asked: CarriedRequest | None = request.get(CARRIED)
    if asked is not None and asked.part is not ListPart.NONE:
        return await reply_part(request, listing, asked)
    members = other_nodes(request, node)
    if not members:
        return await reply_list(request, listing)
    return await reply_list(request, await _with_others(request, node, listing, members))


async def reply_part(request: web.Request, listing: Listing[R], asked: CarriedRequest) -> web.StreamResponse:
    """The response to another node that makes a list: part KEYS or ROWS of the records of this one."""
    identity = listing.identity
    assert identity is not None
    records: Sequence[R] = list(listing.records)
    if asked.part is ListPart.KEYS:
        ids: list[str] = []
        columns: dict[str, list[object]] = {name: [] for name in asked.names}
        for piece in pieces_of(records, LISTED_PER_TURN):
            ids += map(identity, piece)
            for name, values in zip(asked.names, _values(listing, asked.names, piece), strict=True):
                columns[name] += values
            await next_turn(request)
        return reply({"ids": ids, "columns": columns})
    wanted = set(asked.names)
    found: list[R] = []
    for piece in pieces_of(records, SHOWN_PER_TURN):
        found += [record for record in piece if identity(record) in wanted]
        await next_turn(request)
    if listing.prepare is not None:
        await listing.prepare(found)
    make, per_turn = row_maker(listing, requested_columns(request))
    rows: list[JsonObject] = []
    for piece in pieces_of(found, per_turn):
        rows += make(piece)
        await next_turn(request)
    return reply({"ids": list(map(identity, found)), "rows": rows})


async def keys_of(
    request: web.Request, node: ManagedNode, members: Sequence[MemberRecord], names: Sequence[str]
) -> list[tuple[MemberRecord, list[str], list[list[Any]]]]:
    """The ids of the records of each of `members`, and their values in the columns `names`."""
    asked = carried(request, node, part=ListPart.KEYS, names=names)
    answers = await gather_answers(request, members, [_part(node, to, asked, _keys) for to in members])
    return [(member, keys.ids, [keys.columns[name] for name in names]) for member, keys in answers]


async def rows_of(
    request: web.Request, node: ManagedNode, wanted: Collection[tuple[MemberRecord, Sequence[str]]]
) -> dict[tuple[int, str], JsonObject]:
    """The rows with these ids, each from its node: by the number of the node, and the id."""
    rows: dict[tuple[int, str], JsonObject] = {}

    async def collect(member: MemberRecord, ids: Sequence[str]) -> None:
        for piece in pieces_of(ids, QUERY_ROWS_MAX):
            for id, row in await _some_rows(request, node, member, piece):
                rows[member.id, id] = row

    members = [member for member, _ in wanted]
    await gather_answers(request, members, [collect(*one) for one in wanted])
    return rows


def decoded(row: JsonObject) -> JsonObject:
    """A row of part ROWS with its fields decoded."""
    return {
        key: msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
        for key, value in row.items()
    }


async def consumers_at(
    request: web.Request, node: ManagedNode, members: Sequence[MemberRecord]
) -> list[JsonObject]:
    """The consumers of the queue in the path that have their connections at `members`."""
    if not members:
        return []
    asked = carried(request, node, part=ListPart.CONSUMERS)
    answers = await gather_answers(request, members, [_part(node, to, asked, _objects) for to in members])
    return [consumer for _, consumers in answers for consumer in consumers]


async def fetch_json(
    request: web.Request, node: ManagedNode, members: Sequence[MemberRecord], path: str | None = None
) -> list[tuple[MemberRecord, Any]]:
    """The JSON that each of `members` answers to `request`, or to its like for another `path`.

    Nodes that refuse it are left out: they know the objects or the rights in it otherwise.
    """
    if not members:
        return []
    asked = carried(request, node, path=path)
    answers = await gather_answers(request, members, [fetch(node, to, asked) for to in members])
    return [
        (member, msgspec.json.decode(answer.body)) for member, answer in answers if answer.head.status == _OK
    ]


async def _with_others(
    request: web.Request, node: ManagedNode, listing: Listing[R], members: Sequence[MemberRecord]
) -> Listing[Any]:
    """`listing` with the records of the other nodes behind those of this one."""
    sort = request.query.get("sort", "")
    names = list(dict.fromkeys(name for name in (sort, *listing.sort_keys) if name))
    if listing.is_paged and _NAME not in names:
        names.append(_NAME)
    records: list[R | RemoteRecord] = list(listing.records)
    for member, ids, columns in await keys_of(request, node, members, names):
        values = zip(*columns, strict=True) if columns else ((),) * len(ids)
        records += [RemoteRecord(member, id, of_one) for id, of_one in zip(ids, values, strict=True)]
        await asyncio.sleep(0)

    def read(name: str) -> Callable[[R | RemoteRecord], object]:
        at = names.index(name)
        return lambda one: (
            one.values[at] if isinstance(one, RemoteRecord) else _values(listing, [name], [one])[0][0]
        )

    async def prepare(shown: Sequence[R | RemoteRecord]) -> None:
        own = [one for one in shown if not isinstance(one, RemoteRecord)]
        if listing.prepare is not None:
            await listing.prepare(own)
        await _fetch_rows(request, node, [one for one in shown if isinstance(one, RemoteRecord)])

    def view(one: R | RemoteRecord) -> JsonObject:
        return (one.row or {}) if isinstance(one, RemoteRecord) else listing.view(one)

    return Listing(
        records=records,
        view=view,
        columns={name: read(name) for name in names},
        sort_keys=listing.sort_keys,
        is_paged=listing.is_paged,
        prepare=prepare,
        has_view=lambda one: not isinstance(one, RemoteRecord) or one.row is not None,
    )


async def _fetch_rows(request: web.Request, node: ManagedNode, shown: Sequence[RemoteRecord]) -> None:
    """Fetch the rows of `shown`; one that is gone meanwhile stays without."""
    by_member: dict[int, tuple[MemberRecord, list[str]]] = {}
    for one in shown:
        by_member.setdefault(one.member.id, (one.member, []))[1].append(one.id)
    rows = await rows_of(request, node, list(by_member.values()))
    for one in shown:
        one.row = rows.get((one.member.id, one.id))


async def _some_rows(
    request: web.Request, node: ManagedNode, member: MemberRecord, ids: Sequence[str]
) -> list[tuple[str, JsonObject]]:
    """The rows with some ids; in two halves if they are too large together."""
    try:
        asked = carried(request, node, part=ListPart.ROWS, names=ids)
        found = await _part(node, member, asked, _rows)
    except NodeNotAnswering as error:
        if not error.is_too_large or len(ids) == 1:
            raise
        middle = len(ids) // 2
        first = await _some_rows(request, node, member, ids[:middle])
        return first + await _some_rows(request, node, member, ids[middle:])
    return [(id, {**row}) for id, row in zip(found.ids, found.rows, strict=True)]


async def _part(
    node: ManagedNode, to: MemberRecord, asked: CarriedRequest, decoder: msgspec.json.Decoder[T]
) -> T:
    answer: NodeAnswer = await fetch(node, to, asked)
    if answer.head.status != _OK:
        # It has other metadata, for a moment.
        raise NodeNotAnswering(f"node '{to.name}' answers {answer.head.status}", is_away=False)
    try:
        return decoder.decode(answer.body)
    except msgspec.DecodeError:
        raise NodeNotAnswering(f"the answer of node '{to.name}' cannot be used", is_away=False) from None


def _values(listing: Listing[R], names: Sequence[str], records: Sequence[R]) -> list[list[object]]:
    """The values of `records` in each of the columns `names`, as JSON; 0 for a field that is absent."""
    columns = [listing.column(name) for name in names]
    views = list(map(listing.view, records)) if None in columns else []
    return [
        [field_of(facts, name.split(".")) for facts in views] if column is None else list(column(records))
        for name, column in zip(names, columns, strict=True)
    ]


def field_of(facts: object, path: Sequence[str]) -> object:
    """The field of `facts` at `path`; 0 if it is absent."""
    for name in path:
        if not isinstance(facts, dict) or name not in facts:
            # RabbitMQ sorts a field that is absent as this number.
            return 0
        facts = facts[name]
    return facts
