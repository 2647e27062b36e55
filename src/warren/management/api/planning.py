"""Planning an import of definitions, and applying exactly the plan that was reviewed."""

import asyncio
import hmac
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

from aiohttp import web

from warren.access.passwords import is_affordable, is_password
from warren.errors import AmqpError
from warren.limits import (
    PLANNED_SHOWN_MAX,
)
from warren.limits_http import (
    LISTED_PER_TURN,
)
from warren.management.api.definitions import owner_of, parsed
from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import ACTING_USER, parallel_batches, propose_all, vhost_in_path
from warren.management.operation import doc, documented
from warren.management.replies import bad_request, encoded, error_reply, reply
from warren.management.request_body import read_bytes
from warren.management.views.planning import is_empty, losses_of, plan_item_view
from warren.metadata.commands import Json, MetadataCommand, Outcome, Reply, parameter_user
from warren.metadata.definition_entries import DefinitionKey
from warren.metadata.definitions_import import DefinitionsError, import_commands
from warren.metadata.import_plan import ImportPlan, PlanAction, PlanItem
from warren.metadata.parameters import CLUSTER_ID
from warren.metadata.users import PasswordHash
from warren.vhost.definitions_check import CheckedDefinitions, check_definitions, named_entries

_TRUE = "true"


class PlanQuery(TypedDict, total=False):
    """Whether missing objects are deleted, and how many items are returned."""

    prune: Annotated[
        bool, doc("Delete objects that are not in the document, of the kinds for which it has a section.")
    ]
    count: Annotated[int, doc("Maximum number of items to return; 1,000 by default.")]


class ApplyQuery(PlanQuery):
    """Which plan is applied."""

    fingerprint: Annotated[
        str, doc("The fingerprint of the plan, which was made from the same document with the same `prune`.")
    ]


class PlanItemShape(TypedDict, total=False):
    """An object that differs from the document."""

    action: Required[Literal["create", "change", "delete", "blocked"]]
    kind: Required[str]
    vhost: str
    name: Required[str]
    component: str
    exchange: str
    destination_type: str
    destination: str
    routing_key: str
    arguments: Any
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    reason: str
    losses: Annotated[
        Mapping[str, int], doc("Numbers of objects and messages that are lost with the deleted object.")
    ]
    outcome: Literal["done", "failed"]


class PlanShape(TypedDict):
    """What an import would create, change and delete."""

    fingerprint: str
    totals: dict[str, int]
    losses: dict[str, int]
    items: list[PlanItemShape]
    items_total: int
    skipped: list[str]
    warnings: list[str]
    applied: NotRequired[int]
    failed: NotRequired[int]


deprecate(PlanShape, left_out="skipped")


