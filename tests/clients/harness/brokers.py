"""The broker that the suites run against: a given one, or a Warren or RabbitMQ started for them."""

import contextlib
import dataclasses
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.clients.harness import certificates
from tests.rabbitmq import PLUGINS, RabbitMQ
from tests.warren_process import free_port, start_warren, stop

PORT = 5672
RABBITMQ_PLUGINS = (
    *PLUGINS, "rabbitmq_management", "rabbitmq_stream", "rabbitmq_stream_management",
    "rabbitmq_auth_mechanism_ssl",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEndpoints:
    """The addresses of a broker; None for a listener that it lacks."""

    host: str
    port: int
    user: str = "guest"
    password: str = "guest"
    tls_port: int | None = None
    management_port: int | None = None
    stream_port: int | None = None
    stream_tls_port: int | None = None
    # The ports for streams of the other nodes of a cluster.
    other_stream_ports: tuple[int, ...] = ()
    is_rabbitmq: bool = False

    @property
    def uri(self) -> str:
        """The URI of the default vhost, which every client accepts."""
        return f"amqp://{self.user}:{self.password}@{self.host}:{self.port}/"

    def is_alive(self) -> bool:
        """True if the broker accepts a TCP connection now."""
        try:
            socket.create_connection((self.host, self.port), timeout=5).close()
        except OSError:
            return False
        return True


def named(uri: str, tls_port: int | None, management_port: int | None) -> BrokerEndpoints:
    """Return the running broker at `uri`."""
    parts = urlsplit(uri)
    return BrokerEndpoints(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or PORT,
        user=unquote(parts.username or "guest"),
        password=unquote(parts.password or "guest"),
        tls_port=tls_port,
        management_port=management_port,
    )


@contextlib.contextmanager
def started_warren(folder: Path, *lines: str) -> Iterator[BrokerEndpoints]:
    """Start the Warren that this Python imports, on free ports of both loopback addresses, with TLS as well.

    `lines` are added to its configuration.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    broker = free_endpoints()
    said = [f"{key} = {value}" for key, value in warren_settings(broker).items()]
    (folder / "warren.conf").write_text("\n".join([*said, *lines, ""]))
    warren = start_warren(
        folder, broker.port, "--config", "warren.conf", "--management-port", str(broker.management_port),
        "--stream-port", str(broker.stream_port),
    )  # fmt: skip
    try:
        yield broker
    finally:
        stop(warren.process)


def free_endpoints(user: str = "guest", password: str = "guest") -> BrokerEndpoints:
    """Return free ports of this machine for all listeners of a Warren."""
    return BrokerEndpoints(
        host="127.0.0.1", port=free_port(), user=user, password=password, tls_port=free_port(),
        management_port=free_port(), stream_port=free_port(), stream_tls_port=free_port(),
    )  # fmt: skip


def warren_settings(broker: BrokerEndpoints) -> dict[str, str]:
    """Return the settings of a Warren that is to listen at `broker` on both loopback addresses."""
    return {
        "listeners.tcp.1": f"127.0.0.1:{broker.port}",
        "listeners.tcp.2": f"::1:{broker.port}",
        "listeners.ssl.1": f"127.0.0.1:{broker.tls_port}",
        "stream.listeners.ssl.1": f"127.0.0.1:{broker.stream_tls_port}",
        # RabbitMQ's default settings that clients observe.
        "stream.advertised_host": certificates.node_host() or "localhost",
        "stream.advertised_tls_host": "localhost",
        "management.tcp.ip": "127.0.0.1",
        **ssl_options(),
    }


@contextlib.contextmanager
def started_rabbitmq(folder: Path, *lines: str) -> Iterator[BrokerEndpoints]:
    """Start the installed RabbitMQ on free ports, with TLS, management and streams; `lines` are added."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tls_port, management_port, stream_port, stream_tls_port = (free_port() for _ in range(4))
    settings = {
        "listeners.ssl.default": tls_port,
        "stream.listeners.tcp.default": stream_port,
        "stream.listeners.ssl.default": stream_tls_port,
        "stream.advertised_host": "localhost",
        "stream.advertised_tls_host": "localhost",
        "management.tcp.port": management_port,
        **ssl_options(),
    }
    said = [f"{key} = {value}" for key, value in settings.items()]
    rabbitmq = RabbitMQ(
        folder, listen="::", settings="\n".join([*said, *lines, ""]), plugins=RABBITMQ_PLUGINS
    )
    rabbitmq.start()
    try:
        yield BrokerEndpoints(
            host="127.0.0.1", port=rabbitmq.port, tls_port=tls_port, management_port=management_port,
            stream_port=stream_port, stream_tls_port=stream_tls_port, is_rabbitmq=True,
        )  # fmt: skip
    finally:
        rabbitmq.stop()


def ssl_options() -> dict[str, str]:
    """Return the settings for the certificate of the TLS listeners, for either broker."""
    issued = certificates.issue_server()
    return {
        "ssl_options.cacertfile": str(issued / "ca.pem"),
        "ssl_options.certfile": str(issued / "server.pem"),
        "ssl_options.keyfile": str(issued / "server_key.pem"),
    }
