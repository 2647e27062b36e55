"""The broker that the suites run against: one that is named, or a Warren started for the occasion."""

import contextlib
import dataclasses
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

START_S_MAX = 60
STOP_S_MAX = 20
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
    process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """The URI of the default vhost, as every client reads it."""
        return f"amqp://{self.user}:{self.password}@{self.host}:{self.port}/"

    def is_alive(self) -> bool:
        """Whether it takes a TCP connection now."""
        return accepts(self.host, self.port)


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
def started_warren(folder: Path) -> Iterator[Broker]:
    """A Warren of this checkout on a free port, with `folder` for its data and its log; stopped at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [sys.executable, "-m", "warren", "serve", "--port", str(port)]
    with (folder / "warren.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=warren_environment())
    try:
        wait_until_it_listens(process, port)
        yield Broker(host="127.0.0.1", port=port, process=process)
    finally:
        stop(process)


def warren_environment() -> dict[str, str]:
    """The environment in which `warren` is importable: as installed, else from src/."""
    source = Path(__file__).parents[3] / "src"
    paths = [str(source), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    """Return once `port` accepts; raise when the process ends or takes too long."""
    deadline = time.monotonic() + START_S_MAX
    while not accepts("127.0.0.1", port):
        if process.poll() is not None:
            raise RuntimeError(f"warren ended with status {process.returncode} before it listened")
        if time.monotonic() > deadline:
            raise RuntimeError(f"warren did not listen on port {port} within {START_S_MAX} s")
        time.sleep(0.05)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask politely, then insist."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def accepts(host: str, port: int) -> bool:
    """Whether a TCP connection to `host` and `port` succeeds."""
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    """A port of the loopback interface that nobody listened on a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
