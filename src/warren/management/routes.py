"""Every route of the HTTP API: its path, the handler of each method, the required right and the place.

No other module declares routes. Paths are below `/api`; a name in braces is one segment, in which `%2F` is
a slash. GET implies HEAD, every path supports OPTIONS, and a trailing slash is ignored. If two paths match
a request, the first one is used.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from warren.management.api import (
    bindings,
    cluster,
    cluster_members,
    connections,
    controls,
    dead_letters,
    declarations,
    definitions,
    dry_runs,
    exchanges,
    federation,
    health,
    jobs,
    leases,
    limits,
    live,
    message_moves,
    message_quarantine,
    messages,
    node_state,
    nodes,
    oauth_sessions,
    openapi_document,
    overview,
    parameters,
    peek,
    permissions,
    planning,
    quarantine,
    queue_pause,
    queue_recovery,
    queue_rows,
    queues,
    replica_changes,
    replication,
    requeue,
    shovels,
    staged,
    stream_connections,
    streams,
    topology_graph,
    tracing,
    users,
    vhosts,
    web_sessions,
)
from warren.management.api import (
    losses as lost,
)
from warren.management.api.policies import PolicyHandlers
from warren.management.auth import Right
from warren.management.placement import Handler, Place

_HEAD = "HEAD"
_GET = "GET"
_OPTIONS = "OPTIONS"


class HttpRoute(Struct, frozen=True):
    """A path with its handlers and its rights."""

    path: str
    handlers: Mapping[str, Handler]
    right: Right
    # Rights of methods that differ from `right`.
    rights: Mapping[str, Right] = field(default_factory=dict)
    # Which node of a cluster handles it, and for which methods that differs.
    place: Place = Place.HERE
    places: Mapping[str, Place] = field(default_factory=dict)
    # True for the old name of a path that was renamed.
    is_deprecated: bool = False

    @property
    def methods(self) -> list[str]:
        """The supported methods, in RabbitMQ's order."""
        head = [_HEAD] if _GET in self.handlers else []
        return [*head, *self.handlers, _OPTIONS]

    def handler(self, method: str) -> Handler | None:
        """The handler of `method`; None if the path does not support it."""
        return self.handlers.get(_GET if method == _HEAD else method)

    def right_of(self, method: str) -> Right:
        """The right that `method` requires."""
        return self.rights.get(method, self.right)

    def place_of(self, method: str) -> Place:
        """Where `method` is handled."""
        return self.places.get(_GET if method == _HEAD else method, self.place)


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

