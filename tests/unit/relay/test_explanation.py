"""Why a link stands still, in one sentence and since when."""

import msgspec
import pytest

from warren.relay.explanation import FORWARDING, Explanation, explain
from warren.relay.status import Hold, LinkCounters, LinkKey, LinkKind, LinkState, LinkStatus

NOW = 1_000_000
RUNNING = LinkStatus(
    key=LinkKey(LinkKind.SHOVEL, "/", "s"),
    state=LinkState.RUNNING,
    since=900_000,
    reason="",
    last_error="",
    last_error_code=0,
    last_error_at=0,
    next_attempt_at=0,
    connected_at=900_000,
    source_uri="amqp://a",
    destination_uri="amqp://b",
    counters=LinkCounters(),
    pending=0,
    unconfirmed=0,
    unconfirmed_since=0,
    prefetch_count=100,
    rate_max=None,
    hold=Hold.NONE,
    hold_since=0,
    hold_reason="",
    remaining=-1,
    remaining_unacked=-1,
    delivered_at=0,
    delivered_timestamp=0,
    source_ready=-1,
    source_counted_at=0,
)


def status(**changes: object) -> LinkStatus:
    return msgspec.structs.replace(RUNNING, **changes)


@pytest.mark.parametrize(
    ("found", "sentence", "since"),
    [
        (status(), "the source delivers nothing", 900_000),
        (status(source_ready=0), "the source is empty", 900_000),
        (status(source_ready=0, delivered_at=950_000), "the source is empty", 950_000),
        (status(paused_since=970_000), "the consumers of the queue here want no more messages", 970_000),
        (
            status(delivered_at=950_000, source_ready=0, source_counted_at=990_000),
            "the source is empty",
            950_000,
        ),
        (
            status(delivered_at=950_000, source_ready=7, source_counted_at=990_000),
            "the source has 7 messages and delivers none to the link",
            950_000,
        ),
        (
            status(unconfirmed=1, unconfirmed_since=960_000),
            "the destination has not confirmed one message",
            960_000,
        ),
        (
            status(unconfirmed=100, unconfirmed_since=960_000),
            "the destination has not confirmed 100 messages, which uses up the prefetch",
            960_000,
        ),
        (
            status(hold=Hold.ALARM, hold_since=970_000, hold_reason="low on memory"),
            "the destination accepts no messages: low on memory",
            970_000,
        ),
        (
            status(hold=Hold.REFUSED, hold_since=970_000),
            "the destination refuses messages (basic.nack), for example because its queue is full",
            970_000,
        ),
        (
            status(hold=Hold.RATE, hold_since=970_000, rate_max=2.5),
            "its rate is limited to 2.5 messages per second",
            970_000,
        ),
        (
            status(hold=Hold.FULL, hold_since=970_000),
            "the destination does not read from its connection as fast as the source delivers",
            970_000,
        ),
        (
            status(hold=Hold.UNCONFIRMED, hold_since=970_000, unconfirmed=65_535),
            "the destination has not confirmed 65535 messages",
            970_000,
        ),
        (
            status(hold=Hold.FINISHED, hold_since=970_000),
            "all messages it was asked for are published, and not yet confirmed",
            970_000,
        ),
    ],
)
def test_a_running_link_that_forwards_nothing_says_why_and_since_when(
    found: LinkStatus, sentence: str, since: int
) -> None:
    assert explain(found, NOW) == Explanation(sentence, since)


@pytest.mark.parametrize(
    "found",
    [
        status(delivered_at=NOW - 10),
        status(connected_at=NOW - 10),
        status(unconfirmed=100, unconfirmed_since=NOW - 10, delivered_at=NOW - 10),
    ],
)
def test_a_link_that_forwards_says_nothing(found: LinkStatus) -> None:
    assert explain(found, NOW) == FORWARDING


@pytest.mark.parametrize(
    ("code", "error", "sentence"),
    [
        (0, "amqp://b: connection refused", "amqp://b: connection refused"),
        (
            403,
            "amqp://b: 403 ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN",
            "the login was refused: "
            "amqp://b: 403 ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN",
        ),
        (
            403,
            "403 ACCESS_REFUSED - read access to queue 'q' in vhost '/' refused for user 'u'",
            "a permission is missing: "
            "403 ACCESS_REFUSED - read access to queue 'q' in vhost '/' refused for user 'u'",
        ),
        (
            403,
            "user 'u', who has set it, is deleted: it has to be set again",
            "user 'u', who has set it, is deleted: it has to be set again",
        ),
        (
            404,
            "404 NOT_FOUND - no queue 'q' in vhost '/'",
            "there is no such queue: 404 NOT_FOUND - no queue 'q' in vhost '/'",
        ),
        (
            404,
            "404 NOT_FOUND - no exchange 'x' in vhost '/'",
            "there is no such exchange: 404 NOT_FOUND - no exchange 'x' in vhost '/'",
        ),
        (
            530,
            "530 NOT_ALLOWED - vhost v not found",
            "the virtual host does not exist, or the user may not enter it: "
            "530 NOT_ALLOWED - vhost v not found",
        ),
    ],
)
def test_a_link_that_waits_names_its_error_and_the_next_attempt(code: int, error: str, sentence: str) -> None:
    found = status(
        state=LinkState.TERMINATED,
        since=990_000,
        reason=error,
        last_error=error,
        last_error_code=code,
        next_attempt_at=NOW + 4_001,
    )
    assert explain(found, NOW) == Explanation(f"{sentence}; the next attempt is in 5 s", 990_000)
    never = msgspec.structs.replace(found, next_attempt_at=0)
    assert explain(never, NOW) == Explanation(sentence, 990_000)


def test_a_link_that_connects_names_the_error_before() -> None:
    found = status(state=LinkState.STARTING, since=990_000)
    assert explain(found, NOW) == Explanation("it connects", 990_000)
    again = msgspec.structs.replace(found, last_error="it was lost")
    assert explain(again, NOW) == Explanation("it connects, after this error: it was lost", 990_000)


def test_a_stopped_link_gives_the_reason_of_its_stop() -> None:
    stopped = status(state=LinkState.STOPPED, since=5, reason="it was stopped", last_error="an old error")
    assert explain(stopped, NOW) == Explanation("it was stopped", 5)
    assert explain(status(state=LinkState.STOPPED, since=5), NOW) == Explanation("it was not started", 5)
    stopping = msgspec.structs.replace(stopped, state=LinkState.TERMINATED)
    assert explain(stopping, NOW) == Explanation("it was stopped", 5)
