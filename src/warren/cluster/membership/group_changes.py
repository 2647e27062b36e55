"""Port: the members of the Raft groups of quorum queues whose leader is on this node."""

from typing import Protocol

from warren.replication.raft.change import Configuration


class GroupChanges(Protocol):
    """Reads and changes groups, by the numbers of their queues; replicas have their numbers in the queue.

    A change returns true if it was accepted. It then takes effect later, unless this node stops leading.
    It is refused while another one of the group has not taken effect, or when this node does not lead.
    """

    def configuration(self, number: int) -> Configuration | None:
        """The configuration in effect; None if this node does not lead the group."""

    def own_replica(self, number: int) -> int:
        """The replica on this node, which leads."""

    def is_caught_up(self, number: int, replica: int) -> bool:
        """True if the replica has all that is committed, or lacks less than one batch of it."""

    def is_active(self, number: int, replica: int) -> bool:
        """True if the replica has answered within the time of an election."""

    def add_learner(self, number: int, replica: int) -> bool:
        """Send all entries to the replica, without giving it a vote."""

    def promote(self, number: int, replica: int) -> bool:
        """Give a learner a vote."""

    def remove(self, number: int, replica: int) -> bool:
        """Remove a replica from the group: it has no vote and is sent nothing."""

    def transfer(self, number: int, replica: int) -> bool:
        """Hand over the leadership to the replica; this node goes on leading if that fails."""
