"""The unacknowledged deliveries of one channel: delivery tag -> delivery.

Tags are assigned in order, so that a tag is a place in a ring: `_first` is the tag of its front. A message
that needs no acknowledgement takes a tag too; while others wait before it, its place holds None.

An operator may requeue deliveries that the client still holds. Late acknowledgements for them are ignored
instead of closing the channel: unknown tags up to the highest requeued tag are ignored. This takes one
number, however many there were, which is only read when a tag is about to be refused.
"""

from collections.abc import Collection, Iterable

from warren.errors import PreconditionFailed
from warren.model.ring import Ring
from warren.queues.queue import Consumer, Delivery


class RevokedDelivery(PreconditionFailed):
    """An unknown tag that an operator may have requeued: it is ignored, and the channel stays open."""


class Unacked:
    """The unacknowledged deliveries of one channel by tag."""

    __slots__ = ("_first", "_places", "_revoked_to", "count")

    def __init__(self) -> None:
        self.count = 0
        # The delivery tag of the first place; the next tag is that behind the last place.
        self._first = 1
        self._places = Ring()
        # The highest tag requeued by an operator; 0 without.
        self._revoked_to = 0

    def next_tag(self) -> int:
        """Assign a tag to a message that needs no acknowledgement."""
        tag = self._first + self._places.count
        if self._places.count:
            self._places.append(None)
        else:
            self._first += 1
        return tag

    def add(self, delivery: Delivery) -> int:
        """Add `delivery`; return its tag."""
        tag = self._first + self._places.count
        self._places.append(delivery)
        self.count += 1
        return tag

    @property
    def last_tag(self) -> int:
        """The last assigned tag; 0 without."""
        return self._first + self._places.count - 1

    def take(self, tag: int) -> Delivery:
        """Remove and return the delivery of `tag`. PreconditionFailed for an unknown tag."""
        places = self._places
        place = tag - self._first
        if tag < self._first or place >= places.count or places.get(place) is None:
            raise self._unknown(tag)
        delivery: Delivery = places.take(place)  # type: ignore[assignment]
        self.count -= 1
        if not place:
            self._trim()
        return delivery

    def take_to(self, tag: int) -> list[Delivery]:
        """Remove and return all up to `tag`, which must be known; 0 means all (0-9-1 basic.ack.multiple)."""
        places = self._places
        if tag == 0:
            count = places.count
        else:
            count = tag - self._first + 1
            if tag < self._first:
                raise self._unknown(tag)
            is_there = count <= places.count and places.get(count - 1) is not None
            if not is_there and tag > self._revoked_to:
                raise self._unknown(tag)
        taken = []
        for _ in range(count):
            delivery = places.popleft()
            if delivery is not None:
                taken.append(delivery)
        self._first += count
        self.count -= len(taken)
        self._trim()
        return taken  # type: ignore[return-value]

    def tags(self, tag: int, multiple: bool, settled: set[int]) -> list[int]:
        """The tags that `take` (`take_to` if `multiple`) would remove, except those in `settled`."""
        places = self._places
        place = tag - self._first
        is_known = 0 <= place < places.count and places.get(place) is not None and tag not in settled
        if not is_known and not (multiple and tag == 0):
            unknown = self._unknown(tag)
            if not multiple or place < 0 or not isinstance(unknown, RevokedDelivery):
                raise unknown
        if not multiple:
            return [tag]
        last = places.count if tag == 0 else min(place + 1, places.count)
        known = (self._first + at for at in range(last) if places.get(at) is not None)
        return [tag for tag in known if tag not in settled]

    def holds(self, tag: int) -> bool:
        """True if there is a delivery of `tag`."""
        place = tag - self._first
        return 0 <= place < self._places.count and self._places.get(place) is not None

    def first_of(self, consumer: Consumer, tag: int) -> int:
        """The tag of the first delivery to `consumer` from `tag` on; 0 without one."""
        places = self._places
        place = tag - self._first if tag > self._first else 0
        while place < places.count:
            delivery: Delivery = places.get(place)  # type: ignore[assignment]
            if delivery is not None and delivery.consumer is consumer:
                return self._first + place
            place += 1
        return 0

    def get(self, tag: int) -> Delivery:
        """The delivery of `tag`, which is there."""
        return self._places.get(tag - self._first)  # type: ignore[return-value]

    def revoke(self, tags: Iterable[int]) -> list[Delivery]:
        """Remove and return the known deliveries among `tags`, in order; the client still holds them."""
        taken = []
        for tag in sorted(tags):
            place = tag - self._first
            if 0 <= place < self._places.count and self._places.get(place) is not None:
                taken.append(self.take(tag))
                self._revoked_to = max(self._revoked_to, tag)
        return taken

    def tagged(self, settled: Collection[int] = ()) -> list[tuple[int, Delivery]]:
        """All tags and deliveries in order, except `settled` tags, which wait for tx.commit."""
        places = self._places
        return [
            (self._first + at, places.get(at))  # type: ignore[misc]
            for at in range(places.count)
            if places.get(at) is not None and self._first + at not in settled
        ]

    def _unknown(self, tag: int) -> PreconditionFailed:
        kind = RevokedDelivery if 0 < tag <= self._revoked_to else PreconditionFailed
        return kind(f"unknown delivery tag {tag}")

    def _trim(self) -> None:
        """Remove empty places from the front."""
        places = self._places
        while places.count and places.get(0) is None:
            places.popleft()
            self._first += 1
