"""Connections of a node to itself, without a socket: the rights and limits of a user, and bounded memory."""

import asyncio
import http.client
import json
from base64 import b64encode
from typing import Any, cast

import pytest
from tests.integration.dialing import Deliveries, Dialing, Ended, dialing, driven, run

from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.rabbitmq_uri import parse_target
from warren.limits import OUTBOX_SIZE_MAX
from warren.metadata.commands import (
    INTERNAL_USER,
    OPERATOR,
    MetadataCommand,
    PutUser,
    PutVhost,
    RemoveUser,
    RemoveVhost,
    SetPermissions,
    SetUserLimits,
)
from warren.model.message import BODY_END, Message, encode_address
from warren.node.boot import Node
from warren.node.config import Config
from warren.node.config_file import ConfigEntry
from warren.node.node_log import NodeLog
from warren.wire import methods
from warren.wire.properties import BasicProperties

QUEUE = "q"


def message(body: bytes) -> Message:
    return Message.compose(encode_address("", QUEUE), BasicProperties(), body + BODY_END, now=0)


async def apply(local: Dialing, *commands: MetadataCommand) -> None:
    for command in commands:
        await local.broker.proposals.propose(command, "guest")


async def make_user(local: Dialing, name: str, read: str = "") -> None:
    """Create `name`, who may read from the names that match `read` in the virtual host `/`."""
    hashed = local.broker.hash_password(f"{name}'s")
    await apply(
        local,
        PutUser(name=name, password_hash=hashed.salted_hash, hashing_algorithm=hashed.algorithm),
        SetPermissions(user=name, vhost="/", configure="", write="", read=read),
    )


async def open_queue(connection: ClientConnection, deliveries: Deliveries) -> Any:
    """Open a channel with confirms, and declare the queue."""
    channel = await driven(connection.open_channel(deliveries))
    await driven(channel.call(methods.QueueDeclare(queue=QUEUE), methods.QueueDeclareOk))
    await driven(channel.call(methods.ConfirmSelect(), methods.ConfirmSelectOk))
    return channel


def test_messages_are_published_confirmed_and_consumed() -> None:
    async def work() -> None:
        async with dialing() as local:
            ended, deliveries = Ended(), Deliveries()
            connection = await local.dial("amqp://", ended)
            channel = await open_queue(connection, deliveries)
            channel.publish(message(b"hello"))
            await deliveries.confirmed_up_to(1)
            await driven(channel.call(methods.BasicConsume(queue=QUEUE), methods.BasicConsumeOk))
            received, tag = await deliveries.messages.get()
            assert received.body == b"hello"
            channel.acknowledge(tag, False)
            await driven(connection.close())
            assert await ended.error is None
            await local.ends_are_gone()
            assert not local.broker.server.connections

    run(work())


def test_it_has_the_user_who_made_the_link_and_a_name_as_in_rabbitmq() -> None:
    async def work() -> None:
        async with dialing() as local:
            await local.dial("amqp:///%2f")
            (connection,) = local.broker.server.connections
            assert (connection.user, connection.vhost_name) == ("guest", "/")
            # The same id as in events and in the log.
            assert connection.peer.name == local.broker.server.event_publisher.pid(connection.owner.serial)
            assert connection.peer.name.startswith("<warren@test.")
            assert connection.login is not None
            assert connection.login.client_properties["connection_name"] == "Shovel s"

    run(work())


def test_it_has_the_rights_of_its_user_and_no_others() -> None:
    async def work() -> None:
        async with dialing() as local:
            await make_user(local, "al", read=".*")
            connection = await local.dial("amqp://", user="al")
            with pytest.raises(BrokerRefused, match="403 ACCESS_REFUSED"):
                await open_queue(connection, Deliveries())

    run(work())


def test_a_virtual_host_that_its_user_may_not_use_is_refused() -> None:
    async def work() -> None:
        async with dialing() as local:
            await make_user(local, "al")
            await apply(local, PutVhost(name="v"))
            assert "virtual host 'v' at this node: 530 NOT_ALLOWED" in await local.refusal("amqp:///v", "al")
            assert "530 NOT_ALLOWED - vhost w not found" in await local.refusal("amqp:///w")

    run(work())


def test_a_user_that_does_not_exist_is_refused() -> None:
    async def work() -> None:
        async with dialing() as local:
            reason = await local.refusal("amqp://", "nobody")
            assert reason == "login of user 'nobody' at this node: there is no such user"

    run(work())


