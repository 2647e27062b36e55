"""Measures the codec in nanoseconds per call: tables, properties and methods; prints the build."""

import argparse
import json
import time
import timeit
from collections.abc import Callable

import warren.wire.table
from warren.wire.methods import BasicAck, BasicGet, QueueDeclare, decode_method
from warren.wire.properties import BasicProperties, PropertyScan
from warren.wire.table import check_table, decode_table, encode_table

SMALL_TABLE = {"x-message-ttl": 60_000, "x-dead-letter-exchange": "dead", "x-single-active-consumer": True}
LARGE_TABLE = {
    f"key-{number}": {"text": "value", "list": [number, 1.5, None, "x" * 20]} for number in range(50)
}
PERSISTENT = BasicProperties(delivery_mode=2).encode(16)
FULL = BasicProperties(
    content_type="application/json",
    headers={"tenant": "blue", "attempt": 3},
    delivery_mode=2,
    priority=4,
    correlation_id="0b1c1f1e-7a52-4f39-9a39-0d4c4a4f2b11",
    reply_to="amq.rabbitmq.reply-to",
    expiration="60000",
    message_id="3f0f2d6c",
    timestamp=1_700_000_000,
    type="order.created",
    user_id="guest",
    app_id="shop",
).encode(1024)


def cases() -> dict[str, Callable[[], object]]:
    """Return the measured calls, by name."""
    small, large = encode_table(SMALL_TABLE), encode_table(LARGE_TABLE)
    declare = QueueDeclare(queue="jobs", durable=True, arguments=SMALL_TABLE)
    data = {method.name: method.encode() for method in (declare, BasicAck(7), BasicGet(queue="jobs"))}
    properties = BasicProperties.decode(FULL)
    scan = PropertyScan().scan
    return {
        "scan, delivery mode only": lambda: scan(PERSISTENT, 12, len(PERSISTENT)),
        "scan, every property": lambda: scan(FULL, 12, len(FULL)),
        "properties decode, delivery mode only": lambda: BasicProperties.decode(PERSISTENT),
        "properties decode, every property": lambda: BasicProperties.decode(FULL),
        "properties encode, every property": lambda: properties.encode(1024),
        "table decode, 3 entries": lambda: decode_table(small, 4, len(small)),
        "table encode, 3 entries": lambda: encode_table(SMALL_TABLE),
        "table check, 3 entries": lambda: check_table(small, 4, len(small)),
        f"table decode, {len(large)} bytes": lambda: decode_table(large, 4, len(large)),
        f"table encode, {len(large)} bytes": lambda: encode_table(LARGE_TABLE),
        f"table check, {len(large)} bytes": lambda: check_table(large, 4, len(large)),
        "queue.declare decode": lambda: decode_method(data["queue.declare"]),
        "queue.declare encode": declare.encode,
        "basic.get decode": lambda: decode_method(data["basic.get"]),
        "basic.ack decode": lambda: decode_method(data["basic.ack"]),
    }


def nanoseconds(call: Callable[[], object], seconds: float) -> float:
    """Return the CPU time per call (ns), the minimum of ten runs that together take about `seconds`."""
    timer = timeit.Timer(call, timer=time.process_time)
    calls, elapsed = timer.autorange()
    calls = max(1, int(calls * seconds / 10 / elapsed))
    return min(timer.repeat(10, calls)) / calls * 1e9


def main() -> None:
    """Measure everything, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="per line")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    build = "interpreted" if warren.wire.table.__file__.endswith(".py") else "compiled"
    figures = {name: round(nanoseconds(call, options.seconds), 1) for name, call in cases().items()}
    if options.json:
        print(json.dumps({"build": build, "nanoseconds": figures}))
        return
    print(f"{build} build, nanoseconds per call")
    for name, figure in figures.items():
        print(f"{figure:12,.1f}  {name}")


if __name__ == "__main__":
    main()
