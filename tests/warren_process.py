"""Runs a Warren for tests: the one that the tests import, in a process of its own, on free ports."""

import contextlib
import fcntl
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.patience import patient

import warren

START_S_MAX = patient(30)
STOP_S_MAX = patient(10)
PROGRAM = "from warren.cli.main import main; main()"
COMMAND = (sys.executable, "-c", PROGRAM)
# The default for tests: no broker uses the data directory of a user, and links log in as guest.
IN_MEMORY: Mapping[str, str] = MappingProxyType(
    {"WARREN_IN_MEMORY": "true", "WARREN_LOOPBACK_USERS_GUEST": "false"}
)
# Each broker has HTTP ports of its own, too.
FREE_PORTS = ("--management-port", "0", "--prometheus-port", "0", "--stream-port", "0")

# Below the ephemeral ports of systems: a client connection could otherwise use the port while a broker
# restarts.
_PORTS = range(20_000, 32_000)
# Random, even if tests have fixed seeds: they must not use equal ports.
_CHANCE = random.SystemRandom()
# Ports in use: this file has a lock for each port, at its offset, which ends with the process.
_GIVEN: set[int] = set()
_LOCKS = (Path(tempfile.gettempdir()) / f"warren-tests-{os.getuid()}.ports").open("ab")


@dataclass(frozen=True)
class WarrenProcess:
    """A running broker: its process, its port, and the file with its output."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path


@contextlib.contextmanager
def running_warren(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    arguments: tuple[str, ...] = (),
    environment: Mapping[str, str] = IN_MEMORY,
    command: tuple[str, ...] = COMMAND,
) -> Iterator[WarrenProcess]:
    """Run a broker with `folder` for its files and `settings` as its rabbitmq.conf, until the block ends."""
    port = free_port()
    lines = {"listeners.tcp.default": f"127.0.0.1:{port}", **(settings or {})}
    (folder / "warren.conf").write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    broker = start_warren(
        folder, port, "--config", "warren.conf", *arguments, environment=environment, command=command
    )
    try:
        yield broker
    finally:
        stop(broker.process)


def start_warren(
    folder: Path,
    port: int,
    *arguments: str,
    environment: Mapping[str, str] = IN_MEMORY,
    command: tuple[str, ...] = COMMAND,
) -> WarrenProcess:
    """Run `warren serve` with `arguments`, which make it listen on `port`; returns when it accepts
    connections.

    A --data-dir in `arguments` has precedence over the variable. A different `command` uses its own packages
    only.
    """
    where = warren_environment() if command is COMMAND else {**os.environ, "PYTHONPATH": ""}
    log = folder / "warren.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, "serve", *FREE_PORTS, *arguments],
            cwd=folder,
            env=where | environment,
            stdout=output,
            stderr=output,
        )
    wait_until_listening(process, port, log)
    return WarrenProcess(process, port, log)


def warren_environment() -> dict[str, str]:
    """Return the environment in which another process imports the same Warren: interpreted or compiled."""
    assert warren.__file__
    return {**os.environ, "PYTHONPATH": str(Path(warren.__file__).resolve().parents[1])}


def own_address() -> str:
    """Return a loopback address that no other caller gets while this process lives.

    A port with a fixed number is free there.
    """
    number = free_port()
    return f"127.1.{number >> 8}.{number & 255}"


def free_port() -> int:
    """Return a port that is free, and that no other caller gets while this process lives."""
    while True:
        port = _CHANCE.choice(_PORTS)
        if port in _GIVEN:
            continue
        with contextlib.suppress(OSError), socket.socket() as listener:
            fcntl.lockf(_LOCKS, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            _GIVEN.add(port)
            # On every interface, since some brokers of tests listen on all of them.
            listener.bind(("", port))
            return port


def wait_until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until `port` accepts connections; raises with the output if the process ends or takes too long."""
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    stop(process)
    raise RuntimeError(f"Warren does not listen on port {port}:\n{log.read_text(errors='replace')}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM, and SIGKILL if the process does not end in time; only to this process."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
