"""Python's collector of reference cycles, kept from stopping the loop.

Almost everything in a broker dies by its reference count. A full collection looks at every object that has
lived for a while: 50 ms for half a million, as 30,000 queues are. Python would make one whenever a quarter
more have come to stay; here it takes as many again as there were, and a million at least. A start makes
millions that stay and hardly a cycle, so nothing is looked for until it is over.
"""

import gc

from warren.limits import COLLECTED_MIN

# New objects that make a collection of the youngest, and how many of those make one of the next older.
_YOUNG = 700
_MIDDLE = 10
_NEVER = 2**31 - 1


class Collector:
    """Decides when the whole heap is looked through; the collections of young objects go on by themselves."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        """Have nothing collected before `begin`."""
        gc.disable()
        # Objects that were there after the last full collection.
        self._count = 0

    def begin(self) -> None:
        """What was made so far stays for good, and need not be looked at each time."""
        gc.freeze()
        gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
        gc.enable()

    def look(self) -> None:
        """Collect everything if enough may have come to stay since the last time; ask each second."""
        if gc.get_count()[2] * _YOUNG * _MIDDLE < max(self._count, COLLECTED_MIN):
            return
        gc.collect()
        self._count = len(gc.get_objects(2))
