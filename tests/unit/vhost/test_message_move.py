"""A moved message leaves its queue when it is safe in the target, and returns to its position otherwise."""

import pytest
from tests.unit.queues.samples import Reader, sent
from tests.unit.vhost.places import Place, SlowQueue, bodies, may

from warren.limits import (
    MOVES_IN_FLIGHT_MAX,
    MOVES_IN_FLIGHT_SIZE_MAX,
    PREVIEW_MESSAGES_MAX,
    PREVIEW_REASONS_MAX,
)
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.queues.queue import REFUSED, PeekedMessage
from warren.vhost.message_move import OTHER_REASONS, MessageMove, MoveFailures
from warren.vhost.move_router import MoveRoute, QueueMoveRouter
from warren.vhost.queue_scan import QueueScan
from warren.vhost.undo_log import UndoLog

PERSISTENT = 2


class Moves:
    """A move from one queue to another."""

    def __init__(self, *letters: str, mode: int = PERSISTENT) -> None:
        self.place = Place()
        self.source, self.target = self.place.queue("from"), self.place.queue("to")
        for letter in letters:
            self.source.publish(sent(letter, delivery_mode=mode), None, 0)
        self.message_move = self.moved_by(QueueMoveRouter(self.place.vhost, "to", may))

    def moved_by(self, move_router: object, **more: object) -> MessageMove:
        fits = more.get("fits", lambda peeked: True)
        return MessageMove(
            self.source, self.place.vhost, QueueScan(self.source), fits=fits, move_router=move_router
        )


def test_a_message_is_released_when_it_is_safe_and_not_before() -> None:
    moves = Moves("a", "b", "c")
    moves.message_move.move(9, 9)
    assert (bodies(moves.source), moves.source.unacked_count, bodies(moves.target)) == ("", 3, "abc")
    assert (moves.message_move.moved_count, moves.message_move.in_flight_count) == (0, 3)
    moves.target.write(2)
    assert (
        moves.source.unacked_count,
        moves.message_move.moved_count,
        moves.message_move.in_flight_count,
    ) == (1, 2, 1)
    moves.target.write()
    assert (moves.source.unacked_count, moves.message_move.moved_count) == (0, 3)


def test_a_transient_message_is_moved_at_once() -> None:
    moves = Moves("a", mode=1)
    moves.message_move.move(9, 9)
    assert (moves.source.unacked_count, moves.message_move.moved_count, bodies(moves.target)) == (0, 1, "a")


def test_a_waiter_is_notified() -> None:
    moves = Moves("a")
    reported: list[int] = []
    moves.message_move.wake = lambda: reported.append(moves.message_move.moved_count)
    moves.message_move.move(9, 9)
    moves.target.write()
    assert reported[-1] == 1


def test_messages_not_moved_return_to_their_positions_undelivered() -> None:
    moves = Moves(*"abcdef")
    moves.message_move = moves.moved_by(
        QueueMoveRouter(moves.place.vhost, "to", may), fits=lambda peeked: peeked.message.body in b"bde"
    )
    moves.message_move.move(9, 9)
    assert bodies(moves.source) == "acf"
    moves.message_move.give_back()
    assert bodies(moves.source) == "abcdef"
    assert moves.message_move.in_flight_count == moves.source.unacked_count == 0
    # A later confirm has no effect.
    moves.target.write()
    assert (moves.message_move.moved_count, bodies(moves.source)) == (0, "abcdef")
    assert [moves.source.get().attempts for _ in range(6)] == [0] * 6


def test_a_message_refused_later_returns_alone_and_is_delivered() -> None:
    moves = Moves("a", "b")
    moves.message_move.move(9, 9)
    reader = Reader()
    moves.source.add_consumer(reader)
    moves.message_move.refused(1)
    assert (reader.got, moves.message_move.in_flight_count) == ([(b"a", False)], 1)
    moves.target.write()
    assert moves.message_move.moved_count == 1


def test_the_number_of_moved_messages_is_limited() -> None:
    moves = Moves(*"abcde")
    moves.message_move.move(9, 2)
    moves.message_move.move(9, 0)
    moves.message_move.move(1, 9)
    assert (bodies(moves.source), bodies(moves.target)) == ("de", "abc")


