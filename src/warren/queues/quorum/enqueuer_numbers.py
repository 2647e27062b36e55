"""The numbers of the messages that enqueuers have published to the leader of a quorum queue.

What is committed is in the machine. What is placed and not committed yet is here, so that a message that
comes again is recognised before its first copy is committed. It is for one leadership: before the next one
begins, everything that earlier leaders have placed is applied to the machine, or void.
"""

from warren.queues.quorum.batch_codec import Enqueuer
from warren.queues.quorum.machine import QuorumMachine


class EnqueuerNumbers:
    """The last number that each enqueuer has given to a message."""

    __slots__ = ("_machine", "_placed")

    def __init__(self, machine: QuorumMachine) -> None:
        self._machine = machine
        self._placed: dict[Enqueuer, int] = {}

    def last(self, enqueuer: Enqueuer) -> int:
        """The number of its last message that is committed or placed; 0 if there is none."""
        placed = self._placed.get(enqueuer, 0)
        return placed or self._machine.last_number(enqueuer)

    def is_committed(self, enqueuer: Enqueuer, number: int) -> bool:
        """True if its message `number` is committed."""
        return number <= self._machine.last_number(enqueuer)

    def placed(self, enqueuer: Enqueuer, number: int) -> None:
        """Note that its message `number`, which follows the last one, is placed."""
        self._placed[enqueuer] = number

    def before(self, enqueuer: Enqueuer) -> list[Enqueuer]:
        """The enqueuers of earlier runs of the node of `enqueuer`, which publish nothing any more."""
        known = {*self._machine.enqueuers(), *self._placed}
        return sorted(
            each for each in known if each.node == enqueuer.node and each.incarnation < enqueuer.incarnation
        )

    def forget(self, enqueuer: Enqueuer) -> None:
        """Forget what `enqueuer` has placed; the machine is told by the log."""
        self._placed.pop(enqueuer, None)
