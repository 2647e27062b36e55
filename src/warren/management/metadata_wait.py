"""How long a HTTP request waits for the members to agree, and what became of what it proposed."""

from contextvars import ContextVar

from warren.errors import MetadataTimeout
from warren.limits_metadata import METADATA_REPEATED_TICKS, METADATA_REQUEST_TICKS, METADATA_TIMEOUT_TICKS
from warren.management.cluster_controls import VOTER
from warren.management.managed_node import ManagedNode

_IN_DOUBT = "it may have taken effect, or a part of it, or do so later"


class MetadataWait:
    """The waiting of one request: after one timeout it waits hardly any more."""

    __slots__ = ("is_partly_done", "may_take_effect", "ticks_max")

    def __init__(self) -> None:
        # How long the next proposal, or the next look for what was agreed on, may take.
        self.ticks_max = METADATA_REQUEST_TICKS
        # True if a proposal was applied, and if one that has timed out may be applied later.
        self.is_partly_done = False
        self.may_take_effect = False

    def timed_out(self, error: MetadataTimeout) -> None:
        """Note that no majority has answered in time."""
        self.ticks_max = METADATA_REPEATED_TICKS
        self.may_take_effect = self.may_take_effect or error.may_take_effect

    def end(self) -> None:
        """Let what the request has begun, and goes on, wait as long as everything else."""
        self.ticks_max = METADATA_TIMEOUT_TICKS


# The waiting of the request that is being handled; None outside of requests.
METADATA_WAIT: ContextVar[MetadataWait | None] = ContextVar("METADATA_WAIT", default=None)


def timeout_reason(node: ManagedNode, error: MetadataTimeout, wait: MetadataWait) -> str:
    """What a client is told whose request has timed out: what may have changed, and who is missing."""
    status = node.cluster_controls.status()
    voters = [member for member in status.members if member.role == VOTER]
    missing = [f"'{member.name}'" for member in voters if member.link not in ("self", "connected")]
    is_unchanged = not (wait.is_partly_done or wait.may_take_effect)
    effect = "nothing was changed" if is_unchanged else _IN_DOUBT
    cause = f"not connected: {', '.join(missing)}" if missing else "no member leads them at present"
    return f"{error.message}; {effect}; {cause}"
