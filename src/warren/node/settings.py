"""Every setting, declared once: its key, its default, how it is written, and what it is for.

The keys are RabbitMQ's wherever it has one. `no_effect.py` lists those that are only accepted.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

from warren import limits
from warren.access.authenticate import BackendKind
from warren.access.passwords import ARGON2ID, SHA256, SHA512
from warren.access.tokens import ALGORITHMS, SHARED_ALGORITHMS
from warren.limits_http import HTTP_HEADERS_S, HTTP_IDLE_S, HTTP_STALLED_S
from warren.node.values import (
    Address,
    address,
    boolean,
    choice,
    fraction,
    integer,
    rotation_date,
    size,
    text,
    text_or_none,
    unless,
)
from warren.transport.certificates import LoginFrom
from warren.transport.tls import VERSION_NAMES

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Setting(Generic[Value]):
    """One key with one value."""

    key: str
    default: Value
    parse: Callable[[str], Value]
    reason: str
    # Shown to nobody.
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class Family(Generic[Value]):
    """Keys with a common beginning: `key.name = value`, and `key = none` for none at all."""

    key: str
    default: dict[str, Value]
    parse: Callable[[str], Value]
    reason: str


_MS = integer(0, 2**32 - 1)
_LOGIN_SOURCES = {source.value: source for source in LoginFrom} | {
    "subject_alt_name": LoginFrom.SUBJECT_ALTERNATIVE_NAME
}
# Their names, and what the log calls them.
LEVELS = {
    "debug": "DEBUG", "info": "INFO", "notice": "INFO", "warning": "WARNING", "error": "ERROR",
    "critical": "CRITICAL", "alert": "CRITICAL", "emergency": "CRITICAL", "none": "NONE",
}  # fmt: skip

_SOURCES = {
    name: source for source in BackendKind for name in (source.value, f"rabbit_auth_backend_{source.value}")
}
_BINDS = choice({name: name for name in ("as_user", "anon")})
_FORMATTERS = {name: name for name in ("plaintext", "json")}


@dataclass(frozen=True, slots=True)
class SocketKeys:
    """`tcp_listen_options` or `stream.tcp_listen_options`: what is asked of the kernel, and of clients."""

    backlog: Setting[int]
    nodelay: Setting[bool]
    keepalive: Setting[bool]
    send_size: Setting[int | None]
    receive_size: Setting[int | None]
    service: Setting[int | None]
    priority: Setting[int | None]
    linger: Setting[bool]
    linger_s: Setting[int]
    send_timeout: Setting[int | None]
    send_timeout_close: Setting[bool]

    @property
    def all(self) -> tuple[Setting[object] | Family[object], ...]:
        """All of them, in this order."""
        return tuple(getattr(self, name.name) for name in fields(self))


def _socket_keys(prefix: str, send_timeout: int) -> SocketKeys:
    octets, infinity = integer(1, 2**31 - 1), ("infinity",)
    return SocketKeys(
        Setting(f"{prefix}.backlog", 1024, integer(1, 65_535), "clients waiting to be accepted"),
        Setting(f"{prefix}.nodelay", True, boolean, "small frames leave at once"),
        Setting(f"{prefix}.keepalive", False, boolean, "the kernel looks for dead clients"),
        Setting(f"{prefix}.sndbuf", None, octets, "octets that the kernel keeps for a client to take"),
        Setting(f"{prefix}.recbuf", None, octets, "octets that it keeps of a client for us to take"),
        Setting(f"{prefix}.tos", None, integer(0, 255), "type of service of what is sent"),
        Setting(f"{prefix}.priority", None, integer(0, 255), "priority of what is sent on its way out"),
        Setting(f"{prefix}.linger.on", False, boolean, "with a timeout of 0: closing resets the connection"),
        Setting(f"{prefix}.linger.timeout", 0, integer(0, 65_535), "any other is what closing does anyway"),
        Setting(
            f"{prefix}.send_timeout", send_timeout, unless(infinity, integer(1, 2**32 - 1)),
            "how long a client may take nothing of what waits for it, in ms",
        ),
        Setting(f"{prefix}.send_timeout_close", True, boolean, "it is dropped then"),
    )  # fmt: skip


# --- where ------------------------------------------------------------------------------------
TCP = Family("listeners.tcp", {"default": Address("", 5672)}, address, "where clients connect in the clear")
TLS: Family[Address] = Family("listeners.ssl", {}, address, "where clients connect with TLS")
SOCKETS = _socket_keys("tcp_listen_options", limits.SEND_TIMEOUT_MS)
PROXY_PROTOCOL = Setting("proxy_protocol", False, boolean, "every client comes through a load balancer")
STREAM_TCP = Family(
    "stream.listeners.tcp", {"default": Address("", 5552)}, address, "where clients speak the stream protocol"
)
STREAM_TLS: Family[Address] = Family(
    "stream.listeners.ssl", {}, address, "where clients speak the stream protocol with TLS"
)
STREAM_SOCKETS = _socket_keys("stream.tcp_listen_options", limits.STREAM_SEND_TIMEOUT_MS)
STREAM_HOST = Setting(
    "stream.advertised_host", "", text, "where they are told to connect to; where they have, without it"
)
STREAM_PORT = Setting("stream.advertised_port", 0, integer(0, 65_535), "the same")
STREAM_TLS_HOST = Setting("stream.advertised_tls_host", "", text, "the same of those that came with TLS")
STREAM_TLS_PORT = Setting("stream.advertised_tls_port", 0, integer(0, 65_535), "the same")
DATA_DIRECTORY = Setting(
    "data_dir", "", text,
    "where what survives a restart is kept; without it `$XDG_DATA_HOME/warren`, `/var/lib/warren` for root, "
    "`~/.local/share/warren` for others",
)  # fmt: skip
IN_MEMORY = Setting("in_memory", False, boolean, "keep nothing on the disk: all is gone when the node stops")
SKIP_DAMAGE = Setting(
    "metadata.skip_damage",
    False,
    boolean,
    "start without the queues, users … that cannot be read any more; their messages are kept",
)
# `transient` and `persistent` are RabbitMQ's other names for the same.
VHOST_FAILURE_STOPS = Setting(
    "vhost_restart_strategy",
    False,
    choice({"continue": False, "transient": False, "stop_node": True, "persistent": True}),
    "`stop_node` ends the node when a virtual host fails again and again; `continue` serves the others",
)

# --- clients ----------------------------------------------------------------------------------
CONNECTIONS_MAX: Setting[int | None] = Setting(
    "connection_max", None, unless(("infinity",), integer(0)), "connections open at once on this node"
)
HEARTBEAT = Setting("heartbeat", limits.HEARTBEAT_S, integer(0, 65_535), "seconds proposed to clients")
FRAME_SIZE = Setting(
    "frame_max", limits.FRAME_SIZE_MAX, integer(limits.FRAME_SIZE_MIN, 2**28), "octets proposed to clients"
)
FRAME_SIZE_HANDSHAKE = Setting(
    "initial_frame_max", limits.FRAME_SIZE_HANDSHAKE, integer(4096, 2**24), "octets before connection.tune"
)
STREAM_FRAME_SIZE = Setting(
    "stream.frame_max", limits.STREAM_FRAME_SIZE_MAX, integer(0, 2**28), "octets proposed to stream clients"
)
STREAM_HEARTBEAT = Setting(
    "stream.heartbeat", limits.HEARTBEAT_S, integer(0, 65_535), "seconds proposed to stream clients"
)
CHANNELS = Setting("channel_max", limits.CHANNELS_MAX, integer(0, 65_535), "channels proposed to clients")
MESSAGE_SIZE = Setting(
    "max_message_size", limits.MESSAGE_SIZE_MAX, integer(0, 2**29), "octets of the largest message taken"
)
HANDSHAKE = Setting("handshake_timeout", limits.HANDSHAKE_MS, _MS, "milliseconds to come in")
TLS_HANDSHAKE = Setting("ssl_handshake_timeout", limits.TLS_HANDSHAKE_MS, _MS, "milliseconds for TLS")
CONSUMER_TIMEOUT: Setting[int | None] = Setting(
    "consumer_timeout",
    limits.CONSUMER_TIMEOUT_MS,
    unless(("undefined", "infinity"), _MS),
    "milliseconds a delivery may be unsettled",
)
CHANNEL_CONSUMERS: Setting[int | None] = Setting(
    "consumer_max_per_channel",
    limits.CHANNEL_CONSUMERS_MAX,
    unless(("infinity",), integer(1)),
    "consumers of one channel",
)
SHUTDOWN_GRACE = Setting("shutdown_grace", 5_000, _MS, "milliseconds for clients to leave at a stop")


# --- TLS --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class TlsKeys:
    """`ssl_options`, `management.ssl` or `prometheus.ssl`: what the TLS of a port is made of."""

    prefix: str
    certificate_file: Setting[str]
    key_file: Setting[str]
    authority_file: Setting[str]
    password: Setting[str]
    is_peer_verified: Setting[bool]
    is_certificate_required: Setting[bool]
    is_own_cipher_order: Setting[bool]
    versions: Family[str]
    ciphers: Family[str]

    @property
    def all(self) -> tuple[Setting[object] | Family[object], ...]:
        """All of them, in this order."""
        return tuple(getattr(self, name.name) for name in fields(self)[1:])


def _tls_keys(prefix: str) -> TlsKeys:
    return TlsKeys(
        prefix,
        Setting(f"{prefix}.certfile", "", text, "the certificate and its chain, PEM"),
        Setting(f"{prefix}.keyfile", "", text, "the certificate's key, PEM"),
        Setting(f"{prefix}.cacertfile", "", text, "who signs clients' certificates, PEM"),
        Setting(f"{prefix}.password", "", text, "opens the key", is_secret=True),
        Setting(
            f"{prefix}.verify", False, choice({"verify_peer": True, "verify_none": False}),
            "whether clients are asked for a certificate",
        ),
        Setting(f"{prefix}.fail_if_no_peer_cert", False, boolean, "whether they must have one"),
        Setting(f"{prefix}.honor_cipher_order", True, boolean, "the server's order counts"),
        Family(
            f"{prefix}.versions", {"1": "tlsv1.2", "2": "tlsv1.3"},
            choice({name: name for name in VERSION_NAMES}), "protocol versions spoken",
        ),
        Family(f"{prefix}.ciphers", {}, text, "ciphers of TLS 1.2, best first"),
    )  # fmt: skip


LISTENER_TLS = _tls_keys("ssl_options")
LOGIN_FROM = Setting(
    "ssl_cert_login_from",
    LoginFrom.DISTINGUISHED_NAME,
    choice(_LOGIN_SOURCES),
    "where a certificate has the user's name",
)
LOGIN_SAN_TYPE = Setting(
    "ssl_cert_login_san_type",
    "dns",
    choice({name: name for name in ("dns", "ip", "email", "uri", "other_name")}),
    "which kind of alternative name",
)
LOGIN_SAN_INDEX = Setting("ssl_cert_login_san_index", 0, integer(0, 1000), "which one of them, from 0")


# --- HTTP -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class HttpPortKeys:
    """`management.tcp` and its like: where a port of HTTP is, and how patient it is with clients."""

    host: Setting[str]
    port: Setting[int]
    idle: Setting[int]
    request: Setting[int]
    inactivity: Setting[int]
    requests_max: Setting[int | None]

    @property
    def all(self) -> tuple[Setting[object], ...]:
        """All of them, in this order."""
        return tuple(getattr(self, name.name) for name in fields(self))


def _http_port_keys(prefix: str, port: int, where: str, which: str) -> HttpPortKeys:
    return HttpPortKeys(
        Setting(f"{prefix}.ip", "", text, where),
        Setting(f"{prefix}.port", port, integer(0, 65_535), which),
        Setting(f"{prefix}.idle_timeout", _ms(HTTP_IDLE_S), _MS_MIN, "milliseconds without a request"),
        Setting(
            f"{prefix}.request_timeout", _ms(HTTP_HEADERS_S), _MS_MIN,
            "milliseconds for the headers of a request",
        ),
        Setting(
            f"{prefix}.inactivity_timeout", _ms(HTTP_STALLED_S), _MS_MIN,
            "milliseconds in which a body or an answer must move",
        ),
        Setting(
            f"{prefix}.max_keepalive", None, unless(("infinity",), integer(1)),
            "requests of one connection, which then is closed",
        ),
    )  # fmt: skip


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


# Less than a second is less than the network may take.
_MS_MIN = integer(1_000, 86_400_000)
MANAGEMENT_TCP = _http_port_keys(
    "management.tcp", 15_672, "where the HTTP API listens", "where the HTTP API listens"
)
MANAGEMENT_SSL = _http_port_keys(
    "management.ssl", 15_671, "where the HTTP API listens with TLS",
    "the same, if a certificate or a place is set in management.ssl",
)  # fmt: skip
PROMETHEUS_TCP = _http_port_keys("prometheus.tcp", 15_692, "where metrics are read", "where metrics are read")
PROMETHEUS_SSL = _http_port_keys(
    "prometheus.ssl", 15_691, "where metrics are read with TLS",
    "the same, if a certificate or a place is set in prometheus.ssl",
)  # fmt: skip
MANAGEMENT_HOST, MANAGEMENT_PORT = MANAGEMENT_TCP.host, MANAGEMENT_TCP.port
PROMETHEUS_HOST, PROMETHEUS_PORT = PROMETHEUS_TCP.host, PROMETHEUS_TCP.port
MANAGEMENT_COMPRESS = Setting(
    "management.tcp.compress", True, boolean, "whether answers of the HTTP API are compressed"
)
MANAGEMENT_SSL_COMPRESS = Setting("management.ssl.compress", True, boolean, "the same with TLS")
MANAGEMENT_TLS = _tls_keys("management.ssl")
PROMETHEUS_TLS = _tls_keys("prometheus.ssl")

HSTS_POLICY = Setting(
    "management.hsts.policy", "", text, "the header strict-transport-security of what is answered with TLS"
)
CSP_POLICY = Setting(
    "management.csp.policy", "", text, "the header content-security-policy, in place of those of Warren"
)

CORS_ORIGINS: Family[str] = Family(
    "management.cors.allow_origins", {}, text, "pages of which sites may ask the HTTP API; `*` for all"
)
CORS_MAX_AGE: Setting[int | None] = Setting(
    "management.cors.max_age",
    1_800,
    unless(("none",), integer(0)),
    "seconds for which browsers remember it",
)
PATH_PREFIX = Setting(
    "management.path_prefix", "", text, "what stands before all paths of the HTTP API and the web interface"
)
PROMETHEUS_PATH = Setting("prometheus.path", "/metrics", text, "where metrics are on their port")


# --- users and what exists at first -----------------------------------------------------------
MECHANISMS = Family(
    "auth_mechanisms",
    {"1": "PLAIN", "2": "AMQPLAIN"},
    choice({name.lower(): name for name in ("PLAIN", "AMQPLAIN", "EXTERNAL")}),
    "ways to log in, in order of preference",
)
LOOPBACK_USERS = Family("loopback_users", {"guest": True}, boolean, "users let in from this machine only")
BACKENDS: Family[BackendKind | None] = Family(
    "auth_backends", {"1": BackendKind.INTERNAL},
    choice({**_SOURCES, "cache": None, "rabbit_auth_backend_cache": None}),
    "who is asked who somebody is, in order; with .authn and .authz, and what they may do",
)  # fmt: skip
PASSWORD_HASHING = Setting(
    "password_hashing_module", ARGON2ID, choice({name: name for name in (ARGON2ID, SHA256, SHA512)}),
    "what new passwords are hashed with",
)  # fmt: skip
LOGIN_FAILURES: Setting[int | None] = Setting(
    "login_failures.allowed", limits.LOGIN_FAILURES_FREE, unless(("infinity",), integer(0, 1_000_000)),
    "failed logins of an address, or of a name, after which those that follow wait",
)  # fmt: skip
LOGIN_DELAY = Setting("login_failures.delay_max", limits.LOGIN_DELAY_MS_MAX, _MS, "how long at most")
OAUTH2_RESOURCE_SERVER = Setting("auth_oauth2.resource_server_id", "", text, "who a token is to be for")
OAUTH2_SCOPE_PREFIX = Setting(
    "auth_oauth2.scope_prefix", "", text, "what scopes of ours begin with; the resource server and a dot"
)
OAUTH2_VERIFY_AUDIENCE = Setting("auth_oauth2.verify_aud", True, boolean, "whether a token must be for us")
OAUTH2_NAME_CLAIMS: Family[str] = Family(
    "auth_oauth2.preferred_username_claims",
    {},
    text,
    "what in a token names its user, before sub, client_id",
)
OAUTH2_ADDITIONAL_SCOPES = Setting(
    "auth_oauth2.additional_scopes_key", "", text, "claims of a token that hold scopes as well"
)
OAUTH2_SCOPE_ALIASES: Family[str] = Family(
    "auth_oauth2.scope_aliases", {}, text, "scopes that a name of yours stands for, with spaces"
)
OAUTH2_ALGORITHMS: Family[str] = Family(
    "auth_oauth2.algorithms", {}, choice({name.lower(): name for name in (*ALGORITHMS, *SHARED_ALGORITHMS)}),
    "how tokens may be signed; those with public keys unless told otherwise",
)  # fmt: skip
OAUTH2_KEYS: Family[str] = Family("auth_oauth2.signing_keys", {}, text, "files of public keys, PEM")
OAUTH2_DEFAULT_KEY = Setting("auth_oauth2.default_key", "", text, "the key of tokens that name none")
OAUTH2_JWKS_URL = Setting("auth_oauth2.jwks_url", "", text, "where the keys are served; https")
OAUTH2_JWKS_URI = Setting("auth_oauth2.jwks_uri", "", text, "the same, as RabbitMQ 4 writes it")
OAUTH2_AUTHORITY_FILE = Setting(
    "auth_oauth2.https.cacertfile", "", text, "who signs the key server's certificate; those of the system"
)
OAUTH2_VERIFY = Setting(
    "auth_oauth2.https.peer_verification", True, choice({"verify_peer": True, "verify_none": False}),
    "whether the key server has to prove who it is",
)  # fmt: skip
CACHED_BACKEND = Setting(
    "auth_cache.cached_backend",
    BackendKind.LDAP,
    choice(_SOURCES),
    "who is asked where the backend is `cache`",
)
AUTH_CACHE_TTL = Setting(
    "auth_cache.cache_ttl", limits.LDAP_CACHE_MS, _MS, "how long an answer of LDAP is good"
)
LDAP_SERVERS: Family[str] = Family("auth_ldap.servers", {}, text, "who is asked, in order")
LDAP_PORT: Setting[int | None] = Setting(
    "auth_ldap.port", None, integer(1, 65_535), "where they listen; 389, and 636 with use_ssl"
)
LDAP_USER_PATTERN = Setting(
    "auth_ldap.user_dn_pattern", "${username}", text, "a user's distinguished name, or what is looked up"
)
LDAP_BIND_PATTERN = Setting(
    "auth_ldap.user_bind_pattern", "", text, "with what they bind instead: ${ad_user}@example.com"
)
LDAP_LOOKUP_ATTRIBUTE = Setting(
    "auth_ldap.dn_lookup_attribute", "", text_or_none, "the attribute that has their name, if it is looked up"
)
LDAP_LOOKUP_BASE = Setting("auth_ldap.dn_lookup_base", "", text_or_none, "where they are")
LDAP_LOOKUP_BIND = Setting("auth_ldap.dn_lookup_bind", "as_user", _BINDS, "who looks them up")
LDAP_LOOKUP_USER = Setting("auth_ldap.dn_lookup_bind.user_dn", "", text, "the same, of a name")
LDAP_LOOKUP_PASSWORD = Setting(
    "auth_ldap.dn_lookup_bind.password", "", text, "the password of that one", is_secret=True
)
LDAP_OTHER_BIND = Setting("auth_ldap.other_bind", "as_user", _BINDS, "who looks for their groups")
LDAP_OTHER_USER = Setting("auth_ldap.other_bind.user_dn", "", text, "the same, of a name")
LDAP_OTHER_PASSWORD = Setting(
    "auth_ldap.other_bind.password", "", text, "the password of that one", is_secret=True
)
LDAP_GROUPS_BASE = Setting(
    "auth_ldap.group_lookup_base", "", text_or_none, "where groups are; where users are without it"
)
LDAP_GROUP_ATTRIBUTE = Setting(
    "auth_ldap.group_attribute", "member", text, "what names the members of a group; memberUid has logins"
)
LDAP_TAGS: Family[str] = Family("auth_ldap.tags", {}, text, "the group that has a tag, or `everybody`")
LDAP_GRANTS: Family[str] = Family(
    "auth_ldap.grants", {}, text, "what a group may do: .group, .vhost, .configure, .write, .read"
)
LDAP_TLS = Setting("auth_ldap.use_ssl", False, boolean, "TLS from the first octet on")
LDAP_START_TLS = Setting("auth_ldap.use_starttls", False, boolean, "TLS as the first thing asked for")
LDAP_AUTHORITY_FILE = Setting(
    "auth_ldap.ssl_options.cacertfile", "", text, "who signs their certificates; those of the system"
)
LDAP_CERTIFICATE_FILE = Setting("auth_ldap.ssl_options.certfile", "", text, "ours, if they want one")
LDAP_KEY_FILE = Setting("auth_ldap.ssl_options.keyfile", "", text, "its key")
LDAP_KEY_PASSWORD = Setting("auth_ldap.ssl_options.password", "", text, "opens the key", is_secret=True)
LDAP_VERIFY = Setting(
    "auth_ldap.ssl_options.verify", True, choice({"verify_peer": True, "verify_none": False}),
    "whether the servers have to prove who they are",
)  # fmt: skip
LDAP_TIMEOUT = Setting(
    "auth_ldap.timeout", limits.LDAP_TIMEOUT_MS, integer(1, 60_000), "milliseconds for a whole login"
)
LDAP_IDLE = Setting(
    "auth_ldap.idle_timeout", limits.LDAP_IDLE_MS, _MS, "milliseconds that an unused connection is kept"
)
LDAP_POOL_SIZE = Setting(
    "auth_ldap.connection_pool_size", limits.LDAP_CONNECTIONS_MAX, integer(1, 1000), "connections at once"
)
DEFAULT_USER = Setting("default_user", "guest", text, "made when there is nobody yet")
DEFAULT_PASSWORD = Setting("default_pass", "guest", text, "its password", is_secret=True)
DEFAULT_VHOST = Setting("default_vhost", "/", text, "made when there is none yet")
DEFAULT_CONFIGURE = Setting("default_permissions.configure", ".*", text, "what it may configure there")
DEFAULT_READ = Setting("default_permissions.read", ".*", text, "what it may read there")
DEFAULT_WRITE = Setting("default_permissions.write", ".*", text, "what it may write there")
DEFAULT_TAGS = Family("default_user_tags", {"administrator": True}, boolean, "its tags")
DEFINITIONS = Setting("load_definitions", "", text, "a definitions file, or a folder of them, read at start")
DEFINITIONS_OLD = Setting("management.load_definitions", "", text, "the same, as older files write it")
DEFINITIONS_BACKEND = Setting(
    "definitions.import_backend",
    "",
    choice({"local_filesystem": "local_filesystem", "local": "local_filesystem"}),
    "where definitions come from",
)
DEFINITIONS_PATH = Setting("definitions.local.path", "", text, "the same as load_definitions")
CLUSTER_NAME = Setting("cluster_name", "", text, "what clients and people are told")

# --- log --------------------------------------------------------------------------------------
LOG_CONSOLE = Setting("log.console", True, boolean, "lines go to standard error")
LOG_CONSOLE_LEVEL = Setting("log.console.level", "", choice(LEVELS), "the least that goes there")
LOG_LEVEL = Setting("log.default.level", "INFO", choice(LEVELS), "the least that is logged")
LOG_CONSOLE_FORMATTER = Setting(
    "log.console.formatter", "plaintext", choice(_FORMATTERS), "lines, or an object of JSON in each"
)
LOG_AUDIT_LEVEL = Setting("log.audit.level", "", choice(LEVELS), "the same, of who changed what")
LOG_CONNECTION_LEVEL = Setting("log.connection.level", "", choice(LEVELS), "the same, of clients")
LOG_CHANNEL_LEVEL = Setting(
    "log.channel.level", "", choice(LEVELS), "the same, of what clients did wrong on channels"
)
LOG_FILE = Setting("log.file", "", text, "lines go to this file too; false for none")
LOG_FILE_LEVEL = Setting("log.file.level", "", choice(LEVELS), "the least that goes there")
LOG_FILE_FORMATTER = Setting(
    "log.file.formatter", "plaintext", choice(_FORMATTERS), "lines, or an object of JSON in each"
)
LOG_ROTATION_SIZE: Setting[int | None] = Setting(
    "log.file.rotation.size", None, size, "octets after which that file begins anew"
)
LOG_ROTATION_DATE = Setting(
    "log.file.rotation.date", "", rotation_date, "when it begins anew: `$D0` at midnight, `$W5D16`, `$M1D2`"
)
LOG_ROTATION_COUNT = Setting(
    "log.file.rotation.count", 0, integer(0, 1000), "how many that were written before are kept"
)
LOG_EXCHANGE = Setting("log.exchange", False, boolean, "lines are published to amq.rabbitmq.log, too")
LOG_EXCHANGE_LEVEL = Setting("log.exchange.level", "", choice(LEVELS), "the least that is published")
LOG_EXCHANGE_FORMATTER = Setting(
    "log.exchange.formatter", "plaintext", choice(_FORMATTERS), "lines, or an object of JSON in each"
)
LOG_DIRECTORY = Setting("log.dir", "", text, "where that file is")

# --- events ---------------------------------------------------------------------------------
EVENT_VHOST = Setting(
    "event_exchange.vhost", "/", text, "where the exchange amq.rabbitmq.event is made when the node starts"
)
EVENT_PROTOCOL = Setting(
    "event_exchange.protocol", "amqp_0_9_1", choice({"amqp_0_9_1": "amqp_0_9_1"}), "what events look like"
)

# --- alarms -----------------------------------------------------------------------------------
MEMORY_RELATIVE = Setting(
    "vm_memory_high_watermark.relative", 0.4, fraction, "share of memory above which publishers wait"
)
MEMORY_ABSOLUTE: Setting[int | None] = Setting(
    "vm_memory_high_watermark.absolute", None, size, "memory above which they wait, unless a share is set"
)
PAGING_RATIO = Setting(
    "vm_memory_high_watermark_paging_ratio", 0.5, fraction,
    "share of that memory above which queues have less of it",
)  # fmt: skip
MEMORY_TOTAL: Setting[int | None] = Setting(
    "total_memory_available_override_value", None, size, "the memory of which shares are taken"
)
DISK_ABSOLUTE = Setting("disk_free_limit.absolute", 50_000_000, size, "free disk below which they wait")
DISK_RELATIVE: Setting[float | None] = Setting(
    "disk_free_limit.relative", None, fraction, "the same, as a share of memory"
)

# Once each: some have a name of their own beside that of those that they belong to.
ALL: tuple[Setting[object] | Family[object], ...] = tuple(
    {
        one.key: one
        for value in dict(globals()).values()
        for one in (value.all if isinstance(value, (TlsKeys, HttpPortKeys, SocketKeys)) else (value,))
        if isinstance(one, (Setting, Family))
    }.values()
)
