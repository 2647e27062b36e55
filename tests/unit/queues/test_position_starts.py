"""No position of a queue is given twice, not even by a broker that has lost messages in a crash."""

import random

import pytest
from tests.sim.durable_broker import DurableBroker
from tests.unit.session.client import FRAME_SIZE_MAX, Client, call, publication

from warren.model.message_position import POSITIONS_ARGUMENT, MessagePosition, take_position
from warren.queues.position_starts import PositionStarts
from warren.wire import methods
from warren.wire.table import Table


@pytest.fixture
def broker() -> DurableBroker:
    return DurableBroker(random.Random(1))


def declare(broker: DurableBroker, **arguments: object) -> None:
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q", durable=True, arguments=dict(arguments)))
    client.connection.lost()
    broker.sync()


def publish(broker: DurableBroker, *bodies: str, mode: int = 2, priority: int = 0) -> None:
    client = broker.client()
    for body in bodies:
        client.send(publication("q", body.encode(), delivery_mode=mode, priority=priority))
    client.connection.lost()


def consume(broker: DurableBroker) -> Client:
    client = broker.client()
    client.send(_consume())
    broker.sync()
    return client


def _consume(arguments: Table | None = None) -> bytes:
    return call(methods.BasicConsume(queue="q", arguments=arguments or {POSITIONS_ARGUMENT: True}))


def positions(client: Client) -> dict[str, MessagePosition]:
    """The positions of what was delivered, by body."""
    found = {}
    for one in client.hear():
        if isinstance(one.method, methods.BasicDeliver):
            assert one.properties is not None
            taken = take_position(one.properties.encode_list())
            assert taken is not None
            found[one.body.decode()] = taken[1]
    return found


def read(broker: DurableBroker) -> dict[str, MessagePosition]:
    """The positions of all messages, which return to the queue."""
    client = consume(broker)
    found = positions(client)
    client.connection.lost()
    return found


def test_a_message_keeps_its_position_when_it_is_requeued_and_when_the_broker_starts_again(
    broker: DurableBroker,
) -> None:
    declare(broker)
    publish(broker, "a", "b")
    first = read(broker)
    assert len(set(first.values())) == 2
    assert read(broker) == first
    broker.sync()
    for _ in range(3):
        broker.crash(is_power_lost=True)
        assert read(broker) == first


@pytest.mark.parametrize("mode", [1, 2])
def test_the_position_of_a_message_that_was_lost_is_not_given_to_another_one(
    broker: DurableBroker, mode: int
) -> None:
    declare(broker)
    client = consume(broker)
    publish(broker, "lost", mode=mode)
    lost = positions(client)["lost"]
    broker.crash(is_power_lost=True)
    assert read(broker) == {}
    publish(broker, "new")
    new = read(broker)["new"]
    assert (new.origin, new.place) == (lost.origin, lost.place)
    assert new.start != lost.start


def test_messages_of_several_starts_keep_their_positions(broker: DurableBroker) -> None:
    declare(broker)
    found: dict[str, MessagePosition] = {}
    for number in range(5):
        publish(broker, f"m{number}")
        now = read(broker)
        assert found.items() <= now.items()
        found = now
        broker.sync()
        broker.crash(is_power_lost=True)
    assert len({position.start for position in found.values()}) == 5
    assert read(broker) == found


def test_messages_with_priorities_have_positions_of_their_own(broker: DurableBroker) -> None:
    declare(broker, **{"x-max-priority": 2})
    for priority in (0, 1, 2, 9):
        publish(broker, f"p{priority}", priority=priority)
    found = read(broker)
    assert len(set(found.values())) == 4
    broker.sync()
    broker.crash(is_power_lost=False)
    assert read(broker) == found


