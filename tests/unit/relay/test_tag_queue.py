"""The delivery tags that wait for confirms."""

import random
from collections import deque

import pytest

from warren.relay.tag_queue import TagQueue

LARGEST = 2**64 - 1


@pytest.mark.parametrize("seed", range(20))
def test_tags_leave_in_the_order_in_which_they_came_however_many_wait(seed: int) -> None:
    chance = random.Random(seed)
    tags = TagQueue()
    expected: deque[int] = deque()
    for _ in range(2_000):
        for _ in range(chance.randrange(200) if chance.random() < 0.1 else 1):
            tag = chance.randrange(LARGEST + 1)
            tags.append(tag)
            expected.append(tag)
        if expected and chance.random() < 0.3:
            count = chance.randint(1, len(expected))
            taken = [expected.popleft() for _ in range(count)]
            assert tags.take(count) == taken[-1]
        assert tags.count == len(expected)
    assert [tags.get(place) for place in range(tags.count)] == list(expected)


def test_a_tag_that_does_not_wait_is_refused() -> None:
    tags = TagQueue()
    for call in (tags.get, tags.take):
        with pytest.raises(IndexError):
            call(1)
    tags.append(5)
    with pytest.raises(IndexError):
        tags.take(2)
    assert (tags.take(1), tags.count) == (5, 0)
