"""An incarnation is one run of a node: it owns the objects that end with it."""

from typing import NamedTuple


class Incarnation(NamedTuple):
    """The number of a node in its cluster, and the number of one of its runs, which grows with each start."""

    node: int
    number: int

    def owner(self, serial: int) -> str:
        """The name of connection `serial` as the owner of exclusive queues, unique in the cluster."""
        return f"{self.node}.{self.number}.{serial}"


# The node number of a node that has met no other, and its incarnation where nothing is kept.
NODE_ALONE = 1
FIRST_INCARNATION = Incarnation(NODE_ALONE, 1)


def serial_of(owner: str) -> int:
    """The number of the connection in the name of an owner."""
    return int(owner.rpartition(".")[2])
