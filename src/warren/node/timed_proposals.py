"""The proposals of a node, with the time that a HTTP request has for them."""

from warren.errors import MetadataTimeout
from warren.journal.journal import Journal
from warren.management.metadata_wait import METADATA_WAIT
from warren.metadata.commands import INTERNAL_USER, MetadataCommand, Reply


class TimedProposals:
    """Proposes to a journal: implements port `Proposals`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def is_in_doubt(self) -> bool:
        """True while commands that were refused may be applied by a crash."""
        return self._journal.is_in_doubt

    async def resolve(self) -> None:
        """Wait until nothing is in doubt. AmqpError if it cannot be written."""
        await self._journal.resolve()

    async def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        """Propose `command` for `user`, and return its reply. AmqpError if it is not agreed on in time."""
        wait = METADATA_WAIT.get()
        if wait is None:
            return await self._journal.propose(command, user)
        try:
            reply = await self._journal.propose(command, user, wait.ticks_max)
        except MetadataTimeout as error:
            wait.timed_out(error)
            raise
        wait.is_partly_done = True
        return reply

    async def is_outdated(self, index: int) -> bool:
        """Wait until all is applied here that was agreed on before; True if it was not at `index`."""
        wait = METADATA_WAIT.get()
        if wait is None:
            return await self._journal.is_outdated(index)
        try:
            return await self._journal.is_outdated(index, wait.ticks_max)
        except MetadataTimeout as error:
            wait.timed_out(error)
            raise
