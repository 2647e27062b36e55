"""Starts the broker that transcripts are played against: Warren, or a RabbitMQ to compare with."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.conformance.definitions import definitions
from tests.rabbitmq import RabbitMQ, free_ports

SOURCES = Path(__file__).parents[2] / "src"
START_S = 30


@dataclass(frozen=True)
class Broker:
    """Where it listens; `outside` is an address of this machine that is not loopback, or empty."""

    host: str
    port: int
    is_rabbitmq: bool
    outside: str = ""


@contextlib.contextmanager
def start_broker(choice: str, directory: Path) -> Iterator[Broker]:
    """The broker named on the command line, with the definitions loaded, until the block ends."""
    document = directory / "definitions.json"
    document.write_text(json.dumps(definitions()))
    if choice == "warren":
        with running_warren(directory, {"load_definitions": str(document)}) as port:
            yield Broker("127.0.0.1", port, is_rabbitmq=False, outside=outside_address())
    elif choice == "rabbitmq":
        rabbitmq = RabbitMQ(directory)
        rabbitmq.start()
        try:
            rabbitmq.control("import_definitions", str(document))
            yield Broker("127.0.0.1", rabbitmq.port, is_rabbitmq=True, outside=outside_address())
        finally:
            rabbitmq.stop()
    else:
        # The definitions have to be there already: `python -m tests.conformance.definitions` prints them.
        place = urlsplit(choice)
        yield Broker(place.hostname or "127.0.0.1", place.port or 5672, is_rabbitmq=True)


@contextlib.contextmanager
def running_warren(directory: Path, settings: dict[str, str]) -> Iterator[int]:
    """A Warren process on a free port, which is given; stopped by its own id at the end."""
    (port,) = free_ports(1)
    configuration = directory / "warren.conf"
    lines = {"listeners.tcp.default": f"0.0.0.0:{port}", **settings}
    configuration.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([str(SOURCES), environment.get("PYTHONPATH", "")])
    with (directory / "warren.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "warren.cli.main", "serve", "--config", str(configuration)],
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_until_listening(process, port, directory / "warren.log")
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


def outside_address() -> str:
    """An address of this machine that is not loopback, or empty."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Connecting a datagram socket sends nothing; it only chooses the address to send from.
        probe.connect(("192.0.2.1", 9))
        address = str(probe.getsockname()[0])
        return "" if re.match(r"127\.|0\.", address) else address
    return ""


def _wait_until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"Warren does not listen:\n{log.read_text()}")
