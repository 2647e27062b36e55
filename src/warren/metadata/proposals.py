"""How a change of the metadata is asked for: a port, and what a node alone puts behind it."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from warren.metadata.commands import INTERNAL_USER, CommandContext, MetadataCommand, Reply
from warren.metadata.machine import Metadata


class Proposals(Protocol):
    """Asks that a command be applied on every node; the answer comes once it is on this one."""

    def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Awaitable[Reply]:
        """Have `command` applied for `user`, and await its reply."""


class LocalProposals:
    """Applies at once: a node alone agrees with itself, so that awaiting never waits."""

    __slots__ = ("_metadata", "_now")

    def __init__(self, metadata: Metadata, now: Callable[[], int]) -> None:
        self._metadata = metadata
        self._now = now

    async def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        """Apply `command` and return its reply."""
        return self.apply(command, user)

    def apply(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        """The same for who has no coroutine to await in, as at start."""
        context = CommandContext(index=self._metadata.index + 1, now=self._now(), user=user)
        return self._metadata.apply(command, context)
