"""The node, what it uses, and which of its alarms are on."""

from aiohttp import web

from warren.flow.alarms import Resource
from warren.management.managed import Managed
from warren.management.replies import reply

# What RabbitMQ calls the octets of a resource and their limit.
_NAMES = {Resource.MEMORY: ("mem_used", "mem_limit"), Resource.DISK: ("disk_free", "disk_free_limit")}
_ALARMS = {Resource.MEMORY: "mem_alarm", Resource.DISK: "disk_free_alarm"}


def nodes(request: web.Request, node: Managed) -> web.Response:
    """This one, alone. What nobody measures is not there."""
    found: dict[str, object] = {
        "name": node.node_name,
        "type": "disc",
        "running": True,
        "uptime": node.now() - node.started_at,
    }
    for resource, alarm in _ALARMS.items():
        found[alarm] = node.alarms.is_low(resource)
        level = node.alarms.level(resource)
        if level is not None:
            octets, limit = _NAMES[resource]
            found |= {octets: level.octets, limit: level.limit}
    return reply([found])
