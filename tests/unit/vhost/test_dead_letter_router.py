"""Dead letters are routed in order, without endless cycles of their own and without recursion."""

import pytest
from tests.clock import ManualClock

from warren.limits import LOST_DEAD_LETTERS_LOG_MS
from warren.model.arguments import Overflow, QueueSettings
from warren.model.message import BODY_END, Message, encode_address
from warren.model.turn import Turn
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Queue
from warren.routing.exchange import Binding, ExchangeSettings
from warren.routing.router import Router
from warren.routing.types import EXCHANGE_TYPES
from warren.vhost.vhost import ROUTED, VirtualHost
from warren.wire.properties import BasicProperties


class Nested(VirtualHost):
    """Counts how many dead-letter routings are nested in each other."""

    def __init__(self, name: str, router: Router, turn: Turn) -> None:
        super().__init__(name, router, turn)
        self.depth = 0
        self.depth_max = 0

    def dead_letter(self, queue: Queue, message: Message, reason: str) -> None:
        self.depth += 1
        self.depth_max = max(self.depth_max, self.depth)
        super().dead_letter(queue, message, reason)
        self.depth -= 1


class Place:
    """A virtual host whose queues are reached by their names."""

    def __init__(self, vhost_type: type[VirtualHost] = VirtualHost) -> None:
        self.clock = ManualClock(5_000)
        self.vhost = vhost_type("v", Router("v"), self.clock.turn)
        for name, kind in (("", "direct"), ("amq.fanout", "fanout")):
            self.vhost.router.add(EXCHANGE_TYPES[kind](name, ExchangeSettings(), bytes))

    def queue(self, name: str, to: str | None = None, **settings: object) -> ClassicQueue:
        """A queue with the dead-letter target `to`."""
        if to is not None:
            settings |= {"dead_letter_exchange": "", "dead_letter_routing_key": to}
        queue = ClassicQueue(name, "v", self.vhost, QueueSettings(**settings))
        self.vhost.queues[name] = queue
        self.vhost.router.bind(Binding(self.vhost.router.exchanges[""], name, None, queue))
        return queue

    def publish(self, key: str, body: bytes = b"x", **properties: object) -> int:
        message = Message.compose(
            encode_address("", key), BasicProperties(**properties), body + BODY_END, now=5_000
        )
        return self.vhost.publish(message, None, 0)


def deaths(message: Message) -> list[tuple[object, object, object]]:
    return [(one["queue"], one["reason"], one["count"]) for one in message.headers()["x-death"]]


def test_a_rejected_message_is_routed_to_the_dead_letter_exchange() -> None:
    place = Place()
    source, dead_letters = place.queue("source", "grave"), place.queue("grave")
    assert place.publish("source") == ROUTED
    source.reject(source.get())
    risen = dead_letters.get().message
    assert (risen.exchange, risen.routing_key, risen.body) == ("", "grave", b"x")
    assert deaths(risen) == [("source", "rejected", 1)]
    assert risen.published_at == 5_000


def test_a_chain_of_full_queues_does_not_recurse() -> None:
    place = Place(Nested)
    for number in range(20):
        place.queue(f"q{number}", f"q{number + 1}", length_max=0)
    last = place.queue("q20")
    place.publish("q0")
    assert len(last.get().message.headers()["x-death"]) == 20
    assert place.vhost.depth_max == 2


def test_an_automatic_dead_letter_cycle_ends() -> None:
    place = Place()
    place.queue("a", "b", length_max=0)
    b = place.queue("b", "a", length_max=0)
    place.publish("a")
    assert (b.published_count, b.message_count) == (1, 0)


def test_a_queue_that_dead_letters_to_itself_drops_expired_messages() -> None:
    place = Place()
    queue = place.queue("a", "a", message_ttl_ms=10)
    place.publish("a")
    place.clock.now = 5_010
    place.vhost.expire()
    assert (queue.published_count, queue.message_count) == (1, 0)


