"""Measures shovels and federation links that run inside brokers, with RabbitMQ's beside them.

Two brokers of a kind are started. Persistent messages of 1 KiB wait in a durable queue of the first, A, and a
link moves them to a durable queue of the second, B, each acknowledged when it is confirmed. Shovels run in A,
federation links in B. CPU time is that of both brokers from the first message at B to the last.
"""

import argparse
import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from backlog import await_waiting, declare, delete, drain, opened, publish, waiting
from brokers import OLDER_RABBITMQ, RABBITMQ, Broker, free_port, installed_rabbitmqs, rabbitmq, warren
from samples import NAMES, WARREN, Line, Samples, lines_table
from warren.blocking.http_client import HttpClient
from warren.blocking.http_target import HttpTarget
from warren.cli.perf.consumer import CHANNEL
from warren.cli.perf.declarations import names_for
from warren.cli.perf.load import Load
from warren.cli.perf.result import Result, traffic_result
from warren.cli.perf.traffic import run_traffic
from warren.cli.perf.usage import Usage, usage
from warren.cli.perf.worker_group import Observer
from warren.client.uri import parse_uri
from warren.wire.methods import (
    ExchangeDeclare,
    ExchangeDeclareOk,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
    QueuePurge,
    QueuePurgeOk,
)

SIZE = 1024
LARGE_SIZE, LARGE_COUNT = 1 << 20, 300
LARGER_PREFETCH = 5_000
MEBIBYTE = 1 << 20
POLL_S = 0.02
LINK_S_MAX = 120
STEP = 100  # messages that show that a link works; a backlog is a multiple of it
SOURCE, DESTINATION = "links-from", "links-to"
EXCHANGE, FEDERATED = "links-exchange", "links-federated"
PLUGINS = ("rabbitmq_management", "rabbitmq_shovel", "rabbitmq_federation")
# The API without the statistics, which would cost RabbitMQ CPU time for every message.
SETTINGS = "management_agent.disable_metrics_collector = true\nmanagement.tcp.ip = 127.0.0.1\n"
# The other client, whose latency is measured: alone, then while a shovel moves as much as it can.
PROBE_RATE, PROBE_S, PROBE_RUNS = 1_000, 2.0, 3
RATE_S = 5.0
PROBE = {"size": SIZE, "ack_every": 1, "prefetch": 1_000, "confirm_window": 100}
KINDS = {"transient": False, "persistent": True}
PROBED = ("delivery_p50_us", "delivery_p99_us", "confirm_p50_us", "confirm_p99_us")
RING = 20_000
SETTLE_S = 0.5
HEADERS: Mapping[str, object] = {
    "dest-add-forward-headers": True,
    "dest-publish-properties": {"delivery_mode": 2, "app_id": "shovel"},
}


@dataclass(frozen=True, slots=True)
class Node:
    """A broker, and a client of its HTTP API."""

    broker: Broker
    http: HttpClient

    def put(self, path: str, value: Mapping[str, object]) -> None:
        """Make or replace an object of the API."""
        self._request("PUT", path, json.dumps(value).encode())

    def delete(self, path: str) -> None:
        """Delete an object of the API."""
        self._request("DELETE", path, None)

    def usage(self) -> Usage:
        """Return its CPU time and memory."""
        return usage([self.broker.pid])

    def _request(self, method: str, path: str, body: bytes | None) -> None:
        with self.http.request(method, f"/api/{path}", body, {"content-type": "application/json"}) as answer:
            text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{self.broker.name}: {method} {path}: {answer.status} {text!r}")


@dataclass(frozen=True, slots=True)
class Pair:
    """The brokers at both ends of a link."""

    a: Node
    b: Node


Starter = Callable[[], AbstractContextManager[Pair]]


