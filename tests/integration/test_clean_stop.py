"""A broker that is stopped by SIGTERM: what no client has got is not marked as delivered after the start."""

from pathlib import Path

import pika
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.federation import eventually
from tests.integration.stream_client import RawStreamClient
from tests.stream_delivery import decode_deliver

from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, OffsetType, ResponseCode
from warren.wire.streams.fields import Offset

QUEUES = {
    "classic": ({}, None),
    "quorum": ({"x-queue-type": "quorum"}, None),
    "with priorities": ({"x-queue-type": "quorum"}, 5),
}


def test_what_was_never_delivered_has_no_mark_after_a_clean_stop(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as started:
        held = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", started.port))
        channel = held.channel()
        channel.confirm_delivery()
        for name, (arguments, priority) in QUEUES.items():
            channel.queue_declare(name, durable=True, arguments=arguments)
            properties = pika.BasicProperties(delivery_mode=2, priority=priority)
            for body in (b"a", b"b", b"c"):
                channel.basic_publish("", name, body, properties)
            assert channel.basic_get(name)[2] == b"a"
        assert started.stop() == 0
    with broker("--data-dir", str(tmp_path)) as started:
        channel = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", started.port)).channel()
        for name in QUEUES:
            got = [channel.basic_get(name) for _ in range(3)]
            shown = [(body, method.redelivered) for method, _, body in got]
            assert shown == [(b"a", True), (b"b", False), (b"c", False)], name
            if name != "classic":
                counts = [properties.headers.get("x-delivery-count") for _, properties, _ in got]
                assert counts == [1, 0, 0]


def test_what_was_delivered_before_a_kill_keeps_its_mark_after_a_clean_stop(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as started:
        channel = opened(started)
        for name, (arguments, priority) in QUEUES.items():
            channel.queue_declare(name, durable=True, arguments=arguments)
            properties = pika.BasicProperties(delivery_mode=2, priority=priority)
            for body in (b"a", b"b"):
                channel.basic_publish("", name, body, properties)
            assert marks(channel, name, 2) == [(b"a", False), (b"b", False)]
        started.process.kill()
    with broker("--data-dir", str(tmp_path)) as started:
        channel = opened(started)
        for name in QUEUES:
            assert marks(channel, name, 1) == [(b"a", True)], name
        assert started.stop() == 0
    with broker("--data-dir", str(tmp_path)) as started:
        channel = opened(started)
        for name in QUEUES:
            assert marks(channel, name, 2) == [(b"a", True), (b"b", True)], name


def opened(running: BrokerProcess) -> BlockingChannel:
    """A channel on which publishes are confirmed."""
    channel = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", running.port)).channel()
    channel.confirm_delivery()
    return channel


def marks(channel: BlockingChannel, queue: str, count: int) -> list[tuple[bytes, bool]]:
    """The bodies of the first messages of `queue`, which stay unacknowledged, with their marks."""
    got = [channel.basic_get(queue) for _ in range(count)]
    return [(body, method.redelivered) for method, _, body in got]


def stored_offset(client: RawStreamClient) -> int | None:
    """The stored offset of the group `g`; None without one."""
    answer = client.ask(commands.QueryOffset("g", "s"))
    return int.from_bytes(answer[10:18], "big") if answer[8:10] == b"\0\x01" else None


class GroupMember(RawStreamClient):
    """One of the single active consumers `g` of the stream `s`; it begins behind the stored offset."""

    def __init__(self, running: BrokerProcess) -> None:
        super().__init__(running.ports["stream"])
        # One response or the request to be active comes first.
        self.say(commands.Create("s", {}).encode(1))
        self.hear()
        group = {"single-active-consumer": "true", "name": "g"}
        self.say(commands.Subscribe(1, "s", self.FIRST, 10, group).encode(1))
        self.hear()

    def take(self) -> int:
        """Become the active one; returns the number of the first message that is delivered."""
        asked = self.hear()
        assert asked[:2] == CommandKey.CONSUMER_UPDATE.to_bytes(2, "big")
        assert asked[-1] == 1
        stored = stored_offset(self)
        start = self.FIRST if stored is None else Offset(OffsetType.OFFSET, stored + 1)
        number = int.from_bytes(asked[4:8], "big")
        self.say(commands.ConsumerUpdateResponse(ResponseCode.OK, start).encode(number))
        return decode_deliver(self.hear()).messages[0][-1]

    def rest(self) -> bytes:
        """Everything that the broker sends until it closes the connection."""
        return self._file.read()


def test_the_next_of_single_active_consumers_of_a_stream_begins_where_the_stored_offset_says(
    tmp_path: Path,
) -> None:
    with broker("--data-dir", str(tmp_path)) as running:
        active, waiting = GroupMember(running), GroupMember(running)
        publisher = RawStreamClient(running.ports["stream"])
        publisher.ask(commands.DeclarePublisher(1, "", "s"))
        for number in range(8):
            publisher.publish(number)
            publisher.confirmed(1)
        assert active.take() == 0
        active.say(commands.StoreOffset("g", "s", 4).encode())
        assert eventually(lambda: stored_offset(publisher)) == 4
        assert running.stop() == 0
        # Nobody became the active one in the place of those that the stop has ended.
        assert CommandKey.CONSUMER_UPDATE.to_bytes(2, "big") not in waiting.rest()
    with broker("--data-dir", str(tmp_path)) as running:
        again = GroupMember(running)
        assert again.take() == 5
