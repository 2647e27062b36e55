"""The types of declared settings, and the groups of keys that several ports have in common."""

import re
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct, field

from warren.limits_http import HTTP_HEADERS_S, HTTP_IDLE_S, HTTP_STALLED_S
from warren.node.values import boolean, choice, integer, text, unless
from warren.transport.tls import VERSION_NAMES

Value = TypeVar("Value")


class Setting(Struct, Generic[Value], frozen=True):
    """A key with one value; `reason` is its description in the help and in the settings reference."""

    key: str
    default: Value
    parse: Callable[[str], Value]
    reason: str
    # A secret value is masked wherever settings are shown.
    is_secret: bool = False


class NoEffect(Struct, frozen=True):
    """An attribute that is accepted without effect, and why."""

    reason: str


class Family(Struct, Generic[Value], frozen=True):
    """Keys with a common prefix: `key.name = value`; `key = none` removes the default entries.

    With `attributes`, each name is that of a group and of one of them: `key.group.attribute = value`. An
    attribute that ends with a dot is followed by a name of its own.
    """

    key: str
    default: dict[str, Value]
    parse: Callable[[str], Value]
    reason: str
    attributes: Mapping[str, Callable[[str], object] | NoEffect] = field(default_factory=dict)
    # Attributes whose values are masked wherever settings are shown.
    secrets: frozenset[str] = frozenset()


class GroupKey(Struct, frozen=True):
    """The parts of a name in a family with attributes."""

    group: str
    attribute: str
    # What follows an attribute that ends with a dot.
    rest: str = ""

    @property
    def name(self) -> str:
        """The name, with dots between its parts."""
        return f"{self.group}.{self.attribute}{self.rest}"


def group_key(family: Family[Value], name: str) -> GroupKey | None:
    """The parts of `name`; None if it has no attribute of `family`.

    Environment variables have an underscore in place of each dot.
    """
    for attribute in sorted(family.attributes, key=len, reverse=True):
        written = re.sub(r"[._]", "[._]", attribute) + (".+" if attribute.endswith(".") else "")
        found = re.fullmatch(rf"(?P<group>.+?)[._](?P<attribute>{written})", name)
        if found:
            return GroupKey(found["group"], attribute, found["attribute"][len(attribute) :])
    return None


class SocketKeys(Struct, frozen=True):
    """The keys of `tcp_listen_options` or `stream.tcp_listen_options`: socket options and send timeout."""

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
        """All settings of the group, in the order of declaration."""
        return tuple(getattr(self, name) for name in self.__struct_fields__)


def socket_keys(prefix: str, port: str, send_timeout: int) -> SocketKeys:
    """The socket settings below `prefix`, for `port`, which the descriptions name."""
    size, infinity = integer(1, 2**31 - 1), ("infinity",)
    return SocketKeys(
        Setting(
            f"{prefix}.backlog", 1024, integer(1, 65_535),
            f"maximum number of TCP connections of {port} that wait to be accepted (`listen` backlog)",
        ),
        Setting(
            f"{prefix}.nodelay", True, boolean,
            f"disable Nagle's algorithm (TCP_NODELAY) for {port}, so that small frames are sent at once",
        ),
        Setting(
            f"{prefix}.keepalive", False, boolean,
            f"enable TCP keepalive for {port}: the kernel detects clients whose machine is gone",
        ),
        Setting(
            f"{prefix}.sndbuf", None, size,
            f"TCP send buffer (SO_SNDBUF) of {port}, in bytes, such as `131072`; unset: chosen by the kernel",
        ),
        Setting(
            f"{prefix}.recbuf", None, size,
            f"TCP receive buffer (SO_RCVBUF) of {port}, in bytes, such as `131072`; "
            "unset: chosen by the kernel",
        ),
        Setting(
            f"{prefix}.tos", None, integer(0, 255),
            f"IP type of service (IP_TOS) of packets sent by {port}, 0 to 255",
        ),
        Setting(
            f"{prefix}.priority", None, integer(0, 255),
            f"kernel priority (SO_PRIORITY) of packets sent by {port}, 0 to 255",
        ),
        Setting(
            f"{prefix}.linger.on", False, boolean,
            f"with `{prefix}.linger.timeout = 0`, closing a connection resets it (SO_LINGER)",
        ),
        Setting(
            f"{prefix}.linger.timeout", 0, integer(0, 65_535),
            f"seconds of SO_LINGER; 0 with `{prefix}.linger.on` resets, other values have no effect",
        ),
        Setting(
            f"{prefix}.send_timeout", send_timeout, unless(infinity, integer(1, 2**32 - 1)),
            f"milliseconds in which a client of {port} must read something that waits for it; `infinity`: "
            "no limit",
        ),
        Setting(
            f"{prefix}.send_timeout_close", True, boolean,
            f"close a connection of {port} whose client exceeds `{prefix}.send_timeout`",
        ),
    )  # fmt: skip


