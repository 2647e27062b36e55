"""Python's collector of reference cycles, kept from stopping the loop.

Almost everything in a broker dies by its reference count. A full collection looks at every object that has
lived for a while: 100 ms for half a million, as 50,000 queues are, and Python would make one whenever a
quarter more have come to stay. Here what has come to stay is looked through once, while it is little, and
then set aside. All of it is looked through together when as much again as there was is aside, and a
million objects at least. A start makes millions that stay and hardly a cycle, so nothing is looked for until
it is over.
"""

import gc
from typing import Any

from warren.limits import COLLECTION_OBJECTS_MIN

# New objects that make a collection of the youngest, beyond how many of those one of the next older is made,
# and beyond how many of these one of the rest: 20,000 objects, which take some 3 ms. Most messages come and
# go between two collections, and are looked at by none.
_YOUNG = 5_000
_MIDDLE = 1
_OLD = 1
_OLDEST = 2


class GarbageCollector:
    """Decides when old objects are collected; collections of young objects are automatic."""

    __slots__ = ("_aside", "_base", "_count")

    def __init__(self) -> None:
        """Disable collections until `begin`."""
        gc.disable()
        # The number of objects at the last full collection, the number frozen then, and the number added
        # since.
        self._count = 0
        self._base = 0
        self._aside = 0

    def begin(self) -> None:
        """Freeze all objects created so far, so that they are not examined again."""
        gc.freeze()
        _forget_how_many()
        self._base = gc.get_freeze_count()
        gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
        gc.callbacks.append(self._collected)
        gc.enable()

    def end(self) -> None:
        """Stop freezing objects; also if `begin` was never called."""
        if self._collected in gc.callbacks:
            gc.callbacks.remove(self._collected)

    def collect_if_due(self) -> None:
        """Run a full collection if enough objects were frozen since the last one; called every second."""
        enough = max(self._count, COLLECTION_OBJECTS_MIN)
        if self._aside < enough:
            return
        # Frozen objects that have died are not counted, but counting takes a few milliseconds.
        self._aside = gc.get_freeze_count() - self._base
        if self._aside < enough:
            return
        gc.unfreeze()
        gc.collect()
        _forget_how_many()
        self._count = self._base = gc.get_freeze_count()
        self._aside = 0

    def _collected(self, phase: str, about: dict[str, Any]) -> None:
        if phase == "stop" and about["generation"] == _OLDEST:
            self._aside += len(gc.get_objects(_OLDEST))
            gc.freeze()


def _forget_how_many() -> None:
    """Python waits until a quarter more objects are old than a full collection has left, and those set aside
    count: another one, of next to nothing, has it wait for next to nothing."""
    gc.collect()
