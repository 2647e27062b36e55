"""A rate limit in messages per second, without bursts after an idle time."""

from warren.flow.rate_limiter import RateLimiter


def test_without_a_rate_there_is_no_limit() -> None:
    pace = RateLimiter(None, 0.0)
    assert pace.allowed(0.0, 32) == 32
    pace.spend(32)
    assert (pace.allowed(0.0, 32), pace.delay_s()) == (32, 0.0)


def test_the_first_message_goes_at_once_and_the_next_when_it_is_due() -> None:
    pace = RateLimiter(4.0, 10.0)
    assert pace.allowed(10.0, 32) == 1
    pace.spend(1)
    assert pace.allowed(10.0, 32) == 0
    assert pace.delay_s() == 0.25
    assert pace.allowed(10.25, 32) == 1


def test_unused_capacity_is_kept_for_a_moment_only() -> None:
    pace = RateLimiter(100.0, 0.0)
    assert pace.allowed(60.0, 1_000) == 10
    pace.spend(10)
    assert pace.allowed(60.0, 1_000) == 0


def test_a_low_rate_waits_for_whole_messages() -> None:
    pace = RateLimiter(0.5, 0.0)
    pace.spend(pace.allowed(0.0, 9))
    assert (pace.allowed(1.0, 9), pace.delay_s()) == (0, 1.0)
    assert pace.allowed(2.0, 9) == 1
