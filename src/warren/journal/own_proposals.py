"""The proposals of this node that are not settled: each is on its way to the log, or waits to be.

    new ─▶ handed to the log of this node, or forwarded to the leader ─▶ applied here, or refused ─▶ answered
             └─ another leader, or something may be lost: handed over again, in the order of their numbers

A proposal keeps its number when it is handed over again, so that it is applied once, however often it is in
the log. One that was overtaken by those behind it is skipped; it gets a new number, since it was never
applied.
"""

from collections import deque
from collections.abc import Callable

from warren.journal.journal_dependencies import ReplyFuture
from warren.journal.proposal import Proposal
from warren.metadata.commands import MetadataCommand, Reply
from warren.metadata.incarnation import Incarnation


class OwnProposal:
    """A proposal of this node, and the future of its caller."""

    __slots__ = (
        "future", "is_handed_over", "proposal", "result", "ticks", "ticks_max", "was_handed_over",
    )  # fmt: skip

    def __init__(self, proposal: Proposal, ticks_max: int) -> None:
        self.proposal = proposal
        # How long it waits at most.
        self.ticks_max = ticks_max
        self.future: ReplyFuture | None = None
        self.result: Reply | Exception | None = None
        # True while it is in the log of this node, in front of it, or on its way to the leader.
        self.is_handed_over = False
        # True from then on: it may be applied, whatever becomes of its caller.
        self.was_handed_over = False
        # How long it has waited.
        self.ticks = 0

    def end(self, result: Reply | Exception) -> None:
        """Set the result and complete the future."""
        self.result = result
        if self.future is not None and not self.future.done():
            self.future.set_result(None)


class OwnProposals:
    """Those that are not settled, in the order of their numbers."""

    __slots__ = ("_handed_over_count", "_incarnation", "_serial", "_unsettled", "_waiting")

    def __init__(self, incarnation: Incarnation) -> None:
        self._incarnation = incarnation
        self._serial = 0
        self._unsettled: dict[int, OwnProposal] = {}
        # Those that are not handed over, also settled ones; and how many of the unsettled ones are.
        self._waiting: deque[OwnProposal] = deque()
        self._handed_over_count = 0

    def number(self, command: MetadataCommand, user: str) -> Proposal:
        """Create the next proposal, which counts as settled unless it is added."""
        self._serial += 1
        return Proposal(command, user, self._incarnation, self._serial)

    def add(self, proposal: Proposal, ticks_max: int) -> OwnProposal:
        """Add the last proposal, which waits for at most `ticks_max`."""
        own = self._unsettled[proposal.serial] = OwnProposal(proposal, ticks_max)
        self._waiting.append(own)
        return own

    def settle(self, incarnation: Incarnation, serial: int) -> OwnProposal | None:
        """Take out one that is applied or refused; None if it is another run's, or settled already."""
        return self._take(serial) if incarnation == self._incarnation else None

    def add_again(self, own: OwnProposal) -> None:
        """Add one that was settled by mistake, with the next number."""
        old = own.proposal
        own.proposal = self.number(old.command, old.user)
        self._unsettled[self._serial] = own
        self._waiting.append(own)

    def take_up_to(self, serial: int) -> list[OwnProposal]:
        """Take out those with a number up to `serial`."""
        taken = [number for number in self._unsettled if number <= serial]
        return [own for number in taken if (own := self._take(number)) is not None]

    def take_all(self) -> list[OwnProposal]:
        """Take out all."""
        return self.take_up_to(self._serial)

    def hand_over(self, send: Callable[[Proposal], None], count_max: int) -> None:
        """Call `send` with those that are not handed over, in order, so that at most `count_max` are."""
        while self._waiting and self._handed_over_count < count_max:
            own = self._waiting.popleft()
            if own.proposal.serial in self._unsettled:
                own.is_handed_over = own.was_handed_over = True
                self._handed_over_count += 1
                send(own.proposal)

    def take_back(self) -> None:
        """Note that what was handed over may be lost."""
        self._waiting = deque(self._unsettled.values())
        self._handed_over_count = 0
        for own in self._waiting:
            own.is_handed_over = False

    def tick(self) -> list[OwnProposal]:
        """Note that a tick has passed; take out and return those that have waited long enough."""
        for waiting in self._unsettled.values():
            waiting.ticks += 1
        late = [serial for serial, own in self._unsettled.items() if own.ticks >= own.ticks_max]
        return [own for serial in late if (own := self._take(serial)) is not None]

    def _take(self, serial: int) -> OwnProposal | None:
        own = self._unsettled.pop(serial, None)
        if own is not None and own.is_handed_over:
            own.is_handed_over = False
            self._handed_over_count -= 1
        return own
