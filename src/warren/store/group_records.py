"""Port: the log of a Raft group, as the store of its virtual host writes it."""

from typing import Protocol

from warren.store.segment_log import SegmentLog


class GroupRecords(Protocol):
    """The log of a Raft group, as the store sees it."""

    def prepare(self, log: SegmentLog) -> None:
        """Append what belongs to the batch that is about to be made, or to `log` what stands before it."""

    def write(self, log: SegmentLog) -> None:
        """Append the records of this batch to `log`; everything else in the batch stands before them."""

    def entries_size(self) -> int:
        """The size of the records that `write_entries` appends."""

    def write_entries(self, log: SegmentLog) -> None:
        """Append the entries of this batch to `log`, whose messages stand before them; `write` follows."""

    def is_in(self, numbers: set[int]) -> bool:
        """True if a segment with one of `numbers` has records that are needed."""

    def state_size(self) -> int:
        """The size of a record that replaces all others."""

    def write_state(self) -> None:
        """Have such a record written with this batch."""
