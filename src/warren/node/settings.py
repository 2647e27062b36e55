"""The settings of a node, each declared once: its key, its default, how it is parsed, and its description.

The keys are RabbitMQ's wherever it has one. `oauth2_settings.py` has those of OAuth 2, `cluster_settings.py`
those of a cluster, `all_settings.py` all, and `no_effect.py` lists keys that are only accepted. Each
description stands alone: the settings reference and `warren serve --help-all` show it without the others.
"""

from warren import limits
from warren.access.authenticate import BackendKind
from warren.access.passwords import ARGON2ID, NEW_HASHES
from warren.node.setting_types import (
    Family,
    Setting,
    http_port_keys,
    socket_keys,
    tls_keys,
)
from warren.node.values import (
    Address,
    FileMode,
    address,
    boolean,
    choice,
    client_address,
    file_mode,
    fraction,
    integer,
    node_name,
    size,
    text,
    text_or_none,
    unless,
)
from warren.transport.certificates import LoginFrom

_MS = integer(0, 2**32 - 1)
_LOGIN_SOURCES = {source.value: source for source in LoginFrom} | {
    "subject_alt_name": LoginFrom.SUBJECT_ALTERNATIVE_NAME
}

_SOURCES = {name: one for one in BackendKind for name in (one.value, f"rabbit_auth_backend_{one.value}")}
_BINDS = choice({name: name for name in ("as_user", "anon")})

# --- listeners ----------------------------------------------------------------------------------
TCP = Family(
    "listeners.tcp", {"default": Address("", 5672)}, client_address,
    "ports, or addresses and ports, on which AMQP clients connect without TLS: "
    "`listeners.tcp.internal = 127.0.0.1:5673`; a Unix socket: "
    "`listeners.tcp.local = unix:/run/warren/amqp.sock:0`; `none` for no such listener",
)  # fmt: skip
UNIX_MODE = Setting(
    "unix_listen_options.mode", FileMode(0o660), file_mode,
    "permissions of the files of Unix sockets, in octal digits; who may write to the file may connect",
)  # fmt: skip
TLS: Family[Address] = Family(
    "listeners.ssl", {}, address,
    "ports, or addresses and ports, on which AMQP clients connect with TLS: `listeners.ssl.default = 5671`",
)  # fmt: skip
SOCKETS = socket_keys("tcp_listen_options", "the AMQP listeners", limits.SEND_TIMEOUT_MS)
PROXY_PROTOCOL = Setting(
    "proxy_protocol", False, boolean,
    "expect the PROXY protocol (version 1 or 2) on AMQP and stream connections, as a load balancer sends it; "
    "connections without it are closed",
)  # fmt: skip
STREAM_TCP = Family(
    "stream.listeners.tcp", {"default": Address("", 5552)}, address,
    "ports, or addresses and ports, on which stream clients connect without TLS: "
    "`stream.listeners.tcp.default = 5552`; `none` for no such listener",
)  # fmt: skip
STREAM_TLS: Family[Address] = Family(
    "stream.listeners.ssl", {}, address,
    "ports, or addresses and ports, on which stream clients connect with TLS: "
    "`stream.listeners.ssl.default = 5551`",
)  # fmt: skip
STREAM_SOCKETS = socket_keys(
    "stream.tcp_listen_options", "the stream listeners", limits.STREAM_SEND_TIMEOUT_MS
)
STREAM_HOST = Setting(
    "stream.advertised_host", "", text,
    "host name that stream clients without TLS are told to connect to, such as `broker.example.com`; "
    "unset: the address that the client connected to",
)  # fmt: skip
STREAM_PORT = Setting(
    "stream.advertised_port", 0, integer(0, 65_535),
    "port that stream clients without TLS are told to connect to; 0: the port that the client connected to",
)  # fmt: skip
STREAM_TLS_HOST = Setting(
    "stream.advertised_tls_host", "", text,
    "host name that stream clients with TLS are told to connect to, such as `broker.example.com`; "
    "unset: the address that the client connected to",
)  # fmt: skip
STREAM_TLS_PORT = Setting(
    "stream.advertised_tls_port", 0, integer(0, 65_535),
    "port that stream clients with TLS are told to connect to; 0: the port that the client connected to",
)  # fmt: skip
DATA_DIRECTORY = Setting(
    "data_dir", "", text,
    "directory of persistent messages, streams and metadata; unset: `$XDG_DATA_HOME/warren`, else "
    "`/var/lib/warren` for root and `~/.local/share/warren` for other users",
)  # fmt: skip
PID_FILE = Setting(
    "pid_file", "", text,
    "file that contains the id of the process while the broker runs, such as `/run/warren/warren.pid`; "
    "unset: no such file",
)  # fmt: skip
NODE_NAME = Setting(
    "node.name", "", node_name,
    "name of the node, such as `warren@host1`; without `@`, the name of the machine is added; unset: the "
    "name in the data directory, or `warren` if that is new",
)  # fmt: skip
IN_MEMORY = Setting(
    "in_memory", False, boolean,
    "write nothing to disk: all messages and metadata are lost when the node stops",
)  # fmt: skip
SKIP_DAMAGE = Setting(
    "metadata.skip_damage", False, boolean,
    "start although a part of the metadata cannot be read, without the queues, users and other objects in "
    "it; the messages of such queues are kept",
)  # fmt: skip
ACCEPT_OLDER_STORES = Setting(
    "stores.accept_older", False, boolean,
    "start a virtual host although its directory is an older copy than the metadata, with the messages that "
    "the copy has; set it for one start",
)  # fmt: skip
# `transient` and `persistent` are RabbitMQ's older names of `continue` and `stop_node`.
VHOST_FAILURE_STOPS = Setting(
    "vhost_restart_strategy", False,
    choice({"continue": False, "transient": False, "stop_node": True, "persistent": True}),
    "what happens when a virtual host has failed after all restarts: `continue` serves the other virtual "
    "hosts, `stop_node` stops the node",
)  # fmt: skip

