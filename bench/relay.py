"""Measures a forwarder between two brokers, in a process of its own: rate, and CPU time per message of each.

Persistent messages wait in a durable queue of the source, and are forwarded to a durable queue of the
destination, acknowledged when they are confirmed. The last line is the forwarder without sockets: the bytes
of both brokers are made before.
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from backlog import await_waiting, declare, publish
from brokers import Broker, rabbitmq, warren
from table import table
from warren.cli.perf.usage import usage
from warren.client.channel import ClientChannel
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.login import ClientLogin
from warren.client.raw_frames import method_frame
from warren.client.uri import Target, parse_uri
from warren.framing.output_listener import OutputListener
from warren.model.coroutine_driver import drive
from warren.model.message import Message, encode_address, new_message
from warren.model.turn import Turn
from warren.relay.forwarder import (
    AckMode,
    DestinationConnectionListener,
    DestinationListener,
    Forwarder,
    ForwardingListener,
    SourceConnectionListener,
)
from warren.transport.outgoing import OutgoingConnections
from warren.transport.protocol import LoopContext
from warren.wire.frames import BODY, HEADER
from warren.wire.methods import (
    BasicAck,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicQos,
    BasicQosOk,
    ChannelOpenOk,
    ConfirmSelect,
    ConfirmSelectOk,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionTune,
)
from warren.wire.properties import BasicProperties

SOURCE, DESTINATION = "from", "to"
TO = encode_address("", DESTINATION)
# What RabbitMQ's shovels use by default.
PREFETCH = 1_000
# The forwarder alone: the deliveries of one read, some 64 KiB.
READ = 60


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds from the first message to the last, and CPU time of this process."""

    elapsed_s: float
    cpu_s: float


def main() -> None:
    """Forward between each pair of brokers, and then without sockets; print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose brokers are measured")
    parser.add_argument("--rabbitmq", action="store_true", help="measure RabbitMQ at both ends instead")
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--size", type=int, default=1024, help="bytes of each body")
    parser.add_argument("--prefetch", type=int, default=PREFETCH)
    chosen = parser.parse_args()
    lines = [between(chosen), alone(chosen.messages, chosen.size)]
    head = ("", "messages/s", "source, µs", "forwarder, µs", "destination, µs")
    print(table(head, lines))


def between(chosen: argparse.Namespace) -> tuple[str, ...]:
    """Forward a backlog from one broker to the other."""
    count = chosen.messages
    with started(chosen) as source, started(chosen) as destination:
        declare(parse_uri(source.uri), SOURCE)
        declare(parse_uri(destination.uri), DESTINATION)
        publish(source, SOURCE, count, chosen.size)
        before = [usage([broker.pid]).cpu_s for broker in (source, destination)]
        cost = in_process(source.uri, destination.uri, count, chosen.prefetch)
        after = [usage([broker.pid]).cpu_s for broker in (source, destination)]
        await_waiting(destination, DESTINATION, count)
        await_waiting(source, SOURCE, 0)
    used = [after[0] - before[0], cost.cpu_s, after[1] - before[1]]
    name = f"{source.name} {source.version}"
    return name, f"{count / cost.elapsed_s:,.0f}", *(f"{cpu_s / count * 1e6:.2f}" for cpu_s in used)


@contextlib.contextmanager
def started(chosen: argparse.Namespace) -> Iterator[Broker]:
    """A broker that answers."""
    with rabbitmq() if chosen.rabbitmq else warren(chosen.warren) as broker:
        broker.await_ready()
        yield broker


def in_process(source: str, destination: str, count: int, prefetch: int) -> Cost:
    """Forward `count` messages in a process of its own."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(
        target=_forward_and_tell,
        args=(there, source, destination),
        kwargs={"count": count, "prefetch": prefetch},
        daemon=True,
    )
    process.start()
    there.close()
    try:
        cost = here.recv()
    except EOFError:
        raise SystemExit("the forwarder has failed") from None
    process.join()
    assert isinstance(cost, Cost)
    return cost


def _forward_and_tell(there: Connection, source: str, destination: str, *, count: int, prefetch: int) -> None:
    relay = NetworkRelay(count, prefetch)
    there.send(_run(relay.run(parse_uri(source), parse_uri(destination))))


def _run(coroutine: Coroutine[Any, Any, Cost]) -> Cost:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(coroutine)
    return uvloop.run(coroutine)


class Readdressing(ForwardingListener):
    """Publishes to the queue of the destination, as a shovel with `dest-queue` does."""

    def transform(self, message: Message, is_redelivered: bool) -> Message:
        """Return `message` with another address."""
        changed = new_message(TO, message.property_list, message.content, message.published_at)
        changed.flags = message.flags
        return changed


