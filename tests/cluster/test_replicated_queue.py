"""Clients of a quorum queue at other nodes do not notice that its home is killed and starts again."""

import threading
import time
from collections import Counter

import pika
from tests.cluster.counted import drained, with_channel
from tests.cluster.warren_cluster import WarrenCluster

QUEUE = "jobs"
HOME, PUBLISHING, CONSUMING = "a", "b", "c"
KILLS = 2


class Publisher(threading.Thread):
    """Publishes one message after the other, each when the one before is confirmed."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self.confirmed: list[bytes] = []
        self.is_over = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self._port))
            channel = connection.channel()
            channel.confirm_delivery()
            while not self.is_over.is_set():
                body = b"%d" % len(self.confirmed)
                # Raises an error if it is refused, or returned.
                channel.basic_publish("", QUEUE, body, mandatory=True)
                self.confirmed.append(body)
            connection.close()
        except Exception as error:
            self.error = error


class Taker(threading.Thread):
    """Consumes and acknowledges."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self.received: Counter[bytes] = Counter()
        self.unmarked: Counter[bytes] = Counter()
        self.cancels = 0
        self.is_over = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self._port))
            channel = connection.channel()
            channel.basic_qos(prefetch_count=50)
            channel.add_on_cancel_callback(self._cancelled)
            for method, _, body in channel.consume(QUEUE, inactivity_timeout=0.1):
                if method is not None:
                    self.received[body] += 1
                    self.unmarked[body] += not method.redelivered
                    channel.basic_ack(method.delivery_tag)
                if self.is_over.is_set():
                    break
            connection.close()
        except Exception as error:
            self.error = error

    def _cancelled(self, _: object) -> None:
        self.cancels += 1


def test_no_client_of_another_node_notices_that_the_home_is_killed(cluster: WarrenCluster) -> None:
    nodes = cluster.nodes
    with_channel(
        nodes[HOME].amqp,
        lambda channel: channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum"}),
    )
    publisher, taker = Publisher(nodes[PUBLISHING].amqp), Taker(nodes[CONSUMING].amqp)
    publisher.start()
    taker.start()
    for _ in range(KILLS):
        _wait_for_more(cluster, publisher, taker)
        cluster.kill(HOME)
        time.sleep(0.3)
        cluster.start(HOME)
        _wait_for_more(cluster, publisher, taker)
    publisher.is_over.set()
    publisher.join(20)
    cluster.wait(lambda: taker.received.keys() >= set(publisher.confirmed), "all messages")
    taker.is_over.set()
    taker.join(20)
    assert (publisher.error, taker.error, taker.cancels) == (None, None, 0)
    assert drained(nodes[PUBLISHING].amqp, QUEUE) == []
    again = {body: count for body, count in taker.received.items() if count > 1}
    assert not again, f"acknowledged, and delivered again: {again}"


def _wait_for_more(cluster: WarrenCluster, publisher: Publisher, taker: Taker) -> None:
    """Wait until both have got something more."""
    confirmed, received = len(publisher.confirmed), taker.received.total()
    cluster.wait(
        lambda: (
            publisher.error is not None
            or taker.error is not None
            or (len(publisher.confirmed) > confirmed + 20 and taker.received.total() > received + 20)
        ),
        "confirms and deliveries",
        60,
    )
    assert (publisher.error, taker.error) == (None, None)
