"""Health checks, as RabbitMQ 3.10.8 answers them: 200 with status "ok", or 503 with the reason."""

from datetime import UTC, datetime
from typing import Literal, NotRequired, Required, TypedDict

import msgspec
from aiohttp import web
from msgspec.structs import asdict

from warren.management.api.quarantine import quarantined_item_view
from warren.management.carried_request import CARRIED
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.name_filters import PatternError, name_filter
from warren.management.node_requests import carried, fetch, gather_answers, other_nodes
from warren.management.operation import documented
from warren.management.prometheus.objects import replicated_queues
from warren.management.quarantine_view import unacknowledged
from warren.management.replies import error_reply, failed, missing, reply
from warren.management.views.overview import RESOURCES, alarms_of, cluster_alarms_of
from warren.metadata.records import QueueRecord
from warren.model.arguments import QUORUM

_FAILED = 503
_NO_LISTENER = "No active listener"
_NO_CLIENTS = "the node accepts no clients, for maintenance or because it hears no majority of its cluster"
# Names of protocols that clients may use, and the names of the listeners' protocols.
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
# RabbitMQ's text, and what to do.
_CRITICAL = "There are quorum queues that would lose their quorum if the target node is shut down"
_CRITICAL_MESSAGE = (
    "{} have no majority without this node: start their other nodes, or give them more "
    "replicas with 'warren queues grow', before it is stopped"
)
_DAYS = {"days": 1, "weeks": 7, "months": 30, "years": 365}
_DAY_MS = 86_400_000


class HealthCheckPassedShape(TypedDict, total=False):
    """A health check that passed."""

    status: Required[Literal["ok"]]
    reason: str
    port: int
    protocol: str
    limit: int | str
    connections: int


class HealthCheckFailedShape(TypedDict, total=False):
    """A health check that failed, with the reason."""

    status: Required[Literal["failed"]]
    reason: Required[str]
    # The reason for people; it names the objects that failed the check.
    message: str
    alarms: list[dict[str, str]]
    missing: int | str
    ports: list[int]
    limit: int | str
    connections: int
    online: int
    target: int
    protocols: list[str]
    expired: list[dict[str, str]]
    losses: list[dict[str, str | int | list[str] | None]]
    queues: list[dict[str, str]]
    quarantine: list[dict[str, str | int]]


class NodeHealthShape(TypedDict):
    """The state of a node in words."""

    status: Literal["ok", "failed"]
    reason: NotRequired[str]


_described = documented(response=HealthCheckPassedShape, responses={503: HealthCheckFailedShape})


