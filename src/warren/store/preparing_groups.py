"""The Raft groups that have something for a batch, and say what it is before the batch is made.

Some have something that a client waits for. Others, with what clients have settled, wait for the former: a
batch of their own, or after GROUP_PASSED_BATCHES_MAX batches one of others. So what a client has settled is a
part of the entry of the message that it publishes next, instead of an entry of its own.
"""

from warren.limits_raft import GROUP_PASSED_BATCHES_MAX
from warren.store.group_records import GroupRecords

_PASSED_BATCHES_MAX = GROUP_PASSED_BATCHES_MAX


class PreparingGroups:
    """The logs of these groups."""

    __slots__ = ("_later", "_next", "_passed_batches", "is_due")

    def __init__(self) -> None:
        # True if a client waits for what they have.
        self.is_due = False
        # Those of the next batch, and those of a later one, in order.
        self._next: list[GroupRecords] = []
        self._later: dict[GroupRecords, None] = {}
        # How many batches were made without the latter.
        self._passed_batches = 0

    def __len__(self) -> int:
        return len(self._next) + len(self._later)

    def add(self, group_log: GroupRecords) -> None:
        """Have `group_log` in the next batch."""
        self._next.append(group_log)

    def add_later(self, group_log: GroupRecords) -> None:
        """Have it in a batch that it is added to, in one made for no group, or in one of the next few."""
        self._later[group_log] = None

    def drop(self, group_log: GroupRecords) -> None:
        """Forget a group, which has ended."""
        self._next = [each for each in self._next if each is not group_log]
        self._later.pop(group_log, None)
        if not self._next:
            # Otherwise a batch would follow another one until a group has something to write.
            self.is_due = False

    def take(self, is_for_others: bool, is_last: bool) -> list[GroupRecords]:
        """Take those of a batch that is made now.

        `is_for_others` is True if it has something else to write, `is_last` if no other batch follows.
        """
        taken, self._next = self._next, []
        self.is_due = False
        later = self._later
        if later:
            for group_log in taken:
                later.pop(group_log, None)
            self._passed_batches += 1
            if is_last or not (is_for_others or taken) or self._passed_batches >= _PASSED_BATCHES_MAX:
                taken += later
                later.clear()
                self._passed_batches = 0
        return taken
