"""Segments that few messages fill, so that a simulation goes through many of them."""

import pytest

from warren.store import compaction, recovery, segment_log


def make_small(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Have segments of `size` octets, each of which is worth moving when it is half dead."""
    for module in (segment_log, recovery, compaction):
        monkeypatch.setattr(module, "SEGMENT_SIZE", size)
    monkeypatch.setattr(compaction, "COMPACTION_SLACK_SEGMENTS", 0)
    monkeypatch.setattr(compaction, "COMPACTION_READ_SIZE", size // 5)
