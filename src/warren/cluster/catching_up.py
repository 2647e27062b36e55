"""What a member waits for at its start, before it opens its stores and serves clients.

Its metadata are those of its last run until then: queues of it may have been deleted, and others placed here.
"""

from collections.abc import Callable

from warren.errors import AmqpError
from warren.journal.journal import Journal
from warren.journal.journal_dependencies import ReplyFuture
from warren.metadata.events import Event, MemberChanged
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata


class CatchingUp:
    """Waits until this run has all that the members had agreed on, and they know it."""

    def __init__(
        self,
        metadata: Metadata,
        journal: Journal,
        incarnation: Incarnation,
        make_future: Callable[[], ReplyFuture],
    ) -> None:
        self._metadata = metadata
        self._journal = journal
        self._incarnation = incarnation
        self._known = make_future()

    async def wait(self) -> None:
        """Wait; without a majority of the members that takes until there is one."""
        while True:
            try:
                await self._journal.barrier()
                break
            except AmqpError:
                # Nobody has answered in time.
                continue
        self._metadata.listen(self._changed, (MemberChanged,))
        try:
            self._note_known()
            await self._known
        finally:
            self._metadata.ignore(self._changed)

    def _changed(self, event: Event) -> None:
        self._note_known()

    def _note_known(self) -> None:
        """Note if the members know this run."""
        node, number = self._incarnation
        record = self._metadata.members.by_id.get(node)
        is_known = record is not None and record.is_up and record.incarnation == number
        if is_known and not self._known.done():
            self._known.set_result(None)
