"""Small segments, so that a simulation uses many of them."""

import pytest

from warren.store import compaction, recovery, segment_log


def make_small(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Use segments of `size` bytes, each of which is compacted when half of it is dead."""
    set_segment_size(monkeypatch, size)
    monkeypatch.setattr(compaction, "COMPACTION_SLACK_SEGMENTS", 0)
    monkeypatch.setattr(compaction, "COMPACTION_READ_SIZE", size // 5)


def set_segment_size(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Use segments of `size` bytes, and compact them as usual."""
    for module in (segment_log, recovery, compaction):
        monkeypatch.setattr(module, "SEGMENT_SIZE", size)
