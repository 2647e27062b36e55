"""Delays after failed logins: which logins are delayed, for how long, and which are not."""

from warren.access.login_throttle import LoginThrottle, LoginThrottleSettings
from warren.limits import LOGIN_ADDRESSES_MAX, LOGIN_FAILURE_HALF_LIFE_MS, LOGIN_KNOWN_MS

HERE, THERE = "192.0.2.1", "192.0.2.2"


def fail(login_throttle: LoginThrottle, count: int, host: str = HERE, name: str = "u") -> list[bool]:
    return [login_throttle.failed(host, name, 0) for _ in range(count)]


def test_the_first_failures_are_free_and_the_delay_doubles_after_them() -> None:
    login_throttle = LoginThrottle(LoginThrottleSettings(failures_free=3, delay_ms_max=1_000))
    waits = []
    now = 0
    for _ in range(8):
        wait = login_throttle.wait_ms(HERE, "u", now)
        assert wait is not None
        waits.append(wait)
        now += wait
        login_throttle.failed(HERE, "u", now)
    assert waits[:4] == [0, 0, 0, 0]
    assert 150 < waits[4] < waits[5] < waits[6] <= waits[7] <= 1_000


def test_only_the_failure_that_starts_the_delay_is_reported() -> None:
    login_throttle = LoginThrottle(LoginThrottleSettings(failures_free=2))
    assert fail(login_throttle, 4) == [False, False, True, False]


def test_simultaneous_attempts_wait_in_turn_and_are_refused_beyond_the_longest_wait() -> None:
    login_throttle = LoginThrottle(LoginThrottleSettings(failures_free=0, delay_ms_max=4_000))
    fail(login_throttle, 20)
    assert [login_throttle.wait_ms(HERE, name, 0) for name in ("a", "b", "c")] == [4_000, 8_000, None]
    assert login_throttle.wait_ms(HERE, "d", 4_000) == 8_000


def test_failures_from_other_addresses_delay_a_user_by_two_seconds_at_most() -> None:
    login_throttle = LoginThrottle(LoginThrottleSettings(failures_free=3))
    for last in range(100):
        fail(login_throttle, 1, host=f"198.51.100.{last}", name="u")
    assert login_throttle.wait_ms(THERE, "other", 0) == 0
    assert [login_throttle.wait_ms(THERE, "u", 0) for _ in range(50)] == [2_000] * 50


def test_a_user_who_logged_in_from_an_address_is_not_delayed_by_others_there() -> None:
    login_throttle = LoginThrottle(LoginThrottleSettings(failures_free=3))
    login_throttle.succeeded(HERE, "u", 0)
    fail(login_throttle, 50, name="guessed")
    assert login_throttle.wait_ms(HERE, "u", 0) == 0
    assert login_throttle.wait_ms(HERE, "guessed", 0)
    fail(login_throttle, 50, host=THERE, name="u")
    assert login_throttle.wait_ms(HERE, "u", 0) == 0
    fail(login_throttle, 5, name="u")
    assert login_throttle.wait_ms(HERE, "u", 0)
    assert login_throttle.wait_ms(HERE, "u", LOGIN_KNOWN_MS) == 0


def test_a_success_does_not_reset_failures_with_other_names() -> None:
    login_throttle = LoginThrottle(LoginThrottleSettings(failures_free=3))
    fail(login_throttle, 20, name="guessed")
    login_throttle.succeeded(HERE, "own", 0)
    assert login_throttle.wait_ms(HERE, "guessed", 0)


def test_failures_expire_with_time() -> None:
    login_throttle = LoginThrottle(LoginThrottleSettings(failures_free=3))
    fail(login_throttle, 12)
    assert login_throttle.wait_ms(HERE, "u", 2 * LOGIN_FAILURE_HALF_LIFE_MS + 60) == 0


def test_ipv6_addresses_are_counted_by_prefix() -> None:
    login_throttle = LoginThrottle(LoginThrottleSettings(failures_free=3))
    for last in range(20):
        fail(login_throttle, 1, host=f"2001:db8::{last:x}", name=f"u{last}")
    assert login_throttle.wait_ms("2001:db8::ffff", "x", 0)
    assert login_throttle.wait_ms("2001:db8:0:1::1", "x", 0) == 0
    fail(login_throttle, 20, host="::ffff:192.0.2.1")
    assert login_throttle.wait_ms(HERE, "x", 0)


def test_throttling_can_be_disabled() -> None:
    login_throttle = LoginThrottle(LoginThrottleSettings(failures_free=None))
    assert not any(fail(login_throttle, 100))
    assert login_throttle.wait_ms(HERE, "u", 0) == 0


def test_the_number_of_addresses_is_bounded() -> None:
    login_throttle = LoginThrottle(LoginThrottleSettings(failures_free=0))
    fail(login_throttle, 1)
    for number in range(LOGIN_ADDRESSES_MAX):
        login_throttle.failed(f"198.51.{number >> 8}.{number & 255}", f"u{number}", 0)
    assert login_throttle.wait_ms(HERE, "u", 0) == 0
    assert login_throttle.wait_ms("198.51.0.0", "x", 0)