def starters(command: Path) -> dict[str, Starter]:
    """Return functions that start a pair of brokers: of each RabbitMQ here, and of Warren's `command`."""
    theirs = {name: partial(_pair, partial(_rabbitmq_with_links, name)) for name in installed_rabbitmqs()}
    # Links of Warren may log in as guest only where everybody may.
    ours = partial(warren, command, {"WARREN_LOOPBACK_USERS": "none"})
    return theirs | {WARREN: lambda: _pair(lambda http: ours(http=(http, 0)))}


def _rabbitmq_with_links(name: str, http: int) -> AbstractContextManager[Broker]:
    return rabbitmq(name=name, plugins=PLUGINS, settings=f"{SETTINGS}management.tcp.port = {http}\n")


@contextlib.contextmanager
def _pair(start: Callable[[int], AbstractContextManager[Broker]]) -> Iterator[Pair]:
    with contextlib.ExitStack() as stack:
        nodes = []
        for _ in range(2):
            port = free_port()
            broker = stack.enter_context(start(port))
            target = HttpTarget(host="127.0.0.1", port=port, is_tls=False, user="guest", password="guest")
            nodes.append(Node(broker, HttpClient(target, LINK_S_MAX)))
            _await_api(nodes[-1])
        yield Pair(*nodes)


def _await_api(node: Node) -> None:
    give_up_s = time.monotonic() + LINK_S_MAX
    while True:
        node.broker.check_runs()
        try:
            node.put("policies/%2f/ready", {"pattern": "^ready$", "definition": {"max-length": 1}})
            return
        except (OSError, SystemExit):
            if time.monotonic() > give_up_s:
                raise
            time.sleep(0.2)


# --- moving a backlog -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Shovel:
    """A shovel from A to B, which A runs."""

    is_local: bool = False
    prefetch: int | None = None
    size: int = SIZE
    count: int | None = None
    more: Mapping[str, object] | None = None

    def measure(self, pair: Pair, count: int) -> dict[str, float]:
        """Move a backlog."""
        count = self.count or count
        source = parse_uri(pair.a.broker.uri)
        declare(source, SOURCE)
        declare(parse_uri(pair.b.broker.uri), DESTINATION)
        publish(pair.a.broker, SOURCE, count, self.size)
        definition: dict[str, object] = {
            "src-uri": "amqp://" if self.is_local else pair.a.broker.uri,
            "src-queue": SOURCE,
            "dest-uri": pair.b.broker.uri,
            "dest-queue": DESTINATION,
        } | dict(self.more or {})
        if self.prefetch is not None:
            definition["src-prefetch-count"] = self.prefetch
        pair.a.put("parameters/shovel/%2f/bench", {"value": definition})
        figures = moved(pair, pair.a, DESTINATION, count)
        await_waiting(pair.a.broker, SOURCE, 0)
        pair.a.delete("parameters/shovel/%2f/bench")
        delete(parse_uri(pair.b.broker.uri), DESTINATION)
        delete(source, SOURCE)
        return figures


def moved(pair: Pair, runner: Node, queue: str, count: int) -> dict[str, float]:
    """Return what it costs to fill `queue` of B with `count` messages, from the first that arrives."""
    before = runner.usage().resident_bytes
    connection = opened(parse_uri(pair.b.broker.uri))
    begin_s, first, resident, pause_s = 0.0, 0, 0, POLL_S
    begin: list[Usage] = []
    give_up_s = time.monotonic() + LINK_S_MAX
    while True:
        passive = QueueDeclare(queue=queue, passive=True)
        found = connection.call(CHANNEL, passive, QueueDeclareOk).message_count
        now_s = time.monotonic()
        if found and not begin:
            begin_s, first = now_s, found
            begin = [pair.a.usage(), pair.b.usage()]
        elif found > first:
            # Half of the time that is left: a broker that is asked often has another client to serve.
            left_s = (count - found) * (now_s - begin_s) / (found - first)
            pause_s = min(max(left_s / 2, POLL_S), 1.0)
        resident = max(resident, runner.usage().resident_bytes)
        if found >= count:
            break
        if now_s > give_up_s:
            raise SystemExit(f"{runner.broker.name}: {found:,} of {count:,} messages in {LINK_S_MAX} s")
        time.sleep(pause_s)
    end = [pair.a.usage(), pair.b.usage()]
    connection.close()
    return _figures(count - first, now_s - begin_s, begin, end) | {
        "memory_mib": (resident - before) / MEBIBYTE
    }


