"""Port: the log of a Raft group, as the store of its virtual host writes it."""

from warren.model.confirm_listener import ConfirmListener
from warren.store.segment_log import SegmentLog


class GroupRecords(ConfirmListener):
    """The log of a Raft group, as the store sees it; the answers that it gets are to its changes."""

    def prepare(self, log: SegmentLog) -> None:
        """Append what belongs to the batch that is about to be made, or to `log` what stands before it."""
        raise NotImplementedError

    def write(self, log: SegmentLog) -> None:
        """Append the records of this batch to `log`; everything else in the batch stands before them."""
        raise NotImplementedError

    def entries_size(self) -> int:
        """The size of the records that `write_entries` appends."""
        raise NotImplementedError

    def write_entries(self, log: SegmentLog) -> None:
        """Append the entries of this batch to `log`, whose messages stand before them; `write` follows."""
        raise NotImplementedError

    def is_in(self, numbers: set[int]) -> bool:
        """True if a segment with one of `numbers` has records that are needed."""
        raise NotImplementedError

    def state_size(self) -> int:
        """The size of a record that replaces all others."""
        raise NotImplementedError

    def write_state(self) -> None:
        """Have such a record written with this batch."""
        raise NotImplementedError
