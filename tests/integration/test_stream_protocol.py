"""The stream protocol used by rstream and read back over AMQP, and what survives SIGKILL."""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pika
import pytest
from rstream import (
    AMQPMessage,
    CompressionType,
    Consumer,
    ConsumerOffsetSpecification,
    FilterConfiguration,
    OffsetSpecification,
    OffsetType,
    Producer,
    RouteType,
    SuperStreamConsumer,
    SuperStreamCreationOption,
    SuperStreamProducer,
    amqp_decoder,
)
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.stream_client import RawStreamClient
from tests.patience import patient
from tests.stream_delivery import decode_deliver

from warren.wire.streams import commands
from warren.wire.streams.frames import framed

WAIT_S = patient(20)
FIRST = ConsumerOffsetSpecification(OffsetType.FIRST)
LOGIN = {"username": "guest", "password": "guest"}


@pytest.fixture
def warren(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker("--data-dir", str(tmp_path)) as running:
        yield running


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run `scenario` with a time limit."""

    async def bounded() -> None:
        await asyncio.wait_for(scenario(), WAIT_S * 2)

    asyncio.run(bounded())


class Reading:
    """The messages that a consumer of rstream has received, and an event for when they are enough."""

    def __init__(self, count: int) -> None:
        self.got: list[tuple[int, AMQPMessage]] = []
        self._count = count
        self._is_enough = asyncio.Event()

    async def take(self, message: AMQPMessage, context: object) -> None:
        self.got.append((context.offset, message))  # type: ignore[attr-defined]
        if len(self.got) >= self._count:
            self._is_enough.set()

    async def enough(self) -> None:
        await asyncio.wait_for(self._is_enough.wait(), WAIT_S)


def test_rstream_publishes_and_consumes(warren: BrokerProcess) -> None:
    where = {"host": "127.0.0.1", "port": warren.ports["stream"], **LOGIN}

    async def scenario() -> None:
        async with Producer(**where) as producer:
            for _ in range(2):
                arguments = {"max-length-bytes": 10_000_000}
                await producer.create_stream("s", arguments=arguments, exists_ok=True)
            for number in range(50):
                sent = AMQPMessage(body=b"one %d" % number, application_properties={"number": number})
                await producer.send_wait("s", sent)
            await producer.send_batch("s", [AMQPMessage(body=b"many %d" % number) for number in range(50)])
            for kind in (CompressionType.No, CompressionType.Gzip):
                packed = [AMQPMessage(body=b"packed %d" % number) for number in range(25)]
                await producer.send_sub_entry("s", packed, compression_type=kind)
        consumer = Consumer(**where)
        await consumer.start()
        reading = Reading(150)
        await consumer.subscribe("s", reading.take, decoder=amqp_decoder, offset_specification=FIRST)
        await reading.enough()
        assert [offset for offset, _ in reading.got] == list(range(150))
        bodies = [bytes(message.body) for _, message in reading.got]
        assert bodies[:50] == [b"one %d" % number for number in range(50)]
        assert sorted(bodies[50:100]) == sorted(b"many %d" % number for number in range(50))
        assert bodies[100:] == [b"packed %d" % number for number in range(25)] * 2
        assert reading.got[7][1].application_properties == {b"number": 7}
        await consumer.store_offset("s", "reader", 120)
        assert await consumer.query_offset("s", "reader") == 120
        await consumer.close()

    run(scenario)


def test_a_message_larger_than_the_negotiated_frame_is_published_and_delivered(warren: BrokerProcess) -> None:
    where = {"host": "127.0.0.1", "port": warren.ports["stream"], **LOGIN}
    large = bytes(range(256)) * 8_192

    async def scenario() -> None:
        async with Producer(**where) as producer:
            await producer.create_stream("large")
            await producer.send_wait("large", AMQPMessage(body=large))
        consumer = Consumer(**where)
        await consumer.start()
        reading = Reading(1)
        await consumer.subscribe("large", reading.take, decoder=amqp_decoder, offset_specification=FIRST)
        await reading.enough()
        assert bytes(reading.got[0][1].body) == large
        await consumer.close()

    run(scenario)


def test_each_protocol_reads_messages_published_with_the_other(warren: BrokerProcess) -> None:
    where = {"host": "127.0.0.1", "port": warren.ports["stream"], **LOGIN}
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", warren.port))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
    properties = pika.BasicProperties(message_id="m", content_type="text/plain", headers={"n": 5})
    channel.basic_publish("", "s", b"from AMQP", properties)

    async def scenario() -> None:
        async with Producer(**where) as producer:
            sent = AMQPMessage(body=b"from rstream", application_properties={"n": "x"})
            await producer.send_wait("s", sent)
        consumer = Consumer(**where)
        await consumer.start()
        reading = Reading(2)
        await consumer.subscribe("s", reading.take, decoder=amqp_decoder, offset_specification=FIRST)
        await reading.enough()
        (_, first), (_, second) = reading.got
        assert (bytes(first.body), bytes(second.body)) == (b"from AMQP", b"from rstream")
        assert first.properties.message_id == b"m"
        assert first.message_annotations[b"x-routing-key"] == b"s"
        assert second.message_annotations is None
        await consumer.close()

    run(scenario)
    channel.basic_qos(prefetch_count=10)
    got: list[tuple[bytes, object]] = []
    for method, found, body in channel.consume("s", arguments={"x-stream-offset": "first"}):
        got.append((body, found.headers["n"]))
        channel.basic_ack(method.delivery_tag)
        if len(got) == 2:
            break
    assert got == [(b"from AMQP", 5), (b"from rstream", "x")]
    connection.close()


def test_a_filter_value_of_rstream_applies_to_consumers_over_amqp(warren: BrokerProcess) -> None:
    where = {"host": "127.0.0.1", "port": warren.ports["stream"], **LOGIN}

    async def region(message: AMQPMessage) -> str:
        return str(message.application_properties["region"])

    async def scenario() -> None:
        async with Producer(**where, filter_value_extractor=region) as producer:
            await producer.create_stream("s")
            for number in range(6):
                properties = {"region": ("eu", "us", "apac")[number % 3]}
                sent = AMQPMessage(body=b"%d" % number, application_properties=properties)
                await producer.send_wait("s", sent)

    run(scenario)
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", warren.port)) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=10)
        wanted = {"x-stream-offset": "first", "x-stream-filter": ["eu", "apac"]}
        got: list[bytes] = []
        for method, _, body in channel.consume("s", arguments=wanted):
            got.append(body)
            channel.basic_ack(method.delivery_tag)
            if len(got) == 4:
                break
        assert got == [b"0", b"2", b"3", b"5"]


def test_rstream_receives_the_messages_of_its_filter(warren: BrokerProcess) -> None:
    where = {"host": "127.0.0.1", "port": warren.ports["stream"], **LOGIN}
    seen: list[bytes] = []

    async def region(message: AMQPMessage) -> str | None:
        return str(message.application_properties["region"])

    def looks_again(message: AMQPMessage) -> bool:
        seen.append(bytes(message.body))
        return message.application_properties[b"region"] == b"eu"

    async def scenario() -> None:
        async with Producer(**where, filter_value_extractor=region) as producer:
            await producer.create_stream("s")
            for number in range(30):
                properties = {"region": ("eu", "us", "apac")[number // 10]}
                sent = AMQPMessage(body=b"%d" % number, application_properties=properties)
                await producer.send_wait("s", sent)
        async with Producer(**where) as producer:
            await producer.send_wait(
                "s", AMQPMessage(body=b"no value", application_properties={"region": ""})
            )
        for wanted, unfiltered, count in (
            (["us"], False, 10),
            (["apac", "eu"], False, 20),
            (["none"], True, 1),
        ):
            seen.clear()
            consumer = Consumer(**where)
            await consumer.start()
            reading = Reading(count)
            await consumer.subscribe(
                "s",
                reading.take,
                decoder=amqp_decoder,
                offset_specification=FIRST,
                filter_input=FilterConfiguration(values_to_filter=wanted, match_unfiltered=unfiltered),
            )
            await reading.enough()
            # Each was sent after the confirm of the previous one, so that each chunk has one message.
            regions = {message.application_properties[b"region"].decode() for _, message in reading.got}
            assert (len(reading.got), regions) == (count, {""} if unfiltered else set(wanted))
            await consumer.close()
        consumer = Consumer(**where)
        await consumer.start()
        reading = Reading(10)
        configuration = FilterConfiguration(values_to_filter=["eu"], predicate=looks_again)
        await consumer.subscribe(
            "s", reading.take, decoder=amqp_decoder, offset_specification=FIRST, filter_input=configuration
        )
        await reading.enough()
        assert seen == [b"%d" % number for number in range(10)]
        await consumer.close()

    run(scenario)


def test_a_filter_applies_after_a_restart(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as running:
        raw = RawStreamClient(running.ports["stream"])
        raw.ask(commands.Create("s", {}))
        raw.ask(commands.DeclarePublisher(1, "", "s"))
        for number, value in enumerate((b"eu", b"us", None, b"eu")):
            text = b"\xff\xff" if value is None else len(value).to_bytes(2, "big") + value
            entry = number.to_bytes(8, "big") + text + b"\0\0\0\x06" + b"\0Su\xa0\x01%c" % number
            raw.say(framed(b"\0\2\0\2\1\0\0\0\1" + entry))
            raw.confirmed(1)
        raw.close()
    with broker("--data-dir", str(tmp_path)) as running:
        raw = RawStreamClient(running.ports["stream"])
        received = raw.ask(commands.Subscribe(9, "s", RawStreamClient.FIRST, 2, {"filter.0": "eu"}))
        assert received == bytes.fromhex("8007 0001 00000001 0001")
        for offset in (0, 3):
            chunk = raw.hear()
            # Deliver, version 1, the subscription; then the chunk with its offset, and one entry after it.
            assert chunk[:5] == bytes.fromhex("0008 0001 09")
            assert decode_deliver(chunk).first == offset
            assert chunk.endswith(b"\0\0\0\x06\0Su\xa0\x01%c" % offset)
        # Both credits are used, none for skipped chunks: the next frame is a response.
        assert raw.ask(commands.QueryOffset("none", "s"))[:4] == bytes.fromhex("800b 0001")
        raw.close()


def test_a_super_stream_is_read_by_single_active_consumers(warren: BrokerProcess) -> None:
    where = {"host": "127.0.0.1", "port": warren.ports["stream"], **LOGIN}

    async def key(message: AMQPMessage) -> str:
        return str(message.application_properties["id"])

    async def begin(is_active: bool, context: object) -> OffsetSpecification:
        return OffsetSpecification(OffsetType.FIRST, 0)

    async def scenario() -> None:
        made = SuperStreamCreationOption(n_partitions=3)
        async with SuperStreamProducer(
            **where,
            super_stream="orders",
            super_stream_creation_option=made,
            routing=RouteType.Hash,
            routing_extractor=key,
        ) as producer:
            for number in range(60):
                sent = AMQPMessage(body=b"%d" % number, application_properties={"id": str(number)})
                await producer.send(sent)
        consumer = SuperStreamConsumer(**where, super_stream="orders")
        await consumer.start()
        reading = Reading(60)
        await consumer.subscribe(
            callback=reading.take,
            decoder=amqp_decoder,
            offset_specification=FIRST,
            properties={"single-active-consumer": "true", "name": "group", "super-stream": "orders"},
            consumer_update_listener=begin,
        )
        await reading.enough()
        assert sorted(int(bytes(message.body)) for _, message in reading.got) == list(range(60))
        await consumer.close()

    run(scenario)


def killed(running: BrokerProcess) -> None:
    running.process.send_signal(signal.SIGKILL)
    running.process.wait(WAIT_S)


def test_confirmed_messages_survive_and_repeated_publishes_are_stored_once(tmp_path: Path) -> None:
    """SIGKILL between publish and confirm, repeatedly: the client sends everything again each time."""
    confirmed: set[int] = set()
    sequences = range(1, 401)
    for _ in range(4):
        with broker("--data-dir", str(tmp_path)) as running:
            client = RawStreamClient(running.ports["stream"])
            client.ask(commands.Create("s", {}))
            client.ask(commands.DeclarePublisher(1, "producer", "s"))
            known = client.ask(commands.QueryPublisherSequence("producer", "s"))
            assert int.from_bytes(known[-8:], "big") >= max(confirmed, default=0)
            for sequence in sequences:
                client.publish(sequence)
            # Some are durable by then, and the others may be in flight.
            confirmed |= client.confirmed(len(confirmed) // 2 + 50)
            client.close()
            killed(running)
    with broker("--data-dir", str(tmp_path)) as running:
        client = RawStreamClient(running.ports["stream"])
        client.ask(commands.DeclarePublisher(1, "producer", "s"))
        client.publish(*sequences)
        assert client.confirmed(400) == set(sequences)
        found = client.messages(400)
        assert found == [b"\0Su\xa0\x01%c" % (number % 256) for number in sequences]
        client.close()


def test_a_stored_offset_survives_a_restart(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as running:
        client = RawStreamClient(running.ports["stream"])
        client.ask(commands.Create("s", {}))
        client.say(commands.StoreOffset("reader", "s", 77).encode())
        client.ask(commands.QueryOffset("reader", "s"))
        client.close()
        assert running.stop() == 0
    with broker("--data-dir", str(tmp_path)) as running:
        client = RawStreamClient(running.ports["stream"])
        assert int.from_bytes(client.ask(commands.QueryOffset("reader", "s"))[-8:], "big") == 77
        client.close()


def test_without_a_data_directory_streams_are_in_memory() -> None:
    with broker() as running:
        client = RawStreamClient(running.ports["stream"])
        assert client.ask(commands.Create("s", {}))[-2:] == b"\0\x01"
        client.close()
        assert running.stop() == 0


def test_a_stream_port_in_use_does_not_prevent_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with broker("--stream-port", str(port), "--host", "127.0.0.1") as running:
            assert "stream" not in running.ports
