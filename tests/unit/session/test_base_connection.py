"""What is true of a connection whichever protocol it speaks."""

from collections.abc import Callable

import pytest
from tests.unit.session.client import Client
from tests.unit.session.streams.client import Node, StreamClient

from warren.metadata.users import User
from warren.session.any_connection import AnyConnection
from warren.session.base_connection import BaseConnection, ConnectionState
from warren.session.peer import Peer

Connect = Callable[[Node, int], BaseConnection]


class AnyDoor:
    """Lets clients of both protocols in."""

    def __init__(self, node: Node) -> None:
        self._door = node.server.admission_control

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        return ("PLAIN",)

    async def authenticate(
        self, mechanism: str, response: bytes, peer: Peer, *, protocol: str = "stream"
    ) -> User:
        return await self._door.authenticate(mechanism, response, peer, protocol="stream")

    async def admit(self, user: User, vhost: str, peer: Peer) -> None:
        """There is one virtual host."""


@pytest.fixture
def node() -> Node:
    node = Node()
    node.server.admission_control = AnyDoor(node)  # type: ignore[assignment]
    return node


def amqp(node: Node, heartbeat_s: int = 0) -> BaseConnection:
    client = node.client(heartbeat=heartbeat_s)
    assert isinstance(client, Client)
    return client.connection


def stream(node: Node, heartbeat_s: int = 0) -> BaseConnection:
    client = StreamClient(node)
    client.open(heartbeat_s)
    return client.connection


both = pytest.mark.parametrize("connect", [amqp, stream])


@both
def test_an_open_connection_has_a_user_a_virtual_host_and_a_serial_of_its_own(
    node: Node, connect: Connect
) -> None:
    first, second = connect(node, 0), connect(node, 0)
    assert (first.user, first.vhost_name, first.state) == ("guest", "/", ConnectionState.OPEN)
    assert first.owner.serial < second.owner.serial


@both
def test_a_connection_is_registered_from_its_opening_to_its_end(node: Node, connect: Connect) -> None:
    connection = connect(node, 0)
    assert node.server.all_connections() == [connection]
    assert (node.server.connections_of("guest"), node.server.connections_to("/")) == (1, 1)
    connection.disconnect("an operator wants it")
    assert node.server.all_connections() == []
    assert (node.server.connections_of("guest"), node.server.connections_to("/")) == (0, 0)


@both
def test_a_connection_that_reads_or_writes_is_sampled_once(node: Node, connect: Connect) -> None:
    connection: AnyConnection = connect(node, 0)
    node.server.take_dirty()
    connection.is_dirty = False
    connection.take_output()  # type: ignore[attr-defined]
    connection.take_output()  # type: ignore[attr-defined]
    assert node.server.take_dirty() == [connection]
    assert node.server.take_dirty() == []


@both
def test_bytes_are_added_to_the_counters_of_the_virtual_host_once(node: Node, connect: Connect) -> None:
    connection = connect(node, 0)
    vhost = node.services.vhost
    node.server.count_bytes(connection)
    node.server.count_bytes(connection)
    assert (vhost.bytes_received, vhost.bytes_sent) == (connection.bytes_received, connection.outbox.total)


@both
def test_a_client_that_misses_heartbeats_is_dropped(node: Node, connect: Connect) -> None:
    connection = connect(node, 2)
    while not connection.is_finished:
        due = connection.deadline()
        assert due is not None
        assert due <= 6_000
        node.clock.now = due
        connection.expire()
    assert connection.deadline() is None


@both
def test_a_deadline_that_is_not_due_changes_nothing(node: Node, connect: Connect) -> None:
    connection = connect(node, 2)
    due = connection.deadline()
    assert due is not None
    connection.take_output()
    node.clock.now = due - 1
    connection.expire()
    assert connection.deadline() == due
    assert connection.take_output() == []
