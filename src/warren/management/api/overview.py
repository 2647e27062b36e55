"""The node at a glance, and who is asking."""

import platform

from aiohttp import web

from warren.management.auth import user_of
from warren.management.managed import ListenerView, Managed
from warren.management.replies import reply
from warren.routing.types import EXCHANGE_TYPES
from warren.session.greeting import COMPATIBLE_VERSION, PRODUCT


def who_am_i(request: web.Request, node: Managed) -> web.Response:
    """The user's name and tags."""
    user = user_of(request)
    return reply({"name": user.name, "tags": list(user.tags)})


def overview(request: web.Request, node: Managed) -> web.Response:
    """What runs here, and how many of everything."""
    return reply(
        {
            "management_version": COMPATIBLE_VERSION,
            "rates_mode": "basic",
            "exchange_types": [
                {"name": name, "description": _first_line(kind.__doc__), "enabled": True}
                for name, kind in sorted(EXCHANGE_TYPES.items())
            ],
            "product_version": COMPATIBLE_VERSION,
            "product_name": PRODUCT,
            "rabbitmq_version": COMPATIBLE_VERSION,
            "cluster_name": node.cluster_name,
            "erlang_version": platform.python_version(),
            "erlang_full_version": f"Python {platform.python_version()}",
            "disable_stats": False,
            "enable_queue_totals": False,
            "object_totals": totals(node),
            "node": node.node_name,
            "listeners": [_listener(node, view) for view in node.listeners],
        }
    )


def totals(node: Managed) -> dict[str, int]:
    """How many connections, channels, exchanges, queues and consumers there are."""
    vhosts = [domain.vhost for domain in node.server.domains.values()]
    return {
        "connections": len(node.server.connections),
        "channels": sum(len(connection.channels) for connection in node.server.connections),
        "exchanges": sum(len(vhost.router.exchanges) for vhost in vhosts),
        "queues": sum(len(vhost.queues) for vhost in vhosts),
        "consumers": sum(queue.consumer_count for vhost in vhosts for queue in vhost.queues.values()),
    }


def _first_line(docstring: str | None) -> str:
    return (docstring or "").partition("\n")[0]


def _listener(node: Managed, view: ListenerView) -> dict[str, object]:
    return {"node": node.node_name, "protocol": view.protocol, "ip_address": view.host, "port": view.port}
