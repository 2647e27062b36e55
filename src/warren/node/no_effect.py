"""Keys of RabbitMQ that Warren accepts without effect, by reason, which a warning at the start contains.

A key matches if it is listed, or begins with a listed key and a dot; one that is listed with `= none`
matches only itself. A listed key that begins like a family, such as `shovel.operating_mode`, is none of its
names. The warning is there because ignoring a key can change what clients observe; a key that RabbitMQ does
not have either is an error instead.
"""

REASONS: dict[str, tuple[str, ...]] = {
    "it configures Erlang, which Warren does not use": (
        "erlang", "distribution", "mnesia_table_loading_retry_limit",
        "mnesia_table_loading_retry_timeout", "hipe_compile", "delegate_count", "background_gc_enabled",
        "background_gc_target_interval", "default_worker_pool_size", "sysmon_handler", "socket_writer",
        "vm_memory_calculation_strategy", "khepri_default_timeout", "memory_monitor_interval",
        "num_acceptors", "tcp_listen_options.delay_send", "tcp_listen_options.exit_on_close",
        "tcp_listen_options.fd", "tcp_listen_options.high_msgq_watermark",
        "tcp_listen_options.high_watermark", "tcp_listen_options.low_msgq_watermark",
        "tcp_listen_options.low_watermark", "ranch_connection_max", "khepri_leader_wait_retry_timeout",
        "metadata_store", "credit_flow_default_credit", "web_dispatch", "management.delegate_count",
        "log.error_logger_format_depth", "log.summarize_process_state", "tcp_listen_options.port",
    ),
    "nodes know by other means, and at fixed intervals, that others are there": (
        "cluster_keepalive_interval", "net_ticktime",
    ),
    "the node listens to others on one port, distribution.listener.port_range.min": (
        "distribution.listener.port_range.max",
    ),
    "only the seed begins a cluster, so that starts need no delay and no lock": (
        "cluster_formation.randomized_startup_delay_range", "cluster_formation.internal_lock_retries",
        "cluster_formation.lock_retry_limit", "cluster_formation.lock_retry_timeout",
    ),
    "a member that is gone is removed from a cluster only by a command": (
        "cluster_formation.node_cleanup",
    ),
    "every member of a cluster has a disk": (
        "cluster_formation.node_type",
    ),
    "the backend is not supported: set cluster_formation.peer_discovery_backend = dns": (
        "cluster_formation.k8s", "cluster_formation.kubernetes", "cluster_formation.aws",
        "cluster_formation.consul", "cluster_formation.etcd", "cluster_formation.proxy",
    ),
    "no member of a cluster decides against the majority, so that nothing has to be healed": (
        "cluster_partition_handling.pause_if_all_down.recover",
    ),
    "only what a backend allows is cached, in the memory of the node": (
        "auth_cache.cache_refusals", "auth_cache.cache_module",
    ),
    "nodes of a cluster are not registered elsewhere": (
        "cluster_formation.registration",
    ),
    "clusters of Warren do not have it": (
        "mirroring_sync_batch_size", "mirroring_sync_max_throughput", "raft", "quorum_queue", "aws",
        "cluster_tags", "node_tags",
    ),
    "the message store is a different one": (
        "classic_queue", "message_store_shutdown_timeout", "queue_index_embed_msgs_below",
        "msg_store_file_size_limit", "msg_store_credit_disc_bound", "msg_store_io_batch_size",
        "queue_explicit_gc_run_operation_threshold", "lazy_queue_explicit_gc_run_operation_threshold",
    ),
    "the socket option is not supported": (
        "reverse_dns_lookups", "tcp_listen_options.buffer", "tcp_listen_options.dontroute",
    ),
    "Python's ssl module does not support it": (
        "ssl_allow_poodle_attack", "ssl_options.bypass_pem_cache", "ssl_options.cacerts",
        "ssl_options.cert", "ssl_options.key", "ssl_options.client_renegotiation",
        "ssl_options.depth", "ssl_options.dh", "ssl_options.dhfile", "ssl_options.honor_ecc_order",
        "ssl_options.log_alert", "ssl_options.log_level", "ssl_options.psk_identity",
        "ssl_options.reuse_sessions", "ssl_options.secure_renegotiate", "management.ssl.honor_ecc_order",
        "management.ssl.reuse_sessions", "management.ssl.secure_renegotiate",
        "management.ssl.client_renegotiation", "management.ssl.depth", "prometheus.ssl.honor_ecc_order",
        "prometheus.ssl.reuse_sessions", "prometheus.ssl.secure_renegotiate",
        "prometheus.ssl.client_renegotiation", "prometheus.ssl.depth", "auth_ldap.ssl_options.cacerts",
        "auth_ldap.ssl_options.cert", "auth_ldap.ssl_options.ciphers",
        "auth_ldap.ssl_options.client_renegotiation",
        "auth_ldap.ssl_options.crl_check", "auth_ldap.ssl_options.depth", "auth_ldap.ssl_options.dh",
        "auth_ldap.ssl_options.dhfile", "auth_ldap.ssl_options.fail_if_no_peer_cert",
        "auth_ldap.ssl_options.honor_cipher_order", "auth_ldap.ssl_options.honor_ecc_order",
        "auth_ldap.ssl_options.hostname_verification", "auth_ldap.ssl_options.key",
        "auth_ldap.ssl_options.log_alert", "auth_ldap.ssl_options.psk_identity",
        "auth_ldap.ssl_options.reuse_sessions", "auth_ldap.ssl_options.secure_renegotiate",
        "auth_ldap.ssl_options.sni", "auth_ldap.ssl_options.versions", "auth_http.ssl_options.cacerts",
        "auth_http.ssl_options.cert", "auth_http.ssl_options.client_renegotiation",
        "auth_http.ssl_options.dh", "auth_http.ssl_options.dhfile", "auth_http.ssl_options.honor_ecc_order",
        "auth_http.ssl_options.key", "auth_http.ssl_options.log_alert", "auth_http.ssl_options.psk_identity",
        "auth_http.ssl_options.reuse_sessions", "auth_http.ssl_options.secure_renegotiate",
    ),
    "statistics are always collected": (
        "collect_statistics", "collect_statistics_interval", "management_agent",
        "management.db_cache_multiplier", "management.disable_stats", "management.enable_queue_totals",
        "management.rates_mode", "management.sample_retention_policies",
    ),
    "the plugin is not supported": (
        "trust_store", "log.journald", "log.syslog", "message_interceptors",
        "tracing", "trace", "mqtt", "stomp", "web_mqtt", "web_stomp",
        "channel_interceptor",
    ),
    "it is a setting of RabbitMQ 4, which 3.10 does not have": (
        "deprecated_features", "definitions.skip_if_unchanged", "anonymous_login_user",
        "anonymous_login_pass",
    ),
    "the node listens when everything is recovered": ("listeners.startup_delay",),
    "passwords are not kept in memory in clear": ("credentials_obfuscation",),
    "AMQP 1.0 is not supported": (
        "amqp1_0", "amqp10_client", "session_max_per_connection", "link_max_per_session",
    ),
    "the TLS of a shovel or of a federation link is set in its URI": ("amqp_client",),
    "the time in which federation links settle and close is fixed": ("federation",),
    "shovels have no other mode than standard": ("shovel.operating_mode",),
    "what a shovel has in memory is bounded by its src-prefetch-count": ("shovel.local.max_credit",),
    "a shovel is deleted after as many seconds as it says": ("shovel.delete_after_duration_floor",),
    "set auth_ldap.tags and auth_ldap.grants instead": ("auth_ldap.queries",),
    "exchanges and queues of all types can be declared": ("exchange_types", "queue_types"),
    "a node whose data directory is empty starts": ("prevent_startup_if_node_was_reset",),
    "the number of runtime parameters is not limited": ("runtime_parameters",),
    "lists of revoked certificates are not read for servers that the node asks": (
        "auth_oauth2.https.crl_check", "auth_http.ssl_options.crl_check",
    ),
    "OpenSSL limits the length of a chain of certificates": (
        "auth_oauth2.https.depth", "auth_http.ssl_options.depth",
    ),
    "wildcards in certificates are always matched": (
        "auth_oauth2.https.hostname_verification", "auth_http.ssl_options.hostname_verification",
    ),
    "it is an option of a server of TLS": (
        "auth_oauth2.https.fail_if_no_peer_cert", "auth_http.ssl_options.fail_if_no_peer_cert",
        "auth_http.ssl_options.honor_cipher_order",
    ),
    "it only says that no key below it is set": (
        "ssl_options = none", "tcp_listen_options = none", "auth_ldap.ssl_options = none",
        "auth_http.ssl_options = none",
    ),
    "clients of the HTTP API are authenticated as those of AMQP are": ("http_dispatch.auth_backends",),
    "everybody may read the reference of the HTTP API": ("management.require_auth_for_api_reference",),
    "every file of definitions is read as JSON": ("management.definitions",),
    "a session of the web interface has a random token": ("management.credential_encryption_secret",),
    "users whose rights allow it may change the replicas of a quorum queue": (
        "management.restrictions.quorum_queue_replica_operations",
    ),
    "set prometheus.tcp.ip and prometheus.tcp.port instead": ("prometheus.tcp.listener",),
    "the HTTP server has fixed limits": (
        "management.headers", "management.http", "management.ssl.backlog", "management.ssl.shutdown_timeout",
        "management.tcp.shutdown_timeout", "prometheus.ssl.backlog", "prometheus.ssl.shutdown_timeout",
        "prometheus.tcp.shutdown_timeout",
    ),
    "metrics are compressed if the client accepts it": ("prometheus.ssl.compress", "prometheus.tcp.compress"),
    "it is a setting of the UAA of RabbitMQ 3.10: set management.oauth_enabled and the keys beside it": (
        "management.enable_uaa", "management.uaa_client_id", "management.uaa_client_secret",
        "management.uaa_location",
    ),
    "sessions of the web interface have fixed limits": ("management.login_session_timeout",),
    "the log option is not supported": (
        "log.channel", "log.connection", "log.console", "log.default", "log.exchange", "log.federation",
        "log.file", "log.user",
    ),
    "nodes use one port for everything, distribution.listener.port_range.min": (
        "stream.replication",
    ),
    "how much of a stream is read at a time is fixed": (
        "stream.read_ahead", "stream.read_ahead_limit",
    ),
    "streams are in the data directory of the node": ("stream.data_dir",),
    "clients of streams log in by certificate as those of AMQP do, with auth_mechanisms": (
        "stream.ssl_cert_login",
    ),
    "the stream option is not supported": (
        "stream",
    ),
    "a batch of a stream has at most 16 MiB when it is uncompressed": (
        "stream.max_uncompressed_sub_entry_batch_size",
    ),
    "metrics of objects are at /metrics/per-object": (
        "prometheus.return_per_object_metrics",
        "prometheus.filter_aggregated_queue_metrics_pattern",
    ),
    "requests are logged in the log of the node": (
        "management.http_log_dir", "http_dispatch.access_log_dir",
    ),
    "definitions are imported at each start": ("definitions.hashing",),
    "the versions and ciphers of the client are those of OpenSSL": ("definitions.tls",),
    "use management.tcp and management.ssl instead": (
        "management.listener",
    ),
    "there are no log messages of this category": (
        "auth_ldap.log", "log.mirroring", "log.queue", "log.ra", "log.upgrade",
    ),
    "it is not implemented yet": (
        "motd_file", "product", "credential_validator",
    ),
}  # fmt: skip


def reason_of(key: str) -> str | None:
    """Return the reason why `key` has no effect; None if it is not one of these keys."""
    parts = key.split(".")
    names = (f"{key} = none", *(".".join(parts[:count]) for count in range(len(parts), 0, -1)))
    return next((_REASONS[name] for name in names if name in _REASONS), None)


def is_listed(key: str) -> bool:
    """True if `key` itself is listed, and not only what it begins with."""
    return key in _REASONS


_REASONS = {name: reason for reason, names in REASONS.items() for name in names}
