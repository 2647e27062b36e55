"""What is batched, when it is confirmed, and what an error does: on a simulated disk."""

import errno
import random
from collections.abc import Callable

import pytest
from tests.sim.disk import SimulatedDisk

from warren.limits import STORE_PENDING_SIZE_MAX
from warren.model.confirm_listener import ConfirmListener
from warren.store.disk import CreateFile, DiskStep, SyncFile, WriteFile
from warren.store.group_commit import GroupCommit
from warren.store.store_port import StorePort

NAME = "file"


class Port(StorePort):
    """Records the calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def commit_due(self) -> None:
        self.calls.append("due")

    def commit_due_later(self) -> None:
        self.calls.append("due later")

    def failed(self, error: OSError, is_full: bool) -> None:
        self.calls.append("full" if is_full else "failed")

    def recovered(self) -> None:
        self.calls.append("recovered")

    def fell_behind(self) -> None:
        self.calls.append("behind")

    def caught_up(self) -> None:
        self.calls.append("caught up")


class Letters(ConfirmListener):
    """A source whose items are single bytes, and the publisher of all of them."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk(random.Random(0))
        self.disk.perform([CreateFile(NAME, 0)])
        self.port = Port()
        self.commits = GroupCommit(self.disk, self.port, self)
        self.pending = b""
        # Of which a batch takes so many; and whether the next batch is wanted in the same turn.
        self.taken_max = 100
        self.is_in_haste = False
        self.events: list[str] = []
        self.expected: list[int] = []
        self.during_done: Callable[[], None] = lambda: None
        self._written = 0

    def add(self, letters: bytes, *sequences: int, size: int = 1) -> None:
        """Add items, and ask for confirms."""
        self.pending += letters
        self.commits.add(size)
        for sequence in sequences:
            self.commits.confirm(self, sequence)

    @property
    def on_disk(self) -> bytes:
        return bytes(self.disk.files[NAME].synced)

    def has_pending(self) -> bool:
        return bool(self.pending)

    def take_batch(self) -> list[DiskStep]:
        batch, self.pending = self.pending[: self.taken_max], self.pending[self.taken_max :]
        if not batch:
            return []
        at = self._written
        self._written += len(batch)
        return [WriteFile(NAME, at, [batch]), SyncFile(NAME)]

    def batch_synced(self) -> None:
        self.events.append("synced")

    def batch_confirmed(self) -> bool:
        self.events.append("ended")
        return self.is_in_haste and self.has_pending()

    def expect(self, sequence: int) -> None:
        self.expected.append(sequence)

    def done(self, first: int, last: int) -> None:
        self.events.append(f"{first}-{last}")
        self.during_done()


def test_what_arrives_during_a_job_shares_the_next_one() -> None:
    letters = Letters()
    letters.add(b"a", 1)
    letters.commits.commit()
    letters.add(b"b", 2)
    letters.commits.commit()
    letters.add(b"c", 3)
    letters.commits.commit()
    letters.disk.advance(1)
    assert letters.events == [], "written, but not synced"
    letters.disk.advance()
    assert (letters.on_disk, letters.events) == (b"a", ["synced", "1-1", "ended"])
    assert not letters.disk.is_busy, "the source asked for nothing more"
    letters.commits.commit()
    letters.disk.advance()
    assert letters.on_disk == b"abc"
    assert letters.events[3:] == ["synced", "2-3", "ended"]
    assert letters.disk.syncs == 2


def test_a_source_in_haste_has_the_next_batch_written_in_the_same_turn() -> None:
    letters = Letters()
    letters.is_in_haste = True
    letters.add(b"a")
    letters.commits.commit()
    letters.add(b"b", 1)
    letters.disk.advance(2)
    assert letters.disk.is_busy
    letters.disk.advance(2)
    assert (letters.on_disk, letters.events[-2:]) == (b"ab", ["1-1", "ended"])
    assert letters.commits.is_idle


def test_a_commit_is_announced_once_until_it_comes() -> None:
    letters = Letters()
    letters.commits.announce_later()
    letters.commits.announce_later()
    letters.add(b"a", 1)
    letters.add(b"b", 2)
    letters.commits.announce_later()
    assert letters.port.calls == ["due later", "due"]
    letters.commits.commit()
    letters.commits.confirm(letters, 3)
    assert letters.port.calls == ["due later", "due", "due"]


def test_what_is_confirmed_twice_is_expected_once() -> None:
    letters = Letters()
    letters.add(b"a", 1, 1, 2, 4)
    assert letters.expected == [1, 2, 4]
    letters.commits.commit()
    letters.disk.advance()
    assert letters.events == ["synced", "1-2", "4-4", "ended"]


def test_a_confirm_without_anything_to_write_comes_at_once() -> None:
    letters = Letters()
    letters.commits.confirm(letters, 1)
    letters.commits.commit()
    assert letters.events == ["1-1", "ended"]


def test_a_confirm_without_anything_to_write_waits_for_the_job_in_progress() -> None:
    letters = Letters()
    letters.add(b"a")
    letters.commits.commit()
    letters.commits.confirm(letters, 1)
    letters.commits.commit()
    assert letters.events == []
    letters.disk.advance()
    letters.commits.commit()
    assert letters.events == ["synced", "ended", "1-1", "ended"]


def test_confirms_wait_for_the_part_that_did_not_fit_into_the_batch() -> None:
    letters = Letters()
    letters.is_in_haste = True
    letters.taken_max = 2
    letters.add(b"abcde", 1)
    letters.commits.commit()
    letters.disk.advance(2)
    assert (letters.on_disk, letters.events) == (b"ab", ["synced", "ended"])
    letters.disk.advance(2)
    assert (letters.on_disk, letters.events[2:]) == (b"abcd", ["synced", "ended"])
    letters.disk.advance(2)
    assert (letters.on_disk, letters.events[4:]) == (b"abcde", ["synced", "1-1", "ended"])


