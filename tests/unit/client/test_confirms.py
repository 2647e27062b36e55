"""Counting of publisher confirms: each once, single or multiple, in any order, cut at any place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.client.confirms import CONFIRM, ConfirmCounter, UnexpectedBytes

# Publishes that are confirmed at most.
PUBLISHED = 1_000


def confirm(tag: int, *, multiple: bool = False, method: int = 80) -> bytes:
    return CONFIRM.pack(1, 1, 13, 60, method, tag, multiple, 0xCE)


def acks(*tags: int) -> bytes:
    return b"".join(confirm(tag) for tag in tags)


def test_each_ack_of_a_run_counts() -> None:
    counter = ConfirmCounter()
    assert counter.feed(acks(*range(1, 101)), PUBLISHED) == 100
    assert counter.feed(acks(*range(101, 111)), PUBLISHED) == 10
    assert (counter.settled, counter.nacked) == (110, 0)


def test_a_multiple_ack_counts_the_outstanding_ones() -> None:
    counter = ConfirmCounter()
    assert counter.feed(acks(2, 5), PUBLISHED) == 2
    assert counter.feed(confirm(4, multiple=True), PUBLISHED) == 3
    assert counter.feed(confirm(6, multiple=True), PUBLISHED) == 1
    assert counter.settled == 6


def test_acks_out_of_order_are_all_counted() -> None:
    counter = ConfirmCounter()
    assert counter.feed(acks(3, 1, 2), PUBLISHED) == 3
    assert counter.feed(acks(4), PUBLISHED) == 1


def test_acks_that_only_resemble_a_run_are_parsed_singly() -> None:
    counter = ConfirmCounter()
    assert counter.feed(acks(1, 5, 3, 4), PUBLISHED) == 4
    assert counter.feed(acks(2), PUBLISHED) == 1
    assert counter.feed(acks(5), PUBLISHED) == 0


def test_a_repeated_tag_is_counted_once() -> None:
    counter = ConfirmCounter()
    assert counter.feed(acks(1, 1), PUBLISHED) == 1
    assert counter.feed(acks(1), PUBLISHED) == 0


def test_a_nack_settles_a_publish_and_is_counted_separately() -> None:
    counter = ConfirmCounter()
    counter.feed(confirm(3, multiple=True, method=120) + acks(4), PUBLISHED)
    assert (counter.settled, counter.nacked) == (4, 3)


def test_other_frames_are_returned() -> None:
    stranger = CONFIRM.pack(1, 1, 13, 20, 40, 1, 0, 0xCE)
    with pytest.raises(UnexpectedBytes) as caught:
        ConfirmCounter().feed(acks(1) + stranger, PUBLISHED)
    assert caught.value.data == stranger


@given(st.permutations(range(1, 30)), st.lists(st.integers(1, 100), min_size=1))
def test_the_count_does_not_depend_on_order_and_cuts(tags: list[int], cuts: list[int]) -> None:
    data = acks(*tags)
    counter = ConfirmCounter()
    at = 0
    for cut in [*cuts, len(data)]:
        counter.feed(data[at : at + cut], PUBLISHED)
        at += cut
    assert counter.settled == 29


@pytest.mark.parametrize("multiple", [False, True])
def test_a_confirm_of_what_was_not_published_is_not_counted(multiple: bool) -> None:
    counter = ConfirmCounter()
    stranger = confirm(4, multiple=multiple)
    with pytest.raises(UnexpectedBytes) as caught:
        counter.feed(acks(1, 2, 3) + stranger, 3)
    assert caught.value.data == stranger
    assert counter.settled == 3
    with pytest.raises(UnexpectedBytes):
        ConfirmCounter().feed(acks(1, 2, 3, 4), 3)
