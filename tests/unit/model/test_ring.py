"""A queue of references in blocks, with access to any place."""

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.model.ring import Ring


def listed(ring: Ring) -> list[object]:
    return [ring.get(place) for place in range(ring.count)]


def test_an_empty_ring_has_no_entries() -> None:
    ring = Ring()
    with pytest.raises(IndexError):
        ring.popleft()
    for place in (-1, 0, 1):
        with pytest.raises(IndexError):
            ring.get(place)
        with pytest.raises(IndexError):
            ring.take(place)


def test_a_removed_entry_stays_empty_until_the_front_passes_it() -> None:
    ring = Ring()
    for item in "abc":
        ring.append(item)
    assert ring.take(1) == "b"
    assert listed(ring) == ["a", None, "c"]
    assert [ring.popleft() for _ in range(3)] == ["a", None, "c"]


def test_it_grows_and_shrinks_by_thousands_and_keeps_the_order() -> None:
    ring = Ring()
    for item in range(5000):
        ring.append(item)
    for item in range(4990):
        assert ring.popleft() == item
        ring.append(-item) if item % 100 == 0 else None
    assert ring.get(0) == 4990
    assert ring.count == 60


STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "append", "popleft", "take", "clear"]), st.integers(0, 30)),
    max_size=80,
)


@given(STEPS, st.integers(0, 20))
def test_it_behaves_as_a_list(steps: list[tuple[str, int]], turned: int) -> None:
    ring, naive = Ring(), []
    for item in range(turned):
        ring.append(item)
        ring.popleft()
    for step, value in steps:
        if step == "append":
            ring.append(value)
            naive.append(value)
        elif step == "popleft" and naive:
            assert ring.popleft() == naive.pop(0)
        elif step == "take" and naive:
            assert ring.take(value % len(naive)) == naive[value % len(naive)]
            naive[value % len(naive)] = None
        elif step == "clear" and value < 3:
            ring.clear()
            naive.clear()
        assert listed(ring) == naive


LONG_STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "append", "popleft", "take", "clear"]), st.integers(1, 1500)),
    max_size=25,
)


@given(LONG_STEPS)
def test_it_behaves_as_a_list_across_many_blocks(steps: list[tuple[str, int]]) -> None:
    ring, naive = Ring(), []
    for step, value in steps:
        if step == "append":
            for item in range(value):
                ring.append(item)
            naive += range(value)
        elif step == "popleft":
            taken = naive[:value]
            del naive[:value]
            assert [ring.popleft() for _ in taken] == taken
        elif step == "take":
            for place in range(0, len(naive), value):
                assert ring.take(place) == naive[place]
                naive[place] = None
        elif value < 100:
            ring.clear()
            naive.clear()
        assert listed(ring) == naive


@pytest.mark.parametrize("length", [0, 1, 7, 300, 511, 512, 513, 2000])
def test_a_ring_of_constant_length_works_without_end(length: int) -> None:
    ring = Ring()
    for item in range(length):
        ring.append(item)
    for item in range(length, length + 70_000):
        ring.append(item)
        assert ring.popleft() == item - length
    assert listed(ring) == list(range(70_000, 70_000 + length))


def test_no_reference_to_a_removed_entry_remains() -> None:
    class Held:
        pass

    ring, held = Ring(), [Held() for _ in range(1200)]
    seen = [weakref.ref(item) for item in held]
    for item in held:
        ring.append(item)
    del item
    held.clear()
    for _ in range(1000):
        ring.popleft()
    for place in range(200):
        ring.take(place)
    gc.collect()
    assert [reference() for reference in seen] == [None] * 1200