def test_what_is_added_while_it_confirms_belongs_to_the_next_batch() -> None:
    letters = Letters()
    letters.add(b"a", 1)
    letters.commits.commit()

    def again() -> None:
        letters.during_done = lambda: None
        letters.add(b"b", 2)

    letters.during_done = again
    letters.disk.advance()
    assert letters.events == ["synced", "1-1", "ended"]
    letters.commits.commit()
    letters.disk.advance()
    assert letters.events[3:] == ["synced", "2-2", "ended"]


@pytest.mark.parametrize("kind", [WriteFile, SyncFile])
def test_after_an_error_nothing_is_confirmed_before_the_same_batch_was_written(kind: type) -> None:
    letters = Letters()
    letters.disk.fault = (kind, errno.ENOSPC)
    letters.add(b"a", 1)
    letters.commits.commit()
    letters.disk.advance()
    assert letters.commits.failure is not None
    assert letters.port.calls == ["due", "full"]
    letters.add(b"b", 2)
    letters.commits.commit()
    assert not letters.disk.is_busy, "nothing is written past a failed batch"
    letters.disk.fault = (kind, errno.ENOSPC)
    letters.commits.retry()
    letters.commits.retry()
    letters.disk.advance()
    assert not letters.events
    letters.commits.retry()
    letters.disk.advance()
    assert letters.commits.failure is None
    assert letters.port.calls == ["due", "full", "due", "full", "recovered"]
    assert (letters.on_disk, letters.events) == (b"a", ["synced", "1-1", "ended"])
    letters.commits.commit()
    letters.disk.advance()
    assert (letters.on_disk, letters.events[3:]) == (b"ab", ["synced", "2-2", "ended"])


def test_an_error_that_is_not_for_lack_of_space_is_a_failure() -> None:
    letters = Letters()
    letters.disk.fault = (SyncFile, errno.EIO)
    letters.add(b"a", 1)
    letters.commits.commit()
    letters.disk.advance()
    assert letters.port.calls == ["due", "failed"]
    assert letters.events == []


def test_nothing_is_retried_that_has_not_failed() -> None:
    letters = Letters()
    letters.commits.retry()
    assert not letters.disk.is_busy
    letters.add(b"a", 1)
    letters.commits.commit()
    letters.disk.advance()
    letters.commits.retry()
    assert not letters.disk.is_busy


def test_it_is_idle_when_the_last_batch_is_synced_and_nobody_waits() -> None:
    letters = Letters()
    assert letters.commits.is_idle
    letters.commits.confirm(letters, 1)
    assert not letters.commits.is_idle
    letters.commits.commit()
    assert letters.commits.is_idle
    letters.add(b"a")
    assert not letters.commits.is_idle
    letters.disk.fault = (SyncFile, errno.ENOSPC)
    letters.commits.commit()
    assert not letters.commits.is_idle
    letters.disk.advance()
    assert not letters.commits.is_idle, "the batch is not on the disk"
    letters.commits.retry()
    letters.disk.advance()
    assert letters.commits.is_idle


def test_publishers_are_held_once_and_released_when_all_of_it_was_taken() -> None:
    letters = Letters()
    letters.add(b"a")
    letters.commits.commit()
    letters.add(b"b", size=STORE_PENDING_SIZE_MAX)
    assert "behind" not in letters.port.calls
    letters.add(b"c")
    letters.add(b"d")
    letters.commits.commit()
    assert letters.port.calls.count("behind") == 1
    assert "caught up" not in letters.port.calls, "the disk is busy with the first"
    letters.disk.advance()
    letters.commits.commit()
    assert letters.port.calls[-1] == "caught up"
    letters.disk.advance()
    letters.add(b"e", size=STORE_PENDING_SIZE_MAX)
    letters.commits.commit()
    assert letters.port.calls.count("behind") == letters.port.calls.count("caught up") == 1


def closing(letters: Letters) -> None:
    letters.commits.close(lambda: letters.events.append("closed"))


def test_it_closes_at_once_if_there_is_nothing_to_write() -> None:
    letters = Letters()
    closing(letters)
    assert letters.events == ["ended", "closed"]
    assert letters.commits.is_closing


def test_it_closes_when_all_is_written() -> None:
    letters = Letters()
    letters.taken_max = 1
    letters.add(b"a", 1)
    letters.commits.commit()
    letters.add(b"bc", 2)
    closing(letters)
    assert letters.commits.is_closing
    letters.disk.advance()
    assert letters.on_disk == b"abc"
    reported = [event for event in letters.events if event not in ("synced", "ended")]
    assert reported == ["1-1", "2-2", "closed"]
    assert letters.disk.syncs == 3


def test_it_closes_after_an_error_as_well_and_writes_nothing_afterwards() -> None:
    letters = Letters()
    letters.add(b"a", 1)
    closing(letters)
    letters.disk.fault = (SyncFile, errno.ENOSPC)
    letters.disk.advance()
    assert letters.events == ["closed"]
    assert letters.commits.failure is not None


def test_it_closes_at_once_when_a_batch_has_failed_before() -> None:
    letters = Letters()
    letters.disk.fault = (WriteFile, errno.EIO)
    letters.add(b"a", 1)
    letters.commits.commit()
    letters.disk.advance()
    closing(letters)
    assert letters.events == ["closed"]


def test_nothing_is_written_after_it_was_closed() -> None:
    letters = Letters()
    closing(letters)
    letters.add(b"a", 1)
    letters.commits.commit()
    assert not letters.disk.is_busy