@_described
def alarms(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that no alarm blocks publishers in the cluster."""
    return _alarms(cluster_alarms_of(node), "There are alarms in effect in the cluster")


@_described
def local_alarms(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that no alarm of this node blocks publishers."""
    return _alarms(alarms_of(node), "There are alarms in effect on the node")


@_described
def port_listener(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that a listener uses the port."""
    written = request.match_info["port"]
    if not written.isascii() or not written.isdigit() or len(written) > 5:
        return error_reply(400, "bad_request", "Invalid port")
    port = int(written)
    ports = sorted({listener.port for listener in node.active_listeners})
    if port in ports:
        return reply({"status": "ok", "port": port})
    return failed(_NO_LISTENER, missing=port, ports=ports, message=f"nothing listens on port {port}")


@_described
def protocol_listener(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that a listener uses the protocol."""
    asked = request.match_info["protocol"]
    # RabbitMQ accepts several protocols, separated by commas, since 4.1.
    wanted = [_PROTOCOLS.get(one.lower(), one) for one in asked.split(",")]
    protocols = list(dict.fromkeys(listener.protocol for listener in node.active_listeners))
    if all(protocol in protocols for protocol in wanted):
        return reply({"status": "ok", "protocol": ",".join(wanted)})
    return failed(_NO_LISTENER, missing=asked, protocols=protocols, message=f"nothing listens for {asked}")


@_described
def virtual_hosts(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that all virtual hosts are running."""
    down = _down(node)
    if down:
        return failed("Some virtual hosts are down", **{"virtual-hosts": down})
    return reply({"status": "ok"})


@_described
def losses(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that all losses of messages have been acknowledged by an operator."""
    lost = [asdict(loss) for loss in node.losses() if not loss.acknowledged]
    if lost:
        return failed("Messages were lost, and the loss has not been acknowledged", losses=lost)
    return reply({"status": "ok"})


@_described
def quarantine(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that all quarantined data (unknown to the metadata) has been acknowledged by an operator."""
    kept = [quarantined_item_view(item) for item in unacknowledged(node.quarantine.items())]
    if kept:
        text = "There is quarantined data on disk that has not been acknowledged"
        return failed(text, quarantine=kept)
    return reply({"status": "ok"})


@_described
def critical(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that no quorum queue loses its quorum if this node stops."""
    if len(node.metadata.members.by_id) <= 1:
        return reply({"status": "ok", "reason": "single node cluster"})
    queues = [
        {
            "name": one.record.name,
            "readable_name": f"queue '{one.record.name}' in vhost '{vhost}'",
            "type": QUORUM,
            "virtual_host": vhost,
        }
        for vhost in node.metadata.vhosts.by_name
        for one in node.queue_index.of_kind(vhost, QUORUM)
        if _is_critical(node, one.record)
    ]
    if queues:
        return failed(_CRITICAL, queues=queues, message=_CRITICAL_MESSAGE.format(_count(len(queues))))
    return reply({"status": "ok"})


def _count(queues: int) -> str:
    return "1 quorum queue would" if queues == 1 else f"{queues} quorum queues would"


def _is_critical(node: ManagedNode, record: QueueRecord) -> bool:
    """True if a queue has a replica here, and no more replicas on nodes that are up than a majority."""
    nodes = [member.node for member in record.replicas]
    return any(map(node.is_own, nodes)) and 2 * (sum(map(node.is_up, nodes)) - 1) <= len(nodes)


@_described
def in_service(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that this node is in service, and not in maintenance mode."""
    if not node.cluster_controls.accepts_clients:
        return failed(_NO_CLIENTS)
    return reply({"status": "ok"})


@_described
def connection_limit(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that the connection limit of the node is not reached."""
    count, limit = node.server.connection_count, node.connections_max
    facts = {"limit": "infinity" if limit is None else limit, "connections": count}
    if limit is None or count < limit:
        return reply({"status": "ok", **facts})
    return failed("node connection limit is reached", **facts)


@_described
def target_size(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that as many nodes of the cluster are up as `cluster_formation.target_cluster_size_hint` says."""
    members = node.metadata.members.by_id.values()
    online, target = sum(member.is_up for member in members) or 1, node.target_cluster_size
    if online >= target:
        return reply({"status": "ok"})
    text = f"target cluster size not reached: {online} of {target} nodes are online"
    return failed(text, online=online, target=target)


@_described
def ready(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that the node has an AMQP listener and all virtual hosts are running."""
    if not node.cluster_controls.accepts_clients:
        return failed(_NO_CLIENTS)
    if not any(listener.protocol.startswith("amqp") for listener in node.listeners):
        return failed("no listener for AMQP is active")
    return connection_limit(request, node)


@_described
async def leaders(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that every quorum queue has a leader, and that none is down as its data may be incomplete."""
    wanted = frozenset((vhost_in_path(request, node).name,)) if "vhost" in request.match_info else None
    down = [
        (queue.vhost_name, queue.name)
        for queue, status in replicated_queues(node, wanted)
        if status.untrusted
    ]
    if CARRIED not in request:
        down += _leaderless(node, wanted)
    try:
        pattern = name_filter(request.match_info.get("pattern", ""), is_pattern=True)
        fitting = pattern.fits([name for _, name in down])
    except PatternError as error:
        return error_reply(400, "bad_request", str(error))
    queues = [
        {"name": name, "vhost": vhost, "type": QUORUM}
        for (vhost, name), fits in zip(down, fitting, strict=True)
        if fits
    ]
    queues += await _failures(request, node, None, "queues")
    if queues:
        # Several nodes may know of one queue that it is down.
        once = {(queue["vhost"], queue["name"]): queue for queue in queues}
        return failed("There are quorum queues without an elected leader", queues=list(once.values()))
    return reply({"status": "ok"})


def _leaderless(node: ManagedNode, wanted: frozenset[str] | None) -> list[tuple[str, str]]:
    """The quorum queues that nobody leads as far as this node knows: virtual host and name."""
    return [
        (vhost, one.record.name)
        for vhost in node.metadata.vhosts.by_name
        if wanted is None or vhost in wanted
        for one in node.queue_index.of_kind(vhost, QUORUM)
        if node.groups.leader_of(one.record) is None
    ]


@_described
def certificate_expiration(request: web.Request, node: ManagedNode) -> web.Response:
    """Check that no certificate expires within a number of days, weeks, months or years."""
    days = _DAYS.get(request.match_info["unit"])
    if days is None:
        return error_reply(
            400,
            "bad_request",
            "Time unit not recognised. Supported units: days, weeks, months, years.",
        )
    try:
        within = int(request.match_info["within"])
    except ValueError:
        return error_reply(400, "bad_request", "Invalid expiration value.")
    end = node.now() + within * days * _DAY_MS
    expired = [
        {
            "node": node.node_name,
            "certfile": name,
            "certfile_expires_on": f"{datetime.fromtimestamp(expiry / 1000, UTC):%Y-%m-%d %H:%M:%S}",
        }
        for name, expiry in node.certificates().items()
        if expiry <= end
    ]
    return failed("Certificates expiring", expired=expired) if expired else reply({"status": "ok"})


@documented(response=NodeHealthShape)
def node_health(request: web.Request, node: ManagedNode) -> web.Response:
    """Check a node for alarms and stopped virtual hosts (RabbitMQ's deprecated health check)."""
    if request.match_info.get("node", node.node_name) != node.node_name:
        raise missing()
    found = [f"resource alarm(s) in effect: {RESOURCES[resource]}" for resource in node.alarms.low]
    found += [f"vhost '{name}' is down" for name in _down(node)]
    return reply({"status": "failed", "reason": "; ".join(found)}) if found else reply({"status": "ok"})


def _down(node: ManagedNode) -> list[str]:
    return [name for name in node.metadata.vhosts.by_name if name not in node.server.vhost_services]


async def _failures(
    request: web.Request, node: ManagedNode, path: str | None, name: str
) -> list[dict[str, str]]:
    """The list `name` of what has failed the check of `path`, or of this request, on the other nodes."""
    members = other_nodes(request, node)
    asked = carried(request, node, path=path) if members else None
    answers = await gather_answers(
        request, members, [fetch(node, to, asked) for to in members if asked is not None]
    )
    found: list[dict[str, str]] = []
    for _, answer in answers:
        if answer.head.status == _FAILED:
            found += msgspec.json.decode(answer.body).get(name, ())
    return found


def _alarms(resources: list[dict[str, str]], reason: str) -> web.Response:
    if not resources:
        return reply({"status": "ok"})
    named = (f"{item['resource']} of node {item['node']}" for item in resources)
    return failed(reason, alarms=resources, message=f"alarm: {', '.join(named)}; publishers are blocked")