ROUTES: tuple[HttpRoute, ...] = (
    HttpRoute("/overview", _get(overview.overview), Right.USER),
    HttpRoute("/nodes", _get(nodes.nodes), Right.MONITOR),
    HttpRoute("/nodes/{node}", _get(nodes.one_node), Right.MONITOR, place=Place.NODE),
    HttpRoute("/nodes/{node}/memory", _get(nodes.memory), Right.MONITOR, place=Place.NODE),
    HttpRoute("/nodes/{node}/memory/relative", _get(nodes.relative_memory), Right.MONITOR, place=Place.NODE),
    HttpRoute("/nodes/{node}/memory/ets", _get(nodes.tables), Right.MONITOR, place=Place.NODE),
    HttpRoute(
        "/nodes/{node}/memory/ets/relative", _get(nodes.relative_tables), Right.MONITOR, place=Place.NODE
    ),
    HttpRoute("/nodes/{node}/memory/ets/{filter}", _get(nodes.tables), Right.MONITOR, place=Place.NODE),
    HttpRoute(
        "/nodes/{node}/memory/ets/{filter}/relative",
        _get(nodes.relative_tables),
        Right.MONITOR,
        place=Place.NODE,
    ),
    HttpRoute("/connections", _get(connections.connections), Right.USER),
    HttpRoute(
        "/connections/username/{user}",
        {"GET": connections.of_user, "DELETE": connections.close_connections},
        Right.USER,
        places={"DELETE": Place.ALL},
    ),
    HttpRoute(
        "/connections/{connection}",
        {"GET": connections.connection, "DELETE": connections.close_connection},
        Right.USER,
        place=Place.HOLDER,
    ),
    HttpRoute(
        "/connections/{connection}/channels",
        _get(connections.channels_of_connection),
        Right.USER,
        place=Place.HOLDER,
    ),
    HttpRoute("/channels", _get(connections.channels), Right.USER),
    HttpRoute("/channels/{channel}", _get(connections.channel), Right.USER, place=Place.HOLDER),
    HttpRoute("/consumers", _get(connections.consumers), Right.USER),
    HttpRoute("/consumers/{vhost}", _get(connections.consumers), Right.USER),
    HttpRoute("/stream/connections", _get(stream_connections.connections), Right.USER),
    HttpRoute("/stream/connections/{vhost}", _get(stream_connections.connections), Right.VISIBLE_VHOST),
    HttpRoute(
        "/stream/connections/{vhost}/{connection}",
        {"GET": stream_connections.connection, "DELETE": stream_connections.close_connection},
        Right.USER,
        place=Place.HOLDER,
    ),
    HttpRoute(
        "/stream/connections/{vhost}/{connection}/consumers",
        _get(stream_connections.consumers_on),
        Right.USER,
        place=Place.HOLDER,
    ),
    HttpRoute(
        "/stream/connections/{vhost}/{connection}/publishers",
        _get(stream_connections.publishers_on),
        Right.USER,
        place=Place.HOLDER,
    ),
    HttpRoute("/stream/publishers", _get(stream_connections.publishers), Right.USER),
    HttpRoute("/stream/publishers/{vhost}", _get(stream_connections.publishers), Right.USER),
    HttpRoute(
        "/stream/publishers/{vhost}/{queue}",
        _get(stream_connections.publishers_of_stream),
        Right.USER,
        place=Place.QUEUE,
    ),
    HttpRoute("/stream/consumers", _get(stream_connections.consumers), Right.USER),
    HttpRoute("/stream/consumers/{vhost}", _get(stream_connections.consumers), Right.USER),
    HttpRoute(
        "/cluster-name",
        {"GET": cluster.cluster_name, "PUT": cluster.put_cluster_name},
        Right.USER,
        {"PUT": Right.ADMINISTRATOR},
    ),
    HttpRoute("/vhosts", _get(vhosts.vhosts), Right.USER),
    HttpRoute(
        "/vhosts/{vhost}",
        {"GET": vhosts.vhost, "PUT": vhosts.put_vhost, "DELETE": vhosts.delete_vhost},
        Right.ADMINISTRATOR,
    ),
    HttpRoute(
        "/vhosts/{vhost}/deletion/protection",
        {"POST": vhosts.protect, "DELETE": vhosts.unprotect},
        Right.ADMINISTRATOR,
    ),
    HttpRoute("/vhosts/{vhost}/connections", _get(connections.of_vhost), Right.VHOST),
    HttpRoute("/vhosts/{vhost}/channels", _get(connections.channels_of_vhost), Right.VHOST),
    HttpRoute("/vhosts/{vhost}/start/{node}", {"POST": vhosts.start}, Right.ADMINISTRATOR, place=Place.NODE),
    HttpRoute("/vhosts/{vhost}/permissions", _get(permissions.of_vhost), Right.ADMINISTRATOR),
    HttpRoute("/vhosts/{vhost}/topic-permissions", _get(permissions.topics_of_vhost), Right.ADMINISTRATOR),
    HttpRoute("/users/bulk-delete", {"POST": users.delete_users}, Right.ADMINISTRATOR),
    HttpRoute("/users/without-permissions", _get(users.without_permissions), Right.ADMINISTRATOR),
    HttpRoute("/users", _get(users.users), Right.ADMINISTRATOR),
    HttpRoute(
        "/users/{user}",
        {"GET": users.user, "PUT": users.put_user, "DELETE": users.delete_user},
        Right.ADMINISTRATOR,
    ),
    HttpRoute("/users/{user}/queues", _get(queues.of_user), Right.VHOST),
    HttpRoute("/users/{user}/permissions", _get(users.permissions), Right.ADMINISTRATOR),
    HttpRoute("/users/{user}/topic-permissions", _get(users.topic_permissions), Right.ADMINISTRATOR),
    HttpRoute("/permissions", _get(permissions.permissions), Right.ADMINISTRATOR),
    HttpRoute(
        "/permissions/{vhost}/{user}",
        {
            "GET": permissions.permission,
            "PUT": permissions.put_permission,
            "DELETE": permissions.delete_permission,
        },
        Right.ADMINISTRATOR,
    ),
    HttpRoute("/topic-permissions", _get(permissions.topic_permissions), Right.ADMINISTRATOR),
    HttpRoute("/topic-permissions/{vhost}/{user}", _TOPIC_PERMISSION, Right.ADMINISTRATOR),
    HttpRoute("/topic-permissions/{vhost}/{user}/{exchange}", _TOPIC_PERMISSION, Right.ADMINISTRATOR),
    HttpRoute("/exchanges", _get(exchanges.exchanges), Right.VHOST),
    HttpRoute("/exchanges/{vhost}", _get(exchanges.exchanges), Right.VHOST),
    HttpRoute(
        "/exchanges/{vhost}/{exchange}",
        {"GET": exchanges.exchange, "PUT": declarations.put_exchange, "DELETE": declarations.delete_exchange},
        Right.VHOST,
    ),
    HttpRoute("/exchanges/{vhost}/{exchange}/publish", {"POST": messages.publish_message}, Right.VHOST),
    HttpRoute("/exchanges/{vhost}/{exchange}/bindings/source", _get(bindings.from_exchange), Right.VHOST),
    HttpRoute("/exchanges/{vhost}/{exchange}/bindings/destination", _get(bindings.to_exchange), Right.VHOST),
    HttpRoute("/queues", _get(queues.queues), Right.VHOST),
    HttpRoute("/queues/{vhost}", _get(queues.queues), Right.VHOST),
    HttpRoute(
        "/queues/{vhost}/{queue}",
        {"GET": queues.queue, "PUT": declarations.put_queue, "DELETE": declarations.delete_queue},
        Right.VHOST,
        places={"DELETE": Place.QUEUE},
    ),
    HttpRoute("/queues/{vhost}/{queue}/bindings", _get(bindings.to_queue), Right.VHOST),
    HttpRoute(
        "/queues/{vhost}/{queue}/contents",
        {"DELETE": declarations.purge_queue},
        Right.VHOST,
        place=Place.QUEUE,
    ),
    HttpRoute("/queues/{vhost}/{queue}/get", {"POST": messages.get_messages}, Right.VHOST, place=Place.QUEUE),
    HttpRoute(
        "/queues/{vhost}/{queue}/actions",
        {"POST": declarations.act_on_queue},
        Right.ADMINISTRATOR,
        place=Place.QUEUE,
    ),
    # RabbitMQ has these five since 4.0; its command `quorum_status` is older.
    HttpRoute("/queues/quorum/replicas/on/{node}/grow", {"POST": replica_changes.grow}, Right.ADMINISTRATOR),
    HttpRoute(
        "/queues/quorum/replicas/on/{node}/shrink", {"DELETE": replica_changes.shrink}, Right.ADMINISTRATOR
    ),
    # Each node knows its own replica.
    HttpRoute(
        "/queues/quorum/{vhost}/{queue}/status", _get(replication.status), Right.MONITOR, place=Place.ALL
    ),
    HttpRoute(
        "/queues/quorum/{vhost}/{queue}/replicas/add",
        {"POST": replication.add_replica},
        Right.ADMINISTRATOR,
    ),
    HttpRoute(
        "/queues/quorum/{vhost}/{queue}/replicas/delete",
        {"DELETE": replication.delete_replica},
        Right.ADMINISTRATOR,
    ),
    HttpRoute("/bindings", _get(bindings.bindings), Right.VHOST),
    HttpRoute("/bindings/{vhost}", _get(bindings.of_vhost), Right.VHOST),
    HttpRoute(
        "/bindings/{vhost}/e/{source}/{kind}/{destination}",
        {"GET": bindings.between, "POST": bindings.bind},
        Right.VHOST,
    ),
    HttpRoute(
        "/bindings/{vhost}/e/{source}/{kind}/{destination}/{properties}",
        {"GET": bindings.binding, "DELETE": bindings.unbind},
        Right.VHOST,
    ),
    HttpRoute("/definitions", _DEFINITIONS, Right.ADMINISTRATOR),
    HttpRoute("/all-configuration", _DEFINITIONS, Right.ADMINISTRATOR),
    HttpRoute(
        "/definitions/{vhost}",
        {"GET": definitions.of_vhost, "POST": definitions.post_vhost_definitions},
        Right.ADMINISTRATOR,
    ),
    HttpRoute("/parameters", _get(parameters.parameters), Right.POLICIES),
    HttpRoute("/parameters/{component}", _get(parameters.parameters), Right.POLICIES),
    HttpRoute("/parameters/{component}/{vhost}", _get(parameters.of_vhost), Right.POLICIES),
    HttpRoute(
        "/parameters/{component}/{vhost}/{name}",
        {
            "GET": parameters.parameter,
            "PUT": parameters.put_parameter,
            "DELETE": parameters.delete_parameter,
        },
        Right.POLICIES,
    ),
    HttpRoute("/global-parameters", _get(parameters.global_parameters), Right.GLOBAL_PARAMETERS),
    HttpRoute(
        "/global-parameters/{name}",
        {
            "GET": parameters.global_parameter,
            "PUT": parameters.put_global_parameter,
            "DELETE": parameters.delete_global_parameter,
        },
        Right.GLOBAL_PARAMETERS,
    ),
    HttpRoute("/policies", _get(_POLICIES.all), Right.VHOST),
    HttpRoute("/policies/{vhost}", _get(_POLICIES.of_vhost), Right.VHOST),
    HttpRoute("/policies/{vhost}/{name}", _one(_POLICIES), Right.POLICIES),
    HttpRoute("/operator-policies", _get(_OPERATOR_POLICIES.all), Right.VHOST),
    HttpRoute("/operator-policies/{vhost}", _get(_OPERATOR_POLICIES.of_vhost), Right.VHOST),
    HttpRoute("/operator-policies/{vhost}/{name}", _one(_OPERATOR_POLICIES), Right.ADMINISTRATOR),
    HttpRoute("/shovels", _get(shovels.all_shovels), Right.MONITOR),
    HttpRoute("/shovels/{vhost}", _get(shovels.of_vhost), Right.MONITOR),
    HttpRoute(
        "/shovels/vhost/{vhost}/{name}",
        {"GET": shovels.shovel, "DELETE": shovels.delete_shovel},
        Right.MONITOR,
        {"DELETE": Right.POLICIES},
        # The definition is in the metadata; its status is known where it runs.
        places={"GET": Place.HOLDER},
    ),
    HttpRoute(
        "/shovels/vhost/{vhost}/{name}/restart",
        {"GET": shovels.shovel, "DELETE": shovels.restart},
        Right.MONITOR,
        {"DELETE": Right.POLICIES},
        place=Place.HOLDER,
    ),
    HttpRoute("/federation-links", _get(federation.links), Right.MONITOR),
    HttpRoute("/federation-links/{vhost}", _get(federation.of_vhost), Right.MONITOR),
    HttpRoute("/federation-links/state/down", _get(federation.links_down), Right.MONITOR),
    HttpRoute("/federation-links/{vhost}/state/down", _get(federation.of_vhost_down), Right.MONITOR),
    HttpRoute(
        "/federation-links/vhost/{vhost}/{link}/{node}/restart",
        {"GET": federation.of_vhost, "DELETE": federation.restart},
        Right.MONITOR,
        {"DELETE": Right.POLICIES},
        place=Place.NODE,
    ),
    HttpRoute("/vhost-limits", _get(limits.vhost_limits), Right.VISIBLE_VHOST),
    HttpRoute("/vhost-limits/{vhost}", _get(limits.of_vhost), Right.VISIBLE_VHOST),
    HttpRoute(
        "/vhost-limits/{vhost}/{name}",
        {"PUT": limits.put_vhost_limit, "DELETE": limits.delete_vhost_limit},
        Right.ADMINISTRATOR,
    ),
    HttpRoute("/user-limits", _get(limits.user_limits), Right.VISIBLE_VHOST),
    HttpRoute("/user-limits/{user}", _get(limits.of_user), Right.VISIBLE_VHOST),
    HttpRoute(
        "/user-limits/{user}/{name}",
        {"PUT": limits.put_user_limit, "DELETE": limits.delete_user_limit},
        Right.ADMINISTRATOR,
    ),
    HttpRoute(
        "/health/checks/certificate-expiration/{within}/{unit}",
        _get(health.certificate_expiration),
        Right.USER,
    ),
    HttpRoute("/healthchecks/node", _get(health.node_health), Right.USER),
    HttpRoute("/healthchecks/node/{node}", _get(health.node_health), Right.USER, place=Place.NODE),
    HttpRoute("/feature-flags", _get(node_state.feature_flags), Right.ADMINISTRATOR),
    HttpRoute("/feature-flags/{name}/enable", {"PUT": node_state.enable_feature_flag}, Right.ADMINISTRATOR),
    HttpRoute("/extensions", _get(node_state.extensions), Right.USER),
    HttpRoute("/auth", _get(node_state.auth), Right.ANYBODY),
    HttpRoute("/auth/hash_password", {"POST": node_state.hash_password_in_body}, Right.ADMINISTRATOR),
    HttpRoute("/auth/hash_password/{password}", _get(node_state.hash_password), Right.ADMINISTRATOR),
    HttpRoute(
        "/auth/attempts/{node}",
        {"GET": node_state.attempts, "DELETE": node_state.forget_attempts},
        Right.MONITOR,
        {"DELETE": Right.ADMINISTRATOR},
        place=Place.NODE,
    ),
    HttpRoute(
        "/auth/attempts/{node}/source",
        {"GET": node_state.attempts_by_source, "DELETE": node_state.forget_attempts},
        Right.MONITOR,
        {"DELETE": Right.ADMINISTRATOR},
        place=Place.NODE,
    ),
    HttpRoute("/rebalance/queues", {"POST": replica_changes.rebalance}, Right.ADMINISTRATOR),
    HttpRoute("/reset", {"DELETE": node_state.reset}, Right.ADMINISTRATOR),
    HttpRoute("/reset/{node}", {"DELETE": node_state.reset}, Right.ADMINISTRATOR, place=Place.NODE),
    HttpRoute("/login", {"POST": node_state.login}, Right.ANYBODY),
    HttpRoute("/aliveness-test/{vhost}", _get(messages.aliveness), Right.VHOST, place=Place.ALIVENESS),
    HttpRoute("/whoami", _get(overview.who_am_i), Right.USER),
    HttpRoute("/health/checks/alarms", _get(health.alarms), Right.USER),
    HttpRoute("/health/checks/local-alarms", _get(health.local_alarms), Right.USER),
    HttpRoute("/health/checks/port-listener/{port}", _get(health.port_listener), Right.USER),
    HttpRoute("/health/checks/protocol-listener/{protocol}", _get(health.protocol_listener), Right.USER),
    HttpRoute("/health/checks/virtual-hosts", _get(health.virtual_hosts), Right.USER),
    HttpRoute("/health/checks/losses", _get(health.losses), Right.MONITOR),
    HttpRoute("/health/checks/quarantine", _get(health.quarantine), Right.MONITOR),
    HttpRoute("/health/checks/node-is-mirror-sync-critical", _get(health.critical), Right.USER),
    HttpRoute("/health/checks/node-is-quorum-critical", _get(health.critical), Right.USER),
    # RabbitMQ has these checks since 4.0 and 4.1.
    HttpRoute("/health/checks/is-in-service", _get(health.in_service), Right.USER),
    HttpRoute("/health/checks/reached-target-cluster-size", _get(health.target_size), Right.USER),
    HttpRoute("/health/checks/ready-to-serve-clients", _get(health.ready), Right.USER),
    HttpRoute("/health/checks/below-node-connection-limit", _get(health.connection_limit), Right.USER),
    HttpRoute("/health/checks/metadata-store/initialized", _get(health.in_service), Right.USER),
    HttpRoute("/health/checks/metadata-store/initialized/with-data", _get(health.in_service), Right.USER),
    *(
        HttpRoute(
            f"/health/checks/quorum-queues-without-elected-leaders/{of}", _get(health.leaders), Right.USER
        )
        for of in (
            "all-vhosts",
            "all-vhosts/pattern/{pattern}",
            "vhost/{vhost}",
            "vhost/{vhost}/pattern/{pattern}",
        )
    ),
    HttpRoute("/warren/config", _get(controls.configuration), Right.ADMINISTRATOR),
    HttpRoute("/warren/cluster", _get(cluster_members.status), Right.MONITOR),
    HttpRoute("/warren/cluster/members", {"PUT": cluster_members.join}, Right.ADMINISTRATOR),
    HttpRoute("/warren/cluster/members/{name}", {"DELETE": cluster_members.remove}, Right.ADMINISTRATOR),
    HttpRoute(
        "/warren/nodes/{node}/maintenance",
        {"PUT": cluster_members.drain, "DELETE": cluster_members.revive},
        Right.ADMINISTRATOR,
        place=Place.NODE,
    ),
    HttpRoute(
        "/warren/nodes/{node}/reset", {"POST": cluster_members.reset}, Right.ADMINISTRATOR, place=Place.NODE
    ),
    HttpRoute("/warren/limits", _get(controls.limits), Right.MONITOR),
    HttpRoute("/warren/limits/{resource}", {"PUT": controls.put_limit}, Right.ADMINISTRATOR),
    HttpRoute("/warren/quarantine", _get(quarantine.quarantine), Right.MONITOR),
    HttpRoute("/warren/quarantine/acknowledge", {"POST": quarantine.acknowledge}, Right.ADMINISTRATOR),
    HttpRoute("/warren/quarantine/{item}", {"DELETE": quarantine.remove}, Right.ADMINISTRATOR),
    HttpRoute("/warren/log", _get(controls.log), Right.MONITOR),
    HttpRoute("/warren/losses", _get(lost.losses), Right.MONITOR),
    HttpRoute("/warren/losses/acknowledge", {"POST": lost.acknowledge}, Right.ADMINISTRATOR, place=Place.ALL),
    HttpRoute("/warren/log/level", {"PUT": controls.put_level}, Right.ADMINISTRATOR),
    HttpRoute("/warren/log/rotate", {"POST": controls.rotate}, Right.ADMINISTRATOR),
    HttpRoute("/warren/authenticate", {"POST": controls.authenticate}, Right.ADMINISTRATOR),
    HttpRoute(
        "/warren/session", {"POST": web_sessions.sign_in, "DELETE": web_sessions.sign_out}, Right.ANYBODY
    ),
    HttpRoute("/warren/session/provider", {"POST": oauth_sessions.begin_login}, Right.ANYBODY),
    HttpRoute("/warren/queues/{vhost}/{queue}/messages", _get(peek.peek), Right.VHOST, place=Place.QUEUE),
    HttpRoute("/warren/queues/{vhost}/{queue}/rows", _get(queue_rows.browse), Right.VHOST, place=Place.QUEUE),
    HttpRoute(
        "/warren/queues/{vhost}/{queue}/leases",
        {"GET": leases.leases_of_queue, "POST": leases.grant},
        Right.VHOST,
        places={"POST": Place.QUEUE},
    ),
    HttpRoute("/warren/streams", _get(streams.streams), Right.VHOST),
    HttpRoute("/warren/streams/{vhost}", _get(streams.streams), Right.VHOST),
    HttpRoute("/warren/streams/{vhost}/{queue}", _get(streams.stream), Right.VHOST, place=Place.QUEUE),
    HttpRoute(
        "/warren/streams/{vhost}/{queue}/clients", _get(streams.clients), Right.VHOST, place=Place.QUEUE
    ),
    HttpRoute("/warren/streams/{vhost}/{queue}/rows", _get(streams.read), Right.VHOST, place=Place.QUEUE),
    HttpRoute("/warren/leases", _get(leases.leases), Right.USER),
    HttpRoute("/warren/leases/{lease}", _get(leases.lease), Right.USER, place=Place.LEASE),
    HttpRoute("/warren/leases/{lease}/rows", _get(leases.read), Right.USER, place=Place.LEASE),
    HttpRoute("/warren/leases/{lease}/settle", {"POST": leases.settle}, Right.USER, place=Place.LEASE),
    HttpRoute("/warren/leases/{lease}/renew", {"POST": leases.renew}, Right.USER, place=Place.LEASE),
    HttpRoute(
        "/warren/static-shovels/{name}", _get(shovels.static_shovel), Right.MONITOR, place=Place.HOLDER
    ),
    HttpRoute(
        "/warren/shovels/{vhost}/{name}/restart",
        {"POST": shovels.restart},
        Right.POLICIES,
        place=Place.HOLDER,
    ),
    HttpRoute(
        "/warren/federation-links/{vhost}/{link}",
        _get(federation.link),
        Right.MONITOR,
        place=Place.HOLDER,
    ),
    HttpRoute(
        "/warren/federation-links/{vhost}/{link}/restart",
        {"POST": federation.restart},
        Right.POLICIES,
        place=Place.HOLDER,
    ),
    HttpRoute("/warren/shovels/{vhost}/check", {"POST": dry_runs.check_shovel}, Right.POLICIES),
    HttpRoute(
        "/warren/federation/{vhost}/exchange/{exchange}", _get(dry_runs.explain_exchange), Right.POLICIES
    ),
    HttpRoute("/warren/federation/{vhost}/queue/{queue}", _get(dry_runs.explain_queue), Right.POLICIES),
    HttpRoute("/warren/topology/{vhost}", _get(topology_graph.topology_graph), Right.VHOST),
    HttpRoute("/warren/definitions/plan", {"POST": planning.plan}, Right.ADMINISTRATOR),
    HttpRoute("/warren/definitions/apply", {"POST": planning.apply}, Right.ADMINISTRATOR),
    HttpRoute("/warren/definitions/{vhost}/plan", {"POST": planning.plan_vhost}, Right.ADMINISTRATOR),
    HttpRoute("/warren/definitions/{vhost}/apply", {"POST": planning.apply_vhost}, Right.ADMINISTRATOR),
    HttpRoute(
        "/warren/queues/{vhost}/{queue}/pause",
        {"GET": queue_pause.pause, "PUT": queue_pause.put_pause, "DELETE": queue_pause.delete_pause},
        Right.VHOST,
    ),
    HttpRoute(
        "/warren/queues/{vhost}/{queue}/quarantine/release",
        {"POST": message_quarantine.release},
        Right.VHOST,
        place=Place.QUEUE,
    ),
    HttpRoute(
        "/warren/queues/{vhost}/{queue}/quarantine/remove",
        {"POST": message_quarantine.remove},
        Right.VHOST,
        place=Place.QUEUE,
    ),
    HttpRoute(
        "/warren/queues/{vhost}/{queue}/recovery",
        {**_get(queue_recovery.recoverable), "POST": queue_recovery.recover},
        Right.ADMINISTRATOR,
        place=Place.QUEUE,
    ),
    HttpRoute(
        "/warren/queues/{vhost}/{queue}/requeue",
        {"POST": requeue.requeue_unacked},
        Right.VHOST,
        place=Place.QUEUE,
    ),
    HttpRoute(
        "/warren/queues/{vhost}/{queue}/return",
        {"POST": requeue.requeue_unacked},
        Right.VHOST,
        is_deprecated=True,
        place=Place.QUEUE,
    ),
    HttpRoute("/warren/exchanges/{vhost}/{exchange}/route", {"POST": tracing.trace_route}, Right.VHOST),
    HttpRoute("/warren/dead-letters", _get(dead_letters.dead_letters), Right.VHOST),
    HttpRoute("/warren/dead-letters/{vhost}", _get(dead_letters.dead_letters), Right.VHOST),
    HttpRoute(
        "/warren/queues/{vhost}/{queue}/dead-letters",
        _get(dead_letters.dead_letters_of_queue),
        Right.VHOST,
        place=Place.QUEUE,
    ),
    HttpRoute(
        "/warren/queues/{vhost}/{queue}/redrive",
        {"POST": message_moves.redrive},
        Right.VHOST,
        place=Place.QUEUE,
    ),
    HttpRoute(
        "/warren/queues/{vhost}/{queue}/move", {"POST": message_moves.move}, Right.VHOST, place=Place.QUEUE
    ),
    HttpRoute("/warren/jobs", _get(jobs.jobs), Right.USER),
    HttpRoute(
        "/warren/jobs/{job}", {"GET": jobs.job, "DELETE": jobs.stop_job}, Right.USER, place=Place.HOLDER
    ),
    HttpRoute("/warren/jobs/{job}/undo", {"POST": jobs.undo_job}, Right.USER, place=Place.HOLDER),
    HttpRoute("/warren/staged", _get(staged.staged), Right.USER),
    HttpRoute("/warren/staged/{vhost}", {"DELETE": staged.discard}, Right.VHOST, place=Place.PARTS),
    HttpRoute("/warren/staged/{vhost}/commit", {"POST": staged.commit}, Right.VHOST),
    HttpRoute("/warren/staged/{vhost}/{exchange}", {"POST": staged.stage}, Right.VHOST),
    HttpRoute("/warren/live", _get(live.live), Right.USER),
    HttpRoute("/warren/openapi.json", _get(openapi_document.document), Right.ANYBODY),
)
