"""Which queues can receive dead letters, and the causes of those in a queue."""

from tests.unit.queues.samples import sent
from tests.unit.vhost.places import Place

from warren.limits import CAUSE_KEYS_MAX, DEAD_LETTER_CAUSES_MAX
from warren.model.message import Message
from warren.queues.deaths import Death, make_dead_letter
from warren.queues.redrive_headers import FirstDeath
from warren.vhost.dead_letter_summary import DeadLetterSummary, reachable, scan_dead_letters


def dead(queue: str, reason: str = "rejected", *, key: str = "k", now: int = 5) -> Message:
    death = Death(queue=queue, reason=reason, exchange="dlx", routing_key=None, now=now)
    risen = make_dead_letter(sent("xy", key=key), death)
    assert risen is not None
    return risen.message


def reached(place: Place) -> set[str]:
    return {queue.name for piece in reachable(place.vhost) for queue in piece}


def test_dead_letters_are_counted_by_cause_with_times_and_keys() -> None:
    found = DeadLetterSummary()
    for at, message in enumerate(
        [dead("a", now=7), dead("a", key="other", now=3), sent("alive"), dead("b", "expired")]
    ):
        found.add(message, at)
    cause = found.causes[FirstDeath("a", "rejected", "")]
    assert (cause.count, cause.oldest, cause.newest, cause.byte_count) == (2, 3, 7, 4)
    assert (cause.routing_keys, cause.place) == (["k", "other"], 0)
    assert (found.count, found.non_dead_letter_count) == (3, 1)


def test_causes_and_keys_invented_by_clients_are_bounded() -> None:
    found = DeadLetterSummary()
    for number in range(DEAD_LETTER_CAUSES_MAX + 3):
        found.add(dead(f"q{number}"), number)
    for number in range(CAUSE_KEYS_MAX + 3):
        found.add(dead("q0", key=str(number)), number)
    assert (len(found.causes), found.other_count) == (DEAD_LETTER_CAUSES_MAX, 3)
    assert len(found.causes[FirstDeath("q0", "rejected", "")].routing_keys) == CAUSE_KEYS_MAX
    assert found.count == DEAD_LETTER_CAUSES_MAX + CAUSE_KEYS_MAX + 6


def test_a_queue_is_examined_in_pieces_up_to_a_bound_and_can_be_continued() -> None:
    queue = Place().queue("dead")
    for number in range(10):
        queue.publish(dead("a", key=str(number)), None, 0)
    found = DeadLetterSummary()
    assert len(list(scan_dead_letters(queue, found, 7, 3))) == 3
    assert (found.examined, found.place) == (7, 7)
    rest = DeadLetterSummary(place=found.place)
    list(scan_dead_letters(queue, rest, 7, 3))
    assert (rest.examined, rest.place, rest.count) == (3, None, 3)


def test_only_queues_behind_a_dead_letter_exchange_are_reached() -> None:
    place = Place()
    place.bind("amq.topic", place.queue("behind"), "a.*")
    place.bind("amq.topic", place.queue("other"), "b")
    place.bind("amq.fanout", place.queue("far"))
    place.queue("alone")
    place.queue("dying", dead_letter_exchange="amq.topic", dead_letter_routing_key="a.b")
    assert reached(place) == {"behind"}
    place.queue("keeping its key", dead_letter_exchange="amq.topic")
    assert reached(place) == {"behind", "other"}
    place.bind("amq.topic", place.vhost.router.exchanges["amq.fanout"], "c")
    assert reached(place) == {"behind", "other", "far"}


def test_the_default_exchange_reaches_the_queue_of_the_key() -> None:
    place = Place()
    place.queue("grave")
    place.queue("dying", dead_letter_exchange="", dead_letter_routing_key="grave")
    place.queue("lost", dead_letter_exchange="nowhere", dead_letter_routing_key="x")
    place.queue("unknown", dead_letter_exchange="")
    assert reached(place) == {"grave"}


def test_headers_and_alternate_exchanges_are_followed_and_cycles_end() -> None:
    place = Place()
    exchanges = place.vhost.router.exchanges
    place.bind("amq.headers", place.queue("by header"))
    place.bind("amq.fanout", place.queue("alternate"))
    exchanges["amq.headers"].alternate = "amq.fanout"
    place.bind("amq.fanout", exchanges["amq.headers"])
    place.queue("dying", dead_letter_exchange="amq.headers", dead_letter_routing_key="any")
    assert reached(place) == {"by header", "alternate"}
