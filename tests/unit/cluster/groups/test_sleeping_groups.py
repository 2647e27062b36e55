"""Two nodes find out which groups do not sleep on both of them."""

import random

import pytest
from tests.seeds import SEEDS

from warren.cluster.groups import sleeping_groups
from warren.cluster.groups.group_payloads import SLEEPING_HEAD, SLEEPING_ROW, VERSION
from warren.cluster.groups.sleeping_groups import BUCKETS, SleepingGroups
from warren.cluster.node_link import PayloadError

HEAD = bytes((VERSION,))


@pytest.mark.seeds(SEEDS)
def test_what_differs_is_found_and_nothing_else(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sleeping_groups, "GROUP_PAYLOAD_SIZE", 60)
    chance = random.Random(seed)
    nodes = SleepingGroups(), SleepingGroups()
    known: list[dict[int, tuple[int, int]]] = [{}, {}]
    for _ in range(60):
        number, state = chance.randrange(1, 600), (chance.randrange(1, 3), chance.randrange(1, 3))
        # Mostly both, in any order.
        for at in (0, 1):
            if chance.random() < 0.9:
                nodes[at].remove(number)
                known[at].pop(number, None)
                if chance.random() < 0.8:
                    nodes[at].add(number, *state)
                    known[at][number] = state
    differing = nodes[1].differing(nodes[0].digest())
    found = [number for payload in nodes[1].lists(differing) for number in nodes[0].differences(payload)]
    expected = sorted(n for n in {*known[0], *known[1]} if known[0].get(n) != known[1].get(n))
    assert sorted(found) == expected
    assert {number % BUCKETS for number in expected} == set(differing)


def test_equal_nodes_have_nothing_to_tell() -> None:
    one, other = SleepingGroups(), SleepingGroups()
    for number in (1, 257, 3):
        one.add(number, 5, 2)
    for number in (3, 257, 1):
        other.add(number, 5, 2)
    assert other.differing(one.digest()) == []
    assert other.lists([]) == []


def test_a_group_that_does_not_sleep_is_not_removed_twice() -> None:
    one = SleepingGroups()
    one.remove(7)
    assert one.digest() == SleepingGroups().digest()


@pytest.mark.parametrize("digest", [b"", HEAD, HEAD + bytes(8 * BUCKETS - 1), HEAD + bytes(8 * BUCKETS + 1)])
def test_hashes_of_another_size_are_refused(digest: bytes) -> None:
    with pytest.raises(PayloadError):
        SleepingGroups().differing(digest)


def test_lists_are_checked() -> None:
    one = SleepingGroups()
    with pytest.raises(PayloadError, match="4294967295 sleeping groups in 0 bytes"):
        one.differences(HEAD + SLEEPING_HEAD.pack(1, 0xFFFF_FFFF))
    with pytest.raises(PayloadError, match="group 2 in bucket 1"):
        one.differences(HEAD + SLEEPING_HEAD.pack(1, 1) + SLEEPING_ROW.pack(2, 1, 1))
