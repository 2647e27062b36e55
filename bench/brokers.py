"""The brokers a benchmark compares, each started on free ports and stopped by its own process id."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

START_S_MAX = 60
STOP_S_MAX = 30
RABBITMQ_SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A running broker: where it listens, and whose processor time is its own."""

    name: str
    version: str
    uri: str
    pid: int


def has_rabbitmq() -> bool:
    """Whether Debian's RabbitMQ is installed."""
    return RABBITMQ_SCRIPT.exists() and shutil.which("epmd") is not None


@contextlib.contextmanager
def rabbitmq() -> Iterator[Broker]:
    """Debian's RabbitMQ without plugins, with its own node name, ports and directory."""
    directory = Path(tempfile.mkdtemp(prefix="warren-bench-rabbitmq-"))
    port, distribution_port, epmd_port = free_port(), free_port(), free_port()
    (directory / "enabled_plugins").write_text("[].\n")
    (directory / "rabbitmq.conf").write_text(
        f"listeners.tcp.1 = 127.0.0.1:{port}\nlog.file.level = error\nlog.console = false\n"
    )
    (directory / "env.conf").write_text("")
    environment = os.environ | {
        "HOME": str(directory),
        "ERL_EPMD_PORT": str(epmd_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"warren-bench-{os.getpid()}@localhost",
        "RABBITMQ_DIST_PORT": str(distribution_port),
        "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
        "RABBITMQ_CONF_ENV_FILE": str(directory / "env.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
        "RABBITMQ_PLUGINS_EXPAND_DIR": str(directory / "plugins"),
    }
    epmd = subprocess.Popen(
        [shutil.which("epmd") or "epmd", "-port", str(epmd_port), "-address", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = _start([str(RABBITMQ_SCRIPT)], environment, directory)
    try:
        _await_port(server, port, directory)
        yield Broker(
            name="rabbitmq",
            version=_rabbitmq_version(),
            uri=f"amqp://guest:guest@127.0.0.1:{port}/%2f",
            pid=_descendant(server.pid, "beam.smp"),
        )
    finally:
        _stop(server)
        _stop(epmd)
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def warren(executable: Path) -> Iterator[Broker]:
    """`warren serve` from the environment in which `executable` is installed."""
    directory = Path(tempfile.mkdtemp(prefix="warren-bench-"))
    port = free_port()
    command = [str(executable.absolute()), "serve", "--port", str(port)]
    command += ["--data-dir", str(directory / "data")]
    command += ["--management-port", "0", "--prometheus-port", "0"]
    server = _start(command, dict(os.environ), directory)
    try:
        _await_port(server, port, directory)
        yield Broker(
            name="warren",
            version=build_of(executable),
            uri=f"amqp://guest:guest@127.0.0.1:{port}/%2f",
            pid=server.pid,
        )
    finally:
        _stop(server)
        shutil.rmtree(directory, ignore_errors=True)


def build_of(executable: Path) -> str:
    """Warren's version, and whether the environment of `executable` holds it compiled."""
    code = "import warren, warren.wire.frames as f; print(warren.__version__, f.__file__.endswith('.so'))"
    python = executable.absolute().parent / "python"
    answer = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False, cwd="/")
    version, _, is_compiled = answer.stdout.strip().partition(" ")
    return f"{version or 'unknown'} {'compiled' if is_compiled == 'True' else 'interpreted'}"


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(command: list[str], environment: dict[str, str], directory: Path) -> subprocess.Popen[bytes]:
    with (directory / "output").open("wb") as output:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=directory,
        )


def _await_port(server: subprocess.Popen[bytes], port: int, directory: Path) -> None:
    """Return once the server answers the protocol header of AMQP."""
    give_up_at = time.monotonic() + START_S_MAX
    while time.monotonic() < give_up_at and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as client:
            client.settimeout(5)
            client.sendall(b"AMQP\x00\x00\x09\x01")
            if client.recv(1):
                return
        time.sleep(0.2)
    sys.exit(f"{server.args!r} did not start:\n{(directory / 'output').read_text()[-2000:]}")


def _stop(server: subprocess.Popen[bytes]) -> None:
    """SIGTERM; SIGKILL if that does not end it in time."""
    if server.poll() is None:
        server.send_signal(signal.SIGTERM)
    try:
        server.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _rabbitmq_version() -> str:
    found = sorted(path.name for path in Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*"))
    return found[-1].partition("-")[2] if found else "unknown"


def _descendant(pid: int, name: str) -> int:
    """The first process under `pid` (itself included) whose command is `name`."""
    waiting = [pid]
    while waiting:
        candidate = waiting.pop()
        if Path(f"/proc/{candidate}/comm").read_text().strip() == name:
            return candidate
        for task in Path(f"/proc/{candidate}/task").glob("*/children"):
            waiting += [int(child) for child in task.read_text().split()]
    sys.exit(f"no process {name!r} below {pid}")
