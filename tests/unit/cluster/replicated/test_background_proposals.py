"""Changes of the metadata for which no client waits."""

from collections.abc import Callable

import pytest

from warren.cluster.replicated.background_proposals import BackgroundProposals
from warren.errors import InternalError
from warren.metadata.commands import DONE, INTERNAL_USER, LeadQueue, MetadataCommand, Outcome, Reply

LED = LeadQueue(vhost="/", queue="q", number=1, node=2)


class Group:
    """The metadata group: it answers what the test says, or has no majority."""

    def __init__(self) -> None:
        self.proposed: list[MetadataCommand] = []
        self.answers: list[Reply | Exception] = []
        self.timers: list[Callable[[], None]] = []
        # What has happened when the node knows of all changes, or why it does not.
        self.barriers: list[Exception | None] = []
        self.reports: list[str] = []
        self.is_wanted = True
        self.proposals = BackgroundProposals(
            self, lambda ms, action: self.timers.append(action), self.reports.append
        )

    async def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        self.proposed.append(command)
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def is_outdated(self, index: int) -> bool:
        found = self.barriers.pop(0)
        if found is not None:
            raise found
        return True

    def begin(self) -> None:
        self.proposals.propose("do it", LED, lambda: self.is_wanted)

    def wait(self) -> None:
        timers, self.timers = self.timers, []
        for action in timers:
            action()


@pytest.fixture
def group() -> Group:
    return Group()


def test_what_is_not_agreed_on_is_proposed_again(group: Group) -> None:
    group.answers = [InternalError("no majority"), DONE]
    group.begin()
    # It is on its way.
    group.begin()
    assert group.proposed == [LED]
    group.wait()
    assert group.proposed == [LED, LED]
    assert not group.timers
    group.answers = [DONE]
    group.begin()
    assert len(group.proposed) == 3


def test_what_nobody_wants_any_more_is_not_proposed_again(group: Group) -> None:
    group.answers = [InternalError("no majority"), DONE]
    group.begin()
    group.is_wanted = False
    group.wait()
    assert group.proposed == [LED]
    group.is_wanted = True
    group.begin()
    assert group.proposed == [LED, LED]


def test_a_refusal_is_reported(group: Group) -> None:
    group.answers = [Reply(Outcome.REFUSED, "for a reason")]
    group.begin()
    assert group.reports == ["cannot do it: for a reason"]
    assert not group.timers


def test_an_action_waits_until_the_node_knows_what_was_agreed_on(group: Group) -> None:
    done: list[str] = []
    group.barriers = [InternalError("no majority"), None]
    group.proposals.when_current(lambda: done.append("x"), lambda: group.is_wanted)
    assert not done
    group.wait()
    assert done == ["x"]
    assert not group.timers


def test_an_action_that_nobody_wants_any_more_is_not_done(group: Group) -> None:
    done: list[str] = []
    group.is_wanted = False
    group.barriers = [None, InternalError("no majority")]
    group.proposals.when_current(lambda: done.append("x"), lambda: group.is_wanted)
    group.proposals.when_current(lambda: done.append("x"), lambda: group.is_wanted)
    group.wait()
    assert not done
    assert not group.barriers
