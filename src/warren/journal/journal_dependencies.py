"""What the journal of the metadata needs from above the waterline, and from other members of its group."""

from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from msgspec import Struct

from warren.journal.parameter_cipher import Cipher
from warren.journal.proposal import Proposal
from warren.metadata.commands import Reply
from warren.metadata.incarnation import FIRST_INCARNATION, Incarnation
from warren.replication.raft.raft_messages import RaftMessage


class ReplyFuture(Protocol):
    """A future of the event loop above."""

    def set_result(self, result: None, /) -> None:
        """Complete the future."""

    def done(self) -> bool:
        """True if the future was completed or cancelled."""

    def __await__(self) -> Generator[object, None, None]:
        """Wait for the result."""


class OtherMembers(Protocol):
    """Port: the way to the other members of the metadata group; what cannot be sent is lost."""

    def send(self, messages: Sequence[RaftMessage]) -> None:
        """Send messages of the Raft core, each to the member that it names."""

    def forward(self, leader: int, proposal: Proposal) -> None:
        """Send a proposal to the leader, behind all that were sent to it before.

        When something of that may be lost, `Journal.forward_again` must be called.
        """

    def refuse(self, proposal: Proposal, reply: Reply) -> None:
        """Tell the member that has sent `proposal` that it is refused, and not in the log."""


class NoOtherMembers:
    """The way to other members of a node that has none: what is sent is lost."""

    def send(self, messages: Sequence[RaftMessage]) -> None:
        """Do nothing."""

    def forward(self, leader: int, proposal: Proposal) -> None:
        """Do nothing."""

    def refuse(self, proposal: Proposal, reply: Reply) -> None:
        """Do nothing."""


class JournalDependencies(Struct, frozen=True, kw_only=True):
    """What a journal needs from its surroundings."""

    # The time (ms since the epoch).
    now: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    make_future: Callable[[], ReplyFuture]
    # Called with each first error, and with None when writing works again.
    report: Callable[[OSError | None], None]
    # Encrypts secrets in the file; None leaves them as they are.
    cipher: Cipher | None = None
    # The run of the node that proposes the commands.
    incarnation: Incarnation = FIRST_INCARNATION
    others: OtherMembers = NoOtherMembers()
    # Called with the error that applying another node's command has raised here.
    report_error: Callable[[Exception], None] = lambda error: None
    # True on a node that was admitted to a cluster, from whose leader it is sent the metadata.
    is_joining: bool = False
