"""Forecasts of a publish, compared with the actual publish."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.queues.samples import Host, Reader, filled, made, sent

from warren.model.arguments import Overflow
from warren.queues.publish_forecast import PublishOutcome, forecast_publish, is_taken_at_once, lifetime_ms
from warren.queues.queue import ACCEPTED, REFUSED

BODY = b"the new one"
LIMITS = st.one_of(st.none(), st.integers(0, 4))
BYTES = st.one_of(st.none(), st.integers(0, 30))
TTLS = st.sampled_from([None, 0, 5000])


@given(st.data(), LIMITS, BYTES, st.sampled_from(Overflow), TTLS)
@settings(max_examples=400, deadline=None)
def test_a_forecast_equals_what_happens(
    data: st.DataObject, length: int | None, byte_count: int | None, overflow: Overflow, ttl: int | None
) -> None:
    host = Host(now=1000)
    waiting = data.draw(st.lists(st.sampled_from(["a", "bb", "cccc"]), max_size=5))
    limits = {"length_max": length, "length_bytes_max": byte_count, "message_ttl_ms": ttl}
    queue = filled(host, *waiting, dead=True, overflow=overflow, **limits)
    reader = Reader()
    if data.draw(st.booleans()):
        queue.add_consumer(reader)
    expiration = data.draw(TTLS)
    host.dead.clear()
    foresight = forecast_publish(queue, len(BODY), expiration)
    before = queue.message_count
    more = {} if expiration is None else {"expiration": str(expiration)}
    outcome = queue.publish(sent(BODY, now=host.now, **more), None, 0)
    assert (outcome == REFUSED) == (foresight.outcome is PublishOutcome.REFUSED)
    is_gone = BODY in [body for body, _ in host.dead]
    match foresight.outcome:
        case PublishOutcome.REFUSED:
            assert is_gone == foresight.is_dead_lettered
            assert queue.message_count == before
        case PublishOutcome.DROPPED:
            assert (BODY, "maxlen") in host.dead
        case PublishOutcome.EXPIRED:
            assert (BODY, "expired") in host.dead
        case PublishOutcome.ACCEPTED:
            assert outcome == ACCEPTED
            assert not is_gone
            assert foresight.pushes_out == bool(host.dead)
            assert queue.message_count or BODY in reader.bodies
    assert (foresight.reason == "") == (
        foresight.outcome is PublishOutcome.ACCEPTED and not is_taken(reader, foresight.pushes_out)
    )


def is_taken(reader: Reader, pushes_out: bool) -> bool:
    return BODY in reader.bodies or pushes_out


def test_a_consumer_at_its_prefetch_does_not_take_a_message_at_once() -> None:
    queue, reader = made(Host()), Reader(prefetch=1)
    assert not is_taken_at_once(queue)
    queue.add_consumer(reader)
    assert is_taken_at_once(queue)
    queue.publish(sent("a"), None, 0)
    queue.publish(sent("b"), None, 0)
    assert not is_taken_at_once(queue)


def test_the_shorter_ttl_applies() -> None:
    assert lifetime_ms(made(Host()), None) is None
    assert lifetime_ms(made(Host()), 7) == 7
    assert lifetime_ms(made(Host(), message_ttl_ms=5), 7) == 5


def test_reasons_name_the_limit() -> None:
    full = filled(Host(), "a", "b", length_max=2, overflow=Overflow.REJECT_PUBLISH)
    assert forecast_publish(full, 1, None).reason == (
        "the queue is full: 2 of at most 2 messages are ready; x-overflow is reject-publish"
    )
    heavy = filled(Host(), "aaaa", length_bytes_max=5)
    assert forecast_publish(heavy, 2, None).reason == (
        "the queue is full: 4 of at most 5 bytes are ready, and the message has 2; "
        "messages at its head are dropped"
    )
