"""Starts the broker that transcripts are played against: Warren, or a RabbitMQ for comparison."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.conformance.definitions import definitions
from tests.rabbitmq import RabbitMQ
from tests.warren_process import IN_MEMORY, free_port, running_warren


@dataclass(frozen=True)
class BrokerAddress:
    """Its port; `outside` is an address that is not loopback, if there is one."""

    host: str
    port: int
    is_rabbitmq: bool
    outside: tuple[str, int] | None = None


@contextlib.contextmanager
def start_broker(choice: str, folder: Path) -> Iterator[BrokerAddress]:
    """The broker named on the command line, with the definitions loaded, until the block ends."""
    document = folder / "definitions.json"
    document.write_text(json.dumps(definitions()))
    address = outside_address()
    if choice == "warren":
        port = free_port()
        settings = {"load_definitions": str(document), "listeners.tcp.outside": f"0.0.0.0:{port}"}
        # As users have it: guest logs in from the loopback address only.
        environment = {**IN_MEMORY, "WARREN_LOOPBACK_USERS_GUEST": "true"}
        with running_warren(folder, settings, environment=environment) as warren:
            outside = (address, port) if address else None
            yield BrokerAddress("127.0.0.1", warren.port, is_rabbitmq=False, outside=outside)
    elif choice == "rabbitmq":
        rabbitmq = RabbitMQ(folder)
        rabbitmq.start()
        try:
            rabbitmq.control("import_definitions", str(document))
            outside = (address, rabbitmq.port) if address else None
            yield BrokerAddress("127.0.0.1", rabbitmq.port, is_rabbitmq=True, outside=outside)
        finally:
            rabbitmq.stop()
    else:
        # The definitions must be loaded already: `python -m tests.conformance.definitions` prints them.
        place = urlsplit(choice.removeprefix("warren="))
        is_rabbitmq = not choice.startswith("warren=")
        yield BrokerAddress(place.hostname or "127.0.0.1", place.port or 5672, is_rabbitmq=is_rabbitmq)


def outside_address() -> str:
    """An address of this machine that is not loopback, or empty."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Connecting a datagram socket sends nothing; it only chooses the address to send from.
        probe.connect(("192.0.2.1", 9))
        address = str(probe.getsockname()[0])
        return "" if address.startswith(("127.", "0.")) else address
    return ""
