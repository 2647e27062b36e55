"""What was made and removed again leaves no objects behind, however often that happens."""

import asyncio
import gc
from collections import Counter
from pathlib import Path

import pytest
from tests.unit.node.test_broker import connect, frame, say
from tests.unit.node.test_supervision_tree import EVERYTHING, until, within

from warren.metadata.commands import (
    ClearPolicy,
    PutUser,
    PutVhost,
    RemoveUser,
    RemoveVhost,
    SetPermissions,
    SetPolicy,
)
from warren.node.broker import Broker
from warren.session.connection import Connection
from warren.wire import methods
from warren.wire.method import Method
from warren.wire.properties import BasicProperties
from warren.wire.table import Table

# The queues of a round: name and arguments.
QUEUES: dict[str, Table] = {
    "classic": {"x-dead-letter-exchange": "topic", "x-max-length": 5},
    "expiring": {"x-message-ttl": 1, "x-expires": 60_000},
    "priority": {"x-max-priority": 3, "x-single-active-consumer": True},
    "quorum": {"x-queue-type": "quorum", "x-delivery-limit": 1, "x-dead-letter-exchange": "topic"},
    "kept": {
        "x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
        "x-dead-letter-exchange": "nowhere",
    },
    "stream": {"x-queue-type": "stream"},
}  # fmt: skip
MESSAGES = 10
ROUNDS_BEFORE, ROUNDS = 2, 3


class Churn:
    """Rounds in which connections, channels, queues, bindings and messages come and go."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.rounds = 0

    async def turn(self, client: Connection, *calls: Method, channel: int = 1) -> None:
        """Send methods, and let what they cause happen."""
        say(client, b"".join(frame(method, channel) for method in calls))
        for _ in range(20):
            await asyncio.sleep(0)
        client.take_output()
        client.output_written()

    async def round(self) -> None:
        self.rounds += 1
        propose = self.broker.proposals.propose
        vhost, user = f"vhost{self.rounds}", f"user{self.rounds}"
        await propose(PutVhost(name=vhost))
        await propose(SetPermissions(user="guest", vhost=vhost, **EVERYTHING))
        await propose(PutUser(name=user, password_hash=b"", hashing_algorithm=""))
        await propose(SetPolicy(vhost="v", name="p", pattern="^classic", definition={"max-length": 7}))
        await until(lambda: vhost in self.broker.server.vhost_services)
        for name in ("v", vhost):
            await self.use(name)
        await propose(ClearPolicy(vhost="v", name="p"))
        await propose(RemoveUser(name=user))
        await propose(RemoveVhost(name=vhost))
        await until(lambda: vhost not in self.broker.server.vhost_services)
        await until(lambda: not self.broker.server.connections)
        # As the sampler does.
        for services in self.broker.server.vhost_services.values():
            services.vhost.take_dirty()

    async def use(self, vhost: str) -> None:
        clients = [connect(self.broker, vhost) for _ in range(2)]
        served = self.broker.server.vhost_services[vhost].vhost
        assert served.stores is not None
        queues, store = served.queues, served.stores.persistent
        for client in clients:
            for channel in range(1, 5):
                await self.turn(client, methods.ChannelOpen(), channel=channel)
        client, other = clients
        await self.turn(client, methods.ConfirmSelect())
        await self.turn(client, methods.TxSelect(), channel=2)
        await self.turn(
            client,
            methods.ExchangeDeclare(exchange="topic", type="topic"),
            methods.QueueDeclare(queue="mine", exclusive=True),
            methods.QueueDeclare(queue="unused", auto_delete=True),
        )
        for name, arguments in QUEUES.items():
            await self.turn(
                client,
                methods.QueueDeclare(queue=name, durable=True, arguments=arguments),
                methods.QueueBind(queue=name, exchange="topic", routing_key=f"#.{name}"),
            )
            await until(lambda name=name: name in queues)  # type: ignore[misc]
        for name in (*QUEUES, "mine", "unused", "nowhere"):
            for number in range(MESSAGES):
                self.publish(client, name, 1 + number % 2)
        await self.turn(client, methods.TxCommit(), channel=2)
        for name in QUEUES:
            options: Table = {"x-stream-offset": "first"} if name == "stream" else {}
            qos = methods.BasicQos(prefetch_count=4)
            consume = methods.BasicConsume(queue=name, consumer_tag=name, arguments=options)
            await self.turn(other, qos, consume, channel=2)
        await self.turn(other, methods.BasicConsume(queue="unused", no_ack=True), channel=3)
        await until(lambda: store.is_idle)
        settle = (
            methods.BasicAck(1), methods.BasicReject(2, False), methods.BasicNack(3, False, True),
            methods.BasicRecover(True),
        )  # fmt: skip
        await self.turn(other, *settle, channel=2)
        await self.turn(other, methods.BasicGet(queue="quorum"), channel=4)
        await until(lambda: store.is_idle)
        await self.turn(client, methods.ConnectionClose(), channel=0)
        other.lost()
        third = connect(self.broker, vhost)
        await self.turn(third, methods.ChannelOpen())
        for name in QUEUES:
            await self.turn(third, methods.QueuePurge(queue=name) if name != "stream" else methods.TxSelect())
            await self.turn(third, methods.QueueDelete(queue=name))
        await self.turn(third, methods.ExchangeDelete(exchange="topic"))
        await until(lambda: not queues)
        third.lost()
        client.lost()

    @staticmethod
    def publish(client: Connection, key: str, channel: int) -> None:
        """Publish a message, persistent on channel 1."""
        header = BasicProperties(delivery_mode=3 - channel, headers={"x": key}).encode(3)
        start = b"\x02" + channel.to_bytes(2, "big") + len(header).to_bytes(4, "big") + header + b"\xce"
        body = b"\x03" + channel.to_bytes(2, "big") + b"\x00\x00\x00\x03abc\xce"
        say(client, frame(methods.BasicPublish(routing_key=key, mandatory=True), channel) + start + body)


def live() -> Counter[str]:
    """The number of live objects of each type of Warren."""
    gc.collect()
    names = (f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    return Counter(name for name in names if name.startswith("warren."))


@pytest.mark.slow
def test_what_comes_and_goes_leaves_no_objects(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        churn = Churn(broker)
        for _ in range(ROUNDS_BEFORE):
            await churn.round()
        before = live()
        for _ in range(ROUNDS):
            await churn.round()
        # One object more may belong to what is being written; of a leak each round leaves one.
        left = {name: count for name, count in (live() - before).items() if count >= ROUNDS}
        assert left == {}

    within(tmp_path, work)
