"""Measures how long a publisher to a quorum queue of three nodes waits when the node of the leader is lost.

The publisher is connected to another node, and publishes a persistent message whenever the last one was
confirmed. The node of the leader is killed (SIGKILL), or stopped (SIGSTOP) for some seconds, which looks to
the others as if it were cut off: its connections stay, and say nothing. The gap is the longest wait for a
confirm. Afterwards the node starts again, or continues, and the next round takes another node. Clusters take
turns.
"""

import argparse
import contextlib
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from backlog import opened
from brokers import Broker, has_rabbitmq, rabbitmq_cluster, warren_cluster
from table import table
from waiting_publisher import WaitingPublisher
from warren.cli.perf.publish_ring import CHANNEL
from warren.client.uri import parse_uri
from warren.wire.methods import QueueDeclare, QueueDeclareOk, QueueDelete, QueueDeleteOk

NODES = 3
BEFORE_S = 1.0  # of publishing until the node is lost
AFTER_S = 1.0  # of confirms until the gap is over
QUORUM = {"x-queue-type": "quorum"}


@contextlib.contextmanager
def _killed(broker: Broker, _: float) -> Iterator[None]:
    broker.kill()
    yield
    broker.start()
    broker.await_ready()


@contextlib.contextmanager
def _stopped(broker: Broker, seconds: float) -> Iterator[None]:
    begin_s, pid = time.monotonic(), broker.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
        # As long as it was to be, however soon the others went on.
        time.sleep(max(0.0, begin_s + seconds - time.monotonic()))
    finally:
        os.kill(pid, signal.SIGCONT)


Loss = Callable[[Broker, float], contextlib.AbstractContextManager[None]]
LOSSES: dict[str, Loss] = {"killed": _killed, "stopped": _stopped}


def main() -> None:
    """Measure the losses of all clusters in turns, and print the gaps."""
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose cluster is measured")
    parser.add_argument("--no-rabbitmq", action="store_true", help="measure Warren alone")
    parser.add_argument("--losses", nargs="*", choices=LOSSES, default=list(LOSSES), help="kinds of losses")
    parser.add_argument("--rounds", type=int, default=20, help="losses of each kind")
    parser.add_argument("--stopped-s", type=float, default=15.0, help="how long a node is stopped")
    chosen = parser.parse_args()
    with contextlib.ExitStack() as stack:
        clusters: dict[str, list[Broker]] = {
            "warren": stack.enter_context(warren_cluster(chosen.warren, NODES))
        }
        if has_rabbitmq() and not chosen.no_rabbitmq:
            clusters["rabbitmq"] = stack.enter_context(rabbitmq_cluster(NODES))
        versions = ", ".join(f"{name} {nodes[0].version}" for name, nodes in clusters.items())
        print(f"{versions}; three nodes each; the waits of {chosen.rounds} losses, in ms\n", flush=True)
        print(_measured(clusters, chosen), flush=True)


def _measured(clusters: Mapping[str, Sequence[Broker]], chosen: argparse.Namespace) -> str:
    lines = []
    for loss in chosen.losses:
        gaps: dict[str, list[float]] = {name: [] for name in clusters}
        refused = dict.fromkeys(clusters, 0)
        for number in range(chosen.rounds):
            for name, nodes in clusters.items():
                gap_ms, count = _gap_ms(nodes, number, LOSSES[loss], chosen.stopped_s)
                gaps[name].append(gap_ms)
                refused[name] += count
        for name, found in gaps.items():
            middle, worst = statistics.median(found), max(found)
            p99 = statistics.quantiles(found, n=100, method="inclusive")[98] if len(found) > 1 else worst
            lines.append(
                [loss, name, *(f"{ms:,.0f}" for ms in (min(found), middle, p99, worst)), f"{refused[name]}"]
            )
    heads = ["the leader's node is", "broker", "least", "median", "p99", "longest", "refused"]
    return table(heads, lines, words=2)


def _gap_ms(nodes: Sequence[Broker], number: int, loss: Loss, stopped_s: float) -> tuple[float, int]:
    """The longest wait (ms) while node `number` of the cluster, which leads, is lost; and the refusals."""
    lost, other = nodes[number % NODES], nodes[(number + 1) % NODES]
    queue = f"failover.{time.time_ns():x}"
    with contextlib.closing(opened(parse_uri(lost.uri))) as connection:
        # Its leader is on the node of the client that declares it.
        declare = QueueDeclare(queue=queue, durable=True, arguments=QUORUM)
        connection.call(CHANNEL, declare, QueueDeclareOk)
    publisher = WaitingPublisher(other, queue)
    try:
        publisher.await_confirms_for(BEFORE_S)
        with loss(lost, stopped_s):
            publisher.await_confirms_for(AFTER_S)
    finally:
        publisher.end()
    with contextlib.closing(opened(parse_uri(lost.uri))) as connection:
        # It serves again, and the next round needs it.
        connection.call(CHANNEL, QueueDeclare(queue=queue, passive=True), QueueDeclareOk)
    with contextlib.closing(opened(parse_uri(other.uri))) as connection:
        count = connection.call(CHANNEL, QueueDelete(queue=queue), QueueDeleteOk).message_count
    if count < publisher.confirmed_count:
        sys.exit(f"{publisher.confirmed_count} messages were confirmed, and {count} were in the queue")
    return publisher.take_waits().value_max / 1000, publisher.refused_count


if __name__ == "__main__":
    main()
