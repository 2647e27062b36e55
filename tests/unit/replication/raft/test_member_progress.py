"""A leader's view of one member."""

import pytest

from warren.replication.raft.member_progress import InFlight, Progress, ProgressState


def progress_of(*, messages: int = 3, size: int = 100, match: int = 10) -> Progress:
    progress = Progress(match + 1, InFlight(messages, size), is_learner=False)
    progress.match = match
    return progress


def test_in_flight_is_full_by_messages() -> None:
    in_flight = InFlight(2, 1000)
    in_flight.add(11, 1)
    assert not in_flight.is_full
    in_flight.add(12, 1)
    assert in_flight.is_full
    in_flight.release(11)
    assert len(in_flight) == 1
    assert not in_flight.is_full


def test_in_flight_is_full_by_bytes_and_one_that_is_too_large_goes_alone() -> None:
    in_flight = InFlight(10, 100)
    in_flight.add(11, 5000)
    assert in_flight.is_full
    with pytest.raises(AssertionError):
        in_flight.add(12, 1)
    in_flight.release(11)
    assert not in_flight.is_full


def test_a_probe_sends_one_message_at_a_time() -> None:
    progress = progress_of()
    progress.has_sent(0, 0)
    assert not progress.is_paused
    progress.has_sent(2, 10)
    assert progress.is_paused
    assert progress.next == 11


def test_replication_is_optimistic_until_too_much_is_in_flight() -> None:
    progress = progress_of()
    progress.replicate()
    for last in (12, 14):
        progress.has_sent(2, 10)
        assert (progress.next, progress.is_paused) == (last + 1, False)
    progress.has_sent(1, 80)
    assert progress.is_paused
    assert progress.matches(12)
    progress.in_flight.release(12)
    assert not progress.is_paused


def test_a_late_refusal_is_ignored() -> None:
    progress = progress_of()
    assert not progress.refuses(8, 7)
    progress.replicate()
    assert not progress.refuses(10, 7)
    assert progress.next == 11


def test_a_refused_probe_goes_back_to_the_hint_but_not_before_what_matches() -> None:
    progress = Progress(21, InFlight(3, 100), is_learner=False)
    assert progress.refuses(20, 15)
    assert progress.next == 16
    progress.match = 12
    assert progress.refuses(15, 3)
    assert progress.next == 13


def test_a_refusal_in_replication_goes_back_to_what_matches() -> None:
    progress = progress_of()
    progress.replicate()
    progress.has_sent(5, 10)
    assert progress.refuses(15, 3)
    assert progress.next == 11


def test_nothing_is_sent_to_a_member_that_needs_a_snapshot() -> None:
    progress = progress_of()
    progress.send_snapshot(50)
    assert (progress.state, progress.is_paused, progress.next) == (ProgressState.SNAPSHOT, True, 51)
    progress.probe()
    assert (progress.next, progress.is_paused) == (51, False)


def test_a_failed_snapshot_is_probed_from_what_matches() -> None:
    progress = progress_of()
    progress.send_snapshot(50)
    progress.pending_snapshot = 0
    progress.probe()
    assert progress.next == 11


def test_the_commit_index_is_told_only_if_the_member_can_have_more() -> None:
    progress = progress_of()
    progress.sent_commit = 9
    assert progress.lacks_commit(10)
    progress.sent_commit = 10
    assert not progress.lacks_commit(12)
