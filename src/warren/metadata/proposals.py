"""Port: proposes changes of the metadata; with the implementation for a single node without a log."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from warren.metadata.commands import INTERNAL_USER, CommandContext, MetadataCommand, Reply
from warren.metadata.incarnation import FIRST_INCARNATION, Incarnation
from warren.metadata.machine import Metadata


class Proposals(Protocol):
    """Port: has a command applied on every node; the reply comes when it was applied on this one."""

    @property
    def is_in_doubt(self) -> bool:
        """True while commands that were refused may be applied by a crash.

        Until `resolve` has returned, it is not certain what exists after a restart.
        """

    def resolve(self) -> Awaitable[None]:
        """Wait until nothing is in doubt. AmqpError if that is impossible now."""

    def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Awaitable[Reply]:
        """Propose `command` for `user`, and await its reply."""

    def is_outdated(self, index: int) -> Awaitable[bool]:
        """Wait until all is applied on this node that was agreed on before; True if it was not at `index`.

        A node alone answers at once. MetadataTimeout if no majority of the members answers in time.
        """


class LocalProposals:
    """Applies commands at once, so that awaiting never suspends."""

    __slots__ = ("_incarnation", "_metadata", "_now")

    def __init__(
        self, metadata: Metadata, now: Callable[[], int], incarnation: Incarnation = FIRST_INCARNATION
    ) -> None:
        self._incarnation = incarnation
        self._metadata = metadata
        self._now = now

    @property
    def is_in_doubt(self) -> bool:
        """False: what is refused is applied by nothing."""
        return False

    async def resolve(self) -> None:
        """Do nothing."""

    async def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        """Apply `command` and return its reply."""
        return self.apply(command, user)

    async def is_outdated(self, index: int) -> bool:
        """False: nobody else changes the metadata."""
        return False

    def apply(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        """Apply `command` and return its reply; for callers that cannot await, as at start."""
        context = CommandContext(
            index=self._metadata.index + 1, now=self._now(), user=user, incarnation=self._incarnation
        )
        return self._metadata.apply(command, context)
