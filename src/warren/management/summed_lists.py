"""Lists and objects that all nodes know, and of which each has counted a part: the counts are added up.

A rate of all nodes together is the sum of their rates, and a sample the sum of those that are equally old,
since nodes sample at the same moments.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from aiohttp import web
from msgspec.structs import replace

from warren.management.carried_request import CARRIED, CarriedRequest, ListPart
from warren.management.cluster_lists import decoded, fetch_json, field_of, keys_of, reply_part, rows_of
from warren.management.listing import JsonObject, Listing, reply_list
from warren.management.managed_node import ManagedNode
from warren.management.node_requests import other_nodes
from warren.metadata.records import MemberRecord

R = TypeVar("R")
_SAMPLES = "samples"


async def reply_summed_list(
    request: web.Request, node: ManagedNode, listing: Listing[R], counted: Collection[str]
) -> web.StreamResponse:
    """The response with `listing`, whose fields `counted` are the sums of those of all nodes."""
    asked: CarriedRequest | None = request.get(CARRIED)
    if asked is not None and asked.part is not ListPart.NONE:
        return await reply_part(request, listing, asked)
    members = other_nodes(request, node)
    if members:
        listing = await _summed(request, node, listing, counted, members=members)
    return await reply_list(request, listing)


async def summed_facts(
    request: web.Request, node: ManagedNode, facts: JsonObject, counted: Collection[str]
) -> JsonObject:
    """`facts` of one object, with what the other nodes have counted of it."""
    for _, more in await fetch_json(request, node, other_nodes(request, node)):
        facts = add_counts(facts, more, counted)
    return facts


def add_counts(into: JsonObject, more: Mapping[str, Any], counted: Collection[str]) -> JsonObject:
    """`into` with the fields `counted` of `more` added to its own."""
    fields = {key: value for key, value in more.items() if key.removesuffix("_details") in counted}
    return _added(into, fields)


def _added(into: Mapping[str, Any], more: Mapping[str, Any]) -> JsonObject:
    together: JsonObject = dict(into)
    for key, value in more.items():
        own = into.get(key)
        if own is None:
            together[key] = value
        elif key == _SAMPLES:
            together[key] = _added_samples(own, value)
        elif isinstance(own, dict) and isinstance(value, dict):
            together[key] = _added(own, value)
        elif _is_number(own) and _is_number(value):
            together[key] = own + value
    return together


def _added_samples(own: Sequence[Any], others: Sequence[Any]) -> list[object]:
    """Samples, the newest first; those of one node may go back less far."""
    added: list[object] = [
        {**one, "sample": one["sample"] + other["sample"]} for one, other in zip(own, others, strict=False)
    ]
    return added + list(own[len(added) :])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


async def _summed(
    request: web.Request,
    node: ManagedNode,
    listing: Listing[R],
    counted: Collection[str],
    *,
    members: Sequence[MemberRecord],
) -> Listing[R]:
    identity = listing.identity
    assert identity is not None
    # By the id of a record: what the other nodes have counted.
    rows: dict[str, list[JsonObject]] = {}
    columns = dict(listing.columns)
    sort = request.query.get("sort", "")
    if sort.partition(".")[0].removesuffix("_details") in counted:
        sums: dict[str, float] = {}
        for _, ids, (values,) in await keys_of(request, node, members, [sort]):
            for id, value in zip(ids, values, strict=True):
                sums[id] = sums.get(id, 0) + (value if _is_number(value) else 0)

        def read(record: R) -> float:
            own = field_of(listing.view(record), sort.split("."))
            return (own if isinstance(own, int | float) else 0) + sums.get(identity(record), 0)

        columns[sort] = read

    async def prepare(shown: Sequence[R]) -> None:
        ids = list(map(identity, shown))
        found = await rows_of(request, node, [(member, ids) for member in members])
        for (_, id), row in found.items():
            rows.setdefault(id, []).append(decoded(row))

    def view(record: R) -> JsonObject:
        facts = listing.view(record)
        for row in rows.get(identity(record), ()):
            facts = add_counts(facts, row, counted)
        return facts

    return replace(listing, columns=columns, prepare=prepare, view=view)
