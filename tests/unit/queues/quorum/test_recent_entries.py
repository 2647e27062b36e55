"""Entries that a snapshot has replaced, kept for members that lack them."""

import pytest

from warren.queues.quorum import recent_entries
from warren.queues.quorum.recent_entries import RecentEntries
from warren.replication.raft.raft_messages import Entry


def kept(*terms: int) -> RecentEntries:
    """Entries from index 5 on with these terms, behind one of term 1."""
    entries, before = RecentEntries(), 1
    for place, term in enumerate(terms):
        entries.add(Entry(term, 5 + place), [], before)
        before = term
    return entries


def test_the_term_before_the_first_entry_is_known() -> None:
    entries = kept(1, 2, 3)
    assert (entries.first, entries.term(4), entries.term(7)) == (5, 1, 3)
    entries.drop(6)
    assert (entries.first, entries.term(6), len(entries)) == (7, 2, 1)
    assert not entries.has(6)


def test_the_first_entries_are_dropped_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_entries, "RECENT_ENTRIES_MAX", 2)
    entries = kept(1, 2, 3, 4)
    assert (entries.first, entries.term(6)) == (7, 2)
