"""Limits the pauses that Python's collector of reference cycles causes.

Almost all objects of a broker are freed by their reference count. A full collection examines every old
object: 100 ms for half a million, as many as 50,000 queues have, and Python would run one whenever their
number has grown by a quarter. Here old objects are examined once, while they are few, and then frozen
(`gc.freeze`), so that further collections skip them. All of them are examined together when as many objects
have been frozen since the last full collection as there were at it, and at least a million. A start creates
millions of permanent objects and hardly any cycle, so no collection runs before it is over.
"""

import gc
from typing import Any

from warren.limits import COLLECTION_OBJECTS_MIN

# Thresholds of the three generations: new objects, and collections of the generation before. At most 20,000
# objects are examined at once, which takes some 3 ms. Most messages are freed between two collections.
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
    """Reset the number of old objects that Python remembers from its last full collection.

    Python runs the next one when a quarter more objects are old. The remembered number includes objects that
    were frozen since; after another collection, of almost nothing, it is almost zero.
    """
    gc.collect()