class NetworkRelay(Readdressing):
    """Forwards over sockets until `count` messages have been settled."""

    def __init__(self, count: int, prefetch: int) -> None:
        self._count = count
        self._prefetch = prefetch
        self._is_completed = asyncio.Event()

    def completed(self) -> None:
        """End the measurement."""
        self._is_completed.set()

    def call_later(self, pause_ms: int, action: Callable[[], None]) -> None:
        """Call `action` later."""
        asyncio.get_running_loop().call_later(pause_ms / 1000, action)

    async def run(self, source: Target, destination: Target) -> Cost:
        """Connect, forward, and return the cost."""
        loop = asyncio.get_running_loop()
        turn = Turn(lambda: time.time_ns() // 1_000_000, loop.call_soon)
        outgoing = OutgoingConnections(LoopContext(loop, turn))
        forwarder = Forwarder(AckMode.ON_CONFIRM, self, turn, self._count)
        consuming = await outgoing.open(source, "bench", SourceConnectionListener(self))
        listener = DestinationConnectionListener(forwarder, self)
        publishing = await outgoing.open(destination, "bench", listener)
        begin_s, begin_cpu_s = time.monotonic(), time.process_time()
        drive(attach(forwarder, self, consuming, publishing, prefetch=self._prefetch))
        await self._is_completed.wait()
        cost = Cost(time.monotonic() - begin_s, time.process_time() - begin_cpu_s)
        drive(consuming.close())
        drive(publishing.close())
        while outgoing.protocols:
            await asyncio.sleep(0.01)
        return cost


async def attach(
    forwarder: Forwarder,
    listener: ForwardingListener,
    consuming: ClientConnection,
    publishing: ClientConnection,
    *,
    prefetch: int,
) -> None:
    """Open both channels, and consume."""
    channel = await publishing.open_channel(DestinationListener(forwarder, listener))
    await channel.call(ConfirmSelect(), ConfirmSelectOk)
    forwarder.attach_destination(publishing, channel)
    source = await consuming.open_channel(forwarder)
    forwarder.attach_source(consuming, source)
    await source.call(BasicQos(prefetch_count=prefetch), BasicQosOk)
    await source.call(BasicConsume(queue=SOURCE, consumer_tag="bench"), BasicConsumeOk)


def alone(count: int, size: int) -> tuple[str, ...]:
    """Forward messages from bytes to bytes."""
    turn = Turn(lambda: time.time_ns() // 1_000_000, lambda end: None)
    listener = Readdressing()
    forwarder = Forwarder(AckMode.ON_CONFIRM, listener, turn)
    consuming = answered(turn, SourceConnectionListener(listener))
    publishing = answered(turn, DestinationConnectionListener(forwarder, listener))
    drive(attach(forwarder, listener, consuming, publishing, prefetch=0))
    publishing.receive(method_frame(1, ChannelOpenOk()) + method_frame(1, ConfirmSelectOk()))
    answers = (ChannelOpenOk(), BasicQosOk(), BasicConsumeOk(consumer_tag="bench"))
    consuming.receive(b"".join(method_frame(1, answer) for answer in answers))
    reads, confirms = [], []
    for start in range(1, count + 1, READ):
        tags = range(start, min(start + READ, count + 1))
        reads.append(b"".join(delivery(tag, bytes(size)) for tag in tags))
        confirms.append(method_frame(1, BasicAck(delivery_tag=tags[-1], multiple=True)))
    begin_s, begin_cpu_s = time.monotonic(), time.process_time()
    for read, confirm in zip(reads, confirms, strict=True):
        received(consuming, read)
        publishing.take_output()
        publishing.output_written()
        received(publishing, confirm)
        consuming.take_output()
        turn.end()
    elapsed_s, cpu_s = time.monotonic() - begin_s, time.process_time() - begin_cpu_s
    assert forwarder.confirmed_count == count
    build = "compiled" if hasattr(ClientChannel, "__pyx_vtable__") else "interpreted"
    return f"forwarder alone, {build}", f"{count / elapsed_s:,.0f}", "-", f"{cpu_s / count * 1e6:.2f}", "-"


def answered(turn: Turn, listener: ConnectionListener) -> ClientConnection:
    """A connection whose handshake has been answered."""
    login = ClientLogin(user="guest", password="guest", vhost="/")
    connection = ClientConnection(login, turn, Unwritten(), listener)
    drive(connection.open())
    start = ConnectionStart(version_major=0, version_minor=9, mechanisms="PLAIN", locales="en_US")
    tune = ConnectionTune(channel_max=10, frame_max=131_072, heartbeat=0)
    connection.receive(b"".join(method_frame(0, method) for method in (start, tune, ConnectionOpenOk())))
    return connection


class Unwritten(OutputListener):
    """The output is taken after each read."""

    def output_ready(self) -> None:
        """Do nothing."""

    def output_full(self) -> None:
        """Do nothing."""


def received(connection: ClientConnection, data: bytes) -> None:
    """Pass in the bytes of one read."""
    connection.receive(data)
    while connection.has_more:
        connection.process_more()


def delivery(tag: int, body: bytes) -> bytes:
    """The three frames of a delivery."""
    deliver = BasicDeliver(consumer_tag="bench", delivery_tag=tag, exchange="", routing_key=SOURCE)
    return method_frame(1, deliver) + b"".join(
        frame(kind, payload)
        for kind, payload in ((HEADER, BasicProperties(delivery_mode=2).encode(len(body))), (BODY, body))
    )


def frame(kind: int, payload: bytes) -> bytes:
    """A frame on channel 1."""
    return bytes((kind, 0, 1)) + len(payload).to_bytes(4, "big") + payload + b"\xce"


if __name__ == "__main__":
    main()
