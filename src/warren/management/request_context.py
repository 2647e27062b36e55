"""Who asks over HTTP for what channels ask for: the user in the virtual host that the path names."""

from dataclasses import dataclass

from aiohttp import web

from warren.limits import NAME_SIZE_MAX
from warren.management.auth import user_of
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.replies import RequestRefused, bad_request, error_reply
from warren.metadata.declared_topology import DeclaredTopology
from warren.metadata.vhosts import VhostMetadata
from warren.model.names import DEFAULT_EXCHANGE_ALIAS
from warren.session.channel_origin import ChannelOrigin
from warren.session.publish_rules import PublishRules
from warren.session.vhost_services import VhostServices
from warren.vhost.requester import Owner, Requester

# No connection has such a name: what is exclusive belongs to others.
_OWNER = "http"
# The number of the channel that stands in traces.
_CHANNEL = 1


@dataclass(frozen=True, slots=True)
class _HttpOrigin:
    """Where a request comes from, as it is named beside connections."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """What a request works with."""

    services: VhostServices
    records: DeclaredTopology
    requester: Requester
    rules: PublishRules
    origin: ChannelOrigin


def request_context(request: web.Request, node: ManagedNode) -> RequestContext:
    """For the virtual host that the path of `request` names, which must be alive."""
    return request_context_in(request, node, vhost_in_path(request, node))


def request_context_in(request: web.Request, node: ManagedNode, vhost: VhostMetadata) -> RequestContext:
    """For `vhost`, which must be alive."""
    services = node.server.vhost_services.get(vhost.name)
    if services is None:
        raise RequestRefused(error_reply(503, "service_unavailable", f"vhost '{vhost.name}' is down"))
    for value in request.match_info.values():
        if len(value.encode("utf-8", "surrogateescape")) > NAME_SIZE_MAX:
            raise bad_request("name_too_long")
    # As of now, for whatever is written or counted.
    services.vhost.now = node.now()
    user = user_of(request)
    authorizer = services.authorizer(user)
    origin = ChannelOrigin(
        _HttpOrigin(f"HTTP from {request.remote}"), _CHANNEL, user.name, node.server.event_publisher
    )
    return RequestContext(
        services=services,
        records=vhost.topology,
        requester=Requester(authorizer, Owner(_OWNER)),
        rules=services.rules(user, authorizer),
        origin=origin,
    )


def exchange_in_path(request: web.Request, part: str) -> str:
    """The exchange that a part of the path names: one that has no name goes by another there."""
    name = request.match_info[part]
    return "" if name == DEFAULT_EXCHANGE_ALIAS else name
