"""The context in which an HTTP request acts as a channel does: virtual host, user and rights."""

from aiohttp import web
from msgspec import Struct

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

# No connection has this name, so exclusive queues always belong to other owners.
_OWNER = "http"
# The channel number in traced messages.
_CHANNEL = 1


class _HttpOrigin(Struct, frozen=True):
    """The origin of a request, in place of a connection."""

    name: str


class RequestContext(Struct, frozen=True, kw_only=True):
    """The virtual host and the rights with which a request is handled."""

    services: VhostServices
    records: DeclaredTopology
    requester: Requester
    rules: PublishRules
    origin: ChannelOrigin


def request_context(request: web.Request, node: ManagedNode) -> RequestContext:
    """The context in the virtual host of the path; raises RequestRefused (503) if it is down."""
    return request_context_in(request, node, vhost_in_path(request, node))


def request_context_in(request: web.Request, node: ManagedNode, vhost: VhostMetadata) -> RequestContext:
    """The context in `vhost`; raises RequestRefused (503) if it is down."""
    services = node.server.vhost_services.get(vhost.name)
    if services is None:
        raise RequestRefused(error_reply(503, "service_unavailable", f"vhost '{vhost.name}' is down"))
    for value in request.match_info.values():
        if len(value.encode("utf-8", "surrogateescape")) > NAME_SIZE_MAX:
            raise bad_request("name_too_long")
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
    """The exchange in the path part `part`; the default exchange has the alias of RabbitMQ."""
    name = request.match_info[part]
    return "" if name == DEFAULT_EXCHANGE_ALIAS else name
