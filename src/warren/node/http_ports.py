"""The ports of HTTP: the API and metrics, each in the clear, with TLS, or both, as RabbitMQ has them.

One in the clear is there unless only the other is configured; where nobody chose its port, it may be taken.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from warren.management.app import Answering, HttpServer
from warren.management.connections import PortSettings
from warren.management.managed import Managed
from warren.node import settings
from warren.node.config import Config
from warren.node.listening import http_tls, listen
from warren.node.refusal import BootRefused
from warren.transport.tls import Tls, TlsError

logger = logging.getLogger("warren.node")

_MS = 1000


@dataclass(frozen=True, slots=True)
class _Port:
    """One of them; without TLS in the clear."""

    protocol: str
    host: settings.Setting[str]
    port: settings.Setting[int]
    tls: Tls | None = None


class HttpPorts:
    """Those of one node."""

    def __init__(self, config: Config) -> None:
        """BootRefused if certificates are not usable."""
        self._config = config
        try:
            self._ports = list(_ports(config))
        except TlsError as error:
            raise BootRefused(f"TLS: {error}") from error
        self._servers: list[HttpServer] = []

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._ports)

    async def start(self, node: Managed, connections_max: int) -> None:
        """Listen on each, for so many connections."""
        answering = Answering(
            hsts=self._config.get(settings.HSTS_POLICY),
            csp=self._config.get(settings.CSP_POLICY),
            origins=frozenset(self._config.family(settings.CORS_ORIGINS).values()),
            origins_max_age=self._config.get(settings.CORS_MAX_AGE),
            path_prefix=("/" + self._config.get(settings.PATH_PREFIX).strip("/")).rstrip("/"),
            metrics_path="/" + self._config.get(settings.PROMETHEUS_PATH).strip("/"),
        )
        for port in self._ports:
            about = PortSettings(
                connections_max=connections_max,
                tls=port.tls,
                tls_handshake_s=self._config.get(settings.TLS_HANDSHAKE) / _MS,
            )
            server = HttpServer(node, port.protocol, about, answering)
            host, number = self._config.get(port.host), self._config.get(port.port)
            try:
                await listen(server.start(host, number), host, number)
            except BootRefused as error:
                # Several brokers on one machine need not all be told where not to listen.
                if self._config.is_set(port.port) or port.tls is not None:
                    raise
                logger.warning("no %s: %s; choose one with %s", port.protocol, error, port.port.key)
                continue
            self._servers.append(server)

    def reload(self) -> None:
        """Load certificates again."""
        for tls in self._tls():
            tls.reload()

    def reload_if_changed(self) -> None:
        """Load those again whose files are others than before."""
        for tls in self._tls():
            tls.reload_if_changed()

    def expiries(self) -> dict[str, int]:
        """Until when certificates are valid, by file (Unix time, ms)."""
        return {name: expiry for tls in self._tls() for name, expiry in tls.expiries().items()}

    async def stop(self) -> None:
        """Finish the requests under way and close."""
        for server in self._servers:
            await server.stop()

    def _tls(self) -> list[Tls]:
        return [port.tls for port in self._ports if port.tls is not None]


def _ports(config: Config) -> Iterator[_Port]:
    for protocol, secure, host, port, keys in (
        ("http", "https", settings.MANAGEMENT_HOST, settings.MANAGEMENT_PORT, settings.MANAGEMENT_TLS),
        (
            "http/prometheus",
            "https/prometheus",
            settings.PROMETHEUS_HOST,
            settings.PROMETHEUS_PORT,
            settings.PROMETHEUS_TLS,
        ),
    ):
        tls = http_tls(config, keys)
        if tls is None or config.is_set(port):
            yield _Port(protocol, host, port)
        if tls is not None:
            yield _Port(secure, keys.host, keys.port, tls)