# --- clients ----------------------------------------------------------------------------------
CONNECTIONS_MAX: Setting[int | None] = Setting(
    "connection_max", None, unless(("infinity",), integer(0)),
    "maximum number of open client connections of the node, such as `1000`; unset or `infinity`: no limit",
)  # fmt: skip
HEARTBEAT = Setting(
    "heartbeat", limits.HEARTBEAT_S, integer(0, 65_535),
    "heartbeat timeout in seconds that the server proposes to AMQP clients; 0: no heartbeats",
)  # fmt: skip
FRAME_SIZE = Setting(
    "frame_max", limits.FRAME_SIZE_MAX, integer(limits.FRAME_SIZE_MIN, 2**28),
    "maximum frame size in bytes that the server proposes to AMQP clients",
)  # fmt: skip
FRAME_SIZE_HANDSHAKE = Setting(
    "initial_frame_max", limits.FRAME_SIZE_HANDSHAKE, integer(4096, 2**24),
    "maximum frame size in bytes before `connection.tune`; raise it for long OAuth 2 tokens, to `16384`",
)  # fmt: skip
STREAM_FRAME_SIZE = Setting(
    "stream.frame_max", limits.STREAM_FRAME_SIZE_MAX, integer(0, 2**28),
    "maximum frame size in bytes that the server proposes to stream clients",
)  # fmt: skip
STREAM_CREDITS = Setting(
    "stream.initial_credits", limits.STREAM_UNCONFIRMED_MAX, integer(1, 2**31 - 1),
    "messages that a stream client may have published without a confirm before it is not read any more",
)  # fmt: skip
STREAM_UNBLOCKING = Setting(
    "stream.credits_required_for_unblocking", limits.STREAM_UNCONFIRMED_MAX // 4, integer(0, 2**31 - 1),
    "how many more messages it must be possible to publish by `stream.initial_credits` before the client is "
    "read again",
)  # fmt: skip
STREAM_HEARTBEAT = Setting(
    "stream.heartbeat", limits.HEARTBEAT_S, integer(0, 65_535),
    "heartbeat interval in seconds that the server proposes to stream clients; 0: no heartbeats",
)  # fmt: skip
CHANNELS = Setting(
    "channel_max", limits.CHANNELS_MAX, integer(0, 65_535),
    "maximum number of channels of a connection that the server proposes to clients",
)  # fmt: skip
MESSAGE_SIZE = Setting(
    "max_message_size", limits.MESSAGE_SIZE_MAX, integer(0, 2**29),
    "maximum size of a message body in bytes; publishing a larger one closes the channel",
)  # fmt: skip
HANDSHAKE = Setting(
    "handshake_timeout", limits.HANDSHAKE_MS, _MS,
    "milliseconds in which a client must complete the protocol handshake and log in",
)  # fmt: skip
TLS_HANDSHAKE = Setting(
    "ssl_handshake_timeout", limits.TLS_HANDSHAKE_MS, _MS,
    "milliseconds in which a client must complete the TLS handshake",
)  # fmt: skip
CONSUMER_TIMEOUT: Setting[int | None] = Setting(
    "consumer_timeout", limits.CONSUMER_TIMEOUT_MS, unless(("undefined", "infinity"), _MS),
    "milliseconds after which the consumer of an unacknowledged delivery is cancelled; `infinity`: no limit",
)  # fmt: skip
CHANNEL_CONSUMERS: Setting[int | None] = Setting(
    "consumer_max_per_channel", limits.CHANNEL_CONSUMERS_MAX, unless(("infinity",), integer(1)),
    "maximum number of consumers of a channel; `infinity`: no limit",
)  # fmt: skip
SHUTDOWN_GRACE = Setting(
    "shutdown_grace", 5_000, _MS,
    "milliseconds that clients have to close their connections when the node stops",
)  # fmt: skip

