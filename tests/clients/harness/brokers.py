"""The broker that the suites run against: one that is named, or a Warren started for the occasion."""

import contextlib
import dataclasses
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.broker import free_port, start_warren, stop
from tests.clients.harness import certificates

PORT = 5672


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """Where a broker listens; what it lacks is None."""

    host: str
    port: int
    user: str = "guest"
    password: str = "guest"
    tls_port: int | None = None
    management_port: int | None = None
    stream_port: int | None = None
    stream_tls_port: int | None = None

    @property
    def uri(self) -> str:
        """The URI of the default vhost, as every client reads it."""
        return f"amqp://{self.user}:{self.password}@{self.host}:{self.port}/"

    def is_alive(self) -> bool:
        """Whether it takes a TCP connection now."""
        try:
            socket.create_connection((self.host, self.port), timeout=5).close()
        except OSError:
            return False
        return True


def named(uri: str, tls_port: int | None, management_port: int | None) -> Broker:
    """The broker behind `uri`, which somebody else started."""
    parts = urlsplit(uri)
    return Broker(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or PORT,
        user=unquote(parts.username or "guest"),
        password=unquote(parts.password or "guest"),
        tls_port=tls_port,
        management_port=management_port,
    )


@contextlib.contextmanager
def started_warren(folder: Path, *lines: str) -> Iterator[Broker]:
    """The Warren that this Python imports, on free ports of both loopback addresses, with TLS as well.

    `lines` are further ones of its configuration.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    issued = certificates.issue_server()
    port, tls_port, management_port = free_port(), free_port(), free_port()
    stream_port, stream_tls_port = free_port(), free_port()
    settings = {
        "listeners.tcp.1": f"127.0.0.1:{port}",
        "listeners.tcp.2": f"::1:{port}",
        "listeners.ssl.1": f"127.0.0.1:{tls_port}",
        "stream.listeners.ssl.1": f"127.0.0.1:{stream_tls_port}",
        "stream.advertised_host": "localhost",
        "stream.advertised_tls_host": "localhost",
        "management.tcp.ip": "127.0.0.1",
        "ssl_options.cacertfile": str(issued / "ca.pem"),
        "ssl_options.certfile": str(issued / "server.pem"),
        "ssl_options.keyfile": str(issued / "server_key.pem"),
    }
    said = [f"{key} = {value}" for key, value in settings.items()]
    (folder / "warren.conf").write_text("\n".join([*said, *lines, ""]))
    warren = start_warren(
        folder, port, "--config", "warren.conf", "--management-port", str(management_port),
        "--stream-port", str(stream_port),
    )  # fmt: skip
    try:
        yield Broker(
            host="127.0.0.1", port=port, tls_port=tls_port, management_port=management_port,
            stream_port=stream_port, stream_tls_port=stream_tls_port,
        )  # fmt: skip
    finally:
        stop(warren.process)