def _figures(count: int, elapsed_s: float, begin: list[Usage], end: list[Usage]) -> dict[str, float]:
    a, b = [(after.cpu_s - before.cpu_s) / count * 1e6 for before, after in zip(begin, end, strict=True)]
    return {"per_s": count / elapsed_s, "cpu_us": a + b, "a_cpu_us": a, "b_cpu_us": b}


def federated_queue(pair: Pair, count: int) -> dict[str, float]:
    """Consume a backlog of A from a queue of B that is federated with it."""
    here, there = pair.b.broker, pair.a.broker
    _federate(pair, "queues")
    declare(parse_uri(there.uri), FEDERATED)
    declare(parse_uri(here.uri), FEDERATED)
    publish(there, FEDERATED, STEP, SIZE)
    drain(here, FEDERATED, STEP)
    publish(there, FEDERATED, count, SIZE)
    before, begin = pair.b.usage().resident_bytes, [pair.a.usage(), pair.b.usage()]
    span = drain(here, FEDERATED, count)
    end = [pair.a.usage(), pair.b.usage()]
    _unfederate(pair)
    delete(parse_uri(here.uri), FEDERATED)
    delete(parse_uri(there.uri), FEDERATED)
    grown = (end[1].resident_bytes - before) / MEBIBYTE
    return _figures(count, span.elapsed_s, begin, end) | {"memory_mib": grown}


def federated_exchange(pair: Pair, count: int) -> dict[str, float]:
    """Receive what was published to an exchange of A while the link to B's federated exchange was cut."""
    here, there = pair.b.broker, pair.a.broker
    for broker in (there, here):
        connection = opened(parse_uri(broker.uri))
        exchange = ExchangeDeclare(exchange=EXCHANGE, type="fanout", durable=True)
        connection.call(CHANNEL, exchange, ExchangeDeclareOk)
        connection.close()
    declare(parse_uri(here.uri), DESTINATION)
    connection = opened(parse_uri(here.uri))
    connection.call(CHANNEL, QueueBind(queue=DESTINATION, exchange=EXCHANGE), QueueBindOk)
    connection.close()
    _federate(pair, "exchanges")
    _await_federated(pair)
    # The queue of the link stays at A while nobody answers at the address of the upstream.
    _set_upstream(pair, f"amqp://127.0.0.1:{free_port()}")
    publish(there, DESTINATION, count, SIZE, exchange=EXCHANGE)
    _set_upstream(pair, there.uri)
    figures = moved(pair, pair.b, DESTINATION, count)
    _unfederate(pair)
    delete(parse_uri(here.uri), DESTINATION)
    return figures


def _federate(pair: Pair, what: str) -> None:
    _set_upstream(pair, pair.a.broker.uri)
    policy = {"pattern": "^links-", "definition": {"federation-upstream": "bench"}, "apply-to": what}
    pair.b.put("policies/%2f/bench", policy)


def _set_upstream(pair: Pair, uri: str) -> None:
    pair.b.put("parameters/federation-upstream/%2f/bench", {"value": {"uri": uri}})


def _unfederate(pair: Pair) -> None:
    pair.b.delete("policies/%2f/bench")
    pair.b.delete("parameters/federation-upstream/%2f/bench")


def _await_federated(pair: Pair) -> None:
    """Publish to the exchange of A until a message arrives at B; then empty the queue of B."""
    here = parse_uri(pair.b.broker.uri)
    give_up_s = time.monotonic() + LINK_S_MAX
    while not waiting(here, DESTINATION):
        if time.monotonic() > give_up_s:
            raise SystemExit(f"{pair.b.broker.name}: nothing was federated in {LINK_S_MAX} s")
        publish(pair.a.broker, DESTINATION, STEP, SIZE, exchange=EXCHANGE)
        time.sleep(SETTLE_S)
    connection = opened(here)
    connection.call(CHANNEL, QueuePurge(queue=DESTINATION), QueuePurgeOk)
    connection.close()


