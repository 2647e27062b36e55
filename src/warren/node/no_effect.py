"""Keys of RabbitMQ that Warren takes without doing anything: each is named in a warning at the start.

A key counts if it is listed or begins with a listed one and a dot. What would change what clients see, if
it were ignored in silence, is why the warning is there; a key that is nobody's is an error instead.
"""

NAMES = (
    # Erlang, Mnesia and clustering between RabbitMQ nodes.
    "erlang", "distribution", "net_ticktime", "cluster_formation", "cluster_keepalive_interval",
    "cluster_partition_handling", "mnesia_table_loading_retry_limit", "mnesia_table_loading_retry_timeout",
    "mirroring_sync_batch_size", "mirroring_sync_max_throughput", "hipe_compile", "delegate_count",
    "background_gc_enabled", "background_gc_target_interval", "default_worker_pool_size", "sysmon_handler",
    "socket_writer", "raft", "quorum_queue", "classic_queue", "aws",
    "message_store_shutdown_timeout", "vm_memory_calculation_strategy", "khepri_default_timeout",
    "memory_monitor_interval",
    "queue_index_embed_msgs_below",
    "queue_leader_locator", "queue_master_locator", "reverse_dns_lookups",
    # Listening.
    "num_acceptors", "ssl_allow_poodle_attack",
    "tcp_listen_options.buffer", "tcp_listen_options.delay_send", "tcp_listen_options.dontroute",
    "tcp_listen_options.exit_on_close", "tcp_listen_options.fd", "tcp_listen_options.high_msgq_watermark",
    "tcp_listen_options.high_watermark", "tcp_listen_options.linger", "tcp_listen_options.low_msgq_watermark",
    "tcp_listen_options.low_watermark", "tcp_listen_options.priority", "tcp_listen_options.recbuf",
    "tcp_listen_options.send_timeout", "tcp_listen_options.send_timeout_close",
    "tcp_listen_options.sndbuf", "tcp_listen_options.tos",
    "ssl_options.bypass_pem_cache", "ssl_options.cacerts", "ssl_options.cert", "ssl_options.key",
    "ssl_options.client_renegotiation", "ssl_options.crl_check", "ssl_options.depth", "ssl_options.dh",
    "ssl_options.dhfile", "ssl_options.honor_ecc_order", "ssl_options.log_alert", "ssl_options.log_level",
    "ssl_options.psk_identity", "ssl_options.reuse_sessions", "ssl_options.secure_renegotiate",
    # Statistics and the management plug-ins.
    "collect_statistics", "collect_statistics_interval", "management_agent", "motd_file", "product",
    "management.cors", "management.db_cache_multiplier", "management.disable_basic_auth",
    "management.disable_stats", "management.enable_queue_totals", "management.enable_uaa",
    "management.headers", "management.http", "management.http_log_dir",
    "management.listener", "management.login_session_timeout", "management.path_prefix",
    "management.rates_mode", "management.sample_retention_policies",
    "management.uaa_client_id", "management.uaa_location", "prometheus.path",
    "prometheus.return_per_object_metrics",
    "prometheus.filter_aggregated_queue_metrics_pattern", "deprecated_features",
    "definitions.hashing", "definitions.https", "definitions.tls", "definitions.skip_if_unchanged",
    "management.ssl.honor_ecc_order", "management.ssl.reuse_sessions", "management.ssl.secure_renegotiate",
    "management.ssl.client_renegotiation", "management.ssl.depth", "management.ssl.backlog",
    "management.ssl.compress", "management.ssl.idle_timeout", "management.ssl.inactivity_timeout",
    "management.ssl.request_timeout", "management.ssl.shutdown_timeout", "management.ssl.max_keepalive",
    "management.tcp.compress", "management.tcp.idle_timeout", "management.tcp.inactivity_timeout",
    "management.tcp.request_timeout", "management.tcp.shutdown_timeout", "management.tcp.max_keepalive",
    "prometheus.ssl.honor_ecc_order", "prometheus.ssl.reuse_sessions", "prometheus.ssl.secure_renegotiate",
    "prometheus.ssl.client_renegotiation", "prometheus.ssl.depth", "prometheus.ssl.backlog",
    "prometheus.ssl.compress", "prometheus.ssl.idle_timeout", "prometheus.ssl.inactivity_timeout",
    "prometheus.ssl.request_timeout", "prometheus.ssl.shutdown_timeout", "prometheus.ssl.max_keepalive",
    "prometheus.tcp.compress", "prometheus.tcp.idle_timeout", "prometheus.tcp.inactivity_timeout",
    "prometheus.tcp.request_timeout", "prometheus.tcp.shutdown_timeout", "prometheus.tcp.max_keepalive",
    # Passwords and other ways to log in.
    "credential_validator", "auth_cache", "auth_http",
    "auth_ldap.log", "auth_ldap.ssl_options.cacerts", "auth_ldap.ssl_options.cert",
    "auth_ldap.ssl_options.client_renegotiation", "auth_ldap.ssl_options.crl_check",
    "auth_ldap.ssl_options.depth", "auth_ldap.ssl_options.dh", "auth_ldap.ssl_options.dhfile",
    "auth_ldap.ssl_options.fail_if_no_peer_cert", "auth_ldap.ssl_options.honor_cipher_order",
    "auth_ldap.ssl_options.honor_ecc_order", "auth_ldap.ssl_options.hostname_verification",
    "auth_ldap.ssl_options.key", "auth_ldap.ssl_options.log_alert", "auth_ldap.ssl_options.psk_identity",
    "auth_ldap.ssl_options.reuse_sessions", "auth_ldap.ssl_options.secure_renegotiate",
    "auth_ldap.ssl_options.sni", "auth_ldap.ssl_options.versions",
    "auth_oauth2", "trust_store", "anonymous_login_user", "anonymous_login_pass",
    # What is logged where, beyond the console and one file.
    "log.channel", "log.connection", "log.console", "log.default", "log.exchange", "log.federation",
    "log.file", "log.journald", "log.mirroring", "log.queue", "log.ra", "log.syslog", "log.upgrade",
    # Limits of RabbitMQ 4, and what is made with a virtual host there.
    "channel_max_per_node", "consumer_max_per_channel", "session_max_per_connection", "link_max_per_session",
    "vhost_max", "exchange_max", "cluster_queue_limit", "cluster_exchange_limit", "cluster_tags", "node_tags",
    "ranch_connection_max", "default_limits", "default_policies", "default_queue_type", "default_users",
    "khepri_leader_wait_retry_timeout", "metadata_store", "message_interceptors", "msg_store_file_size_limit",
    "msg_store_credit_disc_bound", "msg_store_io_batch_size", "queue_explicit_gc_run_operation_threshold",
    "lazy_queue_explicit_gc_run_operation_threshold", "credit_flow_default_credit", "shovel", "federation",
    "tracing", "trace", "web_dispatch",
    # Other protocols.
    "amqp1_0", "mqtt", "stomp", "stream", "web_mqtt", "web_stomp",
)  # fmt: skip


def is_listed(key: str) -> bool:
    """Whether `key` is one of these."""
    parts = key.split(".")
    return any(".".join(parts[:count]) in _NAMES for count in range(1, len(parts) + 1))


_NAMES = frozenset(NAMES)
