"""Measures the latency of one client, and the broker's memory, beside misbehaving clients.

A client publishes and consumes 1,000 messages a second; its latency is measured alone, then beside each
kind of misbehaviour. Bodies of 128 MiB and connection churn follow, which have figures of their own.
"""

import argparse
import sys
import time
from functools import partial

from brokers import Broker, free_port
from client_latency import HEADS, MEBIBYTE, SETTLE_S, chosen, line, parse_arguments, probe, resident_bytes
from misbehaving_clients import (
    Behaviour,
    declare_endlessly,
    fill_stream,
    misbehaving,
    publish_endlessly,
    read_rows_endlessly,
    reconnect_endlessly,
    send_octet_by_octet,
    stop_reading,
    trickle,
)
from table import figure, table
from warren.cli.perf.capacity import measure_churn
from warren.cli.perf.load import Load
from warren.cli.perf.result import Result, traffic_result
from warren.cli.perf.traffic import run_traffic
from warren.cli.perf.worker_group import Observer
from warren.client.uri import parse_uri

# The stream that is read as Arrow rows repeatedly: 100 MiB.
STREAM, STREAM_MESSAGES = "rows", 100_000
LARGE_BYTES = 128 << 20
LARGE_S = 6.0
BEHAVIOURS: dict[str, tuple[Behaviour, int, float]] = {  # what, processes, seconds to start them
    "an endless publisher": (publish_endlessly, 1, 1),
    "an endless declarer": (declare_endlessly, 1, 1),
    "a storm of reconnects": (reconnect_endlessly, 2, 1),
    "ten consumers that stop reading": (stop_reading, 1, 1),
    "a client that sends octet by octet": (send_octet_by_octet, 1, 1),
    "5,000 connections that trickle": (trickle, 1, 10),
}


def main() -> None:
    """Measure, and print tables."""
    arguments = parse_arguments(__doc__ or "", only="the lines that have this in their names, and no others")
    http = free_port()
    with chosen(arguments, http=http) as broker:
        print(f"{broker.name} {broker.version}\n")
        behaviours = dict(BEHAVIOURS)
        if not arguments.rabbitmq:
            fill_stream(parse_uri(broker.uri), STREAM, STREAM_MESSAGES)
            reader = partial(read_rows_endlessly, STREAM, http)
            behaviours["a reader of rows of Arrow"] = (reader, 1, 1)
            behaviours["four readers of rows"] = (reader, 4, 1)
        print(table(HEADS, latencies(broker, arguments, behaviours)))
        if arguments.only:
            return
        print()
        print(table(["what", "figure"], [large_bodies(broker), *churn(broker, arguments.duration)]))


def latencies(
    broker: Broker, arguments: argparse.Namespace, behaviours: dict[str, tuple[Behaviour, int, float]]
) -> list[list[str]]:
    """Return a row measured alone, and one beside each misbehaviour."""
    before = resident_bytes(broker)
    alone = probe(broker, arguments)
    rows = [line("nobody", alone, alone, before)]
    for text, (behaviour, count, settle_s) in behaviours.items():
        if arguments.only not in text:
            continue
        print(text, file=sys.stderr, flush=True)
        before = resident_bytes(broker)
        with misbehaving(behaviour, parse_uri(broker.uri), count=count):
            time.sleep(settle_s)
            beside = probe(broker, arguments)
        rows.append(line(text, beside, alone, before))
        time.sleep(SETTLE_S)
    return rows


def large_bodies(broker: Broker) -> list[str]:
    """Publish and consume messages of 128 MiB, one after the other."""
    load = Load(
        target=parse_uri(broker.uri),
        size=LARGE_BYTES,
        in_flight_max=1,
        duration_s=LARGE_S,
        warmup_s=1,
        processes=2,
    )
    before = resident_bytes(broker)
    figures = traffic_result("large", {}, run_traffic(load, Observer([broker.pid]))).figures
    grown = (figures["broker_resident_bytes"] - before) / MEBIBYTE
    rate = figures["consumed_per_s"] * LARGE_BYTES / MEBIBYTE
    return ["128 MiB messages", f"{rate:,.0f} MiB/s, broker {grown:,.0f} MiB more"]


def churn(broker: Broker, duration_s: float) -> list[list[str]]:
    """Open and close connections, and measure whether memory or objects remain."""
    observer = Observer([broker.pid])
    target = parse_uri(broker.uri)
    before = resident_bytes(broker)
    result: Result = measure_churn(target, processes=2, duration=duration_s, observer=observer)
    time.sleep(SETTLE_S)
    grown = resident_bytes(broker) - before
    figures = result.figures
    cpu = figures["broker_cpu_us_per_connection"]
    speed = f"{figures['connections_per_s']:,.0f}/s, {figure(cpu)} µs of the broker each"
    return [
        ["connection churn", speed],
        ["connection churn, time of one", f"p50 {figure(figures['connection_p50_us'])} µs"],
        ["connection churn, memory left", f"{grown / MEBIBYTE:.1f} MiB more"],
    ]


if __name__ == "__main__":
    main()
