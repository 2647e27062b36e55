"""The HTTP ports: API and metrics, each without TLS, with TLS, or both, as in RabbitMQ.

The port without TLS is open unless only the TLS port is configured; if its number is the default, it may
already be in use.
"""

import logging
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from warren.management.http_connections import HttpPortSettings
from warren.management.http_protocol import HttpTimeouts
from warren.management.http_server import HttpServer, ResponseSettings
from warren.management.managed_node import ManagedNode
from warren.node import access_settings, settings
from warren.node.client_listeners import http_tls, listen
from warren.node.config import Config
from warren.node.errors import BootRefused
from warren.node.setting_types import HttpPortKeys
from warren.transport.tls import Tls, TlsError

logger = logging.getLogger("warren.node")

_MS = 1000


class _Port(Struct, frozen=True):
    """One HTTP port; without TLS settings, plain HTTP."""

    protocol: str
    keys: HttpPortKeys
    tls: Tls | None = None


class HttpPorts:
    """The HTTP ports of one node."""

    def __init__(self, config: Config) -> None:
        """Create the ports; raises BootRefused if certificates are not usable."""
        self._config = config
        try:
            self._ports = list(_ports(config))
        except TlsError as error:
            raise BootRefused(f"TLS: {error}") from error
        self._servers: list[HttpServer] = []

    @property
    def count(self) -> int:
        """The number of ports."""
        return len(self._ports)

    async def start(self, node: ManagedNode, connections_max: int) -> None:
        """Listen on each port, for the given maximum number of connections, or fewer."""
        response_settings = ResponseSettings(
            hsts=self._config.get(settings.HSTS_POLICY),
            csp=self._config.get(settings.CSP_POLICY),
            origins=frozenset(self._config.family(settings.CORS_ORIGINS).values()),
            origins_max_age=self._config.get(settings.CORS_MAX_AGE),
            path_prefix=("/" + self._config.get(settings.PATH_PREFIX).strip("/")).rstrip("/"),
            is_metrics_login=self._config.get(access_settings.METRICS_LOGIN),
            metrics_path="/" + self._config.get(settings.PROMETHEUS_PATH).strip("/"),
        )
        for port in self._ports:
            configured = self._config.get(port.keys.connections_max) or connections_max
            about = HttpPortSettings(
                connections_max=min(connections_max, configured),
                tls=port.tls,
                tls_handshake_s=self._config.get(settings.TLS_HANDSHAKE) / _MS,
                timeouts=self._timeouts(port.keys),
            )
            compress = settings.MANAGEMENT_COMPRESS if port.tls is None else settings.MANAGEMENT_SSL_COMPRESS
            of_port = replace(response_settings, is_compressed=self._config.get(compress))
            server = HttpServer(node, port.protocol, about, of_port)
            host, number = self._config.get(port.keys.host), self._config.get(port.keys.port)
            try:
                await listen(server.start(host, number), host, number)
            except BootRefused as error:
                # Several brokers on one machine can start without different ports configured for each.
                if self._config.is_set(port.keys.port) or port.tls is not None:
                    raise
                logger.warning(
                    "the %s listener is disabled: %s; set another port with %s",
                    port.protocol,
                    error,
                    port.keys.port.key,
                )
                continue
            self._servers.append(server)

    def reload(self) -> None:
        """Load the certificates again."""
        for tls in self._tls():
            tls.reload()

    def reload_if_changed(self) -> None:
        """Load the certificates again whose files have changed."""
        for tls in self._tls():
            tls.reload_if_changed()

    def expiries(self) -> dict[str, int]:
        """The ends of validity of the certificates, by file (Unix time, ms)."""
        return {name: expiry for tls in self._tls() for name, expiry in tls.expiries().items()}

    async def stop(self) -> None:
        """Complete the requests in progress, then close the ports."""
        for server in self._servers:
            await server.stop()

    def _timeouts(self, keys: HttpPortKeys) -> HttpTimeouts:
        return HttpTimeouts(
            headers_s=self._config.get(keys.request) / _MS,
            idle_s=self._config.get(keys.idle) / _MS,
            stalled_s=self._config.get(keys.inactivity) / _MS,
            requests_max=self._config.get(keys.requests_max),
        )

    def _tls(self) -> list[Tls]:
        return [port.tls for port in self._ports if port.tls is not None]


def _ports(config: Config) -> Iterator[_Port]:
    for protocol, plain, secure, keys in (
        ("", settings.MANAGEMENT_TCP, settings.MANAGEMENT_SSL, settings.MANAGEMENT_TLS),
        ("/prometheus", settings.PROMETHEUS_TCP, settings.PROMETHEUS_SSL, settings.PROMETHEUS_TLS),
    ):
        tls = http_tls(config, secure, keys)
        if tls is None or config.is_set(plain.port):
            yield _Port(f"http{protocol}", plain)
        if tls is not None:
            yield _Port(f"https{protocol}", secure, tls)
