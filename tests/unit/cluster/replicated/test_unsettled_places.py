"""What a node holds of a quorum queue, and what it has settled without being sure of it."""

from warren.cluster.replicated.unsettled_places import UnsettledPlaces
from warren.model.message import BODY_END, NO_PROPERTIES, Message
from warren.queues.queue import NACKED, Delivery, Queue, new_delivery

ACKNOWLEDGE = 0


def delivery(place: int) -> Delivery:
    return new_delivery(Queue(), Message(b"\0\0", NO_PROPERTIES, BODY_END, 0), place)


def test_what_is_settled_is_under_way_until_that_is_committed() -> None:
    places = UnsettledPlaces()
    places.settle(ACKNOWLEDGE, 5, is_new=True)
    places.settle(ACKNOWLEDGE, 6, is_new=False)
    places.settle(NACKED, 9, is_new=True)
    assert places.settled(1)
    assert places.count == 1
    assert not places.settled(2)
    assert places.take_under_way() == [(NACKED, 9)]
    assert places.count == 0


def test_all_of_it_is_settled_again_in_order() -> None:
    places = UnsettledPlaces()
    places.settle(NACKED, 7, is_new=True)
    places.settle(NACKED, 8, is_new=False)
    places.settle(ACKNOWLEDGE, 3, is_new=True)
    assert places.take_under_way() == [(NACKED, 7), (NACKED, 8), (ACKNOWLEDGE, 3)]


def test_what_came_again_is_not_returned_again() -> None:
    places = UnsettledPlaces()
    places.settle(NACKED, 7, is_new=True)
    places.settle(NACKED, 8, is_new=False)
    places.deliver(7, delivery(7))
    assert places.take_under_way() == [(NACKED, 8)]


def test_what_came_again_and_was_returned_again_is_returned_once() -> None:
    places = UnsettledPlaces()
    places.settle(NACKED, 7, is_new=True)
    places.deliver(7, delivery(7))
    places.settle(NACKED, 7, is_new=True)
    assert places.settled(1)
    places.deliver(7, delivery(7))
    assert places.take_under_way() == []