@documented(query=PlanQuery, body=dict[str, Any], response=PlanShape)
async def plan(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Plan an import of definitions: what it would create, change and leave; nothing is changed."""
    return await _plan(request, node, None)


@documented(query=PlanQuery, body=dict[str, Any], response=PlanShape)
async def plan_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Plan an import of definitions into a virtual host; nothing is changed."""
    return await _plan(request, node, vhost_in_path(request, node).name)


@documented(query=ApplyQuery, body=dict[str, Any], response=PlanShape, responses={409: dict[str, str]})
async def apply(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Apply a plan; 409 if the broker has changed so that the plan is no longer the same."""
    return await _apply(request, node, None)


@documented(query=ApplyQuery, body=dict[str, Any], response=PlanShape, responses={409: dict[str, str]})
async def apply_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Apply a plan for a virtual host; 409 if the plan is no longer the same."""
    return await _apply(request, node, vhost_in_path(request, node).name)


class _PlanReview:
    """A plan and its JSON form."""

    def __init__(self, plan: ImportPlan, found: CheckedDefinitions) -> None:
        self.plan = plan
        self.left_out = named_entries(found.left_out)
        self.warnings = named_entries(found.warnings)
        self.fingerprint = ""
        # How many objects of each kind are lost by it, and how many items of each action it has.
        self.losses: dict[str, int] = {}
        self.counts = dict.fromkeys((action.value for action in PlanAction), 0)

    async def look_at(self, node: ManagedNode, asked: object) -> None:
        """Examine all items and compute the fingerprint from them and from `asked`, in slices of a turn."""
        digest = sha256(encoded(asked))
        for number, item in enumerate(self.plan.items, 1):
            of_item = losses_of(node, item)
            for name, count in of_item.items():
                self.losses[name] = self.losses.get(name, 0) + count
            action = item.action.value
            self.counts[action] += 1
            # The count of messages changes all the time; only whether the queue is empty is part of the plan.
            digest.update(encoded([action, item.key, item.before, item.after, is_empty(of_item)]))
            if not number % LISTED_PER_TURN:
                await asyncio.sleep(0)
        self.fingerprint = digest.hexdigest()

    async def end(self) -> None:
        """Release the plan's items, in slices of one turn of the event loop."""
        for _ in self.plan.end():
            await asyncio.sleep(0)

    def facts(self, items: list[dict[str, Json]]) -> dict[str, Json]:
        """The JSON form of the plan, with `items` of it."""
        totals = self.counts | {"keep": self.plan.kept}
        facts: dict[str, Json] = {
            "fingerprint": self.fingerprint,
            "totals": totals,
            "losses": self.losses,
            "items": items,
            "items_total": len(self.plan.items),
            "skipped": self.left_out,
            "warnings": self.warnings,
        }
        return with_deprecated(PlanShape, facts)


async def _plan(request: web.Request, node: ManagedNode, vhost: str | None) -> web.StreamResponse:
    count = _count(request)
    planned = await _planned(request, node, vhost)
    told: list[dict[str, Json]] = []
    for number, item in enumerate(planned.plan.items[:count], 1):
        told.append(plan_item_view(node, item))
        if not number % LISTED_PER_TURN:
            await asyncio.sleep(0)
    answer = reply(planned.facts(told))
    await planned.end()
    return answer


async def _apply(request: web.Request, node: ManagedNode, vhost: str | None) -> web.StreamResponse:
    count = _count(request)
    planned = await _planned(request, node, vhost)
    if not hmac.compare_digest(request.query.get("fingerprint", "").encode(), planned.fingerprint.encode()):
        reason = "the broker or the document has changed since the plan: make a new plan"
        return error_reply(409, "conflict", reason)
    results: list[dict[str, Json]] = []
    applied = failed = 0
    possible = (item for item in planned.plan.items if item.action is not PlanAction.BLOCKED)
    for together in parallel_batches(possible, _kind):
        told = [plan_item_view(node, item) for item in together]
        commands = [item.command for item in together if item.command is not None]
        outcomes = await propose_all(node, commands)
        for facts, command, outcome in zip(told, commands, outcomes, strict=True):
            reason = _failure(command, outcome)
            applied, failed = applied + (not reason), failed + bool(reason)
            facts |= {"outcome": "failed", "reason": reason} if reason else {"outcome": "done"}
            # Failures are included even if the requested count of results is reached.
            if len(results) < count or reason:
                results.append(facts)
    answer = reply(planned.facts(results[-PLANNED_SHOWN_MAX:]) | {"applied": applied, "failed": failed})
    await planned.end()
    return answer


def _kind(item: PlanItem) -> tuple[PlanAction, str]:
    """The group of an item: items of one action and one kind of object may run concurrently."""
    return item.action, item.key.section


def _failure(command: MetadataCommand, answer: Reply | BaseException) -> str:
    """The reason why `command` failed; empty if it succeeded."""
    if isinstance(answer, AmqpError):
        return answer.message
    if isinstance(answer, BaseException):
        raise answer
    if answer.outcome is Outcome.REFUSED:
        return answer.text
    if answer.outcome is Outcome.MISSING and not type(command).__name__.startswith(_REMOVING):
        return answer.text or "an object that it needs does not exist"
    return ""


# Commands that remove an object succeed if it is missing.
_REMOVING = ("Delete", "Remove", "Clear", "Unbind")


async def _planned(request: web.Request, node: ManagedNode, vhost: str | None) -> _PlanReview:
    is_pruning = request.query.get("prune", "") == _TRUE
    data = await read_bytes(request)
    # Parsing a document of ten megabytes takes a second; in a thread it does not block the event loop.
    owner = owner_of(request)
    found, sections = await asyncio.to_thread(_parse_importable, data, node, vhost, owner)
    pruned = sections if is_pruning else frozenset[str]()
    # Pruning never deletes the user of the request and what it may do, nor the id of the cluster.
    spared = {
        DefinitionKey("users", "", owner),
        *(DefinitionKey("permissions", name, owner) for name in node.metadata.vhosts.by_name),
        DefinitionKey("global_parameters", "", CLUSTER_ID),
    }
    # What is refused is planned as blocked, and not applied.
    commands = [*found.commands, *found.refused]
    plan = ImportPlan(node.metadata, commands, vhost=vhost, pruned=pruned, spared=spared)
    for _ in plan.steps():
        await asyncio.sleep(0)
    planned = _PlanReview(plan, found)
    await planned.look_at(node, [vhost, is_pruning])
    return planned


def _parse_importable(
    data: bytes, node: ManagedNode, vhost: str | None, owner: str
) -> tuple[CheckedDefinitions, frozenset[str]]:
    """The commands of a document, and the names of its sections."""
    document = parsed(data)
    if not isinstance(document, dict):
        raise bad_request("not_json")
    users = document.get("users")
    if isinstance(users, list):
        document["users"] = [_with_known_hash(user, node) for user in users]
    try:
        user = parameter_user(ACTING_USER.get())
        unread: list[str] = []
        read = import_commands(document, node.hash_password, vhost=vhost, user=user, left_out=unread)
        found = check_definitions(read, node.metadata, owner=owner, default_type=node.default_queue_type)
        found.left_out[:0] = unread
    except DefinitionsError as error:
        raise bad_request(str(error)) from None
    return found, frozenset(document)


def _with_known_hash(entry: Json, node: ManagedNode) -> Json:
    """`entry` with the stored hash if the password is unchanged: a new salt would make another hash."""
    if not isinstance(entry, dict) or not isinstance(entry.get("password"), str):
        return entry
    name = entry.get("name")
    user = node.metadata.users.by_name.get(name) if isinstance(name, str) else None
    if user is None:
        return entry
    stored = PasswordHash(user.password_hash, user.hashing_algorithm)
    if not is_affordable(stored) or not is_password(entry["password"], stored):
        return entry
    known = {name: value for name, value in entry.items() if name != "password"}
    return known | {
        "password_hash": b64encode(stored.salted_hash).decode("ascii"),
        "hashing_algorithm": stored.algorithm,
    }


def _count(request: web.Request) -> int:
    text = request.query.get("count", str(PLANNED_SHOWN_MAX))
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or int(text) > PLANNED_SHOWN_MAX:
        raise bad_request(f"count must be a number up to {PLANNED_SHOWN_MAX}, not '{text[:40]}'")
    return int(text)
