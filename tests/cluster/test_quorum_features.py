"""Warren's own features on quorum queues with three replicas, while their leaders are killed."""

import contextlib
import threading
import time
from collections import Counter
from typing import Any, cast

import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests.cluster.counted import PERSISTENT, CountedPublisher, RejectingConsumer, drained, with_channel
from tests.cluster.warren_cluster import WarrenCluster
from tests.integration.api import Answer, HttpClient
from tests.integration.broker_process import BrokerProcess
from tests.integration.staging import StagedQuery, bodies
from tests.integration.test_rows import read
from tests.patience import patient

# Nobody is connected to the nodes that are killed: what clients do then is tested by others.
CLIENTS = "c"
QUORUM = {"x-queue-type": "quorum"}
SOURCE = {
    **QUORUM,
    "x-overflow": "reject-publish",
    "x-dead-letter-strategy": "at-least-once",
    "x-dead-letter-exchange": "",
    "x-dead-letter-routing-key": "dead",
}


class Features:
    """A cluster of which the nodes a and b lead one queue each, and what a client of the third one asks."""

    def __init__(self, cluster: WarrenCluster) -> None:
        self.cluster = cluster
        self.node = cast(BrokerProcess, cluster.nodes[CLIENTS])

    def declare(self, queue: str, leader: str, arguments: dict[str, Any] = QUORUM) -> None:
        """Declare a queue, which the node of the client that declares it leads first."""
        node = self.cluster.nodes[leader]
        with_channel(
            node.amqp, lambda channel: channel.queue_declare(queue, durable=True, arguments=arguments)
        )

    def publish(self, queue: str, count: int) -> list[str]:
        """Publish numbers, and wait for their confirms."""
        numbers = [f"{number:05}" for number in range(count)]

        def work(channel: BlockingChannel) -> None:
            channel.confirm_delivery()
            for number in numbers:
                channel.basic_publish("", queue, number.encode(), PERSISTENT)

        with_channel(self.cluster.nodes[CLIENTS].amqp, work)
        return numbers

    def drained(self, queue: str) -> list[str]:
        return [body.decode() for body in drained(self.cluster.nodes[CLIENTS].amqp, queue)]

    def replace_leader(self, queue: str) -> None:
        """Kill the node that leads a queue until another one does; that of the clients is stopped instead."""
        self.cluster.replace_leader(queue, CLIENTS)

    def ask(self, line: str, body: object = None) -> Answer:
        """The answer to a request, which is repeated while there is no leader to answer it."""
        end = time.monotonic() + patient(30)
        while True:
            with contextlib.closing(HttpClient(self.node)) as client:
                answer = client.ask(line, body)
            if answer.status < 500 or time.monotonic() > end:
                return answer
            time.sleep(0.1)

    def rows(self, path: str) -> list[str]:
        """The bodies of rows, which are asked for again while they are still read from the disk."""
        end = time.monotonic() + patient(30)
        while True:
            try:
                table = read(self.node, path)[0]
                return [body.decode() for body in table["body"].to_pylist()]
            except AssertionError as error:
                if "retry" not in str(error) or time.monotonic() > end:
                    raise
            time.sleep(0.1)


@pytest.fixture
def features(cluster: WarrenCluster) -> Features:
    return Features(cluster)


@pytest.mark.timeout(240)
def test_each_dead_letter_arrives_although_both_leaders_are_killed(features: Features) -> None:
    cluster = features.cluster
    features.declare("orders", "a", SOURCE)
    features.declare("dead", "b")
    rejecting = RejectingConsumer("r", [cluster.nodes[CLIENTS].amqp], "orders")
    publisher = CountedPublisher("p", [cluster.nodes[CLIENTS].amqp], ["orders"])
    rejecting.start()
    publisher.start()
    for queue in ("orders", "dead", "orders"):
        count = rejecting.received.total()
        cluster.wait(lambda count=count: rejecting.received.total() > count + 100, "more is rejected", 60)
        features.replace_leader(queue)
    publisher.end()
    confirmed = {body.decode() for body in publisher.confirmed["orders"]}
    arrived: Counter[str] = Counter()

    def is_complete() -> bool:
        arrived.update(features.drained("dead"))
        return arrived.keys() >= confirmed

    cluster.wait(is_complete, "all dead letters", 60)
    rejecting.end()
    assert not rejecting.failures
    assert features.drained("orders") == []
    # What was under way to the killed leaders comes again, and no more.
    assert sum(count - 1 for count in arrived.values()) <= 3 * 1_024


