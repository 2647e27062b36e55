"""Attempts of links to connect are bounded for the whole node."""

from tests.unit.relay.network import Network, endpoint
from tests.unit.relay.test_link import QueueToQueue
from tests.unit.session.client import Broker

from warren.limits_relay import (
    LINK_ATTEMPTS_MAX,
    LINK_ATTEMPTS_PER_S,
    LINK_ERRORS_LOGGED_MAX,
    LINK_FIXED_DELAYS_MAX,
    LINK_RECONNECT_MAX_MS,
    LINK_RETRIES_MAX,
    LINK_RETRIES_PER_S,
)
from warren.model.coroutine_driver import drive
from warren.relay.attempts import Attempt, LinkAttempts
from warren.relay.link import Link
from warren.relay.status import LinkState

SECOND_MS = 1_000
LINKS = 2_000


def granted(attempts: list[Attempt]) -> int:
    return sum(attempt.is_granted for attempt in attempts)


def dead_links(network: Network, count: int, delay_ms: int | None = SECOND_MS) -> list[Link]:
    """Links whose source refuses every connection."""
    network.refusals["destination"] = "connection refused"
    links = [
        network.link(QueueToQueue(), f"s{number}", reconnect_delay_ms=delay_ms) for number in range(count)
    ]
    for link in links:
        link.start()
    return links


def test_attempts_are_granted_at_a_rate_and_in_the_order_in_which_they_were_asked_for() -> None:
    network = Network()
    attempts = LinkAttempts(network.clock.turn, network.after)
    asked = [attempts.request(is_retry=True) for _ in range(LINK_RETRIES_MAX)]
    assert 0 < granted(asked) < 5
    network.pass_time(SECOND_MS)
    assert LINK_RETRIES_PER_S <= granted(asked) <= LINK_RETRIES_PER_S + 5
    assert [attempt.is_granted for attempt in asked] == sorted(
        (attempt.is_granted for attempt in asked), reverse=True
    )


def test_no_more_attempts_are_in_progress_than_the_bound_and_one_that_ends_lets_another_begin() -> None:
    network = Network()
    attempts = LinkAttempts(network.clock.turn, network.after)
    asked = [attempts.request(is_retry=False) for _ in range(LINK_ATTEMPTS_MAX + 10)]
    network.pass_time(10 * SECOND_MS)
    assert granted(asked) == LINK_ATTEMPTS_MAX
    asked[0].end()
    asked[0].end()
    assert granted(asked) == LINK_ATTEMPTS_MAX + 1


def test_an_attempt_that_ends_while_it_waits_is_not_granted_and_takes_nothing() -> None:
    network = Network()
    attempts = LinkAttempts(network.clock.turn, network.after)
    asked = [attempts.request(is_retry=True) for _ in range(10)]
    waiting = [attempt for attempt in asked if not attempt.is_granted]
    for attempt in waiting[:-1]:
        attempt.end()
    network.pass_time(100)
    assert [attempt.is_granted for attempt in waiting] == [False] * (len(waiting) - 1) + [True]


def test_a_clock_that_was_set_back_delays_no_attempt_for_longer_than_the_rate_says() -> None:
    network = Network()
    attempts = LinkAttempts(network.clock.turn, network.after)
    network.clock.now -= 3_600_000
    asked = [attempts.request(is_retry=True) for _ in range(10)]
    network.pass_time(SECOND_MS)
    assert granted(asked) == 10


def test_links_that_cannot_connect_make_a_bounded_number_of_attempts() -> None:
    network = Network()
    dead_links(network, LINKS)
    network.pass_time(30 * SECOND_MS)
    first = len(network.dialed)
    assert first <= LINKS + 31 * LINK_RETRIES_PER_S
    network.pass_time(30 * SECOND_MS)
    assert len(network.dialed) - first <= 31 * LINK_RETRIES_PER_S


def test_a_new_link_does_not_wait_for_those_that_cannot_connect() -> None:
    network = Network(source=Broker(), here=Broker())
    dead_links(network, 500)
    network.pass_time(10 * SECOND_MS)
    link = network.link(QueueToQueue(), "new", destination=endpoint("here"))
    link.start()
    network.exchange()
    assert link.state is LinkState.RUNNING


def test_a_thousand_new_links_do_not_connect_in_one_turn() -> None:
    network = Network()
    dead_links(network, 1_000)
    assert len(network.dialed) <= LINK_ATTEMPTS_PER_S // 10
    network.pass_time(3 * SECOND_MS)
    assert len({link for link, _ in network.states}) == 1_000


def test_a_link_that_is_stopped_or_restarted_does_not_wait_for_its_attempt() -> None:
    network = Network()
    links = dead_links(network, 200)
    stopped, restarted = links[-2:]
    assert stopped.state is LinkState.STARTING
    drive(stopped.stop())
    assert stopped.state is LinkState.STOPPED
    dialed = len(network.dialed)
    restarted.restart()
    assert len(network.dialed) == dialed + 1
    assert restarted.state is LinkState.TERMINATED


def test_a_fixed_delay_is_doubled_behind_many_failures() -> None:
    network = Network()
    dead_links(network, 1)
    network.pass_time((LINK_FIXED_DELAYS_MAX + 1) * SECOND_MS)
    assert LINK_FIXED_DELAYS_MAX <= len(network.dialed) <= LINK_FIXED_DELAYS_MAX + 2
    network.pass_time(120 * SECOND_MS)
    before = len(network.dialed)
    network.pass_time(10 * LINK_RECONNECT_MAX_MS)
    assert 9 <= len(network.dialed) - before <= 10


def test_an_error_is_logged_once_until_the_link_works_again() -> None:
    network = Network(source=Broker(), destination=Broker())
    [link] = dead_links(network, 1, delay_ms=None)
    network.pass_time(300 * SECOND_MS)
    assert len(warnings(network)) == 1
    for number in range(2 * LINK_ERRORS_LOGGED_MAX):
        network.refusals["destination"] = f"error {number}"
        network.pass_time(2 * LINK_RECONNECT_MAX_MS)
    assert len(warnings(network)) == LINK_ERRORS_LOGGED_MAX
    del network.refusals["destination"]
    network.pass_time(2 * LINK_RECONNECT_MAX_MS)
    assert link.state is LinkState.RUNNING
    network.refusals["destination"] = "connection refused"
    network.cut("destination")
    network.pass_time(60 * SECOND_MS)
    assert len(warnings(network)) == LINK_ERRORS_LOGGED_MAX + 2


def warnings(network: Network) -> list[str]:
    return [line for line in network.log if line.startswith("warning")]
