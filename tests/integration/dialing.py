"""Dials brokers as shovels and links do: from coroutines without an event loop, over real sockets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import uvloop
from tests.patience import patient

from warren.client.channel import ChannelListener
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.rabbitmq_uri import parse_target
from warren.metadata.incarnation import FIRST_INCARNATION
from warren.model.coroutine_driver import drive
from warren.model.message import Message
from warren.node.broker import Broker
from warren.node.config import Config
from warren.node.config_file import ConfigEntry
from warren.node.local_connections import LocalConnections
from warren.node.node_dialer import NodeDialer
from warren.node.node_identity import NodeIdentity
from warren.runtime.clock import Clock
from warren.transport.outgoing import OutgoingConnections
from warren.transport.protocol import LoopContext

Value = TypeVar("Value")
# Verified at once, whereas argon2 takes a thread and time.
QUICK = ConfigEntry("password_hashing_module", "rabbit_password_hashing_sha256", "test")
TIMEOUT_S = patient(60)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` in the event loop that nodes use."""

    async def limited() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await work

    uvloop.run(limited())


def driven(coroutine: Awaitable[Value]) -> "asyncio.Future[Value]":
    """Drive `coroutine` without asyncio; the future has its result."""
    result: asyncio.Future[Value] = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        try:
            value = await coroutine
        except BrokerRefused as error:
            result.set_exception(error)
        else:
            result.set_result(value)

    drive(wait())
    return result


class Ended(ConnectionListener):
    """Records what a connection tells its listener."""

    def __init__(self) -> None:
        self.error: asyncio.Future[BrokerRefused | None] = asyncio.get_running_loop().create_future()
        self.reasons: asyncio.Queue[str] = asyncio.Queue()

    def blocked(self, reason: str) -> None:
        self.reasons.put_nowait(reason)

    def ended(self, error: BrokerRefused | None) -> None:
        self.error.set_result(error)


class Deliveries(ChannelListener):
    """Queues what a channel delivers, and the numbers that are confirmed."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[tuple[Message, int]] = asyncio.Queue()
        self.confirmed_to = 0
        self.waits: list[tuple[int, asyncio.Event]] = []
        self.error: asyncio.Future[BrokerRefused] = asyncio.get_running_loop().create_future()

    def delivered(self, message: Message, delivery_tag: int, is_redelivered: bool) -> None:
        self.messages.put_nowait((message, delivery_tag))

    def confirmed(self, sequence: int, is_multiple: bool, is_acked: bool) -> None:
        assert is_acked
        self.confirmed_to = max(self.confirmed_to, sequence)
        for number, event in self.waits:
            if number <= self.confirmed_to:
                event.set()

    async def confirmed_up_to(self, sequence: int) -> None:
        """Wait until the broker has confirmed up to `sequence`."""
        event = asyncio.Event()
        self.waits.append((sequence, event))
        if sequence > self.confirmed_to:
            await event.wait()

    def ended(self, error: BrokerRefused) -> None:
        self.error.set_result(error)


class Dialing:
    """The dialer of a node in memory, with its event loop."""

    def __init__(self) -> None:
        self.broker = Broker(Config([QUICK]), Clock(), NodeIdentity("warren@test", FIRST_INCARNATION))
        drive(self.broker.populate())
        self.loop_context = LoopContext(asyncio.get_running_loop(), self.broker.turn)
        self.outgoing = OutgoingConnections(self.loop_context)
        self.local = LocalConnections(self.broker.server, self.broker.metadata, self.loop_context)
        self.dialer = NodeDialer(self.outgoing, self.local)

    async def dial(
        self, uri: str, listener: ConnectionListener | None = None, user: str = "guest"
    ) -> ClientConnection:
        """Dial `uri` for `user`."""
        return await driven(
            self.dialer.dial(parse_target(uri), "Shovel s", user, listener or ConnectionListener())
        )

    async def refusal(self, uri: str, user: str = "guest") -> str:
        """Why `uri` cannot be dialled; nothing is left of the attempt."""
        try:
            await self.dial(uri, user=user)
        except BrokerRefused as error:
            await self.ends_are_gone()
            return str(error)
        raise AssertionError("it was opened")

    async def ends_are_gone(self) -> None:
        """Wait until there are no connections."""
        while self.outgoing.protocols or self.local.protocols:
            await asyncio.sleep(0.01)


@asynccontextmanager
async def dialing() -> AsyncIterator[Dialing]:
    """A dialer, which is closed in the end."""
    started = Dialing()
    yield started
    started.dialer.close()
    await started.ends_are_gone()
    started.loop_context.deadlines.stop()
    await started.broker.close()


@asynccontextmanager
async def peer(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], **options: Any
) -> AsyncIterator[int]:
    """A server that answers each client as `answer` does; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, **options)
    yield server.sockets[0].getsockname()[1]
    server.close()
