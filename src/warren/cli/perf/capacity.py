"""Measures the memory of connections, queues and ready messages, and how fast they are created."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from warren.blocking.connection import BlockingConnection
from warren.cli.perf.connection import open_connection
from warren.cli.perf.declarations import CHANNEL, declare, delete, names_for
from warren.cli.perf.histogram import Histogram
from warren.cli.perf.load import Load
from warren.cli.perf.publish_ring import Content, PublishRing
from warren.cli.perf.result import Result
from warren.cli.perf.shared_counters import LoadPhase, Totals, WorkerCounters
from warren.cli.perf.usage import usage
from warren.cli.perf.worker_group import Observer, WorkerGroup, raise_open_files_limit
from warren.client.confirms import ConfirmCounter
from warren.client.errors import BrokerRefused
from warren.client.uri import Target
from warren.wire.method import Method
from warren.wire.methods import (
    BasicConsume,
    BasicConsumeOk,
    ConfirmSelect,
    ConfirmSelectOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)

SETTLE_S = 0.5  # the memory has settled if it does not change for this long
SETTLE_S_MAX = 5.0
CONFIRM_WINDOW = 1_000
RECEIVE_BYTES = 65_536


def measure_connections(target: Target, *, count: int, observer: Observer) -> Result:
    """Open `count` connections, then a channel on each, then a queue and a consumer on each.

    The result has the memory of the broker after each step.
    """
    raise_open_files_limit()
    result = Result("connections", {"connections": count})
    empty = settled_memory(observer)
    begin_s = time.monotonic()
    links = [open_connection(target) for _ in range(count)]
    try:
        result.figures["opened_per_s"] = count / (time.monotonic() - begin_s)
        steps: dict[str, Callable[[BlockingConnection], None]] = {
            "idle": lambda connection: None,
            "with_channel": lambda connection: connection.open_channel(CHANNEL),
            "with_queue_and_consumer": _consume,
        }
        for name, step in steps.items():
            for connection in links:
                step(connection)
            if observer.broker_pids:
                grown = settled_memory(observer) - empty
                result.figures[f"{name}_kb_per_connection"] = grown / count / 1024
    finally:
        for connection in links:
            connection.close()
    return result


def measure_churn(target: Target, *, processes: int, duration: float, observer: Observer) -> Result:
    """Open and close connections with a channel repeatedly."""
    return _measure_rate(
        "churn", partial(_churn, target), processes, duration_s=duration, unit="connection", observer=observer
    )


def measure_declares(target: Target, *, durable: bool, duration: float, observer: Observer) -> Result:
    """Declare queues one after the other on a channel, waiting for each answer; delete them afterwards.

    They are `durable` or exclusive.
    """
    name = "durable declares" if durable else "declares"
    member = partial(_declare, target, durable)
    return _measure_rate(name, member, 1, duration_s=duration, unit="queue", observer=observer)


def measure_queues(target: Target, *, count: int, observer: Observer) -> Result:
    """Declare `count` queues, and measure the memory per queue."""
    result = Result("queues", {"queues": count})
    load = Load(target=target, queues=count)
    names = names_for(load)
    connection = open_connection(target)
    connection.open_channel(CHANNEL)
    empty = settled_memory(observer)
    begin_s = time.monotonic()
    try:
        declare(connection, load, names)
        result.figures["declared_per_s"] = count / (time.monotonic() - begin_s)
        if observer.broker_pids:
            result.figures["memory_bytes_per_queue"] = (settled_memory(observer) - empty) / count
    finally:
        delete(connection, load, names)
        connection.close()
    return result


@dataclass(frozen=True, slots=True)
class BacklogLoad:
    """The messages to publish to a queue without consuming them."""

    count: int
    size: int
    is_persistent: bool


def measure_backlog(target: Target, backlog: BacklogLoad, observer: Observer) -> Result:
    """Publish messages without consuming them, and measure the memory per message beyond its body."""
    result = Result("backlog", {"messages": backlog.count, "size": backlog.size})
    load = Load(target=target, size=backlog.size, is_persistent=backlog.is_persistent)
    names = names_for(load)
    connection = open_connection(target)
    connection.open_channel(CHANNEL)
    declare(connection, load, names)
    content = Content(
        body=bytes(backlog.size),
        is_persistent=backlog.is_persistent,
        frame_size_max=connection.frame_size_max,
    )
    publish_ring = PublishRing([("", names.queue(0))], content)
    empty = settled_memory(observer)
    begin = usage(observer.broker_pids)
    begin_s = time.monotonic()
    try:
        fill(connection, publish_ring, backlog.count)
        elapsed_s = time.monotonic() - begin_s
        result.figures["published_per_s"] = backlog.count / elapsed_s
        if observer.broker_pids:
            cpu_s = usage(observer.broker_pids).cpu_s - begin.cpu_s
            result.figures["broker_cpu_us_per_message"] = cpu_s / backlog.count * 1e6
            grown = settled_memory(observer) - empty
            result.figures["memory_beside_body_bytes_per_message"] = grown / backlog.count - backlog.size
    finally:
        delete(connection, load, names)
        connection.close()
    return result


def fill(connection: BlockingConnection, publish_ring: PublishRing, count: int) -> None:
    """Publish `count` messages on channel 1, and wait until all are confirmed."""
    connection.call(CHANNEL, ConfirmSelect(), ConfirmSelectOk)
    confirms = ConfirmCounter()
    sent = 0
    while confirms.settled < count:
        allowed = min(count - sent, CONFIRM_WINDOW - (sent - confirms.settled))
        if allowed > 0:
            data = publish_ring.take(sent, allowed)
            connection.socket.sendall(data)
            sent += len(data) // publish_ring.length
        if sent == count or sent - confirms.settled >= CONFIRM_WINDOW:
            received = connection.socket.recv(RECEIVE_BYTES)
            if not received:
                raise BrokerRefused("the broker closed a publishing connection")
            confirms.feed(received, sent)


def settled_memory(observer: Observer) -> int:
    """Return the resident memory of the broker when it has settled; 0 if its process is not known."""
    if not observer.broker_pids:
        return 0
    now = usage(observer.broker_pids).resident_bytes
    give_up_s = time.monotonic() + SETTLE_S_MAX
    while time.monotonic() < give_up_s:
        time.sleep(SETTLE_S)
        before, now = now, usage(observer.broker_pids).resident_bytes
        if abs(now - before) <= before // 500:
            break
    return now


def _consume(connection: BlockingConnection) -> None:
    queue = connection.call(CHANNEL, QueueDeclare(exclusive=True), QueueDeclareOk).queue
    connection.call(CHANNEL, BasicConsume(queue=queue, consumer_tag="c", no_ack=True), BasicConsumeOk)


def _measure_rate(
    name: str,
    member: Callable[[WorkerCounters], Callable[[], Histogram]],
    processes: int,
    *,
    duration_s: float,
    unit: str,
    observer: Observer,
) -> Result:
    """Let `processes` repeat one operation; measure its rate and its latency."""
    worker_group = WorkerGroup([member] * processes, observer)
    try:
        worker_group.start(0)
        start = worker_group.snapshot()
        worker_group.watch(duration_s)
        end = worker_group.snapshot()
        latencies = Histogram()
        for histogram in worker_group.stop():
            latencies.merge(histogram)
    finally:
        worker_group.end()
    done = end.totals.published - start.totals.published
    result = Result(name, {"processes": processes})
    result.figures[f"{unit}s_per_s"] = done / (end.at_s - start.at_s)
    result.add_costs(start, end, done, unit=unit)
    result.add_percentiles(unit, latencies)
    return result


def _churn(target: Target, worker_counters: WorkerCounters) -> Callable[[], Histogram]:
    def run() -> Histogram:
        histogram = Histogram()
        while worker_counters.shared_counters.phase is LoadPhase.RUNNING:
            begin_ns = time.monotonic_ns()
            connection = open_connection(target)
            connection.open_channel(CHANNEL)
            connection.close()
            histogram.record(time.monotonic_ns() - begin_ns)
            worker_counters.post(Totals(len(histogram), 0, 0, 0))
        return histogram

    return run


def _declare(target: Target, durable: bool, worker_counters: WorkerCounters) -> Callable[[], Histogram]:
    connection = open_connection(target)
    connection.open_channel(CHANNEL)
    prefix = f"p{os.getpid():x}.{time.time_ns():x}."

    def run() -> Histogram:
        histogram = Histogram()
        while worker_counters.shared_counters.phase is LoadPhase.RUNNING:
            begin_ns = time.monotonic_ns()
            declared = QueueDeclare(queue=f"{prefix}{len(histogram)}", durable=durable, exclusive=not durable)
            connection.call(CHANNEL, declared, QueueDeclareOk)
            histogram.record(time.monotonic_ns() - begin_ns)
            worker_counters.post(Totals(len(histogram), 0, 0, 0))
        deleted: list[Method] = [QueueDelete(queue=f"{prefix}{i}") for i in range(len(histogram))]
        connection.call_many(CHANNEL, deleted, QueueDeleteOk)
        connection.close()
        return histogram

    return run
