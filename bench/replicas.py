"""Measures what replicas of quorum queues cost on three nodes of this machine.

Idle groups: the CPU time of each node with many quorum queues in which nothing is done. A backlog: the memory
of the node that leads, and of those that follow, with many waiting messages. A new replica: how long it takes
until it has all messages of a queue and votes, and what clients of another queue wait for confirms meanwhile.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from backlog import opened
from brokers import Broker, free_port, warren_cluster
from table import figure, table
from waiting_publisher import WaitingPublisher
from warren.blocking.http_client import HttpClient
from warren.blocking.http_target import HttpTarget
from warren.cli.perf.capacity import fill, settled_memory
from warren.cli.perf.publish_ring import CHANNEL, Content, PublishRing
from warren.cli.perf.usage import own_cpu_s
from warren.cli.perf.worker_group import Observer
from warren.client.uri import parse_uri
from warren.wire.methods import QueueDeclare, QueueDeclareOk

NODES = 3
# Groups fall asleep when they have had nothing to do for some seconds.
ASLEEP_S = 15.0
ALONE_S = 5.0  # of publishing before the new replica
POLL_S = 0.1
REPLICA_S_MAX = 600.0
HTTP_S_MAX = 60.0
MEGABYTE = 1_000_000
QUEUE, OTHER_QUEUE = "replicas", "replicas.other"


class Cluster:
    """The nodes, and the HTTP API of the first."""

    def __init__(self, nodes: Sequence[Broker], http: int) -> None:
        self.nodes = nodes
        target = HttpTarget(host="127.0.0.1", port=http, is_tls=False, user="guest", password="guest")
        self._client = HttpClient(target, HTTP_S_MAX)
        self.names = [row["name"] for row in self.ask("GET", "/api/nodes")]

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer to a request; ends the program if it is refused."""
        data = None if body is None else json.dumps(body).encode()
        with self._client.request(method, path, data) as response:
            answer = response.read()
            if response.status >= 300:
                sys.exit(f"{method} {path}: {response.status} {answer[:200]!r}")
            return json.loads(answer) if answer else None

    def memory_mb(self) -> list[float]:
        """The resident memory of each node when it has settled."""
        return [settled_memory(Observer([node.pid])) / MEGABYTE for node in self.nodes]


def main() -> None:
    """Measure, and print a table for each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose cluster is measured")
    parser.add_argument("--only", choices=PARTS, help="one of the parts")
    parser.add_argument("--groups", type=int, default=10_000, help="idle quorum queues")
    parser.add_argument("--idle-s", type=float, default=20.0, help="duration of the measurement without work")
    parser.add_argument("--waiting", type=int, default=1_000_000, help="messages of 16 bytes of the backlog")
    parser.add_argument(
        "--messages", type=int, default=1_000_000, help="messages of 1 KiB of the new replica"
    )
    chosen = parser.parse_args()
    for name, part in PARTS.items():
        if chosen.only in (None, name):
            http = free_port()
            with warren_cluster(chosen.warren, NODES, http=http) as nodes:
                print(part(Cluster(nodes, http), chosen), "\n", flush=True)


def _idle(cluster: Cluster, chosen: argparse.Namespace) -> str:
    begin_s = time.monotonic()
    for number, node in enumerate(cluster.nodes):
        with closing(opened(parse_uri(node.uri))) as connection:
            queues = range(number, chosen.groups, NODES)
            declares = [_quorum_queue(f"{QUEUE}.{queue}") for queue in queues]
            connection.call_many(CHANNEL, declares, QueueDeclareOk)
    declared_s = time.monotonic() - begin_s
    time.sleep(ASLEEP_S)
    before = [own_cpu_s(node.pid) for node in cluster.nodes]
    time.sleep(chosen.idle_s)
    used = [own_cpu_s(node.pid) - at for node, at in zip(cluster.nodes, before, strict=True)]
    heads = [f"{chosen.groups:,} idle groups", "seconds to declare", *_node_heads("% of a core, node")]
    return table(
        heads, [["", figure(declared_s), *(f"{used_s / chosen.idle_s * 100:.2f}" for used_s in used)]]
    )


def _backlog(cluster: Cluster, chosen: argparse.Namespace) -> str:
    empty = cluster.memory_mb()
    _fill(cluster.nodes[0], chosen.waiting, 16)
    grown = [full - at for full, at in zip(cluster.memory_mb(), empty, strict=True)]
    rows = [
        ["MB", *(figure(mb) for mb in grown)],
        ["bytes per message", *(figure(mb * MEGABYTE / chosen.waiting) for mb in grown)],
    ]
    return table([f"{chosen.waiting:,} waiting", "leader", "follower", "follower"], rows)


def _new_replica(cluster: Cluster, chosen: argparse.Namespace) -> str:
    leader, _, last = cluster.nodes
    with closing(opened(parse_uri(leader.uri))) as connection:
        connection.call(CHANNEL, _quorum_queue(OTHER_QUEUE), QueueDeclareOk)
    _fill(leader, chosen.messages, 1024, replicas=2)
    shown = cluster.ask("GET", f"/api/queues/%2F/{QUEUE}")
    added = next(name for name in cluster.names if name not in shown["members"])
    publisher = WaitingPublisher(last, OTHER_QUEUE)
    try:
        publisher.await_confirms_for(ALONE_S)
        alone = publisher.take_waits()
        begin_s = time.monotonic()
        cluster.ask("POST", f"/api/queues/quorum/%2F/{QUEUE}/replicas/add", {"node": added})
        while not _votes(cluster, added):
            if time.monotonic() - begin_s > REPLICA_S_MAX:
                sys.exit(f"the new replica does not vote after {REPLICA_S_MAX:g} s")
            time.sleep(POLL_S)
        elapsed_s = time.monotonic() - begin_s
        meanwhile = publisher.take_waits()
    finally:
        publisher.end()
    cells = [
        f"{waits.percentile(percent) / 1000:.1f}" for waits in (alone, meanwhile) for percent in (50, 99)
    ]
    heads = ["a new replica of", "seconds", "p50 before, ms", "p99", "p50 meanwhile, ms", "p99"]
    return table(heads, [[f"{chosen.messages:,} x 1 KiB", figure(elapsed_s), *cells]])


def _votes(cluster: Cluster, name: str) -> bool:
    rows = cluster.ask("GET", f"/api/queues/quorum/%2F/{QUEUE}/status")
    return any(row["Node Name"] == name and row["Membership"] == "voter" for row in rows)


def _fill(broker: Broker, count: int, size: int, replicas: int = NODES) -> None:
    """Declare a quorum queue whose leader is on `broker`, and publish persistent messages to it."""
    with closing(opened(parse_uri(broker.uri))) as connection:
        connection.call(CHANNEL, _quorum_queue(QUEUE, replicas), QueueDeclareOk)
        content = Content(body=bytes(size), is_persistent=True, frame_size_max=connection.frame_size_max)
        fill(connection, PublishRing([("", QUEUE)], content), count)


def _quorum_queue(name: str, replicas: int = NODES) -> QueueDeclare:
    arguments = {"x-queue-type": "quorum", "x-quorum-initial-group-size": replicas}
    return QueueDeclare(queue=name, durable=True, arguments=arguments)


def _node_heads(text: str) -> list[str]:
    return [f"{text} {number}" for number in range(NODES)]


PARTS: dict[str, Callable[[Cluster, argparse.Namespace], str]] = {
    "idle": _idle,
    "backlog": _backlog,
    "new-replica": _new_replica,
}

if __name__ == "__main__":
    main()