def test_a_user_in_the_uri_needs_its_password() -> None:
    async def work() -> None:
        async with dialing() as local:
            await make_user(local, "al")
            connection = await local.dial("amqp://al:al's@/%2f")
            assert [found.user for found in local.broker.server.connections] == ["al"]
            await driven(connection.close())
            for uri in ("amqp://al:wrong@/%2f", "amqp://al@/%2f"):
                reason = await local.refusal(uri)
                assert reason.startswith("login of user 'al' at this node: 403 ACCESS_REFUSED"), reason
            # Nobody becomes another user without a password, and everybody is themselves without one.
            await local.dial("amqp://guest@/%2f")

    run(work())


def test_the_operator_may_do_everything_and_no_user_can_become_the_operator() -> None:
    async def work() -> None:
        async with dialing() as local:
            await apply(local, PutVhost(name="v"))
            connection = await local.dial("amqp:///v", user=OPERATOR)
            assert [found.user for found in local.broker.server.connections] == ["none"]
            deliveries = Deliveries()
            channel = await open_queue(connection, deliveries)
            # RabbitMQ's shovels may publish with the user-id of others as well.
            properties = BasicProperties(user_id="al")
            channel.publish(Message.compose(encode_address("", QUEUE), properties, b"m" + BODY_END, now=0))
            await deliveries.confirmed_up_to(1)
            await driven(connection.close())
            assert "530 NOT_ALLOWED - vhost w not found" in await local.refusal("amqp:///w", OPERATOR)
            await make_user(local, "none")
            assert "530 NOT_ALLOWED" in await local.refusal("amqp:///v", "none")

    run(work())


def test_whoever_has_set_a_shovel_long_ago_is_asked_to_set_it_again() -> None:
    async def work() -> None:
        async with dialing() as local:
            assert "it has to be set again" in await local.refusal("amqp://", INTERNAL_USER)

    run(work())


def test_the_log_says_that_the_link_has_ended_when_its_local_end_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> None:
        async with dialing() as local:
            await local.dial("amqp://")
            local.local.abort()
            await local.ends_are_gone()

    with caplog.at_level("INFO", "warren.connection"):
        run(work())
    assert caplog.messages[-1].endswith("): its shovel or federation link has ended")
    assert "TCP" not in caplog.text


def test_the_connection_limit_of_its_user_holds() -> None:
    async def work() -> None:
        async with dialing() as local:
            await make_user(local, "al")
            await apply(local, SetUserLimits(name="al", limits={"max-connections": 1}))
            await local.dial("amqp://", user="al")
            with pytest.raises(BrokerRefused, match="connection limit \\(1\\) is reached"):
                await local.dial("amqp://", user="al")

    run(work())


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (RemoveUser(name="al"), "user 'al' is deleted"),
        (RemoveVhost(name="/"), "vhost '/' is deleted"),
    ],
)
def test_it_is_closed_with_its_user_and_its_virtual_host(command: MetadataCommand, reason: str) -> None:
    async def work() -> None:
        async with dialing() as local:
            await make_user(local, "al")
            ended = Ended()
            await local.dial("amqp://", ended, user="al")
            await apply(local, command)
            error = await ended.error
            assert error is not None
            assert error.code == 320
            assert reason in str(error)
            await local.ends_are_gone()

    run(work())


def test_an_alarm_blocks_its_publishes() -> None:
    async def work() -> None:
        async with dialing() as local:
            ended, deliveries = Ended(), Deliveries()
            connection = await local.dial("amqp://", ended)
            channel = await open_queue(connection, deliveries)
            local.broker.server.block("low on memory")
            channel.publish(message(b"x"))
            assert await ended.reasons.get() == "low on memory"
            assert not deliveries.confirmed_to
            local.broker.server.block("")
            assert await ended.reasons.get() == ""
            await deliveries.confirmed_up_to(1)

    run(work())


class Publisher(ConnectionListener):
    """Publishes as long as there is room, and remembers how much waited at most."""

    def __init__(self, bodies: list[bytes]) -> None:
        self.bodies = bodies
        self.connection: ClientConnection | None = None
        self.channel: Any = None
        self.size_max = 0

    def has_room(self) -> None:
        if self.channel is None or self.connection is None:
            return
        outbox = self.connection.outbox
        while self.bodies and not outbox.is_full():
            self.channel.publish(message(self.bodies.pop()))
        self.size_max = max(self.size_max, outbox.size)


