"""One stream connection: how it closes, and when reading is paused."""

import pytest
from tests.unit.session.streams.client import Node, StreamClient, data

from warren.framing.heartbeat import Heartbeat
from warren.metadata.commands import PutUser
from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, ResponseCode
from warren.wire.streams.fields import Offset, OffsetType


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.mark.parametrize(
    "frame",
    [b"\0\x63\0\1\0\0\0\1", b"\0\2\0\1", b"\0\x0f\0\2\0\0\0\1\0\0\0\0", b"\0\x11\0\1\0\0\0\1\0\0\0\0"],
    ids=["unknown", "short publish", "unknown version", "peer properties again"],
)
def test_an_unknown_frame_closes_the_connection(node: Node, frame: bytes) -> None:
    client = node.stream()
    client.say(len(frame).to_bytes(4, "big") + frame)
    assert client.hear() == [commands.Close(ResponseCode.UNKNOWN_FRAME, "unknown frame")]
    assert not client.connection.is_open
    client.expire(client.connection.deadline())
    assert client.connection.is_finished


def test_a_close_by_the_client_is_answered(node: Node) -> None:
    client = node.stream()
    assert client.ask(commands.Close(1, "bye")) == [(CommandKey.CLOSE, ResponseCode.OK)]
    assert client.connection.is_finished
    assert not node.server.stream_connections


def test_a_disconnected_client_is_closed_without_a_frame(node: Node) -> None:
    client = node.stream()
    client.connection.disconnect("shutdown")
    assert client.hear() == []
    assert client.connection.is_finished
    assert not node.server.stream_connections


def test_stream_connections_count_for_the_limits_of_users_and_vhosts(node: Node) -> None:
    client = node.stream()
    assert (node.server.connections_of("guest"), node.server.connections_to("/")) == (1, 1)
    client.connection.lost()
    assert (node.server.connections_of("guest"), node.server.connections_to("/")) == (0, 0)


def test_commands_after_a_slow_one_are_executed_in_order(node: Node) -> None:
    client = node.stream()
    node.proposals.is_slow = True
    client.say(commands.Create("t", {}).encode(1), commands.Metadata(("t",)).encode(2))
    assert client.hear() == []
    assert client.connection.is_reading_paused
    node.proposals.arrive()
    node.turn()
    created, metadata = client.hear()
    assert created == (CommandKey.CREATE, ResponseCode.OK)
    assert metadata.placements[0].code == ResponseCode.OK
    assert not client.connection.is_reading_paused


def test_during_an_alarm_publishers_are_not_read_and_consumers_are(node: Node) -> None:
    publisher, consumer = node.stream(), node.stream("t")
    publisher.ask(commands.DeclarePublisher(1, "", "s"))
    node.block("memory")
    assert (publisher.connection.is_reading_paused, consumer.connection.is_reading_paused) == (True, False)
    assert publisher.publish(1, (1, data(b"held"))) == []
    node.write()
    assert node.services.vhost.queues["s"].message_count == 0
    node.block("")
    node.write()
    assert publisher.hear() == [commands.PublishConfirm(1, (1,))]
    assert not publisher.connection.is_reading_paused
    node.block("memory")
    refused = consumer.ask(commands.DeclarePublisher(1, "", "t"))
    assert refused == [(CommandKey.DECLARE_PUBLISHER, ResponseCode.PRECONDITION_FAILED)]


def test_a_publisher_waits_for_the_disk(node: Node) -> None:
    client = node.stream()
    client.ask(commands.DeclarePublisher(1, "", "s"))
    node.services.credit.spend()
    assert client.publish(1, (1, data(b"x"))) == []
    assert client.connection.is_reading_paused
    node.services.credit.renew()
    node.turn()
    node.write()
    assert client.hear() == [commands.PublishConfirm(1, (1,))]


def test_reading_pauses_while_too_much_is_unconfirmed(node: Node) -> None:
    client = node.stream()
    client.ask(commands.DeclarePublisher(1, "", "s"))
    assert client.connection.command_handler is not None
    client.connection.command_handler.publishers.limit(3, 0)
    client.publish(1, *[(n, data(b"x")) for n in range(3)])
    client.publish(1, (3, data(b"x")))
    assert client.connection.is_reading_paused
    assert node.store.log(node.services.vhost.queues["s"].log.number).next == 3
    node.write()
    assert client.hear() == [commands.PublishConfirm(1, (0, 1, 2))]
    while node.turns:
        node.turn()
    node.write()
    assert client.hear() == [commands.PublishConfirm(1, (3,))]
    assert not client.connection.is_reading_paused


def test_reading_resumes_when_enough_more_can_be_published(node: Node) -> None:
    client = node.stream()
    client.ask(commands.DeclarePublisher(1, "", "s"))
    assert client.connection.command_handler is not None
    publishers = client.connection.command_handler.publishers
    publishers.limit(4, 2)
    client.publish(1, *[(n, data(b"x")) for n in range(4)])
    assert client.connection.is_reading_paused
    publishers._settled(2)
    assert client.connection.is_reading_paused
    publishers._settled(1)
    assert not client.connection.is_reading_paused


def test_the_work_of_a_turn_is_bounded(node: Node) -> None:
    client = node.stream()
    client.ask(commands.DeclarePublisher(1, "", "s"))
    asked = commands.QueryOffset("c", "s").encode(1)
    client.connection.receive(asked * 5, 2)
    assert client.connection.has_more
    assert len(client.hear()) == 2
    client.connection.process_more(2)
    client.connection.process_more(2)
    assert not client.connection.has_more
    assert len(client.hear()) == 3


def test_an_idle_client_receives_heartbeats_and_is_dropped(node: Node) -> None:
    client = StreamClient(node)
    client.open(heartbeat_s=2)
    assert isinstance(Heartbeat(2, 0).deadline(), int)
    beats = 0
    for _ in range(20):
        if client.connection.is_finished:
            break
        due = client.connection.deadline()
        client.expire(due)
        beats += client.hear().count(commands.Heartbeat())
    assert client.connection.is_finished
    assert beats >= 2
    assert client.now <= 6_000
    assert node.reports == [f"missed heartbeats from stream connection {client.connection.peer.name}"]


def test_a_stream_is_unused_from_the_loss_of_its_last_reader_on_even_after_an_hour_of_silence(
    node: Node,
) -> None:
    client = node.stream()
    client.subscribe(1, Offset(OffsetType.FIRST))
    node.clock.now = 3_600_000
    client.connection.lost()
    assert node.services.vhost.queues["s"].used_at == 3_600_000


def test_an_unexpected_exception_closes_one_connection(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    client, other = node.stream(), node.stream("t")

    def broken(publication: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(
        type(client.connection.command_handler.publishers), "publish", lambda _, each: broken(each)
    )
    client.publish(1, (1, b""))
    assert not client.connection.is_open
    assert other.connection.is_open
    assert "ZeroDivisionError" in node.reports[0]


def test_changes_of_other_users_do_not_affect_a_client(node: Node) -> None:
    client = node.stream()
    node.proposals.apply(PutUser(name="other", password_hash=b"", hashing_algorithm=""))
    assert client.ask(commands.Metadata(("s",)))[0].placements[0].code == ResponseCode.OK


def test_a_client_that_connects_is_logged_beside_those_of_amqp(node: Node) -> None:
    connection = StreamClient(node).connection
    assert node.reported == [("connection", "info", f"accepting stream connection {connection.peer.name}")]
