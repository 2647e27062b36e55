"""Who asks over HTTP for what channels ask for: the user in the virtual host that the path names."""

from dataclasses import dataclass

from aiohttp import web

from warren.limits import NAME_SIZE_MAX
from warren.management.auth import user_of
from warren.management.managed import Managed
from warren.management.proposing import vhost_of
from warren.management.replies import Refused, bad_request, refused
from warren.metadata.topology import Topology
from warren.metadata.vhosts import Vhost
from warren.model.names import DEFAULT_EXCHANGE_ALIAS
from warren.session.domain import Domain
from warren.session.origin import Origin
from warren.session.publishing import PublishRules
from warren.vhost.requester import Owner, Requester

# No connection has such a name: what is exclusive belongs to others.
_OWNER = "http"
# The number of the channel that stands in traces.
_CHANNEL = 1


@dataclass(frozen=True, slots=True)
class _Caller:
    """Where a request comes from, as it is named beside connections."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What a request works with."""

    domain: Domain
    records: Topology
    requester: Requester
    rules: PublishRules
    origin: Origin


def asking(request: web.Request, node: Managed) -> Asking:
    """For the virtual host that the path of `request` names, which must be alive."""
    return asking_in(request, node, vhost_of(request, node))


def asking_in(request: web.Request, node: Managed, vhost: Vhost) -> Asking:
    """For `vhost`, which must be alive."""
    domain = node.server.domains.get(vhost.name)
    if domain is None:
        raise Refused(refused(503, "service_unavailable", f"vhost '{vhost.name}' is down"))
    for value in request.match_info.values():
        if len(value.encode("utf-8", "surrogateescape")) > NAME_SIZE_MAX:
            raise bad_request("name_too_long")
    # As of now, for whatever is written or counted.
    domain.vhost.now = node.now()
    user = user_of(request)
    authorizer = domain.authorizer(user)
    origin = Origin(_Caller(f"HTTP from {request.remote}"), _CHANNEL, user.name, node.server.announcer)
    return Asking(
        domain=domain,
        records=vhost.topology,
        requester=Requester(authorizer, Owner(_OWNER)),
        rules=domain.rules(user, authorizer),
        origin=origin,
    )


def name_of(request: web.Request, part: str) -> str:
    """The exchange that a part of the path names: one that has no name goes by another there."""
    name = request.match_info[part]
    return "" if name == DEFAULT_EXCHANGE_ALIAS else name
