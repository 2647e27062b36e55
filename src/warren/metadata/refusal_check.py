"""Refusals of clients that metadata which are out of date may have caused.

A node of a cluster applies what the others have agreed on a moment later than they do. What it does not find
may exist already, and what it finds may be different or gone. So a refusal is said when this node has applied
everything that was agreed on before; if that was more than it had, the request is tried again, once. Only
refused requests wait for that, and on a node alone none.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from warren.errors import AmqpError, ChannelException, HomeDown, MetadataTimeout, NotFound, Undecided
from warren.metadata.machine import Metadata
from warren.metadata.proposals import Proposals
from warren.model.decided import decided

T = TypeVar("T")


class RefusalCheck:
    """Checks the refusals of one node."""

    __slots__ = ("_metadata", "_proposals")

    def __init__(self, metadata: Metadata, proposals: Proposals) -> None:
        """`proposals` change `metadata`."""
        self._metadata = metadata
        self._proposals = proposals

    @property
    def index(self) -> int:
        """The index of the metadata on which a decision is based that is taken in this turn."""
        return self._metadata.index

    async def is_refuted(self, refusal: AmqpError, index: int) -> bool:
        """True if there is more now than the metadata at `index`, on which `refusal` is based.

        Without a majority of the members nobody knows: then a NotFound is a MetadataTimeout instead, since
        what was not found may exist, and every other refusal stands.
        """
        if isinstance(refusal, HomeDown | Undecided):
            # No change of the metadata brings the node back, or decides for a web server.
            return False
        try:
            return await self._proposals.is_outdated(index)
        except MetadataTimeout:
            if isinstance(refusal, NotFound):
                raise MetadataTimeout(
                    f"{refusal.message} as far as this node knows, because the metadata store operation "
                    "timed out"
                ) from None
            return False

    async def is_outdated(self, index: int) -> bool:
        """True if there is more now than the metadata at `index`; False as well if nobody knows.

        For what is answered from the metadata of this node: one that is cut off goes on with what it has.
        """
        try:
            return await self._proposals.is_outdated(index)
        except MetadataTimeout:
            return False

    async def attempt(self, action: Callable[[], Awaitable[T]], undecided: Undecided | None = None) -> T:
        """The result of `action`; it is called again if its refusal is refuted, or becomes decided.

        `undecided` is what it has raised before, if it was called already.
        """
        index = self._metadata.index
        try:
            return await decided(action, undecided)
        except ChannelException as refusal:
            if not await self.is_refuted(refusal, index):
                raise
        return await decided(action)
