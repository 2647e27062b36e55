"""Three processes in one cluster whose nodes and network fail: what was confirmed is there in the end."""

import itertools
import time
from collections.abc import Callable, Sequence

import pytest
from tests.cluster.counted import CountedConsumer, CountedPublisher, drained, with_channel
from tests.cluster.warren_cluster import WarrenCluster

NODES = ("a", "b", "c")
# How many messages of each queue each publisher waits for.
CONFIRMS = 7


class Load:
    """A queue on each node, publishers at each node to all of them, and consumers at other nodes."""

    def __init__(self, cluster: WarrenCluster, queue_type: str = "classic") -> None:
        self.cluster = cluster
        ports = [node.amqp for node in cluster.nodes.values()]
        self.queues = [f"on.{name}" for name in cluster.nodes]
        arguments = {"x-queue-type": queue_type}
        for queue, port in zip(self.queues, ports, strict=True):
            with_channel(
                port,
                lambda channel, queue=queue: channel.queue_declare(queue, durable=True, arguments=arguments),
            )
        self.publishers = [
            CountedPublisher(f"p{at}", ports[at:] + ports[:at], self.queues) for at in range(len(ports))
        ]
        # The last queue is not consumed, so that its messages wait on the disk.
        self.consumers = [
            CountedConsumer(f"c{at}", ports[at + 1 :] + ports[: at + 1], queue)
            for at, queue in enumerate(self.queues[:-1])
        ]
        for client in (*self.publishers, *self.consumers):
            client.start()

    def run(self, seconds: float) -> None:
        time.sleep(seconds)

    def confirmed(self, queue: str) -> set[bytes]:
        return {body for publisher in self.publishers for body in publisher.confirmed[queue]}

    def wait_confirmed(
        self, seconds: float = 60, publishers: Sequence[CountedPublisher] | None = None
    ) -> None:
        """Wait until each publisher, or each of these, has got CONFIRMS more of each queue."""
        publishers = self.publishers if publishers is None else publishers
        before = [{queue: len(found) for queue, found in one.confirmed.items()} for one in publishers]
        self.cluster.wait(
            lambda: all(
                len(publisher.confirmed[queue]) >= count + CONFIRMS
                for publisher, counts in zip(publishers, before, strict=True)
                for queue, count in counts.items()
            ),
            "confirms of all queues for the publishers",
            seconds,
        )

    def check(self, *, lost_with: str = "") -> None:
        """End all clients; nothing confirmed is lost, and nothing comes twice without a mark."""
        for client in (*self.publishers, *self.consumers):
            client.end()
        port = next(iter(self.cluster.nodes.values())).amqp
        for at, queue in enumerate(self.queues):
            if queue == lost_with:
                continue
            left = drained(port, queue)
            found = set(left)
            # No publisher has repeated anything.
            assert len(left) == len(found), f"{len(left) - len(found)} messages are twice in {queue}"
            if at < len(self.consumers):
                found |= set(self.consumers[at].received)
                assert not self.consumers[at].unmarked
            confirmed = self.confirmed(queue)
            assert len(confirmed) >= CONFIRMS * len(self.publishers), self.publishers[0].failures
            assert not confirmed - found, f"{len(confirmed - found)} of {len(confirmed)} are lost in {queue}"


def killed(load: Load) -> None:
    for name in NODES:
        load.cluster.kill(name)
        load.run(1)
        load.cluster.start(name)
        load.run(1)


def stopped(load: Load) -> None:
    """A rolling restart."""
    for name in NODES:
        load.cluster.stop(name)
        load.cluster.start(name)
        load.wait_confirmed()


def killed_at_once(load: Load) -> None:
    for name in NODES:
        load.cluster.kill(name)
    for name in NODES:
        load.cluster.nodes[name].begin()
    for name in NODES:
        load.cluster.nodes[name].wait_ready()


def paused(seconds: float) -> Callable[[Load], None]:
    def pause(load: Load) -> None:
        for name in NODES[:2]:
            load.cluster.pause(name)
            load.run(seconds)
            load.cluster.resume(name)
            load.run(1)

    return pause


def cut(load: Load) -> None:
    """Each pair, then each node from both others."""
    for one, other in itertools.combinations(NODES, 2):
        load.cluster.cut(one, other)
        load.run(2)
        load.cluster.mend()
        load.wait_confirmed()
    for name in NODES:
        for other in NODES:
            if other != name:
                load.cluster.cut(name, other)
        load.run(7)
        load.cluster.mend()
        load.wait_confirmed()


def silenced(load: Load) -> None:
    """In one direction, then in both."""
    for one, other in itertools.permutations(NODES, 2):
        load.cluster.proxies.silence(one, other)
        load.run(3)
        load.cluster.mend()
    load.cluster.stall("a", "b")
    load.cluster.stall("a", "c")
    load.run(8)
    load.cluster.mend()


def blips(load: Load) -> None:
    """Short breaks that cost nothing: no publisher gets a nack."""
    for pair in list(itertools.combinations(NODES, 2)) * 5:
        load.cluster.proxies.reset(*pair)
        load.run(0.1)
    load.wait_confirmed()
    assert not any(publisher.nacked for publisher in load.publishers)


def slowed(load: Load) -> None:
    for one, other in itertools.permutations(NODES, 2):
        load.cluster.proxies.delay(one, other, 0.02)
    load.run(5)
    load.cluster.mend()


FAULTS = {
    "killed": killed, "stopped": stopped, "killed_at_once": killed_at_once, "cut": cut, "blips": blips,
    "paused_7_s": paused(7),
}  # fmt: skip
LONG_FAULTS = {
    "silenced": silenced, "slowed": slowed, "paused_1_s": paused(1), "paused_20_s": paused(20),
    "paused_60_s": paused(60),
}  # fmt: skip


EVERY_FAULT = [
    *(pytest.param(fault, id=name) for name, fault in FAULTS.items()),
    *(pytest.param(fault, id=name, marks=pytest.mark.long) for name, fault in LONG_FAULTS.items()),
]


# A fault of a minute, and as long for the cluster to be whole again.
@pytest.mark.timeout(240)
@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_what_was_confirmed_survives(cluster: WarrenCluster, fault: Callable[[Load], None]) -> None:
    check_survival(Load(cluster), fault)


def check_survival(load: Load, fault: Callable[[Load], None]) -> None:
    """Nothing confirmed is lost by `fault`, and clients go on behind it."""
    cluster = load.cluster
    load.wait_confirmed()
    fault(load)
    cluster.mend()
    cluster.wait(cluster.is_whole, "all nodes see one another", 60)
    load.wait_confirmed()
    load.check()


@pytest.mark.timeout(240)
def test_a_node_whose_directory_is_wiped_is_forgotten_and_joins_again(cluster: WarrenCluster) -> None:
    load = Load(cluster)
    load.wait_confirmed()
    replace_node(cluster)
    load.check(lost_with="on.c")


def replace_node(cluster: WarrenCluster) -> None:
    """Have node c lose everything, be forgotten, and join again."""
    cluster.kill("c")
    cluster.wipe("c")
    first, last = cluster.nodes["a"], cluster.nodes["c"]
    cluster.wait(lambda: not cluster.sees(first, last), "c is down")
    status, answer = cluster.ask("a", "DELETE", "/api/warren/cluster/members/c@localhost")
    assert status == 204, answer
    last.begin()
    last.wait_ready()
    cluster.join(last, first)
    cluster.wait(cluster.is_whole, "all nodes see one another", 60)
