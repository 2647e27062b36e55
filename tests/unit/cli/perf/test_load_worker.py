"""Distribution of producers and consumers over processes, each exactly once."""

from hypothesis import given
from hypothesis import strategies as st

from warren.cli.perf.load import Load
from warren.cli.perf.load_worker import assignments
from warren.client.uri import DEFAULT_URI, parse_uri

TARGET = parse_uri(DEFAULT_URI)


@given(st.integers(1, 20), st.integers(0, 20), st.integers(1, 8))
def test_every_producer_and_consumer_is_in_one_process(
    producers: int, consumers: int, processes: int
) -> None:
    load = Load(target=TARGET, producers=producers, consumers=consumers, processes=processes)
    dealt = assignments(load)
    assert sorted(number for each in dealt for number in each.producers) == list(range(producers))
    assert sorted(number for each in dealt for number in each.consumers) == list(range(consumers))
    assert len(dealt) <= processes
    assert all(each.producers or each.consumers for each in dealt)


def test_producers_and_consumers_do_not_share_a_process_when_there_are_two() -> None:
    producing, consuming = assignments(Load(target=TARGET, producers=3, consumers=2, processes=2))
    assert (producing.producers, producing.consumers) == ((0, 1, 2), ())
    assert (consuming.producers, consuming.consumers) == ((), (0, 1))
