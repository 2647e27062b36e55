"""Decides which proposals in the log are applied: each one once, and none of a run that another has followed.

A proposer that does not know whether its proposal was agreed on, since the leader changed, proposes it again.
It does so in the order of the serial numbers, so that the highest one that was applied says all. Of each node
only the latest run is known here: a proposal of an earlier one was overtaken on its way.

What has the serial number 0 was not proposed: it is a part of a snapshot, or was applied at a start before
the node had a log. It is always applied.
"""

from collections.abc import Iterator
from typing import Final

from warren.metadata.commands import DONE, Reply
from warren.metadata.incarnation import Incarnation
from warren.metadata.member_commands import RestoreAppliedProposals

# The run of a node that was removed from the cluster: later than all that it may have had.
_REMOVED: Final = 1 << 64


class AppliedProposals:
    """Of each node, its latest run, and the highest serial number of that run that was applied."""

    __slots__ = ("_incarnation", "_latest", "_runs")

    def __init__(self) -> None:
        self._runs: dict[int, _Run] = {}
        # The run of the last proposal, since on most nodes it is that of the next one as well.
        self._incarnation: Incarnation | None = None
        self._latest = _Run(0)

    def admit(self, incarnation: Incarnation, serial: int) -> bool:
        """Record that proposal `serial` of `incarnation` is applied; False if it must not be."""
        if incarnation is self._incarnation:
            run = self._latest
        else:
            run = self._run(incarnation.node)
            if incarnation.number < run.number:
                return False
            run.begin(incarnation.number)
            self._incarnation, self._latest = incarnation, run
        if serial <= run.serial:
            return False
        run.serial = serial
        return True

    def last_serial(self, incarnation: Incarnation) -> int:
        """The highest serial number of a run that was applied; 0 if it is not the latest of its node."""
        run = self._runs.get(incarnation.node)
        return run.serial if run is not None and run.number == incarnation.number else 0

    def begin_run(self, node: int, number: int) -> None:
        """Record that the runs of `node` before `number` have ended."""
        self._run(node).begin(number)
        self._incarnation = None

    def remove(self, node: int) -> None:
        """Record that nothing of `node` is to be applied any more."""
        self.begin_run(node, _REMOVED)

    def restore(self, command: RestoreAppliedProposals) -> Reply:
        """Record what a snapshot contains of one node."""
        self.begin_run(command.node, command.incarnation)
        self._run(command.node).serial = command.serial
        return DONE

    def forget_runs(self) -> None:
        """Forget all runs, since nothing of them can be proposed again; nodes that were removed stay so."""
        self._runs = {node: run for node, run in self._runs.items() if run.number == _REMOVED}
        self._incarnation = None

    def rows(self) -> Iterator[RestoreAppliedProposals]:
        """What a snapshot has to contain; removed members are among the members."""
        for node, run in sorted(self._runs.items(), key=lambda row: row[0]):
            if run.number != _REMOVED:
                yield RestoreAppliedProposals(node=node, incarnation=run.number, serial=run.serial)

    def _run(self, node: int) -> "_Run":
        run = self._runs.get(node)
        if run is None:
            run = self._runs[node] = _Run(0)
        return run


class _Run:
    """The latest run of a node."""

    __slots__ = ("number", "serial")

    def __init__(self, number: int) -> None:
        self.number = number
        # The highest serial number of it that was applied.
        self.serial = 0

    def begin(self, number: int) -> None:
        """Replace the run by `number`, if that is a later one."""
        if number > self.number:
            self.number = number
            self.serial = 0
