"""Flips bits in the log of a stopped broker with quorum queues, repeatedly on one directory.

After each start a queue has all that was confirmed and not acknowledged, or it is down and names file and
byte. Then `accept_loss` runs it again: at most the message of the record that is damaged is missing, and what
was acknowledged comes back once at most, marked as redelivered.
"""

import random
import re
from pathlib import Path

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess

QUEUES = ("first", "second")
QUORUM = {"x-queue-type": "quorum"}
PUBLISHED_MAX = 200
SIZES = (0, 20, 2_000)
# The head of a segment stands for all of it: it is left alone, so that what may be missing is known.
SEGMENT_HEAD_SIZE = 24
PLACE = re.compile(r"[0-9]+\.segment, byte [0-9]+: ")


class Rotting:
    """One data directory, and what clients were told of its queues."""

    def __init__(self, data: Path, chance: random.Random) -> None:
        self._data = data
        self._chance = chance
        self._number = 0
        # By queue: confirmed and not acknowledged, and acknowledged.
        self._due: dict[str, set[int]] = {queue: set() for queue in QUEUES}
        self._taken: dict[str, set[int]] = {queue: set() for queue in QUEUES}
        # How many queues were down, and how many messages were missing then.
        self.down = self.lost = 0

    def once(self) -> None:
        """Use the queues, flip a bit while the broker is stopped, and look; AssertionError if it is wrong."""
        broker = self._started()
        try:
            connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port))
            for queue in QUEUES:
                self._use(connection.channel(), queue)
            connection.close()
            assert broker.stop() == 0, "".join(broker.lines)
            self._flip()
            broker = self._started()
            for queue in QUEUES:
                self._check(broker, queue)
            assert broker.stop() == 0, "".join(broker.lines)
        finally:
            broker.process.kill()
            broker.process.communicate()

    def _started(self) -> BrokerProcess:
        broker = BrokerProcess(["--data-dir", str(self._data)], {})
        try:
            broker.wait_ready()
        except BaseException:
            broker.process.kill()
            raise
        return broker

    def _use(self, channel: BlockingChannel, queue: str) -> None:
        """Publish with confirms, and acknowledge some messages."""
        channel.queue_declare(queue, durable=True, arguments=QUORUM)
        channel.confirm_delivery()
        for _ in range(self._chance.randrange(1, PUBLISHED_MAX)):
            self._number += 1
            body = b"%d " % self._number + bytes(self._chance.choice(SIZES))
            channel.basic_publish("", queue, body, mandatory=True)
            self._due[queue].add(self._number)
        for _ in range(self._chance.randrange(len(self._due[queue]))):
            method, _, body = channel.basic_get(queue)
            assert method is not None
            channel.basic_ack(method.delivery_tag)
            self._take(queue, number_of(body))

    def _take(self, queue: str, number: int) -> None:
        self._due[queue].discard(number)
        self._taken[queue].add(number)

    def _flip(self) -> None:
        """Flip a bit of what was written to a segment."""
        path = self._chance.choice(sorted(self._data.glob("vhosts/*/*.segment")))
        data = bytearray(path.read_bytes())
        used = len(data.rstrip(b"\0"))
        if used > SEGMENT_HEAD_SIZE:
            data[self._chance.randrange(SEGMENT_HEAD_SIZE, used)] ^= 1 << self._chance.randrange(8)
            path.write_bytes(data)

    def _check(self, broker: BrokerProcess, queue: str) -> None:
        """Compare what is there, after the loss is accepted if the queue is down."""
        client, path = HttpClient(broker), f"/warren/queues/%2F/{queue}/recovery"
        report = client.get(path)
        is_down = report["state"] == "down"
        if is_down:
            self.down += 1
            assert PLACE.match(report["reason"]), f"'{queue}' names no file and byte: {report}"
            _check_refused(broker, queue, report["reason"])
            answer = client.ask(f"POST {path}", {"accept_loss": True})
            assert (answer.status, answer.value["state"]) == (200, "running"), answer
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port))
        channel = connection.channel()
        found: dict[int, bool] = {}
        while (got := channel.basic_get(queue))[0] is not None:
            method, _, body = got
            number = number_of(body)
            assert number not in found, f"{number} is in '{queue}' twice"
            found[number] = method.redelivered
            if number in self._taken[queue]:
                assert method.redelivered, f"{number} was acknowledged, and is in '{queue}' as a new message"
                channel.basic_ack(method.delivery_tag)
        # The rest returns to its place.
        connection.close()
        assert found.keys() <= self._due[queue] | self._taken[queue], f"'{queue}' has what nobody sent"
        lost = self._due[queue] - found.keys()
        assert len(lost) <= is_down, f"{len(lost)} messages are missing in '{queue}': {sorted(lost)[:3]}"
        self._due[queue] -= lost
        self.lost += len(lost)


def _check_refused(broker: BrokerProcess, queue: str, reason: str) -> None:
    """A get says why the queue is down."""
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port))
    answer = (0, "a message, or none")
    try:
        connection.channel().basic_get(queue)
    except ChannelClosedByBroker as error:
        answer = (error.reply_code, error.reply_text)
    finally:
        connection.close()
    # A reply text has at most 255 bytes.
    assert answer[0] == 404, f"'{queue}' is down, and answers a get: {answer}"
    assert reason[:60] in answer[1], f"'{queue}' does not say why it is down: {answer}"


def number_of(body: bytes) -> int:
    """The number of a message, with which its body begins."""
    return int(body.split(b" ", 1)[0])
