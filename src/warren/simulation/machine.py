"""What survives a crash of a simulated broker: its disks; and the node that runs on them."""

import random
from collections.abc import Callable, Sequence

from warren.metadata.commands import MetadataCommand
from warren.metadata.incarnation import NODE_ALONE, Incarnation
from warren.simulation.disk import SimulatedDisk
from warren.simulation.simulated_clock import SimulatedClock
from warren.simulation.simulated_node import Disks, SimulatedNode

NODE_NAME = "warren@simulation"


class SimulatedMachine(Disks):
    """The disks of one broker, by directory, and the node that runs on them; None while it is down."""

    def __init__(
        self,
        chance: random.Random,
        clock: SimulatedClock,
        definitions: Sequence[MetadataCommand],
        node_name: str = NODE_NAME,
    ) -> None:
        """Start nothing yet; `definitions` are applied at each start, like a definitions file."""
        self.chance = chance
        self.clock = clock
        self.definitions = definitions
        self.node_name = node_name
        self.incarnation = Incarnation(NODE_ALONE, 0)
        self.on_restart: Callable[[str], None] = lambda _: None
        self._disks: dict[str, SimulatedDisk] = {}
        self.running: SimulatedNode | None = None
        # Lines of the log and unexpected errors of the nodes that have ended.
        self.past_reports: list[str] = []
        # How often a turn was run, and the greatest work of one, over all nodes.
        self.turn_count = 0
        self.turn_work_max = 0

    @property
    def node(self) -> SimulatedNode:
        """The running node."""
        assert self.running is not None
        return self.running

    def disk(self, directory: str) -> SimulatedDisk:
        """The disk that is the directory with this name."""
        found = self._disks.get(directory)
        if found is None:
            found = self._disks[directory] = SimulatedDisk(self.chance)
        return found

    @property
    def disks(self) -> list[SimulatedDisk]:
        """The disks of all directories, in the order of their first use."""
        return list(self._disks.values())

    def start(self) -> None:
        """Start a node with what is on the disks."""
        assert self.running is None
        # A real node counts its runs in a file of its own.
        self.incarnation = Incarnation(NODE_ALONE, self.incarnation.number + 1)
        self.running = self.new_node()
        self.running.start()

    def new_node(self) -> SimulatedNode:
        """The node of the next run."""
        return SimulatedNode(self)

    def kill(self) -> None:
        """End the process: what it has written stays."""
        self._end()
        for disk in self.disks:
            disk.die()

    def cut_power(self) -> None:
        """End the process, and lose any part of what was not synced."""
        self._end()
        for disk in self.disks:
            disk.lose_power()

    def stop(self) -> None:
        """Stop the node as SIGTERM does: everything is written first; there must be room on the disk."""
        self.node.stop()
        self._end()

    def _end(self) -> None:
        node, self.running = self.node, None
        node.end()
        self.past_reports += node.reports
        self.turn_count += node.turn_count
        self.turn_work_max = max(self.turn_work_max, node.turn_work_max)
