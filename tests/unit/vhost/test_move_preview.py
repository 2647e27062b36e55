"""A preview reports what a move would do, and changes nothing."""

from tests.unit.queues.samples import sent
from tests.unit.vhost.places import Place, bodies, may

from warren.limits import PREVIEW_DESTINATIONS_MAX
from warren.model.message import Message
from warren.vhost.move_preview import MoveDestination, MovePreview
from warren.vhost.move_router import MoveRoute, QueueMoveRouter
from warren.vhost.queue_scan import QueueScan

COUNT = 3


def test_it_counts_by_destination_and_by_reason() -> None:
    place = Place()
    source, full = place.queue("from"), place.full("full")
    for letter in "abc":
        source.publish(sent(letter, key=letter), None, 0)
    preview = MovePreview(
        QueueScan(source), lambda peeked: True, QueueMoveRouter(place.vhost, "full", may), 2
    )
    preview.advance(9, 9)
    assert (preview.movable_count, preview.move_failures.count, len(preview.steps)) == (0, 3, 2)
    assert preview.steps[0].reason == "queue 'full' is full and refuses it"
    place.queue("to")
    preview = MovePreview(QueueScan(source), lambda peeked: True, QueueMoveRouter(place.vhost, "to", may), 2)
    preview.advance(9, 2)
    assert preview.ends == {MoveDestination("", "a", ("to",)): 1, MoveDestination("", "b", ("to",)): 1}
    assert (preview.movable_count, preview.queue_scan.examined) == (2, 2)
    assert (bodies(source), bodies(full), place.vhost.published) == ("abc", "", 0)


def test_beyond_a_bound_destinations_are_counted_together() -> None:
    place = Place()
    source, target = place.queue("from"), place.queue("to")

    class Ways:
        def route(self, message: Message, number: int) -> MoveRoute:
            return MoveRoute(sent("x", key=str(number)), (target,))

    for _ in range(PREVIEW_DESTINATIONS_MAX + COUNT):
        source.publish(sent("x"), None, 0)
    preview = MovePreview(QueueScan(source), lambda peeked: True, Ways(), 0)
    preview.advance(1 << 20, 1 << 20)
    assert (len(preview.ends), preview.other_count) == (PREVIEW_DESTINATIONS_MAX, COUNT)