# --- TLS --------------------------------------------------------------------------------------
LISTENER_TLS = tls_keys("ssl_options", "the AMQP and stream listeners")
LOGIN_FROM = Setting(
    "ssl_cert_login_from", LoginFrom.DISTINGUISHED_NAME, choice(_LOGIN_SOURCES),
    "field of a client certificate that has the user name, for the mechanism EXTERNAL: "
    "`distinguished_name`, `common_name` or `subject_alternative_name`",
)  # fmt: skip
LOGIN_SAN_TYPE = Setting(
    "ssl_cert_login_san_type", "dns",
    choice({name: name for name in ("dns", "ip", "email", "uri", "other_name")}),
    "type of the subject alternative name used with `ssl_cert_login_from = subject_alternative_name`",
)  # fmt: skip
LOGIN_SAN_INDEX = Setting(
    "ssl_cert_login_san_index", 0, integer(0, 1000),
    "index, from 0, of the subject alternative name among those of type `ssl_cert_login_san_type`",
)  # fmt: skip

# --- HTTP -------------------------------------------------------------------------------------
_API, _METRICS = "the HTTP API", "the Prometheus endpoint"
MANAGEMENT_TCP = http_port_keys("management.tcp", 15_672, _API)
MANAGEMENT_SSL = http_port_keys(
    "management.ssl", 15_671, f"{_API} with TLS",
    ", if a certificate, address or port is set in `management.ssl`",
)  # fmt: skip
PROMETHEUS_TCP = http_port_keys("prometheus.tcp", 15_692, _METRICS)
PROMETHEUS_SSL = http_port_keys(
    "prometheus.ssl", 15_691, f"{_METRICS} with TLS",
    ", if a certificate, address or port is set in `prometheus.ssl`",
)  # fmt: skip
MANAGEMENT_HOST, MANAGEMENT_PORT = MANAGEMENT_TCP.host, MANAGEMENT_TCP.port
PROMETHEUS_HOST, PROMETHEUS_PORT = PROMETHEUS_TCP.host, PROMETHEUS_TCP.port
MANAGEMENT_COMPRESS = Setting(
    "management.tcp.compress", True, boolean,
    "compress responses of the HTTP API if the client accepts it",
)  # fmt: skip
MANAGEMENT_SSL_COMPRESS = Setting(
    "management.ssl.compress", True, boolean,
    "compress responses of the HTTP API with TLS if the client accepts it",
)  # fmt: skip
MANAGEMENT_TLS = tls_keys("management.ssl", _API)
PROMETHEUS_TLS = tls_keys("prometheus.ssl", _METRICS)
HSTS_POLICY = Setting(
    "management.hsts.policy", "", text,
    "value of the header Strict-Transport-Security in responses of the HTTP API with TLS, such as "
    "`max-age=31536000`; unset: no such header",
)  # fmt: skip
CSP_POLICY = Setting(
    "management.csp.policy", "", text,
    "value of the header Content-Security-Policy of the HTTP API and the web interface; unset: the strict "
    "policy of Warren",
)  # fmt: skip
CORS_ORIGINS: Family[str] = Family(
    "management.cors.allow_origins", {}, text,
    "origins whose pages may use the HTTP API (CORS): "
    "`management.cors.allow_origins.1 = https://app.example.com`; `*` for all",
)  # fmt: skip
CORS_MAX_AGE: Setting[int | None] = Setting(
    "management.cors.max_age", 1_800, unless(("none",), integer(0)),
    "seconds for which browsers cache the response to a CORS preflight request; `none`: no such header",
)  # fmt: skip
PATH_PREFIX = Setting(
    "management.path_prefix", "", text,
    "prefix of all paths of the HTTP API and the web interface, such as `/warren`",
)  # fmt: skip
PROMETHEUS_PATH = Setting(
    "prometheus.path", "/metrics", text, "path of the metrics on the port of the Prometheus endpoint"
)

