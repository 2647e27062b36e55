"""A member waits at its start until it has what was agreed on, and the others know its run."""

from warren.cluster.catching_up import CatchingUp
from warren.errors import AmqpError
from warren.journal.barriers import timed_out
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberUp
from warren.metadata.proposals import LocalProposals
from warren.model.coroutine_driver import drive
from warren.simulation.ports import JournalFuture

RUN = Incarnation(2, 7)
ADDRESS = {"host": "h", "cluster_port": 1, "feature_level": 1}


class Start:
    """The start of member 2, and the journal that it asks."""

    def __init__(self) -> None:
        self.metadata = Metadata()
        self._local = LocalProposals(self.metadata, lambda: 0)
        self._local.apply(FormCluster(cluster_id=bytes(16), name="a", incarnation=1, **ADDRESS))
        self._local.apply(AdmitMember(name="b", incarnation=RUN.number - 1, **ADDRESS))
        # Those that wait for a barrier, which fails as long as there is an error.
        self.waiting: list[JournalFuture] = []
        self.error: AmqpError | None = None
        self.is_over = False
        drive(self._wait())

    async def _wait(self) -> None:
        await CatchingUp(self.metadata, self, RUN, JournalFuture).wait()  # type: ignore[arg-type]
        self.is_over = True

    async def barrier(self) -> None:
        future = JournalFuture()
        self.waiting.append(future)
        await future
        if self.error is not None:
            raise self.error

    def answer(self, error: AmqpError | None = None) -> None:
        """End the barrier that is waited for."""
        self.error = error
        self.waiting.pop(0).set_result(None)

    def up(self, number: int) -> None:
        """The members know a run of member 2."""
        self._local.apply(MemberUp(id=2, incarnation=number, **ADDRESS))


def test_it_waits_for_all_that_was_agreed_on_also_if_the_others_know_its_run() -> None:
    start = Start()
    start.up(RUN.number)
    assert not start.is_over
    start.answer()
    assert start.is_over


def test_it_asks_again_while_there_is_no_majority() -> None:
    start = Start()
    start.up(RUN.number)
    for _ in range(3):
        start.answer(timed_out())
        assert not start.is_over
    start.answer()
    assert start.is_over


def test_it_waits_until_the_others_know_this_run() -> None:
    start = Start()
    start.answer()
    assert not start.is_over
    start.up(RUN.number - 1)
    assert not start.is_over
    start.up(RUN.number)
    assert start.is_over
    start.up(RUN.number + 1)
