"""What must hold of the logs and the reads of a simulated group, checked as they change."""

from collections.abc import Sequence

from warren.replication.raft.raft_messages import Entry, EntryKind
from warren.replication.raft.ready import ReadState


class LogMatching:
    """Two logs with an entry of the same index and term are the same up to there.

    Of each entry that any replica hands to its disk, the entry before is compared with the one that it
    followed elsewhere. With that the logs are the same up to it, since this holds of each entry before.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[int | None, EntryKind, object]] = {}

    def check(self, previous: int | None, entries: Sequence[Entry]) -> None:
        """Check entries that are appended behind one of the term `previous`."""
        for entry in entries:
            found = (previous, entry.kind, entry.payload)
            known = self._known.setdefault((entry.index, entry.term), found)
            assert known == found, f"two logs with entry {entry.index} of term {entry.term} differ"
            previous = entry.term


class Reads:
    """A read sees everything that was committed when it was asked for."""

    def __init__(self) -> None:
        # The commit index that was known to any replica when each read was asked for.
        self._committed: dict[bytes, int] = {}
        self.answers = 0

    def ask(self, name: bytes, committed: int) -> None:
        """Note a new read."""
        assert name not in self._committed, "two reads of one name"
        self._committed[name] = committed

    def check(self, answers: Sequence[ReadState]) -> None:
        """Check the indexes that reads were answered with."""
        for answer in answers:
            committed = self._committed[answer.context]
            assert answer.index >= committed, f"a read sees {answer.index} after {committed} was committed"
            self.answers += 1
