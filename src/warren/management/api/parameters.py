"""Runtime parameters, addressed by component and name, and global parameters."""

from collections.abc import Iterator
from typing import Any, TypedDict

from aiohttp import web

from warren.management.auth import login_vhosts, permitted_vhosts, user_of
from warren.management.listing import JsonObject, Listing, reply_list, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import propose_checked, propose_parameter, vhost_in_path
from warren.management.operation import ColumnsQuery, ListQuery, documented
from warren.management.replies import bad_request, done, missing, put
from warren.management.request_body import read_fields
from warren.metadata.commands import (
    ClearGlobalParameter,
    ClearParameter,
    SetGlobalParameter,
    SetParameter,
    parameter_user,
)
from warren.metadata.definitions import parameter_entries, policy_parameters
from warren.metadata.parameter_secrets import masked_parameter
from warren.metadata.parameters import POLICY
from warren.metadata.uri_check import VhostAccess
from warren.metadata.vhosts import VhostMetadata


class ParameterBody(TypedDict):
    """The value of a parameter."""

    value: Any


class ParameterShape(TypedDict):
    """A runtime parameter."""

    component: str
    vhost: str
    name: str
    value: Any


class GlobalParameterShape(TypedDict):
    """A global parameter."""

    name: str
    value: Any


@documented(query=ListQuery, response=list[ParameterShape])
async def parameters(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List parameters, of all components or one, in the virtual hosts in which the user has permissions."""
    vhosts = [node.metadata.vhosts.by_name[name] for name in login_vhosts(node, user_of(request))]
    component = request.match_info.get("component")
    return await _reply(request, [entry for vhost in vhosts for entry in _of(vhost, component)])


@documented(query=ListQuery, response=list[ParameterShape])
async def of_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the parameters of a component in a virtual host."""
    return await _reply(request, list(_of(vhost_in_path(request, node), request.match_info["component"])))


@documented(query=ColumnsQuery, response=ParameterShape)
async def parameter(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get a parameter."""
    return reply_one(request, _found(request, vhost_in_path(request, node)))


@documented(body=ParameterBody)
async def put_parameter(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Set a parameter."""
    vhost = vhost_in_path(request, node)
    component, name = request.match_info["component"], request.match_info["name"]
    fields = await read_fields(request)
    if component == POLICY:
        raise bad_request("policies may not be set using this method")
    is_new = _find(request, vhost) is None
    value = fields.get("value")
    user = user_of(request)
    command = SetParameter(
        vhost=vhost.name, component=component, name=name, value=value, user=parameter_user(user.identity)
    )
    await propose_parameter(
        node, command, VhostAccess(user.name, frozenset(permitted_vhosts(node, user)).__contains__)
    )
    return put(is_new=is_new)


async def delete_parameter(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete a parameter."""
    vhost = vhost_in_path(request, node)
    _found(request, vhost)
    component, name = request.match_info["component"], request.match_info["name"]
    await propose_checked(node, ClearParameter(vhost=vhost.name, component=component, name=name))
    return done()


@documented(query=ListQuery, response=list[GlobalParameterShape])
async def global_parameters(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the global parameters."""
    found = [
        {"name": name, "value": value} for name, value in node.metadata.global_parameters.by_name.items()
    ]
    return await reply_list(request, _listing(found, ("name",)))


@documented(query=ColumnsQuery, response=GlobalParameterShape)
async def global_parameter(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get a global parameter."""
    name = _global_name(request, node)
    return reply_one(request, {"name": name, "value": node.metadata.global_parameters.by_name[name]})


@documented(body=ParameterBody)
async def put_global_parameter(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Set a global parameter."""
    name = request.match_info["name"]
    fields = await read_fields(request)
    is_new = name not in node.metadata.global_parameters.by_name
    await propose_checked(node, SetGlobalParameter(name=name, value=fields.get("value")))
    return put(is_new=is_new)


async def delete_global_parameter(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Delete a global parameter."""
    await propose_checked(node, ClearGlobalParameter(name=_global_name(request, node)))
    return done()


def _global_name(request: web.Request, node: ManagedNode) -> str:
    name = request.match_info["name"]
    if name not in node.metadata.global_parameters.by_name:
        raise missing()
    return name


def _of(vhost: VhostMetadata, component: str | None) -> Iterator[JsonObject]:
    """The parameters with hidden passwords; policies are of the components `policy` and `operator_policy`."""
    entries = policy_parameters(vhost) if component == POLICY else parameter_entries(vhost)
    return (
        {**entry, "value": masked_parameter(str(entry["component"]), entry["value"])}
        for entry in entries
        if component is None or entry["component"] == component
    )


def _find(request: web.Request, vhost: VhostMetadata) -> JsonObject | None:
    component, name = request.match_info["component"], request.match_info["name"]
    return next((entry for entry in _of(vhost, component) if entry["name"] == name), None)


def _found(request: web.Request, vhost: VhostMetadata) -> JsonObject:
    entry = _find(request, vhost)
    if entry is None:
        raise missing()
    return entry


async def _reply(request: web.Request, found: list[JsonObject]) -> web.StreamResponse:
    return await reply_list(request, _listing(found, ("component", "vhost", "name")))


def _listing(found: list[JsonObject], sort_keys: tuple[str, ...]) -> Listing[JsonObject]:
    columns = {
        "component": lambda entry: entry.get("component"),
        "vhost": lambda entry: entry.get("vhost"),
        "name": lambda entry: entry["name"],
    }
    return Listing(records=found, view=lambda entry: entry, columns=columns, sort_keys=sort_keys)
