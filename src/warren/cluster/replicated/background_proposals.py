"""Changes of the metadata for which no client waits: proposed until they are decided, or unwanted.

And what a replica does as soon as its node knows of all changes that were agreed on before.
"""

from collections.abc import Callable

from warren.errors import AmqpError
from warren.metadata.commands import MetadataCommand, Outcome
from warren.metadata.proposals import Proposals
from warren.model.coroutine_driver import drive

# When it is tried again what could not be agreed on: elections take about that long.
_AGAIN_MS = 1_000


class BackgroundProposals:
    """What is proposed by one node for its replicas."""

    def __init__(
        self,
        proposals: Proposals,
        after: Callable[[int, Callable[[], None]], None],
        report: Callable[[str], None],
    ) -> None:
        """`after` calls an action after a time in milliseconds; `report` gets what was refused."""
        self._proposals = proposals
        self._after = after
        self._report = report
        self._under_way: set[MetadataCommand] = set()

    def propose(self, what: str, command: MetadataCommand, is_wanted: Callable[[], bool]) -> None:
        """Propose `command`, which is to do `what`, as long as it `is_wanted`; once at a time."""
        if command not in self._under_way:
            self._under_way.add(command)
            drive(self._try(what, command, is_wanted))

    def when_current(self, action: Callable[[], None], is_wanted: Callable[[], bool]) -> None:
        """Call `action` when this node has applied all that was agreed on before, if it `is_wanted` then."""
        drive(self._wait(action, is_wanted))

    async def _wait(self, action: Callable[[], None], is_wanted: Callable[[], bool]) -> None:
        try:
            await self._proposals.is_outdated(0)
        except AmqpError:
            # There is no majority of members, which is told elsewhere.
            self._after(_AGAIN_MS, lambda: self._wait_again(action, is_wanted))
            return
        if is_wanted():
            action()

    def _wait_again(self, action: Callable[[], None], is_wanted: Callable[[], bool]) -> None:
        if is_wanted():
            self.when_current(action, is_wanted)

    async def _try(self, what: str, command: MetadataCommand, is_wanted: Callable[[], bool]) -> None:
        try:
            reply = await self._proposals.propose(command)
        except AmqpError:
            # There is no majority of members, or the disk is full, which is told elsewhere.
            self._after(_AGAIN_MS, lambda: self._again(what, command, is_wanted))
            return
        self._under_way.discard(command)
        if reply.outcome is Outcome.REFUSED:
            self._report(f"cannot {what}: {reply.text}")

    def _again(self, what: str, command: MetadataCommand, is_wanted: Callable[[], bool]) -> None:
        if is_wanted():
            drive(self._try(what, command, is_wanted))
        else:
            self._under_way.discard(command)
