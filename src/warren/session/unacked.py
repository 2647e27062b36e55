"""What was delivered on one channel and is not settled: delivery tag -> delivery.

Tags are given out in order, so a tag is a place in a ring: the one of tag `_first` is in front. A message
that needs no settling takes a tag too; while others wait in front of it, its place holds None.

An operator may take deliveries back while the client still has them. What it says of them later is nobody's
fault: of unknown tags, those up to the highest that was taken back are passed over. One number remembers
that, however many there were, and only who is about to refuse a tag looks at it.
"""

from collections.abc import Iterable, Iterator

from warren.errors import PreconditionFailed
from warren.model.ring import Ring
from warren.queues.queue import Delivery


class RevokedDelivery(PreconditionFailed):
    """A tag that may be one of those taken back: it is passed over, and nothing is closed."""


class Unacked:
    """The unsettled deliveries of one channel, by tag."""

    __slots__ = ("_first", "_places", "_revoked_to", "count")

    def __init__(self) -> None:
        self.count = 0
        # The delivery tag of the first place; the next tag given out is behind the last.
        self._first = 1
        self._places = Ring()
        # The highest tag that was taken back; 0 without.
        self._revoked_to = 0

    def next_tag(self) -> int:
        """A tag for a message that nobody settles."""
        tag = self._first + self._places.count
        if self._places.count:
            self._places.append(None)
        else:
            self._first += 1
        return tag

    def add(self, delivery: Delivery) -> int:
        """Keep `delivery` until it is settled; answers its tag."""
        tag = self._first + self._places.count
        self._places.append(delivery)
        self.count += 1
        return tag

    @property
    def last_tag(self) -> int:
        """The tag that was given out last; 0 without."""
        return self._first + self._places.count - 1

    def take(self, tag: int) -> Delivery:
        """The delivery of `tag`, which is kept no longer. PreconditionFailed for an unknown tag."""
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
        """All up to `tag`, which must be one of them; 0 is all there are (0-9-1 basic.ack.multiple)."""
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
        """The tags that `take` (`take_to`, with `multiple`) would take, beside those in `settled`."""
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

    def peek(self, tag: int, multiple: bool) -> Iterator[Delivery]:
        """Those that `take` (`take_to`, with `multiple`) would take; none for an unknown tag."""
        places = self._places
        end = places.count if tag == 0 else min(tag - self._first + 1, places.count)
        for place in range(0 if multiple else max(end - 1, 0), end):
            if places.get(place) is not None:
                yield places.get(place)  # type: ignore[misc]

    def revoke(self, tags: Iterable[int]) -> list[Delivery]:
        """Those of `tags` that are unsettled, in order: kept no longer, though the client has them still."""
        taken = []
        for tag in sorted(tags):
            place = tag - self._first
            if 0 <= place < self._places.count and self._places.get(place) is not None:
                taken.append(self.take(tag))
                self._revoked_to = max(self._revoked_to, tag)
        return taken

    def deliveries(self) -> list[Delivery]:
        """All of them, in order."""
        return [delivery for _, delivery in self.tagged()]

    def tagged(self) -> list[tuple[int, Delivery]]:
        """All of them, in order, with their tags."""
        places = self._places
        return [
            (self._first + at, places.get(at))  # type: ignore[misc]
            for at in range(places.count)
            if places.get(at) is not None
        ]

    def _unknown(self, tag: int) -> PreconditionFailed:
        kind = RevokedDelivery if 0 < tag <= self._revoked_to else PreconditionFailed
        return kind(f"unknown delivery tag {tag}")

    def _trim(self) -> None:
        """Let the front pass the places that wait for nothing."""
        places = self._places
        while places.count and places.get(0) is None:
            places.popleft()
            self._first += 1