# --- users and permissions -------------------------------------------------------------------
MECHANISMS = Family(
    "auth_mechanisms", {"1": "PLAIN", "2": "AMQPLAIN"},
    choice({name.lower(): name for name in ("PLAIN", "AMQPLAIN", "EXTERNAL")}),
    "SASL mechanisms offered to clients, in order of preference: `auth_mechanisms.1 = EXTERNAL`",
)  # fmt: skip
LOOPBACK_USERS = Family(
    "loopback_users", {"guest": True}, boolean,
    "users who may only connect from the machine of the broker; `loopback_users.guest = false` or "
    "`loopback_users = none` lets guest connect from everywhere",
)  # fmt: skip
BACKENDS: Family[BackendKind | None] = Family(
    "auth_backends", {"1": BackendKind.INTERNAL},
    choice({**_SOURCES, "cache": None, "rabbit_auth_backend_cache": None}),
    "authentication and authorization backends, tried in order: `internal`, `ldap`, `oauth2`, `http` or "
    "`cache`; `auth_backends.1.authn` and `auth_backends.1.authz` choose one for each",
)  # fmt: skip
PASSWORD_HASHING = Setting(
    "password_hashing_module", ARGON2ID, choice(dict(zip(NEW_HASHES, NEW_HASHES, strict=True))),
    "hash function of new passwords",
)  # fmt: skip
LOGIN_FAILURES: Setting[int | None] = Setting(
    "login_failures.allowed", limits.LOGIN_FAILURES_FREE, unless(("infinity",), integer(0, 1_000_000)),
    "number of failed logins of an address or a user name after which further ones are delayed; "
    "`infinity`: never delay",
)  # fmt: skip
LOGIN_DELAY = Setting(
    "login_failures.delay_max", limits.LOGIN_DELAY_MS_MAX, _MS,
    "maximum delay in milliseconds of a login after too many failed ones",
)  # fmt: skip
CACHED_BACKEND = Setting(
    "auth_cache.cached_backend", BackendKind.LDAP, choice(_SOURCES),
    "backend whose answers are cached where `auth_backends` names `cache`",
)  # fmt: skip
CACHED_AUTHENTICATION: Setting[BackendKind | None] = Setting(
    "auth_cache.cached_backend.authn", None, choice(_SOURCES),
    "backend that authenticates users where `auth_backends` names `cache`; unset: "
    "`auth_cache.cached_backend`",
)  # fmt: skip
CACHED_AUTHORIZATION: Setting[BackendKind | None] = Setting(
    "auth_cache.cached_backend.authz", None, choice(_SOURCES),
    "backend that authorizes users where `auth_backends` names `cache`; unset: the one that authenticates "
    "them",
)  # fmt: skip
AUTH_CACHE_TTL = Setting(
    "auth_cache.cache_ttl", limits.LDAP_CACHE_MS, _MS,
    "milliseconds for which a successful login at LDAP or a web server is cached; 0: not cached",
)  # fmt: skip
LDAP_SERVERS: Family[str] = Family(
    "auth_ldap.servers", {}, text,
    "host names of the LDAP servers, tried in order: `auth_ldap.servers.1 = ldap.example.org`",
)  # fmt: skip
LDAP_PORT: Setting[int | None] = Setting(
    "auth_ldap.port", None, integer(1, 65_535),
    "TCP port of the LDAP servers; unset: 389, or 636 with `auth_ldap.use_ssl`",
)  # fmt: skip
LDAP_USER_PATTERN = Setting(
    "auth_ldap.user_dn_pattern", "${username}", text,
    "distinguished name (DN) of a user, such as `uid=${username},ou=people,dc=example,dc=org`, or with "
    "`auth_ldap.dn_lookup_attribute` the value to look up",
)  # fmt: skip
LDAP_BIND_PATTERN = Setting(
    "auth_ldap.user_bind_pattern", "", text,
    "name that a user binds with, such as `${ad_user}@example.com`; unset: the DN of the user",
)  # fmt: skip
LDAP_LOOKUP_ATTRIBUTE = Setting(
    "auth_ldap.dn_lookup_attribute", "", text_or_none,
    "attribute by which the DN of a user is looked up, such as `sAMAccountName`; unset: no lookup",
)  # fmt: skip
LDAP_LOOKUP_BASE = Setting(
    "auth_ldap.dn_lookup_base", "", text_or_none,
    "DN below which users are looked up, such as `ou=people,dc=example,dc=org`",
)  # fmt: skip
LDAP_LOOKUP_BIND = Setting(
    "auth_ldap.dn_lookup_bind", "as_user", _BINDS,
    "account that looks up the DNs of users: `as_user` (the user who logs in) or `anon` (anonymous)",
)  # fmt: skip
LDAP_LOOKUP_USER = Setting(
    "auth_ldap.dn_lookup_bind.user_dn", "", text,
    "DN of the account that looks up the DNs of users, instead of `auth_ldap.dn_lookup_bind`",
)  # fmt: skip
LDAP_LOOKUP_PASSWORD = Setting(
    "auth_ldap.dn_lookup_bind.password", "", text, "password of `auth_ldap.dn_lookup_bind.user_dn`",
    is_secret=True,
)  # fmt: skip
LDAP_OTHER_BIND = Setting(
    "auth_ldap.other_bind", "as_user", _BINDS,
    "account that looks up the groups of users: `as_user` (the user who logs in) or `anon` (anonymous)",
)  # fmt: skip
LDAP_OTHER_USER = Setting(
    "auth_ldap.other_bind.user_dn", "", text,
    "DN of the account that looks up the groups of users, instead of `auth_ldap.other_bind`",
)  # fmt: skip
LDAP_OTHER_PASSWORD = Setting(
    "auth_ldap.other_bind.password", "", text, "password of `auth_ldap.other_bind.user_dn`", is_secret=True
)
LDAP_GROUPS_BASE = Setting(
    "auth_ldap.group_lookup_base", "", text_or_none,
    "DN below which groups are looked up, such as `ou=groups,dc=example,dc=org`; "
    "unset: `auth_ldap.dn_lookup_base`",
)  # fmt: skip
LDAP_GROUP_ATTRIBUTE = Setting(
    "auth_ldap.group_attribute", "member", text,
    "attribute of a group that lists its members: `member`, `uniqueMember` (DNs) or `memberUid` (logins)",
)  # fmt: skip
LDAP_TAGS: Family[str] = Family(
    "auth_ldap.tags", {}, text,
    "DN of the group whose members have a user tag, or `everybody`: "
    "`auth_ldap.tags.administrator = cn=admins,ou=groups,dc=example,dc=org`",
)  # fmt: skip
LDAP_GRANTS: Family[str] = Family(
    "auth_ldap.grants", {}, text,
    "permissions of the members of a group: `auth_ldap.grants.1.group`, `.vhost`, `.configure`, `.write` "
    "and `.read`",
)  # fmt: skip
LDAP_TLS = Setting("auth_ldap.use_ssl", False, boolean, "connect to the LDAP servers with TLS (LDAPS)")
LDAP_START_TLS = Setting(
    "auth_ldap.use_starttls", False, boolean, "upgrade connections to the LDAP servers to TLS with StartTLS"
)
LDAP_AUTHORITY_FILE = Setting(
    "auth_ldap.ssl_options.cacertfile", "", text,
    "PEM file with the CA certificates that LDAP servers are verified against; unset: those of the system",
)  # fmt: skip
LDAP_CERTIFICATE_FILE = Setting(
    "auth_ldap.ssl_options.certfile", "", text,
    "PEM file with the client certificate sent to LDAP servers that request one",
)  # fmt: skip
LDAP_KEY_FILE = Setting(
    "auth_ldap.ssl_options.keyfile", "", text,
    "PEM file with the private key of `auth_ldap.ssl_options.certfile`",
)  # fmt: skip
LDAP_KEY_PASSWORD = Setting(
    "auth_ldap.ssl_options.password", "", text, "passphrase of `auth_ldap.ssl_options.keyfile`",
    is_secret=True,
)  # fmt: skip
LDAP_VERIFY = Setting(
    "auth_ldap.ssl_options.verify", True, choice({"verify_peer": True, "verify_none": False}),
    "`verify_peer` verifies the certificates of the LDAP servers; `verify_none` does not",
)  # fmt: skip
LDAP_TIMEOUT = Setting(
    "auth_ldap.timeout", limits.LDAP_TIMEOUT_MS, integer(1, 60_000),
    "milliseconds that all LDAP operations of a login may take together",
)  # fmt: skip
LDAP_IDLE = Setting(
    "auth_ldap.idle_timeout", limits.LDAP_IDLE_MS, _MS,
    "milliseconds after which an unused connection to an LDAP server is closed",
)  # fmt: skip
LDAP_POOL_SIZE = Setting(
    "auth_ldap.connection_pool_size", limits.LDAP_CONNECTIONS_MAX, integer(1, 1000),
    "maximum number of connections to LDAP servers",
)  # fmt: skip
DEFAULT_USER = Setting(
    "default_user", "guest", text, "name of the user created at the first start, when there are no users"
)
DEFAULT_PASSWORD = Setting("default_pass", "guest", text, "password of `default_user`", is_secret=True)
DEFAULT_VHOST = Setting(
    "default_vhost", "/", text,
    "name of the virtual host created at the first start, when there are no virtual hosts",
)  # fmt: skip
DEFAULT_CONFIGURE = Setting(
    "default_permissions.configure", ".*", text,
    "regular expression of the names that `default_user` may configure in `default_vhost`",
)  # fmt: skip
DEFAULT_READ = Setting(
    "default_permissions.read", ".*", text,
    "regular expression of the names that `default_user` may read from in `default_vhost`",
)  # fmt: skip
DEFAULT_WRITE = Setting(
    "default_permissions.write", ".*", text,
    "regular expression of the names that `default_user` may write to in `default_vhost`",
)  # fmt: skip
DEFAULT_TAGS = Family(
    "default_user_tags", {"administrator": True}, boolean,
    "tags of `default_user`: `default_user_tags.monitoring = true`",
)  # fmt: skip
CLUSTER_NAME = Setting(
    "cluster_name", "", text,
    "cluster name shown to clients and in the web interface; unset: the name of the node",
)  # fmt: skip

