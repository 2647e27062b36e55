"""Delivery tags: assigned in order, acknowledged in any order, each once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.queues.samples import Host, made, sent

from warren.errors import PreconditionFailed
from warren.queues.queue import Delivery, new_delivery
from warren.session.unacked import RevokedDelivery, Unacked

QUEUE = made(Host())


def delivery(number: int = 0) -> Delivery:
    return new_delivery(QUEUE, sent(), number)


def kept(count: int) -> Unacked:
    unacked = Unacked()
    for number in range(1, count + 1):
        assert unacked.add(delivery(number)) == number
    return unacked


def deliveries_of(unacked: Unacked) -> list[Delivery]:
    return [one for _, one in unacked.tagged()]


def positions(deliveries: list[Delivery]) -> list[int]:
    return [one.position for one in deliveries]


def refuses(unacked: Unacked, tag: int, *, multiple: bool) -> None:
    with pytest.raises(PreconditionFailed, match=f"unknown delivery tag {tag}"):
        unacked.take_to(tag) if multiple else unacked.take(tag)


def test_each_tag_is_acknowledged_once_in_any_order() -> None:
    unacked = kept(4)
    for tag in (3, 1, 4, 2):
        assert unacked.take(tag).position == tag
        refuses(unacked, tag, multiple=False)
    assert unacked.count == 0
    assert unacked.add(delivery()) == 5


def test_multiple_takes_all_up_to_an_existing_tag() -> None:
    unacked = kept(5)
    unacked.take(2)
    assert positions(unacked.take_to(3)) == [1, 3]
    refuses(unacked, 2, multiple=True)
    assert positions(deliveries_of(unacked)) == [4, 5]
    unacked.take(5)
    refuses(unacked, 5, multiple=True)
    assert positions(unacked.take_to(4)) == [4]


def test_tag_zero_means_all_and_is_no_error_without_any() -> None:
    unacked = kept(3)
    assert positions(unacked.take_to(0)) == [1, 2, 3]
    assert unacked.take_to(0) == []
    refuses(unacked, 0, multiple=False)


@pytest.mark.parametrize("tag", [0, 4, 2**31, 2**32 + 1, 2**63, 2**64 - 1])
def test_a_tag_that_was_never_assigned_is_unknown(tag: int) -> None:
    refuses(kept(3), tag, multiple=False)
    if tag:
        refuses(kept(3), tag, multiple=True)


def test_deliveries_without_acknowledgement_use_tags_and_no_memory() -> None:
    unacked = Unacked()
    assert [unacked.next_tag() for _ in range(3)] == [1, 2, 3]
    assert unacked.add(delivery(4)) == 4
    assert unacked.next_tag() == 5
    assert unacked.add(delivery(6)) == 6
    refuses(unacked, 5, multiple=False)
    refuses(unacked, 5, multiple=True)
    assert positions(unacked.take_to(6)) == [4, 6]
    assert unacked.next_tag() == 7


def test_a_transaction_looks_tags_up_without_removing_them() -> None:
    unacked = kept(4)
    unacked.take(2)
    assert unacked.tags(3, False, set()) == [3]
    assert unacked.tags(4, True, {1}) == [3, 4]
    assert unacked.tags(0, True, set()) == [1, 3, 4]
    assert unacked.count == 3
    for tag, multiple in ((3, False), (3, True), (2, False), (9, True), (0, False)):
        with pytest.raises(PreconditionFailed, match=f"unknown delivery tag {tag}"):
            unacked.tags(tag, multiple, {3})


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "add", "skip", "take", "take to"]), st.integers(0, 12)), max_size=60
)


@given(STEPS)
def test_it_behaves_as_a_table(steps: list[tuple[str, int]]) -> None:
    unacked, table, last = Unacked(), {}, 0
    for step, tag in steps:
        if step == "add":
            last += 1
            table[last] = delivery(last)
            assert unacked.add(table[last]) == last
        elif step == "skip":
            last += 1
            assert unacked.next_tag() == last
        elif step == "take":
            if tag in table:
                assert unacked.take(tag) is table.pop(tag)
            else:
                refuses(unacked, tag, multiple=False)
        elif tag in table or not tag:
            meant = [one for one in table if one <= tag or not tag]
            assert unacked.take_to(tag) == [table.pop(one) for one in meant]
        else:
            refuses(unacked, tag, multiple=True)
        assert unacked.count == len(table)
        assert deliveries_of(unacked) == list(table.values())


def test_a_revoked_delivery_is_ignored_when_it_is_acknowledged_late() -> None:
    unacked = kept(6)
    assert positions(unacked.revoke([5, 2, 2, 9])) == [2, 5]
    assert positions(deliveries_of(unacked)) == [1, 3, 4, 6]
    for tag in (2, 5, 2):
        with pytest.raises(RevokedDelivery):
            unacked.take(tag)
    with pytest.raises(RevokedDelivery):
        unacked.tags(5, False, set())
    for tag in (0, 7):
        with pytest.raises(PreconditionFailed) as caught:
            unacked.take(tag)
        assert not isinstance(caught.value, RevokedDelivery)


def test_multiple_acknowledges_deliveries_below_a_revoked_one() -> None:
    unacked = kept(6)
    unacked.revoke([3, 6])
    assert unacked.tags(6, True, {2}) == [1, 4, 5]
    assert positions(unacked.take_to(3)) == [1, 2]
    with pytest.raises(RevokedDelivery):
        unacked.take_to(3)
    with pytest.raises(RevokedDelivery):
        unacked.tags(3, True, set())
    assert positions(unacked.take_to(6)) == [4, 5]
    assert unacked.count == 0
    assert unacked.add(delivery()) == 7
    refuses(unacked, 8, multiple=True)


def test_a_tag_above_revoked_ones_is_refused_as_unknown() -> None:
    unacked = kept(3)
    unacked.revoke([1])
    unacked.take(2)
    for multiple in (False, True):
        with pytest.raises(PreconditionFailed) as caught:
            unacked.take_to(2) if multiple else unacked.take(2)
        assert not isinstance(caught.value, RevokedDelivery)


@given(
    st.lists(st.tuples(st.sampled_from(["add", "take", "take_to", "back"]), st.integers(0, 12)), max_size=40)
)
def test_revoking_behaves_as_in_a_model(steps: list[tuple[str, int]]) -> None:
    unacked, model, given_out, back_to = Unacked(), set[int](), 0, 0
    for action, tag in steps:
        if action == "add":
            given_out = unacked.add(delivery(given_out + 1))
            assert unacked.last_tag == given_out
            model.add(given_out)
        elif action == "back":
            taken = unacked.revoke([tag, tag + 1])
            assert positions(taken) == sorted(model & {tag, tag + 1})
            back_to = max([back_to, *(model & {tag, tag + 1})])
            model -= {tag, tag + 1}
        else:
            wanted = {tag} if action == "take" else {one for one in model if one <= tag}
            try:
                if action == "take":
                    unacked.take(tag)
                elif tag:
                    assert positions(unacked.take_to(tag)) == sorted(wanted)
            except RevokedDelivery:
                assert tag not in model
                assert tag <= back_to
                assert not model & wanted
                continue
            except PreconditionFailed:
                assert tag not in model
                assert tag == 0 or tag > back_to
                continue
            if tag:
                model -= wanted
        assert positions(deliveries_of(unacked)) == sorted(model)
