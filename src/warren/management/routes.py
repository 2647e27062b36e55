"""Every route of the HTTP API: its path, what answers each method, and who may ask.

Nothing else says what exists. Paths are below `/api`; what stands in braces is one segment, in which `%2F`
is a slash. HEAD comes with GET, OPTIONS with everything, and a slash at the end changes nothing. Of two paths
that a request fits, the first answers.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from aiohttp import web

from warren.management.api import (
    bindings,
    cluster,
    connections,
    controls,
    dead_letters,
    declarations,
    definitions,
    documents,
    exchanges,
    health,
    jobs,
    leases,
    limits,
    live,
    messages,
    moving,
    node_state,
    nodes,
    overview,
    parameters,
    pausing,
    peek,
    permissions,
    picture,
    planning,
    quarantine,
    queues,
    returning,
    rows,
    sessions,
    staged,
    stream_connections,
    streams,
    tracing,
    users,
    vhosts,
)
from warren.management.api import (
    losses as lost,
)
from warren.management.api.policies import PolicyHandlers
from warren.management.auth import Right
from warren.management.managed import Managed

Handler: TypeAlias = Callable[[web.Request, Managed], web.StreamResponse | Awaitable[web.StreamResponse]]

_HEAD = "HEAD"
_GET = "GET"
_OPTIONS = "OPTIONS"


@dataclass(frozen=True, slots=True)
class Route:
    """One path."""

    path: str
    handlers: Mapping[str, Handler]
    right: Right
    # Where some methods need another right than the rest.
    rights: Mapping[str, Right] = field(default_factory=dict)

    @property
    def methods(self) -> list[str]:
        """The methods it takes, as RabbitMQ lists them."""
        head = [_HEAD] if _GET in self.handlers else []
        return [*head, *self.handlers, _OPTIONS]

    def handler(self, method: str) -> Handler | None:
        """What answers `method`; None if nothing does."""
        return self.handlers.get(_GET if method == _HEAD else method)

    def right_of(self, method: str) -> Right:
        """Who may ask with `method`."""
        return self.rights.get(method, self.right)


def _get(handler: Handler) -> Mapping[str, Handler]:
    return {_GET: handler}


def _one(handlers: PolicyHandlers) -> Mapping[str, Handler]:
    return {"GET": handlers.one, "PUT": handlers.put, "DELETE": handlers.delete}


_DEFINITIONS: Mapping[str, Handler] = {
    "GET": definitions.definitions,
    "POST": definitions.post_definitions,
}
_POLICIES = PolicyHandlers(is_operator=False)
_OPERATOR_POLICIES = PolicyHandlers(is_operator=True)
_TOPIC_PERMISSION: Mapping[str, Handler] = {
    "GET": permissions.topic_permission,
    "PUT": permissions.put_topic_permission,
    "DELETE": permissions.delete_topic_permission,
}

ROUTES: tuple[Route, ...] = (
    Route("/overview", _get(overview.overview), Right.USER),
    Route("/nodes", _get(nodes.nodes), Right.MONITOR),
    Route("/nodes/{node}", _get(nodes.one_node), Right.MONITOR),
    Route("/nodes/{node}/memory", _get(nodes.memory), Right.MONITOR),
    Route("/nodes/{node}/memory/relative", _get(nodes.relative_memory), Right.MONITOR),
    Route("/nodes/{node}/memory/ets", _get(nodes.tables), Right.MONITOR),
    Route("/nodes/{node}/memory/ets/relative", _get(nodes.relative_tables), Right.MONITOR),
    Route("/nodes/{node}/memory/ets/{filter}", _get(nodes.tables), Right.MONITOR),
    Route("/nodes/{node}/memory/ets/{filter}/relative", _get(nodes.relative_tables), Right.MONITOR),
    Route("/connections", _get(connections.connections), Right.USER),
    Route(
        "/connections/username/{user}",
        {"GET": connections.of_user, "DELETE": connections.close_connections},
        Right.USER,
    ),
    Route(
        "/connections/{connection}",
        {"GET": connections.connection, "DELETE": connections.close_connection},
        Right.USER,
    ),
    Route("/connections/{connection}/channels", _get(connections.channels_of_connection), Right.USER),
    Route("/channels", _get(connections.channels), Right.USER),
    Route("/channels/{channel}", _get(connections.channel), Right.USER),
    Route("/consumers", _get(connections.consumers), Right.USER),
    Route("/consumers/{vhost}", _get(connections.consumers), Right.USER),
    Route("/stream/connections", _get(stream_connections.connections), Right.USER),
    Route("/stream/connections/{vhost}", _get(stream_connections.connections), Right.VISIBLE_VHOST),
    Route(
        "/stream/connections/{vhost}/{connection}",
        {"GET": stream_connections.connection, "DELETE": stream_connections.close_connection},
        Right.USER,
    ),
    Route(
        "/stream/connections/{vhost}/{connection}/consumers",
        _get(stream_connections.consumers_on),
        Right.USER,
    ),
    Route(
        "/stream/connections/{vhost}/{connection}/publishers",
        _get(stream_connections.publishers_on),
        Right.USER,
    ),
    Route("/stream/publishers", _get(stream_connections.publishers), Right.USER),
    Route("/stream/publishers/{vhost}", _get(stream_connections.publishers), Right.USER),
    Route("/stream/publishers/{vhost}/{queue}", _get(stream_connections.publishers_of_stream), Right.USER),
    Route("/stream/consumers", _get(stream_connections.consumers), Right.USER),
    Route("/stream/consumers/{vhost}", _get(stream_connections.consumers), Right.USER),
    Route(
        "/cluster-name",
        {"GET": cluster.cluster_name, "PUT": cluster.put_cluster_name},
        Right.USER,
        {"PUT": Right.ADMINISTRATOR},
    ),
    Route("/vhosts", _get(vhosts.vhosts), Right.USER),
    Route(
        "/vhosts/{vhost}",
        {"GET": vhosts.vhost, "PUT": vhosts.put_vhost, "DELETE": vhosts.delete_vhost},
        Right.ADMINISTRATOR,
    ),
    Route("/vhosts/{vhost}/connections", _get(connections.of_vhost), Right.VHOST),
    Route("/vhosts/{vhost}/channels", _get(connections.channels_of_vhost), Right.VHOST),
    Route("/vhosts/{vhost}/start/{node}", {"POST": vhosts.start}, Right.ADMINISTRATOR),
    Route("/vhosts/{vhost}/permissions", _get(permissions.of_vhost), Right.ADMINISTRATOR),
    Route("/vhosts/{vhost}/topic-permissions", _get(permissions.topics_of_vhost), Right.ADMINISTRATOR),
    Route("/users/bulk-delete", {"POST": users.delete_users}, Right.ADMINISTRATOR),
    Route("/users/without-permissions", _get(users.without_permissions), Right.ADMINISTRATOR),
    Route("/users", _get(users.users), Right.ADMINISTRATOR),
    Route(
        "/users/{user}",
        {"GET": users.user, "PUT": users.put_user, "DELETE": users.delete_user},
        Right.ADMINISTRATOR,
    ),
    Route("/users/{user}/permissions", _get(users.permissions), Right.ADMINISTRATOR),
    Route("/users/{user}/topic-permissions", _get(users.topic_permissions), Right.ADMINISTRATOR),
    Route("/permissions", _get(permissions.permissions), Right.ADMINISTRATOR),
    Route(
        "/permissions/{vhost}/{user}",
        {
            "GET": permissions.permission,
            "PUT": permissions.put_permission,
            "DELETE": permissions.delete_permission,
        },
        Right.ADMINISTRATOR,
    ),
    Route("/topic-permissions", _get(permissions.topic_permissions), Right.ADMINISTRATOR),
    Route("/topic-permissions/{vhost}/{user}", _TOPIC_PERMISSION, Right.ADMINISTRATOR),
    Route("/topic-permissions/{vhost}/{user}/{exchange}", _TOPIC_PERMISSION, Right.ADMINISTRATOR),
    Route("/exchanges", _get(exchanges.exchanges), Right.VHOST),
    Route("/exchanges/{vhost}", _get(exchanges.exchanges), Right.VHOST),
    Route(
        "/exchanges/{vhost}/{exchange}",
        {"GET": exchanges.exchange, "PUT": declarations.put_exchange, "DELETE": declarations.delete_exchange},
        Right.VHOST,
    ),
    Route("/exchanges/{vhost}/{exchange}/publish", {"POST": messages.publish_message}, Right.VHOST),
    Route("/exchanges/{vhost}/{exchange}/bindings/source", _get(bindings.from_exchange), Right.VHOST),
    Route("/exchanges/{vhost}/{exchange}/bindings/destination", _get(bindings.to_exchange), Right.VHOST),
    Route("/queues", _get(queues.queues), Right.VHOST),
    Route("/queues/{vhost}", _get(queues.queues), Right.VHOST),
    Route(
        "/queues/{vhost}/{queue}",
        {"GET": queues.queue, "PUT": declarations.put_queue, "DELETE": declarations.delete_queue},
        Right.VHOST,
    ),
    Route("/queues/{vhost}/{queue}/bindings", _get(bindings.to_queue), Right.VHOST),
    Route("/queues/{vhost}/{queue}/contents", {"DELETE": declarations.purge_queue}, Right.VHOST),
    Route("/queues/{vhost}/{queue}/get", {"POST": messages.get_messages}, Right.VHOST),
    Route("/queues/{vhost}/{queue}/actions", {"POST": declarations.act_on_queue}, Right.ADMINISTRATOR),
    Route("/bindings", _get(bindings.bindings), Right.VHOST),
    Route("/bindings/{vhost}", _get(bindings.of_vhost), Right.VHOST),
    Route(
        "/bindings/{vhost}/e/{source}/{kind}/{destination}",
        {"GET": bindings.between, "POST": bindings.bind},
        Right.VHOST,
    ),
    Route(
        "/bindings/{vhost}/e/{source}/{kind}/{destination}/{properties}",
        {"GET": bindings.binding, "DELETE": bindings.unbind},
        Right.VHOST,
    ),
    Route("/definitions", _DEFINITIONS, Right.ADMINISTRATOR),
    Route("/all-configuration", _DEFINITIONS, Right.ADMINISTRATOR),
    Route(
        "/definitions/{vhost}",
        {"GET": definitions.of_vhost, "POST": definitions.post_vhost_definitions},
        Right.ADMINISTRATOR,
    ),
    Route("/parameters", _get(parameters.parameters), Right.POLICIES),
    Route("/parameters/{component}", _get(parameters.parameters), Right.POLICIES),
    Route("/parameters/{component}/{vhost}", _get(parameters.of_vhost), Right.POLICIES),
    Route(
        "/parameters/{component}/{vhost}/{name}",
        {
            "GET": parameters.parameter,
            "PUT": parameters.put_parameter,
            "DELETE": parameters.delete_parameter,
        },
        Right.POLICIES,
    ),
    Route("/global-parameters", _get(parameters.global_parameters), Right.GLOBAL_PARAMETERS),
    Route(
        "/global-parameters/{name}",
        {
            "GET": parameters.global_parameter,
            "PUT": parameters.put_global_parameter,
            "DELETE": parameters.delete_global_parameter,
        },
        Right.GLOBAL_PARAMETERS,
    ),
    Route("/policies", _get(_POLICIES.all), Right.VHOST),
    Route("/policies/{vhost}", _get(_POLICIES.of_vhost), Right.VHOST),
    Route("/policies/{vhost}/{name}", _one(_POLICIES), Right.POLICIES),
    Route("/operator-policies", _get(_OPERATOR_POLICIES.all), Right.VHOST),
    Route("/operator-policies/{vhost}", _get(_OPERATOR_POLICIES.of_vhost), Right.VHOST),
    Route("/operator-policies/{vhost}/{name}", _one(_OPERATOR_POLICIES), Right.ADMINISTRATOR),
    Route("/vhost-limits", _get(limits.vhost_limits), Right.VISIBLE_VHOST),
    Route("/vhost-limits/{vhost}", _get(limits.of_vhost), Right.VISIBLE_VHOST),
    Route(
        "/vhost-limits/{vhost}/{name}",
        {"PUT": limits.put_vhost_limit, "DELETE": limits.delete_vhost_limit},
        Right.ADMINISTRATOR,
    ),
    Route("/user-limits", _get(limits.user_limits), Right.VISIBLE_VHOST),
    Route("/user-limits/{user}", _get(limits.of_user), Right.VISIBLE_VHOST),
    Route(
        "/user-limits/{user}/{name}",
        {"PUT": limits.put_user_limit, "DELETE": limits.delete_user_limit},
        Right.ADMINISTRATOR,
    ),
    Route(
        "/health/checks/certificate-expiration/{within}/{unit}",
        _get(health.certificate_expiration),
        Right.USER,
    ),
    Route("/healthchecks/node", _get(health.node_health), Right.USER),
    Route("/healthchecks/node/{node}", _get(health.node_health), Right.USER),
    Route("/feature-flags", _get(node_state.feature_flags), Right.ADMINISTRATOR),
    Route("/feature-flags/{name}/enable", {"PUT": node_state.enable_feature_flag}, Right.ADMINISTRATOR),
    Route("/extensions", _get(node_state.extensions), Right.USER),
    Route("/auth", _get(node_state.auth), Right.ANYBODY),
    Route("/auth/hash_password/{password}", _get(node_state.hash_password), Right.ADMINISTRATOR),
    Route(
        "/auth/attempts/{node}",
        {"GET": node_state.attempts, "DELETE": node_state.forget_attempts},
        Right.MONITOR,
        {"DELETE": Right.ADMINISTRATOR},
    ),
    Route(
        "/auth/attempts/{node}/source",
        {"GET": node_state.attempts_by_source, "DELETE": node_state.forget_attempts},
        Right.MONITOR,
        {"DELETE": Right.ADMINISTRATOR},
    ),
    Route("/rebalance/queues", {"POST": node_state.rebalance}, Right.ADMINISTRATOR),
    Route("/reset", {"DELETE": node_state.reset}, Right.ADMINISTRATOR),
    Route("/reset/{node}", {"DELETE": node_state.reset}, Right.ADMINISTRATOR),
    Route("/login", {"POST": node_state.login}, Right.ANYBODY),
    Route("/aliveness-test/{vhost}", _get(messages.aliveness), Right.VHOST),
    Route("/whoami", _get(overview.who_am_i), Right.USER),
    Route("/health/checks/alarms", _get(health.alarms), Right.USER),
    Route("/health/checks/local-alarms", _get(health.local_alarms), Right.USER),
    Route("/health/checks/port-listener/{port}", _get(health.port_listener), Right.USER),
    Route("/health/checks/protocol-listener/{protocol}", _get(health.protocol_listener), Right.USER),
    Route("/health/checks/virtual-hosts", _get(health.virtual_hosts), Right.USER),
    Route("/health/checks/losses", _get(health.losses), Right.MONITOR),
    Route("/health/checks/quarantine", _get(health.quarantine), Right.MONITOR),
    Route("/health/checks/node-is-mirror-sync-critical", _get(health.critical), Right.USER),
    Route("/health/checks/node-is-quorum-critical", _get(health.critical), Right.USER),
    # Those that RabbitMQ has since 4.0 and 4.1.
    Route("/health/checks/is-in-service", _get(health.in_service), Right.USER),
    Route("/health/checks/ready-to-serve-clients", _get(health.ready), Right.USER),
    Route("/health/checks/below-node-connection-limit", _get(health.connection_limit), Right.USER),
    Route("/health/checks/metadata-store/initialized", _get(health.in_service), Right.USER),
    Route("/health/checks/metadata-store/initialized/with-data", _get(health.in_service), Right.USER),
    *(
        Route(f"/health/checks/quorum-queues-without-elected-leaders/{of}", _get(health.leaders), Right.USER)
        for of in (
            "all-vhosts",
            "all-vhosts/pattern/{pattern}",
            "vhost/{vhost}",
            "vhost/{vhost}/pattern/{pattern}",
        )
    ),
    Route("/warren/config", _get(controls.configuration), Right.ADMINISTRATOR),
    Route("/warren/limits", _get(controls.limits), Right.MONITOR),
    Route("/warren/limits/{resource}", {"PUT": controls.put_limit}, Right.ADMINISTRATOR),
    Route("/warren/quarantine", _get(quarantine.quarantine), Right.MONITOR),
    Route("/warren/quarantine/acknowledge", {"POST": quarantine.acknowledge}, Right.ADMINISTRATOR),
    Route("/warren/quarantine/{item}", {"DELETE": quarantine.remove}, Right.ADMINISTRATOR),
    Route("/warren/log", _get(controls.log), Right.MONITOR),
    Route("/warren/losses", _get(lost.losses), Right.MONITOR),
    Route("/warren/losses/acknowledge", {"POST": lost.acknowledge}, Right.ADMINISTRATOR),
    Route("/warren/log/level", {"PUT": controls.put_level}, Right.ADMINISTRATOR),
    Route("/warren/log/rotate", {"POST": controls.rotate}, Right.ADMINISTRATOR),
    Route("/warren/authenticate", {"POST": controls.authenticate}, Right.ADMINISTRATOR),
    Route("/warren/session", {"POST": sessions.sign_in, "DELETE": sessions.sign_out}, Right.ANYBODY),
    Route("/warren/queues/{vhost}/{queue}/messages", _get(peek.peek), Right.VHOST),
    Route("/warren/queues/{vhost}/{queue}/rows", _get(rows.browse), Right.VHOST),
    Route(
        "/warren/queues/{vhost}/{queue}/leases",
        {"GET": leases.leases_of_queue, "POST": leases.grant},
        Right.VHOST,
    ),
    Route("/warren/streams", _get(streams.streams), Right.VHOST),
    Route("/warren/streams/{vhost}", _get(streams.streams), Right.VHOST),
    Route("/warren/streams/{vhost}/{queue}", _get(streams.stream), Right.VHOST),
    Route("/warren/streams/{vhost}/{queue}/clients", _get(streams.clients), Right.VHOST),
    Route("/warren/streams/{vhost}/{queue}/rows", _get(streams.read), Right.VHOST),
    Route("/warren/leases", _get(leases.leases), Right.USER),
    Route("/warren/leases/{lease}", _get(leases.lease), Right.USER),
    Route("/warren/leases/{lease}/rows", _get(leases.read), Right.USER),
    Route("/warren/leases/{lease}/settle", {"POST": leases.settle}, Right.USER),
    Route("/warren/leases/{lease}/renew", {"POST": leases.renew}, Right.USER),
    Route("/warren/topology/{vhost}", _get(picture.picture), Right.VHOST),
    Route("/warren/definitions/plan", {"POST": planning.plan}, Right.ADMINISTRATOR),
    Route("/warren/definitions/apply", {"POST": planning.apply}, Right.ADMINISTRATOR),
    Route("/warren/definitions/{vhost}/plan", {"POST": planning.plan_vhost}, Right.ADMINISTRATOR),
    Route("/warren/definitions/{vhost}/apply", {"POST": planning.apply_vhost}, Right.ADMINISTRATOR),
    Route(
        "/warren/queues/{vhost}/{queue}/pause",
        {"GET": pausing.pause, "PUT": pausing.put_pause, "DELETE": pausing.delete_pause},
        Right.VHOST,
    ),
    Route("/warren/queues/{vhost}/{queue}/return", {"POST": returning.return_messages}, Right.VHOST),
    Route("/warren/exchanges/{vhost}/{exchange}/route", {"POST": tracing.trace_route}, Right.VHOST),
    Route("/warren/dead-letters", _get(dead_letters.dead_letters), Right.VHOST),
    Route("/warren/dead-letters/{vhost}", _get(dead_letters.dead_letters), Right.VHOST),
    Route(
        "/warren/queues/{vhost}/{queue}/dead-letters", _get(dead_letters.dead_letters_of_queue), Right.VHOST
    ),
    Route("/warren/queues/{vhost}/{queue}/redrive", {"POST": moving.redrive}, Right.VHOST),
    Route("/warren/queues/{vhost}/{queue}/move", {"POST": moving.move}, Right.VHOST),
    Route("/warren/jobs", _get(jobs.jobs), Right.USER),
    Route("/warren/jobs/{job}", {"GET": jobs.job, "DELETE": jobs.stop_job}, Right.USER),
    Route("/warren/jobs/{job}/undo", {"POST": jobs.undo_job}, Right.USER),
    Route("/warren/staged", _get(staged.staged), Right.USER),
    Route("/warren/staged/{vhost}", {"DELETE": staged.discard}, Right.VHOST),
    Route("/warren/staged/{vhost}/commit", {"POST": staged.commit}, Right.VHOST),
    Route("/warren/staged/{vhost}/{exchange}", {"POST": staged.stage}, Right.VHOST),
    Route("/warren/live", _get(live.live), Right.USER),
    Route("/warren/openapi.json", _get(documents.document), Right.ANYBODY),
)
