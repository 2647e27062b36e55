"""Dead letters at least once: nothing is settled before every target has confirmed, and nothing is lost.

The queues are in memory, so that a target is told when to confirm; nobody has to agree with a death then, and
it is sent in the next turn.
"""

import pytest
from tests.unit.queues.samples import Reader, sent
from tests.unit.vhost.places import Place, SlowQueue, bodies

from warren.limits_raft import DEAD_LETTERS_RETRIED_MS, DEAD_LETTERS_SENT_MAX
from warren.metadata.incarnation import Incarnation
from warren.model.arguments import DeadLetterStrategy, Overflow, QueueSettings
from warren.model.message import Message
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.routing.exchange import ExchangeSettings
from warren.routing.types import EXCHANGE_TYPES


class KeepingPlace(Place):
    """A virtual host whose quorum queue `q` dead-letters to the exchange amq.topic with the key `dead`."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: list[str] = []
        self.vhost.set_discard_logger(self.logged.append)
        self.q = self.quorum("q")

    def quorum(self, name: str, **changes: object) -> QuorumQueue:
        """A quorum queue with the strategy at-least-once."""
        settings: dict[str, object] = {
            "kind": "quorum",
            "overflow": Overflow.REJECT_PUBLISH,
            "dead_letter_exchange": "amq.topic",
            "dead_letter_routing_key": "dead",
            "dead_letter_strategy": DeadLetterStrategy.AT_LEAST_ONCE,
        }
        made = QueueSettings(**settings | changes)
        queue = QuorumQueue(name, "v", self.vhost, made, incarnation=Incarnation(1, 1))
        self.vhost.queues[name] = queue
        self.bind("", queue, name)
        return queue

    def target(self, name: str) -> SlowQueue:
        """A queue that is bound for dead letters."""
        queue = self.queue(name)
        self.bind("amq.topic", queue, "dead")
        return queue

    def publish(self, letters: str, queue: str = "q", **properties: object) -> None:
        """Publish a persistent message for each letter."""
        for letter in letters:
            message = sent(letter, now=self.clock.now, key=queue, delivery_mode=2, **properties)
            self.vhost.publish(message, None, 0)

    def reject(self, letters: str) -> None:
        """Publish messages to `q`, and reject them."""
        self.publish(letters)
        for delivery in [self.q.get() for _ in letters]:
            assert delivery is not None
            self.q.reject(delivery)
        self.turn()

    def turn(self, later_ms: int = 0) -> None:
        """Let a turn pass, and time before it."""
        self.clock.now += later_ms
        self.vhost.expire()

    @property
    def waiting(self) -> tuple[int, int]:
        """The dead letters of `q` that are not confirmed, and the bytes of their bodies."""
        status = self.q.replication_status()
        assert status is not None
        return status.dead_letter_count, status.dead_letter_bytes


@pytest.fixture
def place() -> KeepingPlace:
    return KeepingPlace()


def deaths(message: Message) -> list[tuple[object, object, object]]:
    return [(one["queue"], one["reason"], one["count"]) for one in message.headers()["x-death"]]


def test_a_dead_message_is_settled_when_all_targets_have_confirmed_it(place: KeepingPlace) -> None:
    first, second = place.target("first"), place.target("second")
    place.reject("a")
    assert (bodies(first), bodies(second), place.waiting) == ("a", "a", (1, 1))
    assert place.q.message_count == place.q.unacked_count == 0
    first.write()
    assert place.waiting == (1, 1)
    second.write()
    assert place.waiting == (0, 0)
    assert place.vhost.kept_counts == {"rejected": 1}
    assert (place.vhost.confirmed_dead_letters, place.vhost.dead_letter_counts["quorum"]) == (1, {})


def test_a_transient_dead_letter_is_confirmed_when_its_target_has_it(place: KeepingPlace) -> None:
    target = place.target("target")
    place.vhost.publish(sent("a", key="q"), None, 0)
    delivery = place.q.get()
    assert delivery is not None
    place.q.reject(delivery)
    place.turn()
    assert (bodies(target), place.waiting) == ("a", (0, 0))


def test_each_reason_is_in_the_death_headers(place: KeepingPlace) -> None:
    target = place.target("target")
    limited = place.quorum("limited", delivery_limit=0)
    expiring = place.quorum("expiring", message_ttl_ms=100)
    place.reject("a")
    place.publish("b", "limited")
    delivery = limited.get()
    assert delivery is not None
    limited.requeue(delivery)
    place.publish("c", "expiring")
    place.turn(100)
    place.turn()
    assert [deaths(peeked.message) for peeked in target.peek(0, 9)] == [
        [("q", "rejected", 1)], [("limited", "delivery_limit", 1)], [("expiring", "expired", 1)],
    ]  # fmt: skip
    assert expiring.message_count == limited.message_count == 0


def test_messages_that_expire_anywhere_in_the_queue_are_kept(place: KeepingPlace) -> None:
    target = place.target("target")
    place.publish("a")
    place.publish("b", expiration="50")
    place.publish("c")
    place.turn(50)
    place.turn()
    assert (bodies(place.q), bodies(target), place.waiting) == ("ac", "b", (1, 1))
    target.write()
    assert place.waiting == (0, 0)


def test_a_message_without_a_target_waits_until_a_queue_is_bound(place: KeepingPlace) -> None:
    place.reject("ab")
    assert place.waiting == (2, 2)
    assert len(place.logged) == 1
    assert "cannot forward dead-letter messages from source quorum queue 'q'" in place.logged[0]
    place.turn(DEAD_LETTERS_RETRIED_MS - 1)
    target = place.target("target")
    assert bodies(target) == ""
    place.turn()
    assert bodies(target) == "ab"
    target.write()
    assert place.waiting == (0, 0)


def test_a_message_whose_exchange_does_not_exist_waits_until_it_does(place: KeepingPlace) -> None:
    place.vhost.router.remove("amq.topic")
    place.reject("a")
    assert place.waiting == (1, 1)
    place.vhost.router.add(EXCHANGE_TYPES["topic"]("amq.topic", ExchangeSettings(), bytes))
    target = place.target("target")
    place.turn()
    assert bodies(target) == "a"


def test_a_refused_message_is_sent_again_after_three_minutes_to_those_that_refused(
    place: KeepingPlace,
) -> None:
    taking, full = place.target("taking"), place.full("full")
    place.bind("amq.topic", full, "dead")
    place.reject("a")
    taking.write()
    assert place.waiting == (1, 1)
    full.apply_settings(QueueSettings())
    place.turn(DEAD_LETTERS_RETRIED_MS - 1)
    assert bodies(full) == ""
    place.turn(1)
    assert (bodies(taking), bodies(full)) == ("a", "a")
    full.write()
    assert place.waiting == (0, 0)


def test_a_target_that_is_unbound_needs_no_confirm_if_another_one_has_confirmed(place: KeepingPlace) -> None:
    taking, full = place.target("taking"), place.full("full")
    place.bind("amq.topic", full, "dead")
    place.reject("a")
    taking.write()
    for binding in place.vhost.router.bindings_of(full):
        place.vhost.router.unbind(binding)
    place.turn()
    assert place.waiting == (0, 0)


def test_what_one_target_has_confirmed_needs_no_other_if_there_is_none_any_more(place: KeepingPlace) -> None:
    taking, full = place.target("taking"), place.full("full")
    place.bind("amq.topic", full, "dead")
    place.reject("a")
    taking.write()
    place.vhost.router.remove("amq.topic")
    place.turn()
    assert place.waiting == (0, 0)


def test_at_most_so_many_are_sent_and_the_next_ones_follow_in_order(place: KeepingPlace) -> None:
    target = place.target("target")
    letters = "".join(chr(ord("a") + number % 26) for number in range(DEAD_LETTERS_SENT_MAX + 3))
    place.reject(letters)
    assert bodies(target) == letters[:DEAD_LETTERS_SENT_MAX]
    target.write(2)
    assert bodies(target) == letters[: DEAD_LETTERS_SENT_MAX + 2]
    target.write()
    target.write()
    assert (bodies(target), place.waiting) == (letters, (0, 0))


def test_a_message_that_would_circulate_waits_unless_it_was_rejected(place: KeepingPlace) -> None:
    circle = place.quorum("circle", dead_letter_exchange="", dead_letter_routing_key=None, message_ttl_ms=10)
    place.publish("a", "circle")
    place.turn(10)
    place.turn(10)
    place.turn(10)
    status = circle.replication_status()
    assert status is not None
    assert (circle.message_count, status.dead_letter_count) == (0, 1)
    place.bind("amq.topic", place.q, "dead")
    place.reject("b")
    assert (bodies(place.q), place.waiting) == ("b", (0, 0))


def test_purging_leaves_dead_letters_and_deleting_does_not(place: KeepingPlace) -> None:
    place.reject("a")
    assert (place.q.clear(), place.waiting) == (0, (1, 1))
    assert (place.q.delete(), place.waiting) == (0, (0, 0))
    target = place.target("target")
    place.turn(DEAD_LETTERS_RETRIED_MS)
    assert bodies(target) == ""


def test_a_confirm_after_the_queue_was_deleted_changes_nothing(place: KeepingPlace) -> None:
    target = place.target("target")
    place.reject("a")
    place.q.delete()
    target.write()
    assert place.vhost.confirmed_dead_letters == 0


def test_dead_letters_that_wait_count_towards_the_limit_of_the_queue(place: KeepingPlace) -> None:
    place.q.apply_settings(_changed(place.q.settings, length_max=2))
    place.reject("a")
    place.publish("bc")
    assert bodies(place.q) == "b"
    target = place.target("target")
    place.turn()
    target.write()
    place.publish("d")
    assert bodies(place.q) == "bd"


def test_a_change_to_at_most_once_publishes_what_waits(place: KeepingPlace) -> None:
    place.reject("a")
    target = place.queue("target")
    place.q.apply_settings(
        _changed(
            place.q.settings,
            dead_letter_strategy=DeadLetterStrategy.AT_MOST_ONCE,
            dead_letter_exchange="",
            dead_letter_routing_key="target",
        )
    )
    assert (bodies(target), place.waiting) == ("a", (0, 0))
    assert place.vhost.dead_letter_counts == {"classic": {}, "quorum": {"rejected": 1}}


def test_what_is_sent_while_the_strategy_changes_is_not_sent_again(place: KeepingPlace) -> None:
    target = place.target("target")
    place.reject("a")
    place.q.apply_settings(_changed(place.q.settings, overflow=Overflow.DROP_HEAD))
    assert (bodies(target), place.waiting) == ("a", (1, 1))
    target.write()
    assert place.waiting == (0, 0)


def test_another_routing_key_is_used_at_once(place: KeepingPlace) -> None:
    place.reject("a")
    target = place.queue("target")
    place.bind("amq.topic", target, "other")
    place.q.apply_settings(_changed(place.q.settings, dead_letter_routing_key="other"))
    place.turn()
    assert bodies(target) == "a"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, None),
        (
            {"overflow": Overflow.DROP_HEAD},
            "falling back to dead-letter-strategy at-most-once for queue 'p' in vhost 'v' because configured"
            " dead-letter-strategy at-least-once is incompatible with effective overflow strategy drop-head",
        ),
        (
            {"dead_letter_exchange": None},
            "disabling dead-lettering for queue 'p' in vhost 'v' despite configured dead-letter-strategy"
            " 'at-least-once' because dead-letter-exchange is not configured",
        ),
        ({"overflow": Overflow.DROP_HEAD, "dead_letter_strategy": DeadLetterStrategy.AT_MOST_ONCE}, None),
    ],
)
def test_a_strategy_that_cannot_be_obeyed_is_logged(
    changes: dict[str, object], text: str | None, place: KeepingPlace
) -> None:
    place.vhost.check_dead_lettering(place.quorum("p", **changes))
    assert [logged.split(". To enable")[0] for logged in place.logged] == ([text] if text else [])


def test_a_consumer_gets_nothing_of_what_has_died(place: KeepingPlace) -> None:
    reader = Reader(prefetch=1)
    place.q.add_consumer(reader)
    place.publish("ab")
    place.q.reject(reader.unsettled.pop())
    place.q.unpark(reader)
    place.q.pump()
    place.turn()
    assert reader.bodies == [b"a", b"b"]
    assert place.waiting == (1, 1)


def _changed(settings: QueueSettings, **changes: object) -> QueueSettings:
    return QueueSettings(**{name: getattr(settings, name) for name in settings.__struct_fields__} | changes)
