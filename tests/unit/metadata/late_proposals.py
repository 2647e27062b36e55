"""Proposals of a node that applies what others have agreed on only when it must."""

from warren.errors import MetadataTimeout
from warren.metadata.commands import INTERNAL_USER, MetadataCommand, Reply
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals


class LateProposals:
    """Port `Proposals`; `others` has what the others have agreed on."""

    is_in_doubt = False

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._local = LocalProposals(metadata, lambda: 0)
        self.others: list[MetadataCommand] = []
        self.has_majority = True
        # How often it was asked.
        self.count = 0

    async def resolve(self) -> None:
        """Nothing is in doubt."""

    async def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        return self._local.apply(command, user)

    async def is_outdated(self, index: int) -> bool:
        self.count += 1
        if not self.has_majority:
            raise MetadataTimeout("timed out")
        others, self.others = self.others, []
        for command in others:
            self._local.apply(command)
        return self._metadata.index != index
