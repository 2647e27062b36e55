"""A preview says what would go where, and what would not, and changes nothing."""

from tests.unit.queues.samples import sent
from tests.unit.vhost.places import Place, bodies, may

from warren.limits import DESTINATIONS_TOLD_MAX
from warren.model.message import Message
from warren.vhost.looking import Looking
from warren.vhost.preview import End, Preview
from warren.vhost.ways import ToQueue, Way

COUNT = 3


def test_it_counts_by_destination_and_by_reason() -> None:
    place = Place()
    source, full = place.queue("from"), place.full("full")
    for letter in "abc":
        source.publish(sent(letter, key=letter), None, 0)
    preview = Preview(Looking(source), lambda peeked: True, ToQueue(place.vhost, "full", may), 2)
    preview.go(9, 9)
    assert (preview.going_count, preview.staying.count, len(preview.steps)) == (0, 3, 2)
    assert preview.steps[0].reason == "queue 'full' is full and refuses it"
    place.queue("to")
    preview = Preview(Looking(source), lambda peeked: True, ToQueue(place.vhost, "to", may), 2)
    preview.go(9, 2)
    assert preview.ends == {End("", "a", ("to",)): 1, End("", "b", ("to",)): 1}
    assert (preview.going_count, preview.looking.examined) == (2, 2)
    assert (bodies(source), bodies(full), place.vhost.published) == ("abc", "", 0)


def test_of_very_many_destinations_the_last_are_counted_together() -> None:
    place = Place()
    source, target = place.queue("from"), place.queue("to")

    class Ways:
        def way(self, message: Message, number: int) -> Way:
            return Way(sent("x", key=str(number)), (target,))

    for _ in range(DESTINATIONS_TOLD_MAX + COUNT):
        source.publish(sent("x"), None, 0)
    preview = Preview(Looking(source), lambda peeked: True, Ways(), 0)
    preview.go(1 << 20, 1 << 20)
    assert (len(preview.ends), preview.other_count) == (DESTINATIONS_TOLD_MAX, COUNT)