def test_a_queue_that_is_declared_again_is_another_origin(broker: DurableBroker) -> None:
    declare(broker)
    publish(broker, "a")
    before = read(broker)["a"]
    client = broker.client()
    client.ask(methods.QueueDelete(queue="q"))
    declare(broker)
    publish(broker, "a")
    assert read(broker)["a"].origin != before.origin
    assert sum(key.startswith(b"position-starts") for key in broker.store.markers) == 1


def test_a_start_is_forgotten_with_its_last_message(
    broker: DurableBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts_max = 8
    monkeypatch.setattr("warren.queues.position_starts.POSITION_STARTS_MAX", starts_max)
    declare(broker)
    for number in range(starts_max + 5):
        publish(broker, f"m{number}")
        read(broker)
        broker.sync()
        broker.crash(is_power_lost=False)
    marker = next(value for key, value in _starts(broker).items())
    assert len(marker) == 24 + 16 * starts_max
    client = broker.client()
    client.ask(methods.QueuePurge(queue="q"))
    broker.sync()
    broker.crash(is_power_lost=False)
    assert [len(value) for value in _starts(broker).values()] == [24]


def test_positions_above_what_was_recovered_are_those_of_the_present_start(broker: DurableBroker) -> None:
    declare(broker)
    publish(broker, "a", "b", "c")
    first = read(broker)["c"]
    broker.sync()
    broker.crash(is_power_lost=False)
    number = broker.services.queue_service.number_of("q")
    starts = PositionStarts.recover(broker.store, number, random.Random(2).randbytes)
    assert starts is not None
    starts.restore(0, 0, 2)
    assert starts.start_of(1) == first.start
    assert starts.start_of(2) not in (first.start, 0)


def _starts(broker: DurableBroker) -> dict[bytes, bytes]:
    markers = broker.store.markers
    return {key: one.value for key, one in markers.items() if key.startswith(b"position-starts")}


def test_nothing_is_delivered_before_the_start_is_on_disk(broker: DurableBroker) -> None:
    declare(broker)
    publish(broker, "a")
    broker.sync()
    client = broker.client()
    client.send(_consume())
    assert client.names() == []
    broker.sync()
    assert client.names() == ["basic.consume-ok", "basic.deliver"]


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        (methods.BasicConsume(queue="q", no_ack=True, arguments={POSITIONS_ARGUMENT: True}), "needs"),
        (methods.BasicConsume(queue="none", arguments={POSITIONS_ARGUMENT: True}), "no queue 'none'"),
    ],
)
def test_positions_are_refused_without_acknowledgements_and_without_a_queue(
    broker: DurableBroker, refused: methods.BasicConsume, text: str
) -> None:
    declare(broker)
    (answer,) = broker.client().ask(refused)
    assert isinstance(answer.method, methods.ChannelClose)
    assert text in answer.method.reply_text


def test_the_queue_may_be_deleted_while_its_start_is_written(broker: DurableBroker) -> None:
    declare(broker)
    client = broker.client()
    client.send(_consume())
    broker.client().ask(methods.QueueDelete(queue="q"))
    broker.sync()
    (answer,) = client.hear()
    assert isinstance(answer.method, methods.ChannelClose)
    assert answer.method.reply_code == 404


def test_other_consumers_receive_messages_as_they_are(broker: DurableBroker) -> None:
    declare(broker)
    publish(broker, "a")
    read(broker)
    client = broker.client()
    (_, delivered) = client.ask(methods.BasicConsume(queue="q"))
    assert delivered.properties is not None
    assert delivered.properties.headers is None


def test_a_message_whose_header_fits_a_frame_without_its_position_only_is_delivered_without(
    broker: DurableBroker,
) -> None:
    declare(broker)
    client = broker.client()
    client.send(publication("q", b"a", headers={"h": bytes(FRAME_SIZE_MAX - 60)}))
    client.connection.lost()
    client = consume(broker)
    (delivered,) = (one for one in client.hear() if isinstance(one.method, methods.BasicDeliver))
    assert delivered.properties is not None
    assert list(delivered.properties.headers or {}) == ["h"]
