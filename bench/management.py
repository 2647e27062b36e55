"""Measures requests of the HTTP API and metrics with many queues, and the latency of a client meanwhile.

The client is a process of its own. It publishes a message to a queue and gets it back, every millisecond; its
longest wait, less its wait without requests, is the longest time that the broker's loop was blocked.
"""

import argparse
import base64
import http.client
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pika

from brokers import Broker, free_port, warren

AUTHORIZATION = {"authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
TIMEOUT_S = 300
INTERVAL_S = 0.001
LINE = "{:44} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}"
# Requests for a page of queues: sorted by each kind of column, filtered, and from the end.
PAGE = "/api/queues?page=1&page_size=100"
ASKED = (
    ("nothing much", "/api/whoami"),
    ("page", PAGE),
    ("page, last", "/api/queues?page={last}&page_size=100"),
    ("page by name, from the end", PAGE + "&sort=name&sort_reverse=true"),
    ("page by messages", PAGE + "&sort=messages&sort_reverse=true"),
    ("page by consumers", PAGE + "&sort=consumers"),
    ("page by memory", PAGE + "&sort=memory&sort_reverse=true"),
    ("page by rate", PAGE + "&sort=message_stats.publish_details.rate&sort_reverse=true"),
    ("page by policy", PAGE + "&sort=policy"),
    ("page by idle_since", PAGE + "&sort=idle_since"),
    ("page with a name", PAGE + "&name=q499&use_regex=false"),
    ("page with a pattern", PAGE + "&name=%5Eq4.*9%24&use_regex=true"),
    ("page of one virtual host", "/api/queues/%2F?page=1&page_size=100&sort=messages"),
    ("streams", "/api/warren/streams"),
    ("overview", "/api/overview"),
    ("all queues", "/api/queues"),
    ("all queues, two columns", "/api/queues?columns=name,messages"),
)
SCRAPED = (
    ("/metrics", "/metrics"),
    ("/metrics/per-object", "/metrics/per-object"),
    ("lengths by queue", "/metrics/detailed?family=queue_coarse_metrics"),
)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument("--queues", type=int, default=50_000)
    parser.add_argument("--streams", type=int, default=3, help="streams beside them")
    parser.add_argument("--runs", type=int, default=5, help="a figure is the median of so many")
    parser.add_argument("--only", default="", help="the lines that have this in their names")
    arguments = parser.parse_args()
    ports = free_port(), free_port()
    with warren(arguments.warren, http=ports) as broker:
        broker.await_ready()
        make(ports[0], arguments.queues, arguments.streams)
        made = f"{arguments.queues} queues and {arguments.streams} streams"
        print(f"Warren {broker.version}, {made}; ms, medians of {arguments.runs}")
        print(LINE.format("", "first", "median", "cpu", "MB", "waits", "worst"))
        with client(broker) as waits:
            last = -(-arguments.queues // 100)
            for place, asked in ((0, ASKED), (1, SCRAPED)):
                for name, path in asked:
                    if arguments.only in name:
                        at = ports[place], path.format(last=last)
                        measure(name, at, (broker, waits), arguments.runs)
        if arguments.only in "warren queues list":
            command(arguments.warren, ports[0])


def make(port: int, count: int, streams: int) -> None:
    """Declare `count` queues, some of which have messages, and empty streams."""
    queues = [
        {"name": f"q{at:05}", "vhost": "/", "durable": False, "auto_delete": False, "arguments": {}}
        for at in range(count)
    ]
    stream = {"durable": True, "auto_delete": False, "arguments": {"x-queue-type": "stream"}}
    queues += [{"name": f"s{at}", "vhost": "/", **stream} for at in range(streams)]
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as connection:
        ask(connection, "/api/definitions", json.dumps({"queues": queues}).encode())
        for at in range(0, count, max(1, count // 100)):
            message = {
                "routing_key": f"q{at:05}",
                "properties": {},
                "payload": "x",
                "payload_encoding": "string",
            }
            ask(connection, "/api/exchanges/%2F/amq.default/publish", json.dumps(message).encode())


def ask(connection: http.client.HTTPConnection, path: str, body: bytes | None = None) -> bytes:
    """Send a GET request, or a POST request with `body`, and return the response."""
    connection.request("GET" if body is None else "POST", path, body, AUTHORIZATION)
    response = connection.getresponse()
    content = response.read()
    if response.status >= 300:
        sys.exit(f"{path}: {response.status} {content[:200]!r}")
    return content


def measure(name: str, at: tuple[int, str], seen: tuple[Broker, Connection], runs: int) -> None:
    """Return a row: how long the response takes, how large it is, and how long the client waited."""
    port, path = at
    broker, waits = seen
    cpu: list[float] = []
    took: list[float] = []
    median_waits: list[float] = []
    worst_waits: list[float] = []
    size = 0
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as connection:
        connection.connect()
        for _ in range(runs):
            _waits(waits)
            start, used = time.perf_counter(), on_cpu(broker.pid)
            size = len(ask(connection, path))
            took.append(time.perf_counter() - start)
            cpu.append(on_cpu(broker.pid) - used)
            time.sleep(0.05)
            found = _waits(waits)
            median_waits.append(statistics.median(found))
            worst_waits.append(max(found))
    print(
        LINE.format(
            name,
            f"{took[0] * 1000:.1f}",
            f"{statistics.median(took) * 1000:.1f}",
            f"{statistics.median(cpu) * 1000:.1f}",
            f"{size / 1e6:.2f}",
            f"{statistics.median(median_waits) * 1000:.2f}",
            f"{statistics.median(worst_waits) * 1000:.1f}",
        ),
        flush=True,
    )


def _waits(connection: Connection) -> list[float]:
    """Return how long the client waited each time, since the last call."""
    connection.send(None)
    found: list[float] = connection.recv()
    return found


def on_cpu(pid: int) -> float:
    """Return the CPU time of the first thread of a process, which runs its loop, in seconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


@contextmanager
def client(broker: Broker) -> Iterator[Connection]:
    """Run a client in a process of its own, which sends its waits through the pipe."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_publish_and_get, args=(broker.port, there), daemon=True)
    process.start()
    try:
        _waits(here)
        time.sleep(0.5)
        yield here
    finally:
        process.terminate()
        process.join()


def _publish_and_get(port: int, pipe: Connection) -> None:
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, heartbeat=0))
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    waits: list[float] = []
    while True:
        start = time.perf_counter()
        channel.basic_publish("", queue, b"x")
        while channel.basic_get(queue, auto_ack=True)[0] is None:
            pass
        waits.append(time.perf_counter() - start)
        if pipe.poll():
            pipe.recv()
            pipe.send(waits)
            waits = []
        time.sleep(INTERVAL_S)


def command(executable: Path, port: int) -> None:
    """Measure the command `warren queues list`."""
    environment = os.environ | {"WARREN_URI": f"http://guest:guest@127.0.0.1:{port}"}
    for words in (("queues", "list", "-q"), ("queues", "list", "--json")):
        start = time.perf_counter()
        done = subprocess.run([str(executable), *words], env=environment, capture_output=True, check=True)
        took = time.perf_counter() - start
        name = " ".join(["warren", *words])
        print(
            LINE.format(name, "", f"{took * 1000:.0f}", "", f"{len(done.stdout) / 1e6:.2f}", "", ""),
            flush=True,
        )


if __name__ == "__main__":
    main()
