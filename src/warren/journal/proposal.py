"""A proposal: a command on its way to the log, as one run of a node has proposed it."""

from msgspec import Struct

from warren.metadata.commands import MetadataCommand
from warren.metadata.incarnation import Incarnation


class Proposal(Struct, frozen=True):
    """A command, who requested it, and its number among the proposals of a run of a node."""

    command: MetadataCommand
    user: str
    incarnation: Incarnation
    serial: int