def test_the_number_of_moves_in_flight_is_bounded() -> None:
    moves = Moves(*["x"] * (MOVES_IN_FLIGHT_MAX + 1))
    moves.message_move.move(1 << 20, 1 << 20)
    assert (moves.message_move.in_flight_count, moves.message_move.is_full) == (MOVES_IN_FLIGHT_MAX, True)
    moves.message_move.move(1, 1)
    assert moves.message_move.in_flight_count == MOVES_IN_FLIGHT_MAX
    moves.target.write(1)
    moves.message_move.move(1, 1)
    assert (moves.message_move.sent_count, bodies(moves.source)) == (MOVES_IN_FLIGHT_MAX + 1, "")
    moves.target.write()
    large = Moves("x" * MOVES_IN_FLIGHT_SIZE_MAX, "y")
    large.message_move.move(9, 9)
    assert (large.message_move.in_flight_count, large.message_move.is_full) == (1, True)
    large.target.write()
    assert not large.message_move.is_full


def test_a_message_dropped_while_another_is_moved_is_skipped() -> None:
    place = Place()
    source = place.queue("from", length_max=2)
    place.queue("to", length_max=1, dead_letter_exchange="", dead_letter_routing_key="from")
    for letter in "ab":
        source.publish(sent(letter), None, 0)
    move_router = QueueMoveRouter(place.vhost, "to", may)
    message_move = MessageMove(
        source, place.vhost, QueueScan(source), fits=lambda peeked: True, move_router=move_router
    )
    message_move.move(9, 9)
    # `b` displaces `a` in the target, which is dead-lettered back to the end of this queue.
    assert (bodies(source), message_move.moved_count) == ("a", 2)


class RefusingQueue(SlowQueue):
    """A queue that refuses a publish although its forecast accepted it."""

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        return REFUSED


def test_a_message_that_a_queue_refuses_after_all_is_returned() -> None:
    moves = Moves("a")
    target = RefusingQueue("to", moves.place.vhost, moves.target.settings)

    class Ways:
        def route(self, message: Message, number: int) -> MoveRoute:
            return MoveRoute(message.anew(0), (target,))

    message_move = moves.moved_by(Ways())
    message_move.move(9, 9)
    assert (bodies(moves.source), message_move.moved_count, message_move.move_failures.count) == ("a", 0, 1)


def test_reasons_why_messages_stay_are_counted_within_bounds() -> None:
    move_failures = MoveFailures()
    for number in range(PREVIEW_REASONS_MAX + 5):
        move_failures.add(f"reason {number}", number)
    for number in range(PREVIEW_MESSAGES_MAX + 5):
        move_failures.add("reason 0", number)
    assert len(move_failures.reasons) == PREVIEW_REASONS_MAX + 1
    assert move_failures.reasons[OTHER_REASONS] == 5
    assert move_failures.reasons["reason 0"] == PREVIEW_MESSAGES_MAX + 6
    assert len(move_failures.places["reason 0"]) == PREVIEW_MESSAGES_MAX
    assert move_failures.count == PREVIEW_REASONS_MAX + PREVIEW_MESSAGES_MAX + 10


def test_the_undo_log_records_where_messages_are() -> None:
    moves = Moves("a", "b")
    moves.target.publish(sent("x"), None, 0)
    moves.message_move.undo_log = UndoLog()
    moves.message_move.move(9, 9)
    places = moves.message_move.undo_log.places["to"]
    assert [moves.target.peek(place, 1)[0].message.body for place in places] == [b"a", b"b"]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_deleted_source_ends_the_move(is_deleted: bool) -> None:
    moves = Moves("a", "b")
    moves.message_move.move(1, 1)
    if is_deleted:
        moves.source.delete()
    moves.message_move.move(9, 9)
    moves.target.write()
    assert bodies(moves.target) == ("a" if is_deleted else "ab")
    assert moves.message_move.queue_scan.is_over


def test_only_matching_messages_are_moved() -> None:
    def fits(peeked: PeekedMessage) -> bool:
        return peeked.message.body == b"b"

    moves = Moves("a", "b", "c")
    message_move = moves.moved_by(QueueMoveRouter(moves.place.vhost, "to", may), fits=fits)
    message_move.move(9, 9)
    assert (bodies(moves.source), bodies(moves.target), message_move.queue_scan.examined) == ("ac", "b", 3)
