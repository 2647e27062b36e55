"""Policies and operator policies, which differ in the required right and in the accepted settings."""

from collections.abc import Iterator
from typing import Literal, NotRequired, TypedDict

from aiohttp import web

from warren.management.auth import login_vhosts, user_of
from warren.management.listing import JsonObject, Listing, reply_list, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import propose_checked, vhost_in_path
from warren.management.operation import ColumnsQuery, JsonTable, ListQuery, documented
from warren.management.replies import RequestRefused, bad_request, done, error_reply, missing, put
from warren.management.request_body import BodyFields, read_fields
from warren.metadata.commands import ClearPolicy, SetPolicy
from warren.metadata.definitions import policy_entry
from warren.metadata.policies import Policy
from warren.metadata.validation import failed
from warren.metadata.vhosts import VhostMetadata
from warren.model.patterns import TOO_SLOW

_NO_KIND = "apply-to 'null' unrecognised; should be 'queues', 'exchanges' or 'all'"
_NamedPolicy = tuple[str, Policy]


PolicyBody = TypedDict(
    "PolicyBody",
    {
        "pattern": str,
        "definition": JsonTable,
        "priority": NotRequired[int],
        "apply-to": NotRequired[Literal["all", "queues", "exchanges"]],
    },
)
PolicyShape = TypedDict(
    "PolicyShape",
    {
        "vhost": str,
        "name": str,
        "pattern": str,
        "apply-to": str,
        "definition": JsonTable,
        "priority": int,
        "suspended": NotRequired[str],
    },
)
PolicyBody.__doc__ = "The properties of a policy."
PolicyShape.__doc__ = "A policy."


class PolicyHandlers:
    """The handlers of policies, or of operator policies."""

    def __init__(self, *, is_operator: bool) -> None:
        self._is_operator = is_operator

    @documented(query=ListQuery, response=list[PolicyShape])
    async def all(self, request: web.Request, node: ManagedNode) -> web.StreamResponse:
        """List the policies in the virtual hosts in which the user has permissions."""
        vhosts = [node.metadata.vhosts.by_name[name] for name in login_vhosts(node, user_of(request))]
        return await _reply(request, [named for vhost in vhosts for named in self._of(vhost)])

    @documented(query=ListQuery, response=list[PolicyShape])
    async def of_vhost(self, request: web.Request, node: ManagedNode) -> web.StreamResponse:
        """List the policies in a virtual host."""
        return await _reply(request, list(self._of(vhost_in_path(request, node))))

    @documented(query=ColumnsQuery, response=PolicyShape)
    async def one(self, request: web.Request, node: ManagedNode) -> web.StreamResponse:
        """Get a policy."""
        vhost = vhost_in_path(request, node)
        return reply_one(request, _facts((vhost.name, self._found(request, vhost))))

    @documented(body=PolicyBody)
    async def put(self, request: web.Request, node: ManagedNode) -> web.StreamResponse:
        """Create or replace a policy."""
        self._check_changeable(node)
        vhost, name = vhost_in_path(request, node), request.match_info["name"]
        fields = await read_fields(request)
        is_new = name not in self._by_name(vhost)
        command = SetPolicy(
            vhost=vhost.name,
            name=name,
            pattern=fields.get("pattern"),
            definition=fields.get("definition"),
            priority=_given(fields, "priority", "priority should be a number, actually was null"),
            apply_to=_given(fields, "apply-to", _NO_KIND),
            is_operator=self._is_operator,
        )
        await propose_checked(node, command, is_escaped=not self._is_operator)
        return put(is_new=is_new)

    async def delete(self, request: web.Request, node: ManagedNode) -> web.StreamResponse:
        """Remove a policy."""
        self._check_changeable(node)
        vhost = vhost_in_path(request, node)
        name = self._found(request, vhost).name
        await propose_checked(node, ClearPolicy(vhost=vhost.name, name=name, is_operator=self._is_operator))
        return done()

    def _check_changeable(self, node: ManagedNode) -> None:
        """Raise RequestRefused (405) for an operator policy if those are fixed, with RabbitMQ's text."""
        if self._is_operator and node.has_fixed_operator_policies:
            reason = "Broker settings disallow editing of operator policies."
            raise RequestRefused(error_reply(405, "method_not_allowed", reason))

    def _by_name(self, vhost: VhostMetadata) -> dict[str, Policy]:
        return (vhost.operator_policies if self._is_operator else vhost.policies).by_name

    def _of(self, vhost: VhostMetadata) -> Iterator[_NamedPolicy]:
        return ((vhost.name, policy) for policy in self._by_name(vhost).values())

    def _found(self, request: web.Request, vhost: VhostMetadata) -> Policy:
        policy = self._by_name(vhost).get(request.match_info["name"])
        if policy is None:
            raise missing()
        return policy


def _given(fields: BodyFields, name: str, refusal: str) -> object:
    """The field `name`, None if it is absent; raises RequestRefused with `refusal` if it is null."""
    value = fields.get(name)
    if value is None and name in fields:
        raise bad_request(failed([refusal]))
    return value


async def _reply(request: web.Request, found: list[_NamedPolicy]) -> web.StreamResponse:
    columns = {
        "vhost": lambda named: named[0],
        "name": lambda named: named[1].name,
        "priority": lambda named: named[1].priority,
    }
    listing: Listing[_NamedPolicy] = Listing(
        records=found, view=_facts, columns=columns, sort_keys=("priority", "vhost", "name")
    )
    return await reply_list(request, listing)


def _facts(named: _NamedPolicy) -> JsonObject:
    facts = policy_entry(*named)
    if named[1].matcher.is_suspended:
        facts["suspended"] = TOO_SLOW
    return facts
