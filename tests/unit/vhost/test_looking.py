"""Each message is looked at once, in pieces, and what comes meanwhile is not."""

import pytest
from tests.unit.queues.samples import Host, filled, made, sent

from warren.limits import LOOKED_AT_SIZE_MAX
from warren.vhost.looking import Chosen, Looking, fitting


def seen(looking: Looking | Chosen, count: int) -> str:
    return "".join(peeked.message.body.decode() for peeked in looking.look(count))


def test_pieces_follow_one_another_to_the_end() -> None:
    looking = Looking(filled(Host(), *"abcde"))
    assert [seen(looking, 2), seen(looking, 2), looking.is_over, seen(looking, 2)] == ["ab", "cd", False, "e"]
    assert (looking.is_over, looking.examined) == (True, 5)


def test_whoever_stops_early_goes_on_there() -> None:
    looking = Looking(filled(Host(), *"abc"))
    for peeked in looking.look(3):
        assert peeked.message.body == b"a"
        break
    assert (looking.examined, seen(looking, 9)) == (1, "bc")


@pytest.mark.parametrize("priority_max", [None, 2])
def test_what_comes_later_is_not_seen(priority_max: int | None) -> None:
    queue = made(Host(), priority_max=priority_max)
    for priority in (2, 0):
        queue.publish(sent(str(priority), priority=priority), None, 0)
    looking = Looking(queue)
    for priority in (2, 1, 0):
        queue.publish(sent("x", priority=priority), None, 0)
    assert seen(looking, 1) == "2"
    found = ""
    while not looking.is_over:
        found += seen(looking, 1)
    assert (found, looking.examined) == ("0", 2)


def test_one_can_begin_anywhere() -> None:
    assert seen(Looking(filled(Host(), *"abc"), 1), 9) == "bc"


def test_what_was_chosen_is_seen_if_it_is_there() -> None:
    queue = filled(Host(), *"abcd")
    places = [peeked.place for peeked in queue.peek(0, 4)]
    queue.get(no_ack=True)
    chosen = Chosen(queue, [places[0], places[2], places[3], 99])
    assert (seen(chosen, 3), chosen.is_over, seen(chosen, 3), chosen.is_over) == ("cd", False, "", True)
    assert Chosen(queue, []).is_over


def test_large_messages_are_looked_at_a_few_at_a_time() -> None:
    queue = made(Host())
    assert fitting(queue) > 1_000
    for _ in range(3):
        queue.publish(sent(bytes(LOOKED_AT_SIZE_MAX // 2)), None, 0)
    assert fitting(queue) == 2
    queue.publish(sent(bytes(LOOKED_AT_SIZE_MAX * 4)), None, 0)
    assert fitting(queue) == 1
    looking = Looking(queue)
    while not looking.is_over:
        assert len(list(looking.look(9))) <= 1
    assert looking.examined == 4
