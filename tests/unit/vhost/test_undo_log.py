"""The undo log records where messages were moved, within bounds."""

import pytest

from warren.vhost import undo_log as module
from warren.vhost.undo_log import UndoLog


def test_positions_are_recorded_by_queue_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNDO_MESSAGES_MAX", 3)
    undo_log = UndoLog()
    for queue, place in (("one", 1), ("other", 2), ("one", 3), ("one", 4)):
        undo_log.add(queue, place)
    assert {name: list(places) for name, places in undo_log.places.items()} == {"one": [1, 3], "other": [2]}
    assert undo_log.count == 3
    undo_log.clear()
    assert (undo_log.count, undo_log.places) == (0, {})


def test_an_undone_message_is_recorded_by_its_number() -> None:
    undo_log = UndoLog()
    undo_log.mark_undone(5)
    assert (undo_log.back.has(5), undo_log.back.has(4), undo_log.undone_count) == (True, False, 1)
