"""The brokers of a comparison, each started on free ports and stopped by its process id."""

import contextlib
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from warren.cli.perf.connection import open_connection
from warren.client.uri import parse_uri

START_S_MAX = 60
STOP_S_MAX = 30
NOTHING: Mapping[str, str] = MappingProxyType({})
# Ports below those that the kernel gives to outgoing connections, and those that were returned already.
_PORTS = range(20_000, 32_000)
_CHANCE = random.SystemRandom()
_GIVEN: set[int] = set()
RABBITMQ, OLDER_RABBITMQ = "rabbitmq", "older rabbitmq"
# The directories of `rabbitmq-server` and its tools: of the version that Warren is compared with, and of an
# older one that is measured beside both.
_RABBITMQ_DIRECTORIES = {
    name: Path(directory)
    for name, directory in (
        (RABBITMQ, os.environ.get("ORACLE_BIN_DIR", "/usr/lib/rabbitmq/bin")),
        (OLDER_RABBITMQ, os.environ.get("OLDER_ORACLE_BIN_DIR", "")),
    )
    if directory
}


@dataclass(slots=True, kw_only=True)
class Broker:
    """A broker with a directory that outlives its processes."""

    name: str
    port: int
    command: list[str]
    environment: dict[str, str]
    directory: Path
    version: str = ""  # what the broker itself says once it runs, if it is not known before
    program: str = ""  # command of the descendant process that is the broker; empty: the started process
    server: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """The URI of its AMQP listener."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2f"

    @property
    def pid(self) -> int:
        """The process whose CPU time, with that of its descendants, is the broker's."""
        assert self.server is not None
        return _descendant(self.server.pid, self.program) if self.program else self.server.pid

    @property
    def data(self) -> Path:
        """The directory of its data."""
        return self.directory / "data"

    def start(self) -> None:
        """Start the process without waiting for it."""
        with (self.directory / "output").open("wb") as output:
            self.server = subprocess.Popen(
                self.command,
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=self.directory,
            )

    def await_ready(self) -> None:
        """Wait until it answers the protocol header of AMQP."""
        give_up_at = time.monotonic() + START_S_MAX
        while time.monotonic() < give_up_at:
            self.check_runs()
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), 1) as client,
            ):
                client.settimeout(5)
                client.sendall(b"AMQP\x00\x00\x09\x01")
                if client.recv(1):
                    return
            time.sleep(0.2)
        sys.exit(f"{self.name} did not answer within {START_S_MAX} s:\n{self._last_words()}")

    def check_runs(self) -> None:
        """End the benchmark if the broker has ended."""
        if self.server is None or self.server.poll() is not None:
            sys.exit(f"{self.name} has ended:\n{self._last_words()}")

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process has ended."""
        assert self.server is not None
        os.kill(self.pid, signal.SIGKILL)
        self.server.wait(STOP_S_MAX)

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL if the process does not end in time."""
        if self.server is not None:
            _stop(self.server)

    def _last_words(self) -> str:
        return (self.directory / "output").read_text(errors="replace")[-2000:]


def installed_rabbitmqs() -> list[str]:
    """The versions of RabbitMQ that can be started: RABBITMQ, and OLDER_RABBITMQ where one is named."""
    if shutil.which("epmd") is None:
        return []
    return [name for name, place in _RABBITMQ_DIRECTORIES.items() if (place / "rabbitmq-server").exists()]


def has_rabbitmq() -> bool:
    """True if there is a RabbitMQ to compare with."""
    return RABBITMQ in installed_rabbitmqs()


@contextlib.contextmanager
def rabbitmq(
    environment: Mapping[str, str] = NOTHING,
    *,
    name: str = RABBITMQ,
    plugins: Sequence[str] = (),
    settings: str = "",
) -> Iterator[Broker]:
    """Start a RabbitMQ, without plugins unless named, with its own node name, ports and directory."""
    with _port_mapper() as epmd_port:
        broker = _rabbitmq(epmd_port, environment, name=name, plugins=plugins, settings=settings)
        with _running(broker):
            yield broker


@contextlib.contextmanager
def rabbitmq_cluster(count: int) -> Iterator[list[Broker]]:
    """Start `count` nodes of RabbitMQ, without plugins, as one cluster."""
    nodes: list[Broker] = []
    with _port_mapper() as epmd_port, contextlib.ExitStack() as stack:
        for _ in range(count):
            settings = ""
            if nodes:
                first = nodes[0].environment["RABBITMQ_NODENAME"]
                settings = (
                    "cluster_formation.peer_discovery_backend = classic_config\n"
                    f"cluster_formation.classic_config.nodes.1 = {first}\n"
                )
            nodes.append(_rabbitmq(epmd_port, settings=settings))
            # A node joins the seed before it serves clients.
            stack.enter_context(_running(nodes[-1]))
        yield nodes


@contextlib.contextmanager
def warren(
    executable: Path,
    environment: Mapping[str, str] = NOTHING,
    *,
    http: tuple[int, int] = (0, 0),
    stream: int = 0,
) -> Iterator[Broker]:
    """Start `warren serve` of the environment in which `executable` is installed.

    `http` are the ports of the API and of metrics, `stream` is the port of the stream protocol.
    """
    broker = _warren(executable, environment, http=http, stream=stream)
    with _running(broker):
        yield broker