def test_rejections_by_a_client_may_form_a_cycle() -> None:
    place = Place()
    queue = place.queue("a", "a")
    place.publish("a")
    for _ in range(3):
        queue.reject(queue.get())
    assert deaths(queue.get().message) == [("a", "rejected", 3)]


def test_without_the_exchange_or_a_queue_dead_letters_are_discarded() -> None:
    place = Place()
    for to in ({"dead_letter_exchange": "nope"}, {"dead_letter_exchange": "amq.fanout"}):
        queue = place.queue("a", length_max=0, **to)
        place.publish("a")
        assert queue.message_count == 0


def test_names_that_are_too_long_discard_the_dead_letter_and_affect_no_other() -> None:
    place = Place()
    place.queue("a", "k" * 256, length_max=0)
    place.queue("b", length_max=0, dead_letter_exchange="é" * 128)
    assert place.publish("a") == ROUTED
    assert place.publish("b") == ROUTED


def test_a_full_dead_letter_queue_that_rejects_loses_later_messages() -> None:
    place = Place()
    place.queue("a", "grave", length_max=0)
    dead_letters = place.queue("grave", length_max=1, overflow=Overflow.REJECT_PUBLISH)
    for body in (b"1", b"2"):
        place.publish("a", body)
    assert dead_letters.get().message.body == b"1"
    assert dead_letters.get() is None


def test_dead_letters_keep_their_order() -> None:
    place = Place()
    place.queue("a", "grave", message_ttl_ms=10)
    dead_letters = place.queue("grave")
    for body in (b"1", b"2", b"3"):
        place.publish("a", body)
    place.clock.now = 5_010
    place.vhost.expire()
    assert [dead_letters.get().message.body for _ in range(3)] == [b"1", b"2", b"3"]


def test_settings_at_the_time_of_the_rejection_apply() -> None:
    place = Place()
    queue = place.queue("a", "grave")
    dead_letters = place.queue("grave")
    place.publish("a")
    delivery = queue.get()
    queue.apply_settings(QueueSettings())
    queue.reject(delivery)
    assert dead_letters.is_empty


def test_unroutable_dead_letters_are_counted_as_discarded() -> None:
    place = Place()
    place.queue("none", length_max=0)
    place.queue("missing", length_max=0, dead_letter_exchange="nosuch")
    place.queue("unbound", length_max=0, dead_letter_exchange="amq.fanout")
    for name in ("none", "missing", "unbound"):
        place.publish(name)
    assert place.vhost.dead_letter_counts == {"classic": {"maxlen": 1}, "quorum": {}}
    assert place.vhost.discarded_counts == {"classic": {"maxlen": 2}, "quorum": {}}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "which has no dead-letter exchange"),
        ({"dead_letter_exchange": "nosuch"}, "whose dead-letter exchange 'nosuch' does not exist"),
    ],
)
def test_discarded_messages_beyond_their_delivery_limit_are_logged_at_intervals(
    settings: dict[str, object], why: str
) -> None:
    place, reported = Place(), []
    place.vhost.set_discard_logger(reported.append)
    queue = place.queue("q", delivery_limit=0, **settings)

    def count_discarded() -> None:
        place.publish("q")
        queue.requeue(queue.get())

    count_discarded()
    assert reported == [
        f"1 message that exceeded the delivery limit was lost in vhost 'v', the last one in queue 'q', {why}"
    ]
    count_discarded()
    place.clock.now += LOST_DEAD_LETTERS_LOG_MS
    count_discarded()
    assert [text.split()[0] for text in reported] == ["1", "2"]
    assert place.vhost.discarded_counts["classic"] == {"delivery_limit": 3}


def test_a_publish_rejected_without_a_dead_letter_exchange_is_not_counted() -> None:
    place = Place()
    place.queue("q", length_max=0, overflow=Overflow.REJECT_PUBLISH_DLX)
    place.publish("q")
    assert place.vhost.discarded_counts["classic"] == {}
