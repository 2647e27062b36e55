"""Commands of rabbitmqctl and rabbitmq-diagnostics that Warren lacks, with the reason or the alternative."""

import click

from warren.cli.operator.failures import Failure

_NAMES = "a node keeps its name: have it leave its cluster, and join again with another data directory"
_FORCED = "a node starts without the others; without a majority for good, see 'warren cluster recover --help'"
_NO_MIRRORS = "mirrored queues are not supported"
_NO_ERLANG = "Warren is not written in Erlang"
_NEW = (
    "'rabbitmqctl reset' leaves the cluster; to leave one that does not answer, stop the node, move its data "
    "directory away, and have another member forget it"
)
_NO_ENCODING = "encrypted settings are not supported: $(NAME) reads a value from the environment"
_TLS = "use 'warren nodes settings' for ssl_options, 'warren health certificates' for expiry"
_SETTINGS = "use 'warren nodes settings', which shows every setting and its origin"
_SYSTEM = "use the commands of the operating system: 'ip address', 'getent hosts NAME'"
_LOG = (
    "'warren log show' names the log file; with log.exchange, log messages are published to amq.rabbitmq.log"
)
_SOURCES = "authentication attempts are counted by protocol only; their addresses are in the log"
_RETENTION = "use a policy: warren policies set NAME '^STREAM$' '{\"max-age\": \"7D\"}' --apply-to streams"
_REPLICAS = "a stream has a single replica"
_KEYS = "set auth_oauth2.signing_keys.* or auth_oauth2.jwks_url, from which keys are read"
_DISK = "the disk alarm is always on: 'warren nodes limit-disk' sets its threshold"
_GROUPS = "'warren streams clients STREAM' shows consumers, and the offsets that they have stored"
_STATUS = "memory is released as messages go: use 'warren queues show'"

UNSUPPORTED = {
    **dict.fromkeys(("rename_cluster_node", "update_cluster_nodes"), _NAMES),
    "force_boot": _FORCED,
    "discover_peers": "'warren cluster status' shows the members of the cluster",
    **dict.fromkeys(("cancel_sync_queue", "sync_queue"), _NO_MIRRORS),
    **dict.fromkeys(
        (
            "eval", "eval_file", "exec", "remote_shell", "observer", "erlang_version", "erlang_cookie_hash",
            "erlang_cookie_sources", "hipe_compile", "maybe_stuck", "runtime_thread_stats", "schema_info",
            "force_gc", "resolver_info",
        ),
        _NO_ERLANG,
    ),
    "force_reset": _NEW,
    **dict.fromkeys(("encode", "decode", "list_ciphers", "list_hashes"), _NO_ENCODING),
    **dict.fromkeys(("certificates", "cipher_suites", "tls_versions"), _TLS),
    **dict.fromkeys(("command_line_arguments", "os_env"), _SETTINGS),
    **dict.fromkeys(("list_network_interfaces", "resolve_hostname"), _SYSTEM),
    **dict.fromkeys(("log_tail", "log_tail_stream"), _LOG),
    **dict.fromkeys(
        ("disable_auth_attempt_source_tracking", "enable_auth_attempt_source_tracking"), _SOURCES
    ),
    "reclaim_quorum_memory": _STATUS,
    **dict.fromkeys(("add_replica", "delete_replica", "restart_stream"), _REPLICAS),
    "set_stream_retention_policy": _RETENTION,
    "suspend_listeners": "use 'warren cluster drain'",
    "resume_listeners": "use 'warren cluster revive'",
    "consume_event_stream": "events are published to the exchange amq.rabbitmq.event: bind a queue to it",
    **dict.fromkeys(("add_uaa_key", "add_signing_key"), _KEYS),
    **dict.fromkeys(
        ("activate_free_disk_space_monitoring", "deactivate_free_disk_space_monitoring"), _DISK
    ),
    **dict.fromkeys(
        (
            "activate_stream_consumer", "list_stream_consumer_groups", "list_stream_group_consumers",
            "reset_offset",
        ),
        _GROUPS,
    ),
    **dict.fromkeys(("decrypt_conf_value", "encrypt_conf_value"), _NO_ENCODING),
    "coordinator_status": "streams have no coordinator: each has a single replica",
    "force_checkpoint": "logs of quorum queues are compacted without being asked",
    "force_standalone_khepri_boot": "see 'warren cluster recover --help'",
    "grow_to_count": "use 'warren queues grow NODE all' for each node that lacks replicas",
    "transfer_leadership": "use 'warren queues rebalance', or 'warren cluster drain' for a whole node",
    "set_channel_interceptor_priorities": "channels have no interceptors",
    "list_policies_that_match": "'warren queues show QUEUE' names the policy that is in effect",
    "message_size_stats": "sizes of single messages are not counted: use 'warren queues show'",
    "metadata_store_status": "'warren cluster status' shows who leads, and which members are up",
    "reconcile_vhosts": "'warren vhosts restart' starts a virtual host that has failed",
    "remove_classic_queue_mirroring_from_policies": "ha-* keys of policies have no effect",
    "consistent_hash_exchange_ring_state": "'warren bindings list' shows the weights of its queues",
    "autocomplete": "use 'warren completion bash'",
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
