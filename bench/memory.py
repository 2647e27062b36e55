"""Measures the memory of connections, queues and messages, and the rate of queue declarations."""

from dataclasses import dataclass

from brokers import Broker
from samples import Line
from warren.cli.perf.capacity import (
    BacklogLoad,
    measure_backlog,
    measure_connections,
    measure_declares,
    measure_queues,
)
from warren.cli.perf.result import Result
from warren.cli.perf.worker_group import Observer
from warren.client.uri import parse_uri

LINES = [
    Line("connections", "idle_kb_per_connection", "KB per connection, idle"),
    Line("connections", "with_channel_kb_per_connection", "KB per connection with a channel"),
    Line(
        "connections",
        "with_queue_and_consumer_kb_per_connection",
        "KB per connection with queue and consumer",
        "<= 20",
    ),
    Line("queues", "memory_bytes_per_queue", "bytes per queue", "<= 2048"),
    Line("backlog16", "memory_beside_body_bytes_per_message", "bytes per 16 B message, beside it", "<= 120"),
    Line("backlog1k", "memory_beside_body_bytes_per_message", "bytes per 1 KiB message, beside it", "<= 120"),
    Line("declares", "queues_per_s", "exclusive queue declares per second", ">= 5000", is_rate=True),
    Line("durable declares", "queues_per_s", "durable queue declares per second", ">= 1000", is_rate=True),
]
# Warren would page messages beyond 16 MiB out to the disk.
QUEUE_MEMORY_BYTES = 14_000_000
BESIDE_BYTES = 128
MEASUREMENTS = tuple(dict.fromkeys(line.measurement for line in LINES))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCounts:
    """The number of objects of each kind."""

    connections: int
    queues: int
    messages: int
    declaring_s: float


def measure(name: str, broker: Broker, crowd: ObjectCounts) -> Result:
    """Run one of MEASUREMENTS against a broker that was just started."""
    target, observer = parse_uri(broker.uri), Observer([broker.pid])
    match name:
        case "connections":
            return measure_connections(target, count=crowd.connections, observer=observer)
        case "queues":
            return measure_queues(target, count=crowd.queues, observer=observer)
        case "backlog16" | "backlog1k":
            size = 16 if name == "backlog16" else 1024
            count = min(crowd.messages, QUEUE_MEMORY_BYTES // (size + BESIDE_BYTES))
            return measure_backlog(target, BacklogLoad(count, size, is_persistent=False), observer)
        case _:
            durable = name == "durable declares"
            return measure_declares(target, durable=durable, duration=crowd.declaring_s, observer=observer)
