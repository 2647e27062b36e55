"""The broker without sockets: its initial objects, and clients of deleted vhosts and users."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from warren.access.passwords import PUBLISHED_PASSWORD_HASH, SHA256
from warren.framing.output_listener import OutputListener
from warren.metadata.commands import PutVhost, RemoveUser, RemoveVhost, SetPermissions
from warren.metadata.incarnation import FIRST_INCARNATION
from warren.model.coroutine_driver import drive
from warren.node.broker import Broker
from warren.node.config import Config
from warren.node.config_file import ConfigEntry
from warren.node.errors import BootRefused
from warren.node.node_identity import NodeIdentity
from warren.runtime.clock import Clock
from warren.session.connection import Connection
from warren.session.peer import Peer
from warren.wire.method import Method
from warren.wire.methods import ChannelOpen, ConnectionOpen, ConnectionStartOk, ConnectionTuneOk, QueueDeclare

# Verified at once, whereas argon2 takes a thread and time.
QUICK = ConfigEntry("password_hashing_module", "rabbit_password_hashing_sha256", "test")
PEER = Peer(host="127.0.0.1", port=1, server_host="127.0.0.1", server_port=5672)


class IgnoredOutput(OutputListener):
    """An output listener that writes nothing."""

    def output_ready(self) -> None:
        pass


def make(**entries: str) -> Broker:
    named = [ConfigEntry(key.replace("__", "."), value, "test") for key, value in entries.items()]
    broker = Broker(Config([QUICK, *named]), Clock(), NodeIdentity("warren@test", FIRST_INCARNATION))
    drive(broker.populate())
    return broker


def frame(method: Method, channel: int = 0) -> bytes:
    payload = method.encode()
    return b"\x01" + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + b"\xce"


def say(connection: Connection, data: bytes) -> None:
    connection.receive(data)
    while connection.has_more:
        connection.process_more()


def connect(broker: Broker, vhost: str = "/", user: str = "guest", peer: Peer = PEER) -> Connection:
    connection = Connection(broker.server, peer, IgnoredOutput())
    login = ConnectionStartOk({}, "PLAIN", f"\x00{user}\x00guest", "en_US")
    methods: Iterable[Method] = (login, ConnectionTuneOk(2047, 131_072, 0), ConnectionOpen(vhost))
    say(connection, b"AMQP\x00\x00\x09\x01" + b"".join(map(frame, methods)))
    assert connection.is_open
    connection.take_output()
    return connection


def test_a_new_broker_has_the_user_guest_and_a_vhost() -> None:
    async def work() -> None:
        broker = make()
        assert list(broker.server.vhost_services) == ["/"]
        assert connect(broker).is_open
        await broker.close()

    asyncio.run(work())


def test_queues_are_of_the_default_type_unless_they_or_their_vhost_say_otherwise() -> None:
    async def work() -> None:
        broker = make(default_queue_type="quorum")
        await broker.proposals.propose(PutVhost(name="v", default_queue_type="classic"))
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        await broker.proposals.propose(SetPermissions(user="guest", vhost="v", **everything))
        for vhost in ("/", "v"):
            connection = connect(broker, vhost)
            say(connection, frame(ChannelOpen(), 1))
            for declare in (
                QueueDeclare(0, "plain", durable=True),
                QueueDeclare(0, "asked", durable=True, arguments={"x-queue-type": "classic"}),
                QueueDeclare(0, "temporary", durable=True, auto_delete=True),
                QueueDeclare(0, "own", exclusive=True),
            ):
                say(connection, frame(declare, 1))
            assert connection.is_open
        kinds = {
            vhost: {
                name: queue.kind
                for name, queue in broker.metadata.vhosts.by_name[vhost].topology.queues.items()
            }
            for vhost in ("/", "v")
        }
        others = dict.fromkeys(("asked", "temporary", "own"), "classic")
        assert kinds == {"/": {"plain": "quorum", **others}, "v": {"plain": "classic", **others}}
        await broker.close()

    asyncio.run(work())


def test_new_vhosts_get_the_configured_users_policies_and_limits() -> None:
    async def work() -> None:
        entries = {
            "default_users.alice.password": "guest",
            "default_policies.operator.short.max_length": "7",
            "default_limits.vhosts.1.max_queues": "10",
        }
        broker = make(**entries)
        await broker.proposals.propose(PutVhost(name="v"))
        await broker.proposals.propose(PutVhost(name="v", description="again"))
        for name in ("/", "v"):
            vhost = broker.metadata.vhosts.by_name[name]
            assert vhost.operator_policies.by_name["short"].definition == {"max-length": 7}
            assert vhost.limit("max-queues") == 10
            assert connect(broker, name, "alice").is_open
        await broker.close()

    asyncio.run(work())


def test_only_the_published_password_has_a_published_hash() -> None:
    async def work() -> None:
        hashes = []
        for entries in ({}, {}, {"default_pass": "secret"}, {"default_pass": "secret"}):
            broker = make(password_hashing_module="warren_password_hashing_argon2id", **entries)
            hashes.append(broker.metadata.users.by_name["guest"].password)
            await broker.close()
        assert hashes[:2] == [PUBLISHED_PASSWORD_HASH] * 2
        assert len(set(hashes)) == 3
        broker = make()
        assert broker.metadata.users.by_name["guest"].password.algorithm == SHA256
        await broker.close()

    asyncio.run(work())


def test_deleting_a_vhost_closes_its_connections_and_no_others() -> None:
    async def work() -> None:
        broker = make()
        await broker.proposals.propose(PutVhost(name="v"))
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        await broker.proposals.propose(SetPermissions(user="guest", vhost="v", **everything))
        gone, stays = connect(broker, "v"), connect(broker)
        declare = QueueDeclare(0, "q", exclusive=True)
        say(gone, frame(ChannelOpen(), 1) + frame(declare, 1))
        assert b"q" in b"".join(gone.take_output())
        await broker.proposals.propose(RemoveVhost(name="v"))
        await asyncio.sleep(0)
        assert list(broker.server.vhost_services) == ["/"]
        assert b"CONNECTION_FORCED - vhost 'v' is deleted" in b"".join(gone.take_output())
        assert not gone.is_open
        assert stays.is_open
        await broker.close()

    asyncio.run(work())


def test_deleting_a_user_closes_their_connections() -> None:
    async def work() -> None:
        broker = make()
        connection = connect(broker)
        await broker.proposals.propose(RemoveUser(name="guest"))
        await asyncio.sleep(0)
        assert b"CONNECTION_FORCED - user 'guest' is deleted" in b"".join(connection.take_output())
        assert not connection.is_open
        await broker.close()

    asyncio.run(work())


def test_with_a_definitions_file_no_default_user_is_created(tmp_path: Path) -> None:
    (tmp_path / "2.json").write_text(json.dumps({"vhosts": [{"name": "b"}]}))
    (tmp_path / "1.json").write_text(json.dumps({"vhosts": [{"name": "a"}]}))

    async def work() -> None:
        broker = make(load_definitions=str(tmp_path))
        assert list(broker.server.vhost_services) == ["a", "b"]
        assert not broker.metadata.users.by_name
        await broker.close()

    asyncio.run(work())


def test_definitions_that_are_nested_too_deep_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text('{"global_parameters": [{"name": "p", "value": ' + "[" * 200 + "]" * 200 + "}]}")

    async def work() -> None:
        with pytest.raises(BootRefused, match=r"definitions\.json': it is nested more than 100 levels deep"):
            make(load_definitions=str(file))

    asyncio.run(work())


def test_definitions_that_refer_to_missing_objects_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    permission = {"user": "nobody", "vhost": "/", "configure": "", "write": "", "read": ""}
    file.write_text(json.dumps({"permissions": [permission]}))

    async def work() -> None:
        with pytest.raises(BootRefused, match=r"definitions file '.*definitions\.json': "):
            make(load_definitions=str(file))

    asyncio.run(work())
