"""The choice of the next consumer: round robin, by priority, among those that are ready."""

from collections import Counter
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.queues.samples import Reader

from warren.queues.consumers import ConsumerSet


def gathered(*consumers: Reader, is_single_active: bool = False) -> ConsumerSet:
    found = ConsumerSet(is_single_active=is_single_active)
    for consumer in consumers:
        found.add(consumer)
    return found


def turns(consumers: ConsumerSet, count: int) -> str:
    chosen = [consumers.next() for _ in range(count)]
    return "".join("-" if one is None else one.tag for one in chosen)


def test_without_consumers_none_is_chosen() -> None:
    assert gathered().next() is None


def test_consumers_are_chosen_in_turn() -> None:
    assert turns(gathered(Reader("a"), Reader("b"), Reader("c")), 7) == "abcabca"


def test_the_highest_priority_is_chosen_while_it_is_ready() -> None:
    low, high = Reader("l", priority=-1), Reader("h", priority=5)
    consumers = gathered(low, Reader("m"), high)
    assert turns(consumers, 3) == "hhh"
    high.is_open = False
    assert turns(consumers, 2) == "mm"
    assert high.is_parked
    assert not low.is_parked
    high.is_open = True
    assert turns(consumers, 1) == "m"
    assert consumers.unpark(high)
    assert turns(consumers, 1) == "h"


def test_a_consumer_that_is_not_ready_is_parked_and_not_asked_again() -> None:
    a, b = Reader("a"), Reader("b")
    consumers = gathered(a, b)
    a.is_open = False
    assert turns(consumers, 3) == "bbb"
    a.is_open = True
    assert turns(consumers, 2) == "bb"
    assert consumers.unpark(a)
    assert sorted(turns(consumers, 2)) == ["a", "b"]
    assert not consumers.unpark(a)


def test_a_removed_consumer_is_not_chosen_whether_parked_or_not() -> None:
    a, b, c = Reader("a"), Reader("b"), Reader("c")
    consumers = gathered(a, b, c)
    b.is_open = False
    turns(consumers, 2)
    for consumer in (b, a):
        assert consumers.remove(consumer)
        assert not consumers.remove(consumer)
        assert not consumers.unpark(consumer)
    assert turns(consumers, 2) == "cc"
    assert (consumers.count, list(consumers)) == (1, [c])


def test_a_removal_keeps_the_order_of_the_others() -> None:
    readers = [Reader(tag) for tag in "abcd"]
    consumers = gathered(*readers)
    turns(consumers, 1)
    consumers.remove(readers[2])
    assert turns(consumers, 4) == "bdab"


def test_the_single_active_consumer_is_the_oldest_and_then_the_next_of_its_priority() -> None:
    a, b, c = Reader("a"), Reader("b"), Reader("c", priority=-9)
    consumers = gathered(a, b, c, is_single_active=True)
    assert turns(consumers, 2) == "aa"
    a.is_open = False
    assert turns(consumers, 2) == "--"
    a.is_open = True
    assert turns(consumers, 1) == "-"
    consumers.unpark(a)
    assert turns(consumers, 1) == "a"
    consumers.remove(a)
    assert consumers.active is b
    assert turns(consumers, 2) == "bb"
    consumers.remove(b)
    consumers.remove(c)
    assert consumers.active is None
    assert turns(consumers, 1) == "-"


def test_the_next_active_consumer_is_the_oldest_of_the_highest_priority() -> None:
    a, b, c, d = Reader("a"), Reader("b"), Reader("c", priority=9), Reader("d", priority=9)
    consumers = gathered(a, b, c, d, is_single_active=True)
    assert consumers.active is a
    a.is_open = False
    assert turns(consumers, 1) == "-"
    consumers.remove(a)
    assert turns(consumers, 2) == "cc"
    consumers.remove(c)
    consumers.add(c)
    assert turns(consumers, 2) == "dd"
    consumers.remove(d)
    consumers.remove(c)
    assert turns(consumers, 2) == "bb"


def test_an_exclusive_consumer_is_recognised() -> None:
    exclusive = Reader("a", is_exclusive=True)
    consumers = gathered(exclusive)
    assert consumers.has_exclusive()
    consumers.remove(exclusive)
    assert not consumers.has_exclusive()


def test_of_many_priorities_the_highest_that_is_ready_is_chosen_each_time() -> None:
    readers = [Reader(f"{number}", priority=number) for number in range(40)]
    consumers = gathered(*readers)
    for reader in readers[5:]:
        reader.is_open = False
    assert turns(consumers, 2) == "44"
    for reader in (readers[30], readers[20], readers[39]):
        reader.is_open = True
        consumers.unpark(reader)
    assert turns(consumers, 1) == "39"
    for number in (39, 30, 12, 4):
        assert consumers.remove(readers[number])
    assert turns(consumers, 2) == "2020"
    consumers.remove(readers[20])
    assert turns(consumers, 1) == "3"


@pytest.mark.parametrize("is_single_active", [False, True], ids=["in turn", "one active"])
@pytest.mark.parametrize("priorities", [1, 20_000], ids=["one priority", "many priorities"])
def test_adding_and_removing_twenty_thousand_consumers_takes_constant_time_each(
    priorities: int, is_single_active: bool
) -> None:
    readers = [Reader(priority=number % priorities) for number in range(20_000)]
    begun = perf_counter()
    consumers = gathered(is_single_active=is_single_active)
    for reader in readers:
        assert not consumers.has_exclusive()
        consumers.add(reader)
        consumers.next()
    for reader in readers:
        consumers.remove(reader)
        consumers.next()
    # It takes 0.1 s; a scan of all consumers for each would take half a minute.
    assert perf_counter() - begun < 5


@given(st.lists(st.tuples(st.sampled_from("+-po="), st.integers(0, 9)), max_size=60))
def test_shares_are_fair_and_no_ready_consumer_is_skipped(steps: list[tuple[str, int]]) -> None:
    consumers, here = gathered(), []
    for number, (step, value) in enumerate(steps):
        if step == "+":
            here.append(Reader(f"{number}", priority=value % 3))
            consumers.add(here[-1])
        elif here and step == "-":
            consumers.remove(here.pop(value % len(here)))
        elif here and step in "po":
            reader = here[value % len(here)]
            reader.is_open = step == "o"
            if reader.is_open:
                consumers.unpark(reader)
        assert consumers.count == len(here)
        ready = [one for one in here if one.is_open]
        best = [one for one in ready if one.priority == max(other.priority for other in ready)]
        got = Counter(consumers.next() for _ in range(2 * len(best) + 1))
        assert set(got) <= (set(best) or {None})
        if best:
            assert max(got.values()) - min(got[one] for one in best) <= 1
