"""Segments that few messages fill, so that a simulation goes through many of them."""

import pytest

<<<<<<< HEAD
from warren.store import log, recovery


def make_small(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Have segments of `size` octets, of which a simulated disk also copies little."""
    for module in (log, recovery):
        monkeypatch.setattr(module, "SEGMENT_SIZE", size)
=======
from warren.store import compaction, log, recovery


def make_small(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Have segments of `size` octets, of which each that is half dead is worth moving."""
    for module in (log, recovery, compaction):
        monkeypatch.setattr(module, "SEGMENT_SIZE", size)
    monkeypatch.setattr(compaction, "COMPACTION_SLACK_SEGMENTS", 0)
    monkeypatch.setattr(compaction, "COMPACTION_READ_SIZE", size // 5)
>>>>>>> ef892c8 (Move what is alive out of segments that are mostly dead)
