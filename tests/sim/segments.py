"""Segments that few messages fill, so that a simulation goes through many of them."""

import pytest

from warren.store import log, recovery


def make_small(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Have segments of `size` octets, of which a simulated disk also copies little."""
    for module in (log, recovery):
        monkeypatch.setattr(module, "SEGMENT_SIZE", size)
