"""Measures messages on the disk: recovery, reading and size, also after most of them were acknowledged."""

import time
from dataclasses import replace

from backlog import (
    THINNED,
    Span,
    await_waiting,
    declare,
    drain,
    observer,
    publish,
    steady_disk_bytes,
    thin_out,
)
from brokers import Broker
from samples import Line
from warren.cli.perf.capacity import settled_memory
from warren.cli.perf.report import print_setup
from warren.cli.perf.result import Result
from warren.client.uri import parse_uri

QUEUE = "backlog"
SIZE = 1024
MESSAGES_STEP = THINNED  # the size of a backlog is a multiple of it, so that tens and hundreds divide it
THINNED_MAX = 300_000  # RabbitMQ takes long to acknowledge these one by one
MEBIBYTE = 1 << 20
RECOVERY_S_MAX = 300
LINES = [
    Line("store", "start_s", "s to start with an empty queue, after kill -9"),
    Line("store", "fill_per_s", "messages published and confirmed per second", is_rate=True),
    Line("store", "fill_cpu_us_per_message", "µs of the broker for each of them"),
    Line("store", "waiting_memory_mib", "MiB of memory while they wait", "<= 300 for 10 M"),
    Line("store", "waiting_disk_bytes_per_message", "bytes on the disk for each that waits"),
    Line("store", "recovery_s", "s to start with all of them, after kill -9", "<= 3 for 1 M"),
    Line("store", "recovered_memory_mib", "MiB of memory then"),
    Line("store", "drain_per_s", "messages consumed from the disk per second", is_rate=True),
    Line("store", "drain_cpu_us_per_message", "µs of the broker for each of them"),
    Line("store", "drain_client_cpu_us_per_message", "µs of the consumer for each of them"),
    Line("store", "drained_disk_mib", "MiB on the disk when all are consumed"),
    Line("store", "thinned_disk_bytes_per_message", "bytes for each that is left, of ten one"),
    Line("store", "emptied_disk_mib", "MiB on the disk when these are consumed, too"),
]


def lines_of(measurement: str) -> list[Line]:
    """Return the lines of the table for `measurement`, which is `store` or that of another type of queue."""
    return [replace(line, measurement=measurement) for line in LINES]


def measure_store(broker: Broker, count: int, queue_type: str = "") -> Result:
    """Fill, kill, start and drain a queue; fill it again, and acknowledge nine of ten adjacent messages.

    `queue_type` is the `x-queue-type` of the queue; empty: it is declared without.
    """
    result = Result("store", {"messages": count, "size": SIZE})
    figures = result.figures
    print_setup("starting again")
    declare(parse_uri(broker.uri), QUEUE, queue_type)
    figures["start_s"] = start_again(broker, 0)
    print_setup(f"publishing {count:,} messages")
    add_costs(figures, "fill", count, publish(broker, QUEUE, count, SIZE))
    figures["waiting_disk_bytes_per_message"] = steady_disk_bytes(broker) / count
    figures["waiting_memory_mib"] = settled_memory(observer(broker)) / MEBIBYTE
    print_setup("starting again")
    figures["recovery_s"] = start_again(broker, count)
    figures["recovered_memory_mib"] = settled_memory(observer(broker)) / MEBIBYTE
    print_setup("consuming")
    add_costs(figures, "drain", count, drain(broker, QUEUE, count))
    await_waiting(broker, QUEUE, 0)
    figures["drained_disk_mib"] = steady_disk_bytes(broker) / MEBIBYTE

    print_setup("acknowledging nine of ten")
    thinned = min(count, THINNED_MAX)
    publish(broker, QUEUE, thinned, SIZE)
    left = thin_out(parse_uri(broker.uri), QUEUE, thinned)
    await_waiting(broker, QUEUE, left)
    figures["thinned_disk_bytes_per_message"] = steady_disk_bytes(broker) / left
    drain(broker, QUEUE, left)
    await_waiting(broker, QUEUE, 0)
    figures["emptied_disk_mib"] = steady_disk_bytes(broker) / MEBIBYTE
    return result


def start_again(broker: Broker, count: int) -> float:
    """Kill the broker; returns the seconds from its start until it reports all messages as ready."""
    broker.kill()
    begin_s = time.monotonic()
    broker.start()
    await_waiting(broker, QUEUE, count, seconds_max=RECOVERY_S_MAX)
    return time.monotonic() - begin_s


def add_costs(figures: dict[str, float], name: str, count: int, span: Span) -> None:
    """Add the rate, and the costs for the broker and for this process."""
    figures[f"{name}_per_s"] = count / span.elapsed_s
    figures[f"{name}_cpu_us_per_message"] = span.broker_s / count * 1e6
    figures[f"{name}_client_cpu_us_per_message"] = span.client_s / count * 1e6