def test_100_000_messages_pass_with_bounded_memory() -> None:
    count = 100_000

    async def work() -> None:
        async with dialing() as local:
            publisher = Publisher([b"%d" % number + bytes(100) for number in range(count)])
            sent, received = Deliveries(), Deliveries()
            connection = publisher.connection = await local.dial("amqp://", publisher)
            channel = await open_queue(connection, sent)
            consuming = await local.dial("amqp://")
            consumer = await driven(consuming.open_channel(received))
            await driven(consumer.call(methods.BasicQos(prefetch_count=1000), methods.BasicQosOk))
            await driven(consumer.call(methods.BasicConsume(queue=QUEUE), methods.BasicConsumeOk))
            publisher.channel = channel
            publisher.has_room()
            buffered_max = 0
            for number in reversed(range(count)):
                found, tag = await received.messages.get()
                assert found.body.startswith(b"%d\0" % number)
                if not number % 500:
                    consumer.acknowledge(tag, True)
                    sizes = [
                        protocol._transport.get_write_buffer_size() for protocol in local.local.protocols
                    ]  # type: ignore[union-attr]
                    buffered_max = max(buffered_max, *sizes)
            await sent.confirmed_up_to(count)
            assert publisher.size_max < 2 * OUTBOX_SIZE_MAX
            assert buffered_max < 3 * OUTBOX_SIZE_MAX

    run(work())


def test_a_publisher_is_held_back_while_the_node_does_not_read() -> None:
    async def work() -> None:
        async with dialing() as local:
            deliveries = Deliveries()
            connection = await local.dial("amqp://")
            channel = await open_queue(connection, deliveries)
            local.broker.server.block("low on memory")
            body = bytes(100_000)
            published = 0
            while not connection.outbox.is_full():
                while not connection.outbox.is_full():
                    channel.publish(message(body))
                    published += 1
                # It is full for good when nothing of it was read in many turns.
                for _ in range(100):
                    await asyncio.sleep(0)
            assert published < 50
            local.broker.server.block("")
            await deliveries.confirmed_up_to(published)
            assert not connection.outbox.is_full()

    run(work())


def test_a_consumer_that_does_not_read_is_sent_no_more() -> None:
    async def work() -> None:
        async with dialing() as local:
            deliveries = Deliveries()
            connection = await local.dial("amqp://")
            channel = await open_queue(connection, deliveries)
            for _ in range(100):
                channel.publish(message(bytes(100_000)))
            await deliveries.confirmed_up_to(100)
            connection.pause_reading(True)
            channel.send(methods.BasicConsume(queue=QUEUE, no_wait=True, no_ack=True))
            (server,) = local.broker.server.connections
            while not server.outbox.is_full():
                await asyncio.sleep(0.01)
            assert deliveries.messages.empty()
            counting = await driven((await local.dial("amqp://")).open_channel(Deliveries()))
            counted = await driven(
                counting.call(methods.QueueDeclare(queue=QUEUE, passive=True), methods.QueueDeclareOk)
            )
            assert counted.message_count > 80
            connection.pause_reading(False)
            for _ in range(100):
                await deliveries.messages.get()

    run(work())


def test_a_node_that_stops_ends_its_local_connections() -> None:
    async def work() -> None:
        async with dialing() as local:
            ended = Ended()
            await local.dial("amqp://", ended)
            local.dialer.close()
            assert str(await ended.error) == "the connection to the broker was lost"
            await local.ends_are_gone()
            assert not local.broker.server.connections

    run(work())


def test_it_is_listed_as_a_direct_connection() -> None:
    ports = (
        "listeners.tcp.default",
        "management.tcp.port",
        "prometheus.tcp.port",
        "stream.listeners.tcp.default",
    )
    entries = [ConfigEntry(key, "127.0.0.1:0" if "listeners" in key else "0", "test") for key in ports]
    entries.append(ConfigEntry("in_memory", "true", "test"))

    def get(port: int, path: str) -> Any:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        client.request("GET", path, headers={"authorization": "Basic " + b64encode(b"guest:guest").decode()})
        return json.loads(client.getresponse().read())

    async def work() -> None:
        node = Node(Config(entries), lambda: None, cast(NodeLog, None), restart=lambda: None)
        await node.start()
        try:
            port = next(found.port for found in node.listeners if found.protocol == "http")
            target = parse_target("amqp://")
            connection = await driven(
                node.relays.dialer.dial(target, "Shovel s", "guest", ConnectionListener())
            )
            await driven(connection.open_channel(Deliveries()))
            (shown,) = await asyncio.to_thread(get, port, "/api/connections")
            assert (shown["protocol"], shown["type"]) == ("Direct 0-9-1", "direct")
            assert (shown["user"], shown["vhost"], shown["channels"]) == ("guest", "/", 1)
            assert shown["user_provided_name"] == "Shovel s"
            assert shown["name"].startswith(f"<{node.broker.name}.")
            (channel,) = await asyncio.to_thread(get, port, "/api/channels")
            assert channel["connection_details"]["name"] == shown["name"]
        finally:
            await node.stop()

    run(work())