def shovel_at_rate(pair: Pair, _: int) -> dict[str, float]:
    """Measure a shovel whose messages come alone: published at A, moved, and consumed at B."""
    source, destination = parse_uri(pair.a.broker.uri), parse_uri(pair.b.broker.uri)
    load = Load(
        target=destination,
        publish_target=source,
        run=SOURCE,
        rate=PROBE_RATE,
        duration_s=RATE_S,
        is_persistent=True,
        **PROBE,
    )
    queue = names_for(load).queue(0)
    declare(source, queue)
    ends = {
        "src-uri": pair.a.broker.uri,
        "src-queue": queue,
        "dest-uri": pair.b.broker.uri,
        "dest-queue": queue,
    }
    pair.a.put("parameters/shovel/%2f/bench", {"value": ends})
    traffic = run_traffic(load, Observer([pair.a.broker.pid, pair.b.broker.pid]))
    pair.a.delete("parameters/shovel/%2f/bench")
    delete(source, queue)
    figures = traffic_result("shovel", {}, traffic).figures
    return {"cpu_us": figures["broker_cpu_us_per_message"], "delivery_p50_us": figures["delivery_p50_us"]}


# --- beside another client --------------------------------------------------------------------------


def neighbour(pair: Pair, _: int) -> dict[str, float]:
    """Measure the latency of a client of A, alone and while a shovel moves messages from a queue into itself.

    Both ends of the shovel are A, so that its broker does all that a shovel can demand of one.
    """
    broker = pair.a.broker
    alone = _probe(broker)
    declare(parse_uri(broker.uri), SOURCE)
    publish(broker, SOURCE, RING, SIZE)
    ends = {"src-uri": broker.uri, "src-queue": SOURCE, "dest-uri": broker.uri, "dest-queue": SOURCE}
    pair.a.put("parameters/shovel/%2f/bench", {"value": ends})
    time.sleep(SETTLE_S)
    beside = _probe(broker)
    pair.a.delete("parameters/shovel/%2f/bench")
    time.sleep(SETTLE_S)
    delete(parse_uri(broker.uri), SOURCE)
    figures: dict[str, float] = {}
    for name in alone:
        figures[f"alone_{name}"] = alone[name]
        figures[f"beside_{name}"] = beside[name]
        figures[f"grown_{name}"] = beside[name] / alone[name]
    return figures


def _probe(broker: Broker) -> dict[str, float]:
    """Return the latencies of transient and of persistent messages, medians of several runs."""
    medians: dict[str, float] = {}
    for kind, is_persistent in KINDS.items():
        load = Load(
            target=parse_uri(broker.uri),
            rate=PROBE_RATE,
            duration_s=PROBE_S,
            warmup_s=0.5,
            is_persistent=is_persistent,
            **PROBE,
        )
        runs = [
            traffic_result("probe", {}, run_traffic(load, Observer([]))).figures for _ in range(PROBE_RUNS)
        ]
        for name in PROBED:
            medians[f"{kind}_{name}"] = statistics.median(figures[name] for figures in runs)
    return medians


# --- the table --------------------------------------------------------------------------------------

Measure = Callable[[Pair, int], dict[str, float]]
MEASUREMENTS: dict[str, Measure] = {
    "shovel": Shovel().measure,
    "shovel, larger prefetch": Shovel(prefetch=LARGER_PREFETCH).measure,
    "shovel, local source": Shovel(is_local=True).measure,
    "shovel, headers": Shovel(more=HEADERS).measure,
    "shovel, 1000/s": shovel_at_rate,
    "federated queue": federated_queue,
    "federated exchange": federated_exchange,
    "shovel, 1 MiB": Shovel(size=LARGE_SIZE, count=LARGE_COUNT).measure,
    "shovel, neighbour": neighbour,
}


