"""A ring of references that grows by doubling: first in, first out, and any place in between.

What a deque cannot do in constant time, and both sides of the broker need: look at, or take out,
the n-th from the front. A place that was taken holds None until the front passes it.
"""

_CAPACITY_MIN = 8


class Ring:
    """`count` places in order, counted from the front; a place holds an object or None."""

    __slots__ = ("_head", "_items", "_mask", "count")

    def __init__(self) -> None:
        self._items: list[object] = [None] * _CAPACITY_MIN
        self._mask = _CAPACITY_MIN - 1
        self._head = 0
        self.count = 0

    def append(self, item: object) -> None:
        """Put `item` behind the last place."""
        if self.count > self._mask:
            self._resize(2 * (self._mask + 1))
        self._items[(self._head + self.count) & self._mask] = item
        self.count += 1

    def popleft(self) -> object:
        """Take the first place away and give what it held. IndexError when there is none."""
        if not self.count:
            raise IndexError("the ring is empty")
        head = self._head
        item = self._items[head]
        self._items[head] = None
        self._head = (head + 1) & self._mask
        self.count -= 1
        if self.count << 3 < self._mask and self._mask >= 1024:
            self._resize((self._mask + 1) >> 1)
        return item

    def get(self, place: int) -> object:
        """What the `place`-th place from the front holds. IndexError outside of the ring."""
        if place < 0 or place >= self.count:
            raise IndexError(place)
        return self._items[(self._head + place) & self._mask]

    def take(self, place: int) -> object:
        """Leave None in the `place`-th place and give what it held. IndexError outside of the ring."""
        if place < 0 or place >= self.count:
            raise IndexError(place)
        at = (self._head + place) & self._mask
        item = self._items[at]
        self._items[at] = None
        return item

    def clear(self) -> None:
        """Forget everything."""
        self._items = [None] * _CAPACITY_MIN
        self._mask = _CAPACITY_MIN - 1
        self._head = 0
        self.count = 0

    def _resize(self, capacity: int) -> None:
        items = self._items
        head = self._head
        behind = head + self.count - len(items)
        kept = items[head:] + items[:behind] if behind > 0 else items[head : head + self.count]
        self._items = kept + [None] * (capacity - self.count)
        self._mask = capacity - 1
        self._head = 0
