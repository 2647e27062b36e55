"""Measures the CPU time of a broker whose clients do nothing: alone, with connections, and with queues.

The connections have heartbeats of 60 s, so that each side of each of them sends one every half a minute, as
clients do. The queues are durable, classic and empty.
"""

import select
import time
from collections import deque
from dataclasses import dataclass

from brokers import Broker
from samples import Line
from warren.blocking.connection import BlockingConnection, ConnectOptions
from warren.cli.perf.declarations import CHANNEL, declare, names_for
from warren.cli.perf.load import Load
from warren.cli.perf.result import Result
from warren.cli.perf.usage import usage
from warren.cli.perf.worker_group import raise_open_files_limit
from warren.client.uri import Target, parse_uri
from warren.framing.heartbeat import HEARTBEAT_FRAME

HEARTBEAT_S = 60
RECEIVE_BYTES = 65_536
# What is left of the work of connecting and declaring is done before the measurement.
SETTLE_S = 3.0
ALONE, CONNECTIONS, QUEUES = "idle", "idle connections", "idle queues"
MEASUREMENTS = (ALONE, CONNECTIONS, QUEUES)
CPU = "cpu_ms_per_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleCounts:
    """How many idle objects there are, and how long they are watched."""

    connections: int
    queues: int
    duration_s: float


def lines(counts: IdleCounts) -> list[Line]:
    """Return the lines of the table."""
    return [
        Line(ALONE, CPU, "ms of CPU time per second without clients"),
        Line(CONNECTIONS, CPU, f"with {counts.connections:,} connections, heartbeats of {HEARTBEAT_S} s"),
        Line(QUEUES, CPU, f"with {counts.queues:,} queues"),
    ]


def measure_idle(name: str, broker: Broker, counts: IdleCounts) -> Result:
    """Run one of MEASUREMENTS against a broker that was just started."""
    result = Result(name, {})
    target = parse_uri(broker.uri)
    connections: list[BlockingConnection] = []
    if name == CONNECTIONS:
        raise_open_files_limit()
        options = ConnectOptions(product="warren bench", heartbeat=HEARTBEAT_S)
        connections = [BlockingConnection(target, options) for _ in range(counts.connections)]
    elif name == QUEUES:
        _declare(target, counts.queues)
    _stay_connected(connections, SETTLE_S)
    begin = usage([broker.pid])
    elapsed_s = _stay_connected(connections, counts.duration_s)
    result.figures[CPU] = (usage([broker.pid]).cpu_s - begin.cpu_s) / elapsed_s * 1000
    for connection in connections:
        connection.close()
    return result


def _declare(target: Target, count: int) -> None:
    load = Load(target=target, queues=count, queue_type="classic")
    connection = BlockingConnection(target, ConnectOptions(product="warren bench"))
    connection.open_channel(CHANNEL)
    declare(connection, load, names_for(load))
    connection.close()


def _stay_connected(connections: list[BlockingConnection], seconds: float) -> float:
    """Send each connection's heartbeats, spread evenly, and read those of the broker; returns the seconds."""
    waiting = deque(connections)
    by_file = {connection.socket.fileno(): connection for connection in connections}
    poll = select.poll()
    for file in by_file:
        poll.register(file, select.POLLIN)
    step_s = HEARTBEAT_S / 2 / max(len(connections), 1)
    begin_s = due_s = time.monotonic()
    end_s = begin_s + seconds
    while (now_s := time.monotonic()) < end_s:
        if waiting and now_s >= due_s:
            waiting[0].socket.sendall(HEARTBEAT_FRAME)
            waiting.rotate(-1)
            due_s += step_s
            continue
        until_s = min(due_s, end_s) if waiting else end_s
        for file, _ in poll.poll((until_s - now_s) * 1000):
            if not by_file[file].socket.recv(RECEIVE_BYTES):
                raise SystemExit("the broker has closed an idle connection")
    return time.monotonic() - begin_s
