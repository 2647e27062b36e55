"""Reading resumes when its reason to pause ends, whatever else waits."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import product
from typing import Any, cast

import pytest
from tests.unit.session.client import Broker, Client, call, publication
from tests.unit.session.streams.client import Node, StreamClient, data

from warren import limits
from warren.session import throttle
from warren.session.base_connection import BaseConnection
from warren.transport.protocol import AmqpProtocol, ConnectionRegistry, LoopContext
from warren.wire import methods
from warren.wire.streams import commands
from warren.wire.streams.codes import ResponseCode
from warren.wire.streams.frames import framed
from warren.wire.streams.publish import Publication, encode_publish

HELD = ("nothing behind", "a frame behind")
OUTPUT = ("it reads", "it does not read")


class Socket(asyncio.Transport):
    """A transport that records how the loop would use a socket."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def write(self, data: object) -> None:
        pass

    def writelines(self, list_of_data: object) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


class Entry(ConnectionRegistry):
    """An admission that accepts one prepared connection."""

    def __init__(self, connection: BaseConnection) -> None:
        self.connection = connection

    def admit(self, protocol: AmqpProtocol, transport: asyncio.Transport) -> BaseConnection:
        return self.connection

    def opened(self, protocol: AmqpProtocol) -> None:
        pass

    def connection_closed(self, protocol: AmqpProtocol) -> None:
        pass


class Read:
    """A connection on a socket, as in the event loop."""

    def __init__(self, broker: Broker, client: Client | StreamClient) -> None:
        self.broker = broker
        self.socket = Socket()
        connection = cast(BaseConnection, client.connection)
        loop_context = LoopContext(asyncio.get_running_loop(), broker.clock.turn)
        self.protocol = AmqpProtocol(Entry(connection), loop_context)
        self.protocol.connection_made(self.socket)
        # A connection with output wakes this socket.
        client.output_listener.output_ready = self.protocol.output_ready  # type: ignore[method-assign]
        client.output_listener.output_full = self.protocol.output_full  # type: ignore[method-assign]

    def say(self, data: bytes) -> None:
        """Receive the data, in as many reads as it needs."""
        while data:
            buffer = self.protocol.get_buffer(0)
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            data = data[size:]
            self.protocol.buffer_updated(size)

    async def settle(self) -> None:
        """Run all requested turns."""
        for _ in range(20):
            while self.broker.turns:
                self.broker.turn()
            await asyncio.sleep(0)


def published(*sequences: int) -> bytes:
    """One frame with a message for each."""
    return framed(encode_publish(Publication(1, [(each, data(b"x")) for each in sequences])))


def drive(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def alarm(node: Node) -> Callable[[], None]:
    node.block("memory")
    return lambda: node.block("")


def disk(node: Node) -> Callable[[], None]:
    node.services.credit.spend()
    return node.services.credit.renew


def confirms(node: Node) -> Callable[[], None]:
    return node.write


def deletion(node: Node) -> Callable[[], None]:
    """No confirm arrives, and no publish follows."""
    other = StreamClient(node)
    other.open()
    return lambda: (other.ask(commands.Delete("s")), None)[1]


def answer(node: Node) -> Callable[[], None]:
    node.proposals.is_slow = True
    return node.proposals.arrive


@pytest.mark.parametrize(
    ("reason", "held", "output"), list(product((alarm, disk, confirms, deletion, answer), HELD, OUTPUT))
)
def test_reading_of_a_stream_client_resumes(
    reason: Callable[[Node], Callable[[], None]], held: str, output: str
) -> None:
    async def work() -> None:
        node = Node()
        client = node.stream()
        if reason in (confirms, deletion):
            assert client.connection.command_handler is not None
            client.connection.command_handler.publishers.limit(3, 0)
        client.ask(commands.DeclarePublisher(1, "", "s"))
        read = Read(node, client)
        if output == "it does not read":
            read.protocol.pause_writing()
        end = reason(node)
        data = published(1, 2, 3, 4)
        if reason is answer:
            data = commands.Create("t", {}).encode(1)
        if held == "a frame behind":
            data += published(5)
        read.say(data)
        await read.settle()
        assert not read.socket.is_read
        end()
        await read.settle()
        node.write()
        await read.settle()
        assert read.socket.is_read
        assert not client.connection.has_more

    drive(work())


@pytest.mark.parametrize("output", OUTPUT)
def test_a_stream_client_closed_while_paused_may_still_acknowledge_the_close(output: str) -> None:
    async def work() -> None:
        node = Node()
        client = node.stream()
        client.ask(commands.DeclarePublisher(1, "", "s"))
        read = Read(node, client)
        node.block("memory")
        if output == "it does not read":
            read.protocol.pause_writing()
        read.say(published(1))
        await read.settle()
        assert not read.socket.is_read
        client.connection.close(ResponseCode.AUTHENTICATION_FAILURE, "the token has expired")
        await read.settle()
        assert read.socket.is_read

    drive(work())


def amqp_alarm(broker: Broker) -> Callable[[], None]:
    broker.block("memory")
    return lambda: broker.block("")


def amqp_disk(broker: Broker) -> Callable[[], None]:
    broker.services.credit.spend()
    return broker.services.credit.renew


def amqp_answer(broker: Broker) -> Callable[[], None]:
    broker.proposals.is_slow = True
    return broker.proposals.arrive


@pytest.mark.parametrize(("reason", "output"), list(product((amqp_alarm, amqp_disk, amqp_answer), OUTPUT)))
def test_reading_of_an_amqp_client_resumes(
    reason: Callable[[Broker], Callable[[], None]], output: str
) -> None:
    async def work() -> None:
        broker = Broker()
        client = broker.client()
        client.ask(methods.QueueDeclare(queue="q"))
        read = Read(broker, client)
        if output == "it does not read":
            read.protocol.pause_writing()
        end = reason(broker)
        body = b"x" * (client.connection.outbox.frame_size_max - 8)
        if reason is amqp_answer:
            read.say(call(methods.QueueDeclare(queue="slow", durable=True)))
        for _ in range(limits.HELD_FRAMES_SIZE_MAX // len(body) + 1):
            read.say(publication("nowhere", body))
        await read.settle()
        assert not read.socket.is_read
        end()
        await read.settle()
        assert read.socket.is_read
        assert client.connection.throttle.held_size == 0

    drive(work())


@pytest.mark.parametrize("output", OUTPUT)
def test_reading_resumes_when_another_client_holds_less(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its acknowledgements may be what would end the alarm."""
    monkeypatch.setattr(throttle, "HELD_FRAMES_TOTAL_SIZE_MAX", 10_000)
    monkeypatch.setattr(throttle, "_TOTAL_RESUMED", 8_000)

    async def work() -> None:
        broker = Broker()
        clients = [broker.client(), broker.client()]
        clients[0].ask(methods.QueueDeclare(queue="q"))
        broker.block("memory")
        large, small = [Read(broker, client) for client in clients]
        large.say(publication("q", b"x" * 4_000) * 3)
        await large.settle()
        small.say(publication("q", b"x"))
        if output == "it does not read":
            small.protocol.pause_writing()
        await small.settle()
        assert not small.socket.is_read
        clients[0].connection.lost()
        await small.settle()
        assert small.socket.is_read
        assert clients[1].connection.throttle.held_size

    drive(work())