@pytest.mark.timeout(240)
def test_a_lease_outlives_the_leader_and_is_acknowledged_at_the_next_one(features: Features) -> None:
    features.declare("leased", "a")
    numbers = features.publish("leased", 300)
    path = "/warren/queues/%2F/leased/leases"
    kept = features.ask(f"POST {path}", {"key": "kept", "messages": 100}).value
    requeued = features.ask(f"POST {path}", {"key": "requeued", "messages": 50}).value
    features.replace_leader("leased")
    # The same key finds the same lease at the next leader.
    again = features.ask(f"POST {path}", {"key": "kept"})
    assert (again.status, again.value["lease"], again.value["messages"]) == (200, kept["lease"], 100)

    assert features.rows(f"/leases/{kept['lease']}/rows") == numbers[:100]
    assert features.rows(f"/leases/{requeued['lease']}/rows") == numbers[100:150]
    settle = "POST /warren/leases/{}/settle"
    assert features.ask(settle.format(kept["lease"]), {"outcome": "acknowledge"}).status == 200
    assert features.ask(settle.format(requeued["lease"]), {"outcome": "requeue"}).status == 200
    features.replace_leader("leased")
    assert features.drained("leased") == numbers[100:]


@pytest.mark.timeout(240)
def test_staged_batches_are_there_once_although_the_leader_is_killed(features: Features) -> None:
    features.declare("staged", "a")
    stopping = threading.Event()
    failures: list[BaseException] = []

    def kill() -> None:
        try:
            for _ in range(3):
                time.sleep(0.5)
                features.replace_leader("staged")
        except BaseException as error:
            failures.append(error)
        stopping.set()

    killing = threading.Thread(target=kill)
    killing.start()
    batch = 0
    expected: Counter[str] = Counter()
    while not stopping.is_set():
        texts = [[f"{batch} {partition} {row}" for row in range(40)] for partition in range(2)]
        _commit(features, batch, texts)
        expected.update(text for part in texts for text in part)
        batch += 1
    killing.join()
    assert not failures
    # A driver that has lost the answer commits again.
    _commit(features, batch - 1, texts)
    assert Counter(features.drained("staged")) == expected


def _commit(features: Features, batch: int, texts: list[list[str]]) -> None:
    """Stage and commit a batch, again and again until both are done, as a query of Spark does."""
    end = time.monotonic() + patient(60)
    while time.monotonic() < end:
        with contextlib.closing(HttpClient(features.node)) as client:
            query = StagedQuery(client, "q")
            staged = [
                query.stage(batch, partition, bodies([text.encode() for text in part], "staged")).status
                for partition, part in enumerate(texts)
            ]
            # 409: it is committed already.
            if set(staged) <= {200, 409} and query.commit(batch, *range(len(texts))).status == 200:
                return
        time.sleep(0.1)
    raise TimeoutError(f"batch {batch} is not committed")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("killed", ["dead", "orders"])
def test_a_redrive_loses_nothing_when_a_leader_is_killed(features: Features, killed: str) -> None:
    features.declare("orders", "a")
    features.declare("dead", "b")
    numbers = features.publish("dead", 2_000)
    path = "/warren/queues/%2F/dead/redrive"
    job = features.ask(f"POST {path}", {"queue": "orders", "rate": 500}).value

    def moved() -> int:
        return int(features.ask(f"GET /warren/jobs/{job['id']}").value.get("moved", 0))

    features.cluster.wait(lambda: moved() > 200, "some are redriven")
    features.replace_leader(killed)

    def is_empty() -> bool:
        answer = features.ask(f"POST {path}", {"queue": "orders"})
        assert answer.status in (201, 409), answer
        _, found = features.cluster.ask(CLIENTS, "GET", "/api/queues/%2F/dead")
        return bool(found["messages"] == 0)

    features.cluster.wait(is_empty, "all are redriven", 60)
    arrived = Counter(features.drained("orders"))
    assert arrived.keys() == {*numbers}
    # What was in flight when the leader was killed may have come twice.
    assert arrived.total() - len(arrived) <= 1_024


@pytest.mark.timeout(240)
def test_a_queue_is_peeked_at_any_node_while_a_leader_follows_another(features: Features) -> None:
    features.declare("seen", "a")
    numbers = features.publish("seen", 50)
    for leader_is_replaced in (False, True):
        if leader_is_replaced:
            features.replace_leader("seen")
        for node in features.cluster.nodes.values():
            table = read(cast(BrokerProcess, node), "/queues/%2F/seen/rows")[0]
            assert [body.decode() for body in table["body"].to_pylist()] == numbers
            with contextlib.closing(HttpClient(node)) as client:
                found = client.get("/warren/queues/%2F/seen/messages?match=body~00042")
            assert len(found["messages"]) == 1
    assert features.drained("seen") == numbers
