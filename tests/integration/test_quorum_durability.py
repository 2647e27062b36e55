"""A quorum queue on one node, used by pika: what was confirmed is there after the broker was killed."""

import threading
import time
from pathlib import Path

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError
from tests.integration.broker_process import broker
from tests.integration.faults import Faults

QUORUM = {"x-queue-type": "quorum"}
KILLS = 8
# The number of confirmed messages after which the broker is killed, while others are on their way.
CONFIRMED = 50
# One message is taken and acknowledged for so many that are published.
PUBLISHED_PER_TAKEN = 3
# How long a sync takes.
SYNC_MS = 500


class Program:
    """A program that publishes numbers to a quorum queue, takes some of them, and is cut off by kills."""

    def __init__(self) -> None:
        self.published = 0
        self.confirmed: list[int] = []
        # What was received, with its redelivered flag, in order.
        self.received: list[tuple[int, bool]] = []

    def run(self, port: int, killing: threading.Thread) -> None:
        """Publish and take until the connection is lost; begin `killing` after CONFIRMED messages."""
        channel = _channel(port)
        enough = len(self.confirmed) + CONFIRMED
        try:
            while True:
                self.published += 1
                channel.basic_publish("", "orders", b"%d" % self.published, mandatory=True)
                self.confirmed.append(self.published)
                if not self.published % PUBLISHED_PER_TAKEN:
                    self.take(channel)
                if len(self.confirmed) == enough:
                    killing.start()
        except (AMQPError, OSError):
            killing.join()

    def take(self, channel: BlockingChannel) -> bool:
        """Take and acknowledge the first message; False if there is none."""
        method, _, body = channel.basic_get("orders")
        if method is None:
            return False
        self.received.append((int(body), method.redelivered))
        channel.basic_ack(method.delivery_tag)
        return True


def _channel(port: int) -> BlockingChannel:
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
    channel = connection.channel()
    channel.queue_declare("orders", durable=True, arguments=QUORUM)
    channel.confirm_delivery()
    return channel


def test_a_pika_program_with_a_quorum_queue_loses_nothing_when_the_broker_is_killed(tmp_path: Path) -> None:
    program = Program()
    for _ in range(KILLS):
        with broker("--data-dir", str(tmp_path)) as node:
            program.run(node.port, threading.Thread(target=node.process.kill))
    with broker("--data-dir", str(tmp_path)) as node:
        channel = _channel(node.port)
        taken = len(program.received)
        while program.take(channel):
            pass
        channel.connection.close()
    numbers = [number for number, _ in program.received]
    lost = {*program.confirmed} - {*numbers}
    again = [
        is_redelivered
        for at, (number, is_redelivered) in enumerate(program.received)
        if number in numbers[:at]
    ]
    print(
        f"{KILLS} kills: {program.published} published, {len(program.confirmed)} confirmed, "
        f"{taken} taken before the last start and {len(numbers) - taken} after it, {len(lost)} lost, "
        f"{len(again)} received again"
    )
    assert not lost
    # A message comes again only if its acknowledgement was on its way at a kill, and says so.
    assert all(again)
    assert len(again) <= KILLS
    # A message that was not confirmed may be there, and none is there twice or out of order.
    left = numbers[taken:]
    assert left == sorted({*left})


def test_a_message_is_confirmed_and_delivered_when_it_is_on_disk(tmp_path: Path, faults: Faults) -> None:
    with broker("--data-dir", str(tmp_path), **faults.environment) as node:
        channel, consuming = _channel(node.port), _channel(node.port)
        delivered: list[float] = []
        consuming.basic_consume("orders", lambda *_: delivered.append(time.monotonic()), auto_ack=True)
        faults.set(f"fdatasync delay {SYNC_MS} {tmp_path}/vhosts/")
        published = time.monotonic()
        channel.basic_publish("", "orders", b"message", mandatory=True)
        confirmed = time.monotonic()
        while not delivered:
            consuming.connection.process_data_events(time_limit=5)
        faults.set()
        assert min(confirmed, *delivered) >= published + SYNC_MS / 1_000
        channel.connection.close()
        consuming.connection.close()


def test_the_first_delivery_has_no_count_and_the_answer_to_a_get_has_one(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
        channel = connection.channel()
        channel.queue_declare("orders", durable=True, arguments=QUORUM)
        channel.confirm_delivery()
        for auto_ack in (True, False):
            consumed = channel.consume("orders", auto_ack=auto_ack)
            channel.basic_publish("", "orders", b"message")
            method, properties, _ = next(consumed)
            assert (method.redelivered, properties.headers) == (False, None)
            if not auto_ack:
                channel.basic_ack(method.delivery_tag)
            channel.cancel()
        channel.basic_publish("", "orders", b"message")
        method, properties, _ = channel.basic_get("orders")
        assert (method.redelivered, properties.headers) == (False, {"x-delivery-count": 0})
        connection.close()
