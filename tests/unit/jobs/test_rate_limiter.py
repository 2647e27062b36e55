"""So many in a second, and no burst after a rest."""

from warren.jobs.rate_limiter import RateLimiter


def test_without_a_rate_there_is_no_bound() -> None:
    pace = RateLimiter(None, 0.0)
    assert pace.allowed(0.0, 32) == 32
    pace.spend(32)
    assert (pace.allowed(0.0, 32), pace.delay_s()) == (32, 0.0)


def test_one_may_go_at_once_and_the_next_when_it_is_time() -> None:
    pace = RateLimiter(4.0, 10.0)
    assert pace.allowed(10.0, 32) == 1
    pace.spend(1)
    assert pace.allowed(10.0, 32) == 0
    assert pace.delay_s() == 0.25
    assert pace.allowed(10.25, 32) == 1


def test_what_was_not_used_is_saved_for_a_moment_only() -> None:
    pace = RateLimiter(100.0, 0.0)
    assert pace.allowed(60.0, 1_000) == 10
    pace.spend(10)
    assert pace.allowed(60.0, 1_000) == 0


def test_a_slow_rate_waits_for_whole_messages() -> None:
    pace = RateLimiter(0.5, 0.0)
    pace.spend(pace.allowed(0.0, 9))
    assert (pace.allowed(1.0, 9), pace.delay_s()) == (0, 1.0)
    assert pace.allowed(2.0, 9) == 1
