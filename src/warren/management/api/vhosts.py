"""Virtual hosts: starting one that is down, as RabbitMQ 3.10.8 answers it."""

from aiohttp import web

from warren.management.managed import Managed
from warren.management.replies import refused
from warren.metadata.users import User

_ADMINISTRATOR = "administrator"


async def start(request: web.Request, node: Managed) -> web.Response:
    """Start a virtual host again; 204 also if it runs."""
    user: User = request["user"]
    if _ADMINISTRATOR not in user.tags:
        return refused(401, "not_authorised", "Not administrator user")
    where, vhost = request.match_info["node"], request.match_info["vhost"]
    if where != node.node_name:
        return _failed(where, "nodedown")
    if vhost not in node.metadata.vhosts.by_name:
        return _failed(where, f'{{no_such_vhost,<<"{vhost}">>}}')
    reason = await node.start_vhost(vhost)
    return _failed(where, reason) if reason else web.Response(status=204)


def _failed(where: str, reason: str) -> web.Response:
    return refused(400, "bad_request", f"Request to node {where} failed with {reason}")