@contextlib.contextmanager
def warren_cluster(executable: Path, count: int, *, http: int = 0) -> Iterator[list[Broker]]:
    """Start `count` nodes of `warren serve` as one cluster; `http` is the port of the first one's API."""
    ports = [free_port() for _ in range(count)]
    names = [f"bench{number}@localhost" for number in range(count)]
    discovery = {
        "WARREN_CLUSTER_COOKIE": secrets.token_urlsafe(),
        "WARREN_CLUSTER_ADVERTISED_HOST": "127.0.0.1",
        "WARREN_CLUSTER_FORMATION_PEER_DISCOVERY_BACKEND": "classic_config",
    }
    for number, (name, port) in enumerate(zip(names, ports, strict=True), start=1):
        discovery[f"WARREN_CLUSTER_FORMATION_CLASSIC_CONFIG_NODES_{number}"] = f"{name}:{port}"
    nodes = [
        _warren(
            executable, discovery, "--node-name", name, "--cluster-port", str(port),
            http=(0 if number else http, 0),
        )
        for number, (name, port) in enumerate(zip(names, ports, strict=True))
    ]  # fmt: skip
    try:
        for node in nodes:
            node.start()
        for node in nodes:
            node.await_ready()
        yield nodes
    finally:
        for node in nodes:
            node.stop()
            shutil.rmtree(node.directory, ignore_errors=True)


def _warren(
    executable: Path,
    environment: Mapping[str, str] = NOTHING,
    *arguments: str,
    http: tuple[int, int] = (0, 0),
    stream: int = 0,
) -> Broker:
    directory = Path(tempfile.mkdtemp(prefix="warren-bench-"))
    port = free_port()
    command = [str(executable.absolute()), "serve", "--port", str(port)]
    command += ["--data-dir", str(directory / "data")]
    command += ["--management-port", str(http[0]), "--prometheus-port", str(http[1])]
    command += ["--stream-port", str(stream), *arguments]
    return Broker(
        name="warren",
        version=build_of(executable),
        port=port,
        command=command,
        environment=dict(environment),
        directory=directory,
    )


@contextlib.contextmanager
def _port_mapper() -> Iterator[int]:
    """Run Erlang's epmd on a free port."""
    port = free_port()
    epmd = subprocess.Popen(
        [shutil.which("epmd") or "epmd", "-port", str(port), "-address", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield port
    finally:
        _stop(epmd)


def _rabbitmq(
    epmd_port: int,
    environment: Mapping[str, str] = NOTHING,
    *,
    name: str = RABBITMQ,
    plugins: Sequence[str] = (),
    settings: str = "",
) -> Broker:
    directory = Path(tempfile.mkdtemp(prefix="warren-bench-rabbitmq-"))
    port, distribution_port = free_port(), free_port()
    (directory / "enabled_plugins").write_text(f"[{','.join(plugins)}].\n")
    (directory / "rabbitmq.conf").write_text(
        f"listeners.tcp.1 = 127.0.0.1:{port}\nlog.file.level = error\nlog.console = false\n{settings}"
    )
    (directory / "env.conf").write_text("")
    cookie = directory / ".erlang.cookie"
    cookie.write_text(f"warren-bench-{os.getpid()}")
    cookie.chmod(0o400)
    own = {
        "HOME": str(directory),
        "ERL_EPMD_PORT": str(epmd_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"warren-bench-{os.getpid()}-{port}@localhost",
        "RABBITMQ_DIST_PORT": str(distribution_port),
        "RABBITMQ_MNESIA_BASE": str(directory / "data"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
        "RABBITMQ_CONF_ENV_FILE": str(directory / "env.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
        "RABBITMQ_PLUGINS_EXPAND_DIR": str(directory / "plugins"),
    }
    return Broker(
        name=name,
        port=port,
        command=[str(_RABBITMQ_DIRECTORIES[name] / "rabbitmq-server")],
        environment=own | dict(environment),
        directory=directory,
        program="beam.smp",
    )


def build_of(executable: Path) -> str:
    """Return Warren's version, and whether the build in the environment of `executable` is compiled."""
    code = "import warren, warren.wire.frames as f; print(warren.__version__, f.__file__.endswith('.so'))"
    python = executable.absolute().parent / "python"
    answer = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False, cwd="/")
    version, _, is_compiled = answer.stdout.strip().partition(" ")
    return f"{version or 'unknown'} {'compiled' if is_compiled == 'True' else 'interpreted'}"


def free_port() -> int:
    """Return a port that was free a moment ago, and that no other caller and no outgoing connection gets."""
    while True:
        port = _CHANCE.choice(_PORTS)
        if port not in _GIVEN:
            _GIVEN.add(port)
            # On every interface, since brokers listen on all of them.
            with contextlib.suppress(OSError), socket.socket() as listener:
                listener.bind(("", port))
                return port


@contextlib.contextmanager
def _running(broker: Broker) -> Iterator[None]:
    """Run the broker until the block ends, then remove its directory."""
    try:
        broker.start()
        broker.await_ready()
        broker.version = broker.version or _version_of(broker)
        yield
    finally:
        broker.stop()
        shutil.rmtree(broker.directory, ignore_errors=True)


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM, and SIGKILL if the process does not end in time."""
    if server.poll() is None:
        server.send_signal(signal.SIGTERM)
    try:
        server.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _version_of(broker: Broker) -> str:
    """The version that a RabbitMQ tells its clients, with that of its Erlang."""
    connection = open_connection(parse_uri(broker.uri))
    said = connection.server_properties
    connection.close()
    platform = str(said.get("platform", "")).replace("Erlang/OTP", "Erlang")
    return f"{said.get('version', 'unknown')} ({platform})"


def _descendant(pid: int, name: str) -> int:
    """Return the first process under `pid` (itself included) whose command is `name`."""
    waiting = [pid]
    while waiting:
        candidate = waiting.pop()
        if Path(f"/proc/{candidate}/comm").read_text().strip() == name:
            return candidate
        for task in Path(f"/proc/{candidate}/task").glob("*/children"):
            waiting += [int(child) for child in task.read_text().split()]
    sys.exit(f"no process {name!r} below {pid}")