# RabbitMQ deletes the queue of a federated exchange whenever the link stops, so that none has a backlog.
NOT_MEASURED = {(RABBITMQ, "federated exchange"), (OLDER_RABBITMQ, "federated exchange")}


def _moving(name: str, text: str, rate: str = "", cpu_us: str = "") -> list[Line]:
    return [
        Line(name, "per_s", f"{text}: messages per second", rate, is_rate=True),
        Line(name, "cpu_us", "µs of both brokers for each", cpu_us),
        Line(name, "a_cpu_us", "of A, the source"),
        Line(name, "b_cpu_us", "of B, the destination"),
        Line(name, "memory_mib", "MiB more memory of the broker that runs the link"),
    ]


def _beside(kind: str, what: str) -> list[Line]:
    name = f"{kind}_{what}_p99_us"
    return [
        Line(
            "shovel, neighbour",
            f"alone_{name}",
            f"another client: µs from a {kind} publish to its {what}, p99",
        ),
        Line("shovel, neighbour", f"beside_{name}", "beside a shovel that moves as much as it can"),
        Line("shovel, neighbour", f"grown_{name}", "how many times that is", "<= 2"),
    ]


LINES = [
    *_moving("shovel", "shovel, amqp:// at both ends", ">= 100,000", "<= 5"),
    *_moving("shovel, larger prefetch", f"the same, prefetch {LARGER_PREFETCH:,}"),
    *_moving("shovel, local source", "the same, local source"),
    *_moving("shovel, headers", "the same, with headers and a property"),
    *_moving("federated queue", "federated queue, with its consumer"),
    *_moving("federated exchange", "federated exchange"),
    Line("shovel, 1000/s", "cpu_us", "shovel, 1000 messages per second: µs of both brokers for each"),
    Line("shovel, 1000/s", "delivery_p50_us", "µs from the publish at A to the delivery at B, p50"),
    Line("shovel, 1 MiB", "memory_mib", "MiB more memory of a broker whose shovel moves messages of 1 MiB"),
    *_beside("transient", "delivery"),
    *_beside("transient", "confirm"),
    *_beside("persistent", "delivery"),
    *_beside("persistent", "confirm"),
]


def measure_links(
    wanted: Mapping[str, Starter], names: Sequence[str], count: int, times: int
) -> tuple[dict[str, Samples], dict[str, str]]:
    """Return the figures of `names`, each measured with each pair of brokers in turn, and the versions."""
    found = {name: Samples() for name in names}
    versions: dict[str, str] = {}
    for number in range(times):
        for brand, starter in wanted.items():
            with starter() as pair:
                versions[brand] = pair.a.broker.version
                for name in names:
                    if (brand, name) in NOT_MEASURED:
                        continue
                    print(f"links: {name} {number + 1}/{times}: {brand}", file=sys.stderr, flush=True)
                    found[name].add(brand, Result(name, {}, MEASUREMENTS[name](pair, count)))
    return found, versions


def links_table(found: Mapping[str, Samples]) -> str:
    """Return the lines of what was measured."""
    return lines_table([line for line in LINES if line.measurement in found], found)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose brokers are measured")
    parser.add_argument("--only", choices=NAMES, help="only this broker")
    parser.add_argument("--links", nargs="*", choices=MEASUREMENTS, help="only these measurements")
    parser.add_argument("--messages", type=int, default=100_000, help="the backlog, a multiple of 100")
    parser.add_argument("--times", type=int, default=1, help="a figure is the median of so many")
    arguments = parser.parse_args()
    wanted = starters(arguments.warren)
    if arguments.only:
        wanted = {arguments.only: wanted[arguments.only]}
    names = arguments.links or list(MEASUREMENTS)
    found, versions = measure_links(wanted, names, arguments.messages, arguments.times)
    print(", ".join(f"{brand} {version}" for brand, version in versions.items()))
    print(links_table(found))


if __name__ == "__main__":
    main()
