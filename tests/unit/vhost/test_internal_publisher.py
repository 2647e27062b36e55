"""Messages of the broker itself are published in a later turn, and only if they are routed."""

from collections.abc import Callable

from tests.unit.session.client import Broker

from warren.metadata.commands import Bind, DeclareQueue
from warren.model.message import BODY_END, Message
from warren.vhost.internal_publisher import InternalPublisher
from warren.wire.properties import BasicProperties

EXCHANGE = "amq.topic"


def made(feed: InternalPublisher, key: str) -> Callable[[int], Message]:
    return lambda now: feed.composed(key, BasicProperties(timestamp=now), BODY_END, now)


def test_messages_are_published_in_the_next_turn_in_order() -> None:
    broker = Broker()
    feed = InternalPublisher(EXCHANGE, lambda: broker.services.vhost, broker.turns.append)
    assert not feed.is_heard()
    broker.proposals.apply(DeclareQueue(vhost="/", name="q"))
    broker.proposals.apply(Bind(vhost="/", source=EXCHANGE, destination="q", routing_key="#"))
    assert feed.is_heard()
    for key in ("a", "b", "c" * 300):
        feed.add(made(feed, key))
    queue = broker.services.vhost.queues["q"]
    assert (queue.message_count, len(broker.turns)) == (0, 1)
    broker.turns.pop()(7)
    found = [delivery.message for _ in range(3) if (delivery := queue.get(True)) is not None]
    assert [(message.routing_key, message.published_at) for message in found] == [
        ("a", 7), ("b", 7), ("c" * 255, 7),
    ]  # fmt: skip


def test_a_message_that_is_not_routed_is_not_built() -> None:
    broker = Broker()
    feed = InternalPublisher(EXCHANGE, lambda: broker.services.vhost, broker.turns.append)
    made_at: list[int] = []

    def make(now: int) -> Message:
        made_at.append(now)
        return made(feed, "a")(now)

    feed.add(make)
    broker.turn()
    gone = InternalPublisher(EXCHANGE, lambda: None, broker.turns.append)
    gone.add(make)
    broker.turn()
    assert not made_at
