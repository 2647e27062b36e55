"""Hash values, which must never change because keys would move to other queues."""

from collections import Counter

from tests.unit.routing.samples import made

from warren.routing.direct import DirectExchange
from warren.routing.hashing import SLOTS, destination_name, draw, key_hash, key_slot, mix, seed


def test_the_hash_values_have_not_changed() -> None:
    assert mix(1) == 0x5692161D100B05E5
    assert key_slot(b"customer-17") == key_hash(b"customer-17") >> 48
    assert (key_slot(b""), key_slot(b"a"), key_slot(b"customer-17")) == (0, 46327, 17138)
    assert seed("queue orders") == 0xE8ED03C69BA5EC9C


def test_slots_are_drawn_in_proportion_to_the_weights() -> None:
    seeds = [seed(name) for name in ("a", "b", "c", "d")]
    drawn = Counter(draw(slot, seeds, [1.0, 1.0, 2.0, 4.0]) for slot in range(0, SLOTS, 4))
    shares = [drawn[at] * 8 / (SLOTS // 4) for at in range(4)]
    assert all(
        abs(share - weight) < 0.15 * weight for share, weight in zip(shares, (1, 1, 2, 4), strict=True)
    )


def test_equal_weights_draw_as_no_weights_do() -> None:
    seeds = [seed(str(number)) for number in range(9)]
    for slot in range(500):
        assert draw(slot, seeds, [3.0] * 9) == draw(slot, seeds, [])


def test_a_weight_of_a_million_wins_almost_always() -> None:
    seeds = [seed("a"), seed("b")]
    assert sum(draw(slot, seeds, [1.0, 1e6]) for slot in range(1000)) >= 998


def test_a_destination_is_hashed_by_its_name() -> None:
    assert destination_name(made(DirectExchange, "x")) == "x"
    assert destination_name("queue") == "queue"
