"""What follows when this node does not reach the others: `cluster_partition_handling`, by RabbitMQ's modes.

    ignore, autoheal   │ nothing: changes of the metadata wait for a majority, and are refused in time
    pause_minority     │ a node in the minority shuts out its clients until it is not
    pause_if_all_down  │ a node that reaches none of the listed ones does so until it reaches one

There is nothing to heal, since only a majority changes the metadata: `autoheal` is taken as `ignore`.

A node pauses only if it was in contact since its start, and not before CLUSTER_PAUSE_MS of silence: closing
all connections of clients is worse than a short wait. Before its clients come back, it applies what the
others have agreed on meanwhile.
"""

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Protocol

from msgspec import Struct

from warren.cluster.minority import NOTICED_MS, Minority
from warren.errors import AmqpError
from warren.limits_cluster import CLUSTER_MINORITY_MS, CLUSTER_PAUSE_MS
from warren.metadata.machine import Metadata
from warren.model.coroutine_driver import drive


class PartitionMode(Enum):
    """The modes of `cluster_partition_handling`, by their names in the configuration."""

    IGNORE = "ignore"
    PAUSE_MINORITY = "pause_minority"
    PAUSE_IF_ALL_DOWN = "pause_if_all_down"
    AUTOHEAL = "autoheal"


class PartitionSettings(Struct, frozen=True, kw_only=True):
    """The mode, and the names of the nodes that pause_if_all_down lists."""

    mode: PartitionMode = PartitionMode.IGNORE
    nodes: tuple[str, ...] = ()


class PartitionActions(Protocol):
    """Port: the clients of this node and its listeners."""

    def pause(self, reason: str) -> None:
        """Close all connections of clients with 320, and listen to clients no more."""

    def resume(self) -> None:
        """Listen to clients again."""


class PartitionHandling:
    """Decides for one node whether its clients are shut out."""

    def __init__(
        self,
        minority: Minority,
        metadata: Metadata,
        barrier: Callable[[], Awaitable[None]],
        *,
        settings: PartitionSettings,
        access: PartitionActions,
        report: Callable[[str], None],
    ) -> None:
        """`barrier` waits until all is applied that was agreed on, and raises AmqpError if nobody answers.

        `report` is called with what an operator should know.
        """
        self._minority = minority
        self._metadata = metadata
        self._barrier = barrier
        self._settings = settings
        self._access = access
        self._report = report
        self._was_in_minority = False
        # For how long no listed node was reached, and there was a reason to pause (ms, of the ticks).
        self._all_down_ms = 0
        self._reason_ms = 0
        self.is_paused = False
        self._is_resuming = False

    def tick(self, elapsed_ms: int) -> None:
        """Note that some time has passed, after `Minority.tick`."""
        self._report_minority()
        self._all_down_ms = self._all_down_ms + elapsed_ms if self._all_are_down() else 0
        reason = self._pause_reason()
        self._reason_ms = self._reason_ms + elapsed_ms if reason and self._minority.has_begun else 0
        if not self.is_paused and self._reason_ms > CLUSTER_PAUSE_MS - CLUSTER_MINORITY_MS:
            self.is_paused = True
            self._report(f"clients are shut out: {reason}")
            self._access.pause(reason)
        elif self.is_paused and not reason and not self._is_resuming:
            self._is_resuming = True
            drive(self._resume())

    async def _resume(self) -> None:
        """Let clients in again, once the metadata are those of the others."""
        try:
            # With nodes of its list alone, pause_if_all_down permits a minority.
            if not self._minority.is_in_minority:
                await self._barrier()
            if not self._pause_reason():
                self.is_paused = False
                self._report("clients are let in again")
                self._access.resume()
        except AmqpError:
            # No majority has answered in time; the next tick tries again.
            return
        finally:
            self._is_resuming = False

    def _pause_reason(self) -> str:
        """Why clients should be shut out; empty if they should not."""
        match self._settings.mode:
            case PartitionMode.PAUSE_MINORITY:
                return self._minority_reason() if self._minority.is_in_minority else ""
            case PartitionMode.PAUSE_IF_ALL_DOWN:
                if self._all_down_ms + NOTICED_MS < CLUSTER_MINORITY_MS:
                    return ""
                return f"none of {', '.join(self._settings.nodes)} is reached (pause_if_all_down)"
            case PartitionMode.IGNORE | PartitionMode.AUTOHEAL:
                return ""

    def _minority_reason(self) -> str:
        voters = self._minority.voters
        reached = self._minority.reached(voters)
        if 2 * len(reached) > len(voters):
            return "no leader of the metadata is known (pause_minority)"
        return f"{len(reached)} of {len(voters)} voters are reached, no majority (pause_minority)"

    def _all_are_down(self) -> bool:
        """True if nodes that are listed are members, and none of them is reached."""
        listed = [
            member.id
            for member in self._metadata.members.by_id.values()
            if member.name in self._settings.nodes
        ]
        return bool(listed) and not self._minority.reached(listed)

    def _report_minority(self) -> None:
        """Say when this node gets into the minority, and when it is there no more."""
        minority = self._minority
        if minority.is_in_minority == self._was_in_minority or not minority.has_begun:
            return
        self._was_in_minority = minority.is_in_minority
        if minority.is_in_minority:
            names = [self._name(voter) for voter in minority.voters if voter not in minority.reached([voter])]
            missing = f"{', '.join(names)} not heard" if names else "no leader is known"
            self._report(f"this node is in the minority: {missing}; changes wait for a majority")
        else:
            self._report("this node is in the majority again")

    def _name(self, node: int) -> str:
        member = self._metadata.members.by_id.get(node)
        return f"node {node}" if member is None else member.name
