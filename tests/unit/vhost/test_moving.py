"""What is moved leaves its queue when it is safe elsewhere, and waits at its place if it never will be."""

import pytest
from tests.unit.queues.samples import Reader, sent
from tests.unit.vhost.places import Place, SlowQueue, bodies, may

from warren.limits import MESSAGES_NAMED_MAX, MOVED_AT_ONCE_MAX, MOVED_AT_ONCE_SIZE_MAX, REASONS_TOLD_MAX
from warren.model.confirmation import Confirmation
from warren.model.message import Message
from warren.queues.queue import REFUSED, Peeked
from warren.vhost.looking import Looking
from warren.vhost.moving import OTHER_REASONS, Moving, Staying
from warren.vhost.trail import Trail
from warren.vhost.ways import ToQueue, Way

PERSISTENT = 2


class Moves:
    """From one queue to another."""

    def __init__(self, *letters: str, mode: int = PERSISTENT) -> None:
        self.place = Place()
        self.source, self.target = self.place.queue("from"), self.place.queue("to")
        for letter in letters:
            self.source.publish(sent(letter, delivery_mode=mode), None, 0)
        self.moving = self.moved_by(ToQueue(self.place.vhost, "to", may))

    def moved_by(self, ways: object, **more: object) -> Moving:
        fits = more.get("fits", lambda peeked: True)
        return Moving(self.source, self.place.vhost, Looking(self.source), fits=fits, ways=ways)


def test_a_message_is_let_go_of_when_it_is_safe_and_not_before() -> None:
    moves = Moves("a", "b", "c")
    moves.moving.move(9, 9)
    assert (bodies(moves.source), moves.source.unacked_count, bodies(moves.target)) == ("", 3, "abc")
    assert (moves.moving.moved_count, moves.moving.under_way_count) == (0, 3)
    moves.target.write(2)
    assert (moves.source.unacked_count, moves.moving.moved_count, moves.moving.under_way_count) == (1, 2, 1)
    moves.target.write()
    assert (moves.source.unacked_count, moves.moving.moved_count) == (0, 3)


def test_what_need_not_be_written_is_moved_at_once() -> None:
    moves = Moves("a", mode=1)
    moves.moving.move(9, 9)
    assert (moves.source.unacked_count, moves.moving.moved_count, bodies(moves.target)) == (0, 1, "a")


def test_whoever_waits_is_told() -> None:
    moves = Moves("a")
    told: list[int] = []
    moves.moving.wake = lambda: told.append(moves.moving.moved_count)
    moves.moving.move(9, 9)
    moves.target.write()
    assert told[-1] == 1


def test_what_nobody_will_have_waits_at_its_place_as_if_it_had_not_been_out() -> None:
    moves = Moves(*"abcdef")
    moves.moving = moves.moved_by(
        ToQueue(moves.place.vhost, "to", may), fits=lambda peeked: peeked.message.body in b"bde"
    )
    moves.moving.move(9, 9)
    assert bodies(moves.source) == "acf"
    moves.moving.give_back()
    assert bodies(moves.source) == "abcdef"
    assert moves.moving.under_way_count == moves.source.unacked_count == 0
    # An answer that comes after all does nothing.
    moves.target.write()
    assert (moves.moving.moved_count, bodies(moves.source)) == (0, "abcdef")
    assert [moves.source.get().attempts for _ in range(6)] == [0] * 6


def test_one_that_is_refused_later_comes_back_alone_and_goes_to_who_waits_for_it() -> None:
    moves = Moves("a", "b")
    moves.moving.move(9, 9)
    reader = Reader()
    moves.source.add_consumer(reader)
    moves.moving.refused(1)
    assert (reader.got, moves.moving.under_way_count) == ([(b"a", False)], 1)
    moves.target.write()
    assert moves.moving.moved_count == 1


def test_no_more_are_sent_than_may_be() -> None:
    moves = Moves(*"abcde")
    moves.moving.move(9, 2)
    moves.moving.move(9, 0)
    moves.moving.move(1, 9)
    assert (bodies(moves.source), bodies(moves.target)) == ("de", "abc")


