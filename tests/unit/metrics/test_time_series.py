"""Rates and samples of counters, equal to those that RabbitMQ 3.10.8 computed from the same values."""

from warren import limits
from warren.metrics.time_series import CoarseTimeSeries, SampleTimes, TimeSeries, details

T0 = 1_795_208_910_000
STEP = limits.SAMPLE_INTERVAL_MS
# The acknowledgements that a live RabbitMQ counted, in the last of 13 intervals.
ACKED = {8: 33, 9: 99, 10: 165, 11: 225, 12: 288}
MANY = 1000


def acked() -> TimeSeries:
    series = TimeSeries((0,))
    for interval, count in ACKED.items():
        series.add(T0 + interval * STEP, (count,), MANY)
    return series


def test_a_rate_is_the_increase_of_the_last_interval() -> None:
    assert details(acked(), T0 + 12 * STEP, 0, None) == {"rate": 12.6}


def test_the_rate_is_zero_after_an_interval_without_change() -> None:
    assert details(acked(), T0 + 13 * STEP, 0, None) == {"rate": 0.0}
    assert details(None, T0, 0, None) == {"rate": 0.0}


def test_samples_begin_with_the_latest_and_have_averages() -> None:
    shown = details(acked(), T0 + 12 * STEP, 0, SampleTimes(T0 + 12 * STEP, 60_000, STEP))
    assert shown["samples"] == [
        {"sample": ACKED.get(interval, 0), "timestamp": T0 + interval * STEP}
        for interval in range(12, -1, -1)
    ]
    assert (shown["rate"], shown["avg_rate"], shown["avg"]) == (12.6, 4.8, 62.30769230769231)


def test_the_value_between_two_samples_is_that_of_the_earlier_one() -> None:
    series = TimeSeries((0,))
    series.add(T0, (5,), MANY)
    series.add(T0 + 4 * STEP, (7,), MANY)
    assert [series.at(T0 + interval * STEP, 0) for interval in range(-1, 6)] == [0, 5, 5, 5, 5, 7, 7]
    assert series.rate(T0 + 4 * STEP, 0) == 0.4
    assert len(series) == 2


def test_a_falling_value_has_a_negative_rate() -> None:
    series = TimeSeries((0,))
    series.add(T0, (50,), MANY)
    series.add(T0 + STEP, (0,), MANY)
    assert series.rate(T0 + STEP, 0) == -10.0


def test_old_samples_are_dropped_and_their_total_is_kept() -> None:
    series = TimeSeries((0, 0))
    for interval in range(1, 200):
        series.add(T0 + interval * STEP, (interval, -interval), MANY)
    assert len(series) == limits.SAMPLE_RETENTION_MS // STEP
    oldest = T0 + 199 * STEP - limits.SAMPLE_RETENTION_MS
    assert (series.at(oldest, 0), series.at(oldest, 1)) == (79, -79)


def test_a_small_capacity_keeps_the_latest_rows() -> None:
    series = TimeSeries((0,))
    for interval in range(1, 10):
        series.add(T0 + interval * STEP, (interval * 10,), 2)
    assert len(series) == 2
    assert series.rate(T0 + 9 * STEP, 0) == 2.0
    series.forget()
    assert (len(series), series.at(T0 + 99 * STEP, 0)) == (0, 90)


def test_a_row_with_the_time_of_the_previous_one_replaces_it() -> None:
    series = TimeSeries((0,))
    series.add(T0, (1,), MANY)
    series.add(T0, (2,), MANY)
    assert (len(series), series.at(T0, 0)) == (1, 2)


def test_coarse_samples_are_kept_longer() -> None:
    series = TimeSeries((0,), CoarseTimeSeries((0,), 60_000, 30))
    for interval in range(480):
        series.add(T0 + interval * STEP, (interval,), MANY)
    # 480 intervals are 40 minutes: 10 minutes of fine samples, and 30 samples a minute apart.
    assert series.at(T0 + 479 * STEP - 600_000, 0) == 359
    long_ago = T0 + 479 * STEP - 1_800_000
    assert 119 - 12 < series.at(long_ago, 0) <= 119
