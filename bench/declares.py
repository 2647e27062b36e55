"""Measures declarations of queues, by rate and by the CPU time of the broker, on 1 and on 32 connections.

A durable queue is declared and stays until the measurement is over. A reply queue is exclusive, auto-delete
and named by the broker; it is declared and deleted. Each connection waits for the answer to one method before
it sends the next; all send theirs together. Brokers take turns.
"""

import argparse
import contextlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from brokers import Broker, rabbitmq, warren
from table import figure, table
from warren.blocking.connection import BlockingConnection
from warren.cli.perf.connection import open_connection
from warren.cli.perf.usage import own_cpu_s
from warren.client.raw_frames import decoded, method_frame
from warren.client.uri import parse_uri
from warren.wire.method import Method
from warren.wire.methods import QueueDeclare, QueueDeclareOk, QueueDelete, QueueDeleteOk

CHANNEL = 1
HEAD_BYTES = 7
FRAME_BYTES = 8  # of a frame without its payload
RECEIVE_BYTES = 65_536
REPLY_QUEUE = QueueDeclare(exclusive=True, auto_delete=True)
# Until the code of a new broker has been run, and its memory has been given to it.
WARM_UP_COUNT = 300


@dataclass(slots=True)
class Figures:
    """The runs of one load with one broker."""

    cpu_us: list[float] = field(default_factory=list)
    per_s: list[float] = field(default_factory=list)


class Clients:
    """Connections that call methods together."""

    def __init__(self, brokers: Sequence[Broker], count: int) -> None:
        """Open `count` connections to the nodes in turn."""
        targets = [parse_uri(broker.uri) for broker in brokers]
        self._connections: list[BlockingConnection] = []
        for number in range(count):
            connection = open_connection(targets[number % len(targets)])
            connection.open_channel(CHANNEL)
            self._connections.append(connection)

    @property
    def count(self) -> int:
        """The number of connections."""
        return len(self._connections)

    def call(self, frames: Sequence[bytes]) -> list[bytes]:
        """Send one frame on each connection, and return the payloads of the answers."""
        for connection, frame in zip(self._connections, frames, strict=True):
            connection.socket.sendall(frame)
        return [_answer(connection) for connection in self._connections]

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.close()


def durable(clients: Clients, rounds: int) -> Callable[[], None]:
    """Declare a durable queue on each connection, `rounds` times; returns what deletes them."""
    prefix = f"declares.{time.time_ns():x}."
    for number in range(rounds):
        names = [f"{prefix}{number}.{place}" for place in range(clients.count)]
        declared = [method_frame(CHANNEL, QueueDeclare(queue=name, durable=True)) for name in names]
        _check(clients.call(declared), QueueDeclareOk)

    def delete() -> None:
        for number in range(rounds):
            names = [f"{prefix}{number}.{place}" for place in range(clients.count)]
            deleted = [method_frame(CHANNEL, QueueDelete(queue=name)) for name in names]
            _check(clients.call(deleted), QueueDeleteOk)

    return delete


def reply(clients: Clients, rounds: int) -> Callable[[], None]:
    """Declare and delete a reply queue on each connection, `rounds` times."""
    declared = [method_frame(CHANNEL, REPLY_QUEUE)] * clients.count
    for _ in range(rounds):
        names = [_name(payload) for payload in clients.call(declared)]
        deleted = [method_frame(CHANNEL, QueueDelete(queue=name)) for name in names]
        _check(clients.call(deleted), QueueDeleteOk)
    return lambda: None


LOADS = {"durable queue": durable, "reply queue and its deletion": reply}


def main() -> None:
    """Measure all brokers in turns, and print the least and the median of each load."""
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument(
        "--beside", type=Path, nargs="+", default=[], help="the commands of other builds, measured in turns"
    )
    parser.add_argument("--rabbitmq", action="store_true", help="measure RabbitMQ in turns, too")
    parser.add_argument("--runs", type=int, default=7, help="measurements of each load")
    parser.add_argument("--count", type=int, default=3_000, help="queues of each measurement")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 32], help="numbers of connections")
    chosen = parser.parse_args()
    with contextlib.ExitStack() as stack:
        brokers = {"warren": stack.enter_context(warren(chosen.warren))}
        for number, executable in enumerate(chosen.beside, start=1):
            brokers[f"beside {number}"] = stack.enter_context(warren(executable))
        if chosen.rabbitmq:
            brokers["rabbitmq"] = stack.enter_context(rabbitmq())
        lines = []
        for count in chosen.connections:
            for load in LOADS:
                found = measured(brokers, load, count, chosen)
                lines += [_line(load, count, name, figures) for name, figures in found.items()]
    versions = ", ".join(f"{name}: {broker.version}" for name, broker in brokers.items())
    print(f"{versions}; {chosen.runs} runs of {chosen.count} queues each\n")
    heads = ["", "connections", "broker", "CPU µs, least", "median", "per second, median"]
    print(table(heads, lines, words=3))


def measured(
    brokers: dict[str, Broker], load: str, count: int, chosen: argparse.Namespace
) -> dict[str, Figures]:
    """Return the figures of one load on `count` connections, by the names of the brokers."""
    found = {name: Figures() for name in brokers}
    clients = {name: Clients([broker], count) for name, broker in brokers.items()}
    run = LOADS[load]
    rounds = max(chosen.count // count, 1)
    for each in clients.values():
        run(each, max(WARM_UP_COUNT // count, 1))()
    for _ in range(chosen.runs):
        for name, broker in brokers.items():
            begin_cpu_s, begin_s = own_cpu_s(broker.pid), time.monotonic()
            clean_up = run(clients[name], rounds)
            took_s = time.monotonic() - begin_s
            found[name].cpu_us.append((own_cpu_s(broker.pid) - begin_cpu_s) * 1e6 / (rounds * count))
            found[name].per_s.append(rounds * count / took_s)
            clean_up()
    for each in clients.values():
        each.close()
    return found


def _line(load: str, count: int, name: str, found: Figures) -> list[str]:
    median = statistics.median
    rate = f"{median(found.per_s):,.0f}"
    return [load, str(count), name, figure(min(found.cpu_us)), figure(median(found.cpu_us)), rate]


def _answer(connection: BlockingConnection) -> bytes:
    """Return the payload of the next frame, before which nothing else is received."""
    data = connection.socket.recv(RECEIVE_BYTES)
    while len(data) < HEAD_BYTES or len(data) < int.from_bytes(data[3:HEAD_BYTES], "big") + FRAME_BYTES:
        more = connection.socket.recv(RECEIVE_BYTES)
        if not more:
            sys.exit("the broker closed a connection")
        data += more
    return data[HEAD_BYTES:-1]


def _check(payloads: Sequence[bytes], answer: type[Method]) -> None:
    for payload in payloads:
        method = decoded(payload)
        if not isinstance(method, answer):
            sys.exit(f"the broker answered {method}")


def _name(payload: bytes) -> str:
    method = decoded(payload)
    if not isinstance(method, QueueDeclareOk):
        sys.exit(f"the broker answered {method}")
    return method.queue


if __name__ == "__main__":
    main()