# --- events ---------------------------------------------------------------------------------
EVENT_VHOST = Setting(
    "event_exchange.vhost", "/", text,
    "virtual host in which the event exchange `amq.rabbitmq.event` is declared at the start of the node",
)  # fmt: skip
EVENT_PROTOCOL = Setting(
    "event_exchange.protocol", "amqp_0_9_1", choice({"amqp_0_9_1": "amqp_0_9_1"}),
    "message format of events: `amqp_0_9_1` is the only one",
)  # fmt: skip

# --- alarms -----------------------------------------------------------------------------------
MEMORY_RELATIVE = Setting(
    "vm_memory_high_watermark.relative", 0.4, fraction,
    "memory alarm threshold, as a fraction of total memory: above it, publishers are blocked",
)  # fmt: skip
MEMORY_ABSOLUTE: Setting[int | None] = Setting(
    "vm_memory_high_watermark.absolute", None, size,
    "memory alarm threshold in bytes, such as `2GB`; ignored if `vm_memory_high_watermark.relative` is set",
)  # fmt: skip
PAGING_RATIO = Setting(
    "vm_memory_high_watermark_paging_ratio", 0.5, fraction,
    "fraction of the memory alarm threshold above which queues keep fewer messages in memory",
)  # fmt: skip
MEMORY_TOTAL: Setting[int | None] = Setting(
    "total_memory_available_override_value", None, size,
    "total memory in bytes, such as `8GB`, of which `vm_memory_high_watermark.relative` is a fraction; "
    "unset: that of the machine or of its cgroup",
)  # fmt: skip
DISK_ABSOLUTE = Setting(
    "disk_free_limit.absolute", 50_000_000, size,
    "disk alarm threshold in bytes, such as `1GB`: with less free disk space, publishers are blocked",
)  # fmt: skip
DISK_RELATIVE: Setting[float | None] = Setting(
    "disk_free_limit.relative", None, fraction,
    "disk alarm threshold as a fraction of total memory, such as `1.0`: with less free disk space, "
    "publishers are blocked",
)  # fmt: skip

STATIC_SHOVELS: Family[str] = Family(
    "shovel", {}, text, "static shovels: `shovel.NAME.KEY`; all of them: `shovel.topology.predeclared`"
)