class TlsKeys(Struct, frozen=True):
    """The keys of `ssl_options`, `management.ssl` or `prometheus.ssl`: the TLS of a port."""

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
        """All settings of the group, in the order of declaration."""
        return tuple(getattr(self, name) for name in self.__struct_fields__[1:])


def tls_keys(prefix: str, port: str) -> TlsKeys:
    """The TLS settings below `prefix`, for `port`, which the descriptions name."""
    return TlsKeys(
        prefix,
        Setting(
            f"{prefix}.certfile", "", text,
            f"PEM file with the TLS certificate of {port} and its chain, such as `/etc/warren/server.pem`",
        ),
        Setting(
            f"{prefix}.keyfile", "", text,
            f"PEM file with the private key of `{prefix}.certfile`, such as `/etc/warren/server.key`",
        ),
        Setting(
            f"{prefix}.cacertfile", "", text,
            f"PEM file with the CA certificates that client certificates of {port} are verified against",
        ),
        Setting(
            f"{prefix}.password", "", text, f"passphrase of `{prefix}.keyfile`", is_secret=True
        ),
        Setting(
            f"{prefix}.verify", False, choice({"verify_peer": True, "verify_none": False}),
            f"`verify_peer` requests and verifies client certificates on {port}; `verify_none` does not",
        ),
        Setting(
            f"{prefix}.fail_if_no_peer_cert", False, boolean,
            f"with `verify_peer`, refuse clients of {port} that send no certificate",
        ),
        Setting(
            f"{prefix}.honor_cipher_order", True, boolean,
            f"choose the cipher by the server's order of preference on {port}, not by the client's",
        ),
        Family(
            f"{prefix}.versions", {"1": "tlsv1.2", "2": "tlsv1.3"},
            choice({name: name for name in VERSION_NAMES}),
            f"TLS versions enabled on {port}: `{prefix}.versions.1 = tlsv1.3`",
        ),
        Family(
            f"{prefix}.ciphers", {}, text,
            f"ciphers of TLS 1.2 on {port} by OpenSSL name, in order of preference: "
            f"`{prefix}.ciphers.1 = ECDHE-RSA-AES256-GCM-SHA384`",
        ),
    )  # fmt: skip


class HttpPortKeys(Struct, frozen=True):
    """The keys of `management.tcp`, `prometheus.ssl` and others: address and timeouts of an HTTP port."""

    host: Setting[str]
    port: Setting[int]
    idle: Setting[int]
    request: Setting[int]
    inactivity: Setting[int]
    requests_max: Setting[int | None]
    connections_max: Setting[int | None]

    @property
    def all(self) -> tuple[Setting[object], ...]:
        """All settings of the group, in the order of declaration."""
        return tuple(getattr(self, name) for name in self.__struct_fields__)


def http_port_keys(prefix: str, port: int, service: str, condition: str = "") -> HttpPortKeys:
    """The settings of an HTTP port below `prefix`, which serves `service` under `condition`."""
    return HttpPortKeys(
        Setting(
            f"{prefix}.ip", "", text,
            f"IP address on which {service} listens, such as `127.0.0.1`; unset: all interfaces",
        ),
        Setting(
            f"{prefix}.port", port, integer(0, 65_535),
            f"TCP port on which {service} listens{condition}; 0: a free port",
        ),
        Setting(
            f"{prefix}.idle_timeout", _ms(HTTP_IDLE_S), _MS_MIN,
            f"milliseconds without a request after which a connection of {service} is closed",
        ),
        Setting(
            f"{prefix}.request_timeout", _ms(HTTP_HEADERS_S), _MS_MIN,
            f"milliseconds in which a client of {service} must send the headers of a request",
        ),
        Setting(
            f"{prefix}.inactivity_timeout", _ms(HTTP_STALLED_S), _MS_MIN,
            f"milliseconds without progress of a request body or response after which {service} closes the "
            "connection",
        ),
        Setting(
            f"{prefix}.max_keepalive", None, unless(("infinity",), integer(1)),
            f"requests after which {service} closes a connection; unset: no limit",
        ),
        Setting(
            f"{prefix}.max_connections", None, unless(("infinity",), integer(1)),
            f"maximum number of connections of {service}, if fewer than file descriptors allow; beyond it, a "
            "new connection replaces an idle one",
        ),
    )  # fmt: skip


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


# The minimum of timeouts of HTTP: the network alone may take up to a second.
_MS_MIN = integer(1_000, 86_400_000)
