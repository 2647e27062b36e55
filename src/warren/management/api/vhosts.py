"""Virtual hosts: creating, describing and restarting them, as RabbitMQ 3.10.8 does."""

from typing import Required, TypedDict

from aiohttp import web
from msgspec.structs import replace

from warren.access.grants import ExternalUser
from warren.management.api.users import tags_of
from warren.management.auth import user_of, visible_vhosts
from warren.management.listing import JsonObject, Listing, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import propose, vhost_in_path
from warren.management.operation import ColumnsQuery, Flag, JsonTable, PageQuery, documented, paged, shape
from warren.management.replies import bad_request, done, error_reply, put
from warren.management.request_body import BodyFields, read_fields
from warren.management.summed_lists import reply_summed_list, summed_facts
from warren.management.views.overview import vhost_stats
from warren.management.views.stats import MessageStatsShape, SamplesQuery, sample_ranges, with_details
from warren.metadata.commands import PutVhost, RemoveVhost, SetPermissions
from warren.metadata.restoring_commands import put_vhost as put_vhost_command
from warren.metadata.vhosts import VhostMetadata, protection_refusal
from warren.metrics.sampler import BYTES, LENGTHS
from warren.model.arguments import QUEUE_KINDS

# The fields that are sums over all nodes, and that which has a field for each of them.
_COUNTED = frozenset((*LENGTHS, *BYTES, "message_stats", "cluster_state"))
_UNDEFINED = "undefined"
# The field's name in RabbitMQ 3.10, and in RabbitMQ 4.
_DEFAULT_QUEUE_TYPE = ("defaultqueuetype", "default_queue_type")


class VhostBody(TypedDict, total=False):
    """The properties of a virtual host; those that are not given stay unchanged."""

    description: str
    tags: str | list[str]
    tracing: Flag
    default_queue_type: str | None
    defaultqueuetype: str | None
    protected_from_deletion: Flag


class VhostsQuery(PageQuery, SamplesQuery, total=False):
    """How a list of virtual hosts is sorted and filtered."""


class VhostQuery(ColumnsQuery, SamplesQuery, total=False):
    """Which fields of a virtual host are returned."""


class _Fields(TypedDict, total=False):
    name: Required[str]
    description: Required[str]
    tags: Required[list[str]]
    default_queue_type: Required[str]
    metadata: Required[JsonTable]
    tracing: Required[bool]
    cluster_state: Required[dict[str, str]]
    message_stats: MessageStatsShape


VhostShape = shape("VhostShape", "A virtual host.", _Fields.__annotations__, with_details((*LENGTHS, *BYTES)))


@documented(query=VhostsQuery, response=paged(VhostShape))
async def vhosts(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the virtual hosts that the user may list."""
    found = [node.metadata.vhosts.by_name[name] for name in visible_vhosts(node, user_of(request))]
    wanted = sample_ranges(request, node)
    listing: Listing[VhostMetadata] = Listing(
        records=found,
        view=lambda vhost: vhost_view(node, vhost) | vhost_stats(node, vhost.name, wanted),
        columns={"name": lambda vhost: vhost.name},
        sort_keys=("name",),
        is_paged=True,
        identity=lambda vhost: vhost.name,
    )
    return await reply_summed_list(request, node, listing, _COUNTED)


@documented(query=VhostQuery, response=VhostShape)
async def vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get a virtual host."""
    found = vhost_in_path(request, node)
    facts = vhost_view(node, found) | vhost_stats(node, found.name, sample_ranges(request, node))
    return reply_one(request, await summed_facts(request, node, facts, _COUNTED))


@documented(body=VhostBody)
async def put_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Create a virtual host with full permissions for the user, or update its description and tags."""
    name = request.match_info["vhost"]
    fields = await read_fields(request)
    before = node.metadata.vhost(name)
    await propose(
        node,
        PutVhost(
            name=name,
            description=_description(fields, before),
            tags=tags_of(fields) if "tags" in fields or before is None else before.tags,
            default_queue_type=_queue_type(fields, before),
            tracing=fields.flag("tracing", default=before is not None and before.tracing),
            protected_from_deletion=fields.flag(
                "protected_from_deletion", default=before is not None and before.protected_from_deletion
            ),
        ),
    )
    user = user_of(request)
    # Permissions in the metadata are those of a user there, and not of one with the same name.
    if before is None and not isinstance(user, ExternalUser):
        await propose(
            node,
            SetPermissions(user=user.name, vhost=name, configure=".*", write=".*", read=".*"),
        )
    return put(is_new=before is None)


async def delete_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete a virtual host and everything in it; 412 if it is protected from deletion."""
    found = vhost_in_path(request, node)
    if found.protected_from_deletion:
        return error_reply(412, "precondition_failed", protection_refusal(found.name))
    await propose(node, RemoveVhost(name=found.name))
    return done()


async def protect(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Protect a virtual host from deletion, as RabbitMQ 4.1 does."""
    return await _protected(request, node, is_protected=True)


async def unprotect(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Permit the deletion of a virtual host."""
    return await _protected(request, node, is_protected=False)


async def _protected(request: web.Request, node: ManagedNode, *, is_protected: bool) -> web.Response:
    found = vhost_in_path(request, node)
    await propose(node, replace(put_vhost_command(found), protected_from_deletion=is_protected))
    return done()


async def start(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Restart a virtual host that is down; 204 also if it is running."""
    where, name = request.match_info["node"], request.match_info["vhost"]
    if where != node.node_name:
        return _failed(where, "nodedown")
    if name not in node.metadata.vhosts.by_name:
        return _failed(where, f'{{no_such_vhost,<<"{name}">>}}')
    reason = await node.start_vhost(name)
    return _failed(where, reason) if reason else done()


def vhost_view(node: ManagedNode, vhost: VhostMetadata) -> JsonObject:
    """The fields of a virtual host without statistics."""
    kind = vhost.default_queue_type
    metadata: JsonObject = {"description": vhost.description, "tags": list(vhost.tags)}
    if kind is not None:
        metadata["default_queue_type"] = kind
    if vhost.protected_from_deletion:
        metadata["protected_from_deletion"] = True
    is_running = vhost.name in node.server.vhost_services
    return {
        "name": vhost.name,
        "description": vhost.description,
        "tags": list(vhost.tags),
        "default_queue_type": kind or _UNDEFINED,
        "metadata": metadata,
        "tracing": vhost.tracing,
        "cluster_state": {node.node_name: "running" if is_running else "stopped"},
    }


def _description(fields: BodyFields, before: VhostMetadata | None) -> str:
    return fields.text("description", "" if before is None else before.description)


def _queue_type(fields: BodyFields, before: VhostMetadata | None) -> str | None:
    for name in _DEFAULT_QUEUE_TYPE:
        if name in fields:
            kind = fields.get(name)
            if kind is None or kind == _UNDEFINED:
                return None
            if kind == "":
                raise bad_request("default_queue_type must not be an empty string")
            if not isinstance(kind, str) or kind not in QUEUE_KINDS:
                raise bad_request(f"{kind} is not a valid queue type")
            return kind
    return None if before is None else before.default_queue_type


def _failed(where: str, reason: str) -> web.Response:
    return error_reply(400, "bad_request", f"Request to node {where} failed with {reason}")
