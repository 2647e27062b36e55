"""Commands of rabbitmqctl and rabbitmq-diagnostics that Warren lacks, with the reason or the alternative."""

import click

from warren.cli.operator.failures import Failure

_NO_CLUSTER = "there is one node, and no cluster to join, to leave or to mend"
_NO_MIRRORS = "queues are not mirrored"
_NO_ERLANG = "there is no Erlang here"
_PROCESS = (
    "whoever started the process stops it: SIGTERM, or 'systemctl stop warren'; 'warren serve' starts it"
)
_NEW = "a broker is new where its data directory is: stop it, and move that away"
_NO_ENCODING = "settings are not encrypted: $(NAME) takes a value from the environment"
_TLS = "'warren nodes settings' shows ssl_options, 'warren health certificates' when certificates end"
_SETTINGS = "'warren nodes settings' shows every setting, and where it comes from"
_SYSTEM = "the operating system says: 'ip address', 'getent hosts NAME'"
_LOG = "the log is where 'warren log show' says; with log.exchange its lines are messages of amq.rabbitmq.log"
_SOURCES = "logins are counted by protocol; addresses stand in the log"
_CRITICAL = "there are no replicas on other nodes: stopping this one is critical to nothing else"
_RETENTION = (
    "a policy says it: warren policies set NAME '^STREAM$' '{\"max-age\": \"7D\"}' --apply-to streams"
)
_REPLICAS = "a stream has one replica, on the one node"
_STATUS = "'warren queues show' has what is known of a queue"

UNSUPPORTED = {
    **dict.fromkeys(
        (
            "await_online_nodes", "change_cluster_node_type", "force_boot", "forget_cluster_node",
            "join_cluster", "rename_cluster_node", "update_cluster_nodes", "discover_peers",
        ),
        _NO_CLUSTER,
    ),
    **dict.fromkeys(("cancel_sync_queue", "sync_queue"), _NO_MIRRORS),
    **dict.fromkeys(
        (
            "eval", "eval_file", "exec", "remote_shell", "observer", "erlang_version", "erlang_cookie_hash",
            "erlang_cookie_sources", "hipe_compile", "maybe_stuck", "runtime_thread_stats", "schema_info",
            "force_gc", "resolver_info",
        ),
        _NO_ERLANG,
    ),
    **dict.fromkeys(("shutdown", "start_app", "stop", "stop_app"), _PROCESS),
    **dict.fromkeys(("reset", "force_reset"), _NEW),
    **dict.fromkeys(("encode", "decode", "list_ciphers", "list_hashes"), _NO_ENCODING),
    **dict.fromkeys(("certificates", "cipher_suites", "tls_versions"), _TLS),
    **dict.fromkeys(("command_line_arguments", "os_env"), _SETTINGS),
    **dict.fromkeys(("list_network_interfaces", "resolve_hostname"), _SYSTEM),
    **dict.fromkeys(("log_tail", "log_tail_stream"), _LOG),
    **dict.fromkeys(
        ("disable_auth_attempt_source_tracking", "enable_auth_attempt_source_tracking"), _SOURCES
    ),
    **dict.fromkeys(
        ("check_if_node_is_mirror_sync_critical", "check_if_node_is_quorum_critical"), _CRITICAL
    ),
    **dict.fromkeys(("quorum_status", "reclaim_quorum_memory"), _STATUS),
    **dict.fromkeys(("add_replica", "delete_replica", "restart_stream"), _REPLICAS),
    "set_stream_retention_policy": _RETENTION,
    "wait": "'warren nodes await' waits until the broker is there",
    "is_booting": "a broker that starts does not answer yet: 'warren nodes await' waits for it",
    "is_running": "'warren health running' says so",
    "suspend_listeners": "listeners stay: take the broker out of its load balancer, or stop it",
    "resume_listeners": "listeners are never suspended",
    "check_port_connectivity": "'warren nodes listeners' shows the ports: try them from where clients are",
    "consume_event_stream": "events are messages of the exchange amq.rabbitmq.event: bind a queue to it",
    "list_unresponsive_queues": "a queue is no process of its own: one that exists answers",
    "node_health_check": "'warren health --help' shows the checks that took its place",
    "autocomplete": "'warren completion bash' makes a shell complete",
}  # fmt: skip


def unsupported_command(name: str) -> click.Command:
    """Return the command `name`, which fails with its reason, whatever its arguments."""

    def run(ignored: tuple[str, ...]) -> None:
        raise Failure(f"{name}: {UNSUPPORTED[name]}")

    return click.Command(
        name,
        params=[click.Argument(["ignored"], nargs=-1, type=click.UNPROCESSED)],
        callback=run,
        help=UNSUPPORTED[name],
        hidden=True,
        context_settings={"ignore_unknown_options": True},
    )