def test_so_many_are_under_way_and_no_more() -> None:
    moves = Moves(*["x"] * (MOVED_AT_ONCE_MAX + 1))
    moves.moving.move(1 << 20, 1 << 20)
    assert (moves.moving.under_way_count, moves.moving.is_full) == (MOVED_AT_ONCE_MAX, True)
    moves.moving.move(1, 1)
    assert moves.moving.under_way_count == MOVED_AT_ONCE_MAX
    moves.target.write(1)
    moves.moving.move(1, 1)
    assert (moves.moving.sent_count, bodies(moves.source)) == (MOVED_AT_ONCE_MAX + 1, "")
    moves.target.write()
    large = Moves("x" * MOVED_AT_ONCE_SIZE_MAX, "y")
    large.moving.move(9, 9)
    assert (large.moving.under_way_count, large.moving.is_full) == (1, True)
    large.target.write()
    assert not large.moving.is_full


def test_what_leaves_while_another_is_moved_is_passed_over() -> None:
    place = Place()
    source = place.queue("from", length_max=2)
    place.queue("to", length_max=1, dead_letter_exchange="", dead_letter_routing_key="from")
    for letter in "ab":
        source.publish(sent(letter), None, 0)
    ways = ToQueue(place.vhost, "to", may)
    moving = Moving(source, place.vhost, Looking(source), fits=lambda peeked: True, ways=ways)
    moving.move(9, 9)
    # `b` pushes `a` out of its queue, and so back into this one, behind all that was there.
    assert (bodies(source), moving.moved_count) == ("a", 2)


class Refusing(SlowQueue):
    """Is full when it is published to, and had room when it was asked."""

    def publish(self, message: Message, confirmation: Confirmation | None, sequence: int) -> int:
        return REFUSED


def test_what_a_queue_refuses_after_all_is_given_back() -> None:
    moves = Moves("a")
    target = Refusing("to", moves.place.vhost, moves.target.settings)

    class Ways:
        def way(self, message: Message, number: int) -> Way:
            return Way(message.anew(0), (target,))

    moving = moves.moved_by(Ways())
    moving.move(9, 9)
    assert (bodies(moves.source), moving.moved_count, moving.staying.count) == ("a", 0, 1)


def test_why_messages_stay_is_counted_within_bounds() -> None:
    staying = Staying()
    for number in range(REASONS_TOLD_MAX + 5):
        staying.add(f"reason {number}", number)
    for number in range(MESSAGES_NAMED_MAX + 5):
        staying.add("reason 0", number)
    assert len(staying.reasons) == REASONS_TOLD_MAX + 1
    assert staying.reasons[OTHER_REASONS] == 5
    assert staying.reasons["reason 0"] == MESSAGES_NAMED_MAX + 6
    assert len(staying.places["reason 0"]) == MESSAGES_NAMED_MAX
    assert staying.count == REASONS_TOLD_MAX + MESSAGES_NAMED_MAX + 10


def test_a_trail_leads_to_where_they_are() -> None:
    moves = Moves("a", "b")
    moves.target.publish(sent("x"), None, 0)
    moves.moving.trail = Trail()
    moves.moving.move(9, 9)
    places = moves.moving.trail.places["to"]
    assert [moves.target.peek(place, 1)[0].message.body for place in places] == [b"a", b"b"]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_source_that_is_gone_is_left_alone(is_deleted: bool) -> None:
    moves = Moves("a", "b")
    moves.moving.move(1, 1)
    if is_deleted:
        moves.source.delete()
    moves.moving.move(9, 9)
    moves.target.write()
    assert bodies(moves.target) == ("a" if is_deleted else "ab")
    assert moves.moving.looking.is_over


def test_only_what_fits_is_moved() -> None:
    def fits(peeked: Peeked) -> bool:
        return peeked.message.body == b"b"

    moves = Moves("a", "b", "c")
    moving = moves.moved_by(ToQueue(moves.place.vhost, "to", may), fits=fits)
    moving.move(9, 9)
    assert (bodies(moves.source), bodies(moves.target), moving.looking.examined) == ("ac", "b", 3)
