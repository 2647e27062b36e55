"""A multimap whose values are unique per key and in order of arrival."""

from hypothesis import given
from hypothesis import strategies as st

from warren.model.multimap import Multimap


class Equal:
    """A value equal to others with the same number, but not identical."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and other.number == self.number

    def __hash__(self) -> int:
        return hash(self.number)


def test_the_first_of_two_equal_values_stays() -> None:
    for others in (), (Equal(2),):
        groups: Multimap[Equal] = Multimap()
        first, second = Equal(1), Equal(1)
        for value in (first, *others):
            assert groups.add("k", value)
        assert not groups.add("k", second)
        assert groups.holds("k", second)
        assert groups.remove("k", second) is first
        assert groups.remove("k", second) is None
        assert groups.count == len(others)


STEPS = st.lists(st.tuples(st.sampled_from(["add", "add", "remove"]), st.integers(0, 2), st.integers(0, 3)))


@given(STEPS)
def test_it_behaves_as_a_list_of_pairs(steps: list[tuple[str, int, int]]) -> None:
    groups: Multimap[int] = Multimap()
    pairs: list[tuple[int, int]] = []
    for step, key, value in steps:
        is_there = (key, value) in pairs
        assert groups.holds(key, value) == is_there
        if step == "add":
            assert groups.add(key, value) is not is_there
            pairs += [] if is_there else [(key, value)]
        else:
            assert groups.remove(key, value) == (value if is_there else None)
            pairs = [pair for pair in pairs if pair != (key, value)]
        assert groups.count == len(pairs)
        by_key = {key: [v for k, v in pairs if k == key] for key in range(3)}
        assert {key: list(groups.get(key)) for key in range(3)} == by_key
        assert [groups.size(key) for key in range(3)] == [len(by_key[key]) for key in range(3)]
        assert sorted(groups.each()) == sorted(value for _, value in pairs)
        assert sorted(groups.each_first()) == sorted(values[0] for values in by_key.values() if values)
