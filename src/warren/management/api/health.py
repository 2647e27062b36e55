"""Health checks, as RabbitMQ 3.10.8 answers them: 200 with "ok", or 503 with what is wrong."""

from aiohttp import web

from warren.flow.alarms import Resource
from warren.management.managed import Managed
from warren.management.replies import failed, refused, reply

# Other ways to write the names of protocols.
_PROTOCOLS = {
    "amqp091": "amqp",
    "amqp0-9-1": "amqp",
    "amqp0.9.1": "amqp",
    "amqp": "amqp",
    "amqps": "amqp/ssl",
    "amqp091/ssl": "amqp/ssl",
    "http": "http",
    "prometheus": "http/prometheus",
}
_RESOURCES = {Resource.DISK: "disk space", Resource.MEMORY: "memory"}


def alarms(request: web.Request, node: Managed) -> web.Response:
    """Whether any alarm holds publishers up."""
    return _alarms(node, "There are alarms in effect in the cluster")


def local_alarms(request: web.Request, node: Managed) -> web.Response:
    """The same, on this node."""
    return _alarms(node, "There are alarms in effect on the node")


def port_listener(request: web.Request, node: Managed) -> web.Response:
    """Whether something listens on a port."""
    written = request.match_info["port"]
    if not written.isascii() or not written.isdigit() or len(written) > 5:
        return refused(400, "bad_request", "Invalid port")
    port = int(written)
    ports = sorted({listener.port for listener in node.listeners})
    if port in ports:
        return reply({"status": "ok", "port": port})
    return failed("No active listener", missing=port, ports=ports)


def protocol_listener(request: web.Request, node: Managed) -> web.Response:
    """Whether some listener speaks a protocol."""
    asked = request.match_info["protocol"]
    protocol = _PROTOCOLS.get(asked.lower(), asked)
    protocols = list(dict.fromkeys(listener.protocol for listener in node.listeners))
    if protocol in protocols:
        return reply({"status": "ok", "protocol": protocol})
    return failed("No active listener", missing=asked, protocols=protocols)


def virtual_hosts(request: web.Request, node: Managed) -> web.Response:
    """Whether every virtual host that exists is alive."""
    down = [name for name in node.metadata.vhosts.by_name if name not in node.server.domains]
    if down:
        return failed("Some virtual hosts are down", **{"virtual-hosts": down})
    return reply({"status": "ok"})


def critical(request: web.Request, node: Managed) -> web.Response:
    """Whether this node may stop without a queue losing its majority: alone, there is none to lose."""
    return reply({"status": "ok", "reason": "single node cluster"})


def _alarms(node: Managed, reason: str) -> web.Response:
    low = node.alarms.low
    if not low:
        return reply({"status": "ok"})
    resources = [{"node": node.node_name, "resource": _RESOURCES[resource]} for resource in low]
    return failed(reason, alarms=resources)
