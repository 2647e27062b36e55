"""What becomes of the channels of a connection that ends, and how many of them one turn releases."""

from collections.abc import Iterator

import pytest
from tests.unit.session.client import Broker, Client, call, publication

from warren.errors import ConnectionForced
from warren.queues.classic import ClassicQueue
from warren.session import channel_release
from warren.wire import methods

PER_TURN = 2
CHANNELS = 7


@pytest.fixture(autouse=True)
def few_per_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_release, "CHANNELS_RELEASED_PER_TURN", PER_TURN)


class Ending:
    """A connection with a consumer on each of its channels, which holds one message of the queue q."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.client = self.broker.client()
        self.client.ask(methods.QueueDeclare(queue="q"))
        for number in range(1, CHANNELS + 1):
            if number > 1:
                self.client.ask(methods.ChannelOpen(), channel=number)
            qos, consume = methods.BasicQos(prefetch_count=1), methods.BasicConsume(queue="q")
            self.client.ask(qos, consume, channel=number)
        self.client.send(*(publication("q", bytes((number,))) for number in range(CHANNELS)))
        assert self.client.bodies() == [bytes((number,)) for number in range(CHANNELS)]

    @property
    def queue(self) -> ClassicQueue:
        queue = self.broker.services.vhost.queues["q"]
        assert isinstance(queue, ClassicQueue)
        return queue

    def other(self) -> Client:
        """Another client, which consumes from q."""
        client = self.broker.client()
        client.ask(methods.BasicConsume(queue="q"))
        return client

    def turns(self) -> Iterator[int]:
        """Run the turns that are due; yields after each how many consumers it has removed."""
        while self.broker.turns:
            before = self.queue.consumer_count
            self.broker.turn()
            yield before - self.queue.consumer_count


@pytest.mark.parametrize("end", ["by the client", "by the broker", "by an error", "lost"])
def test_the_channels_of_a_connection_are_released_some_in_each_turn(end: str) -> None:
    ending = Ending()
    match end:
        case "by the client":
            ending.client.send(call(methods.ConnectionClose(), 0))
        case "by the broker":
            ending.client.connection.close(ConnectionForced("over"))
        case "by an error":
            ending.client.send(call(methods.ConnectionOpenOk(), 0))
        case _:
            ending.client.connection.lost()
    assert ending.queue.consumer_count == CHANNELS
    assert ending.client.names() == (["connection.close"] if end == "by the broker" else [])
    server = ending.broker.server
    # They cannot be used or seen any more; the connection counts until it has nothing.
    assert (server.channel_count, server.connection_count) == (0, 1)
    assert not ending.client.connection.channels
    assert list(ending.turns()) == [2, 2, 2, 1]
    assert server.connection_count == 0
    assert ending.queue.message_count == CHANNELS
    answers = {"by the client": ["connection.close-ok"], "by an error": ["connection.close"]}
    assert ending.client.names() == answers.get(end, [])


def test_a_connection_with_few_channels_is_released_at_once() -> None:
    broker = Broker()
    client = broker.client()
    client.ask(methods.ChannelOpen(), channel=2)
    assert [one.method.name for one in client.ask(methods.ConnectionClose(), channel=0)] == [
        "connection.close-ok"
    ]
    assert not broker.turns


def test_messages_of_many_channels_come_back_before_others_get_them_in_order() -> None:
    ending = Ending()
    other = ending.other()
    ending.client.send(call(methods.ConnectionClose(), 0))
    assert sum(ending.turns()) == CHANNELS
    assert other.bodies() == [bytes((number,)) for number in range(CHANNELS)]


def test_a_connection_that_ends_gets_and_is_told_nothing_while_its_channels_are_released() -> None:
    ending = Ending()
    other = ending.broker.client()
    ending.client.send(call(methods.ConfirmSelect()), call(methods.ConnectionClose(), 0))
    assert ending.client.names() == ["confirm.select-ok"]
    other.send(publication("q", b"more"))
    ending.broker.turn()
    assert ending.queue.message_count == 1 + PER_TURN
    ending.broker.server.block("memory")
    # Its consumers are cancelled, of which it hears nothing.
    other.ask(methods.QueueDelete(queue="q"))
    while ending.broker.turns:
        ending.broker.turn()
    assert ending.client.names() == ["connection.close-ok"]
    assert ending.broker.server.connection_count == 1


def test_exclusive_queues_are_deleted_after_all_channels_were_released_and_before_close_ok() -> None:
    ending = Ending()
    ending.client.ask(methods.QueueDeclare(queue="mine", exclusive=True))
    ending.client.send(call(methods.ConnectionClose(), 0))
    queues = ending.broker.services.vhost.queues
    steps = []
    while ending.broker.turns:
        ending.broker.turn()
        steps.append((ending.queue.consumer_count, "mine" in queues, ending.client.names()))
    assert steps == [
        (5, True, []), (3, True, []), (1, True, []), (0, False, ["connection.close-ok"])
    ]  # fmt: skip
