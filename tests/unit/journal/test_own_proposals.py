"""The proposals of a node: numbers, what is handed over again, and what has waited too long."""

from warren.journal.own_proposals import OwnProposal, OwnProposals
from warren.journal.proposal import Proposal
from warren.metadata.commands import DONE, PutVhost
from warren.metadata.incarnation import Incarnation

RUN = Incarnation(2, 7)
ALL = 1_000


def new(own: OwnProposals, name: str, ticks_max: int = 2) -> OwnProposal:
    return own.add(own.number(PutVhost(name=name), "u"), ticks_max)


def handed_over(own: OwnProposals, count_max: int = ALL) -> list[int]:
    sent: list[Proposal] = []
    own.hand_over(sent.append, count_max)
    return [proposal.serial for proposal in sent]


def test_each_proposal_has_the_next_number_of_its_run() -> None:
    own = OwnProposals(RUN)
    alone = own.number(PutVhost(name="a"), "u")
    assert (alone.incarnation, alone.serial, alone.user) == (RUN, 1, "u")
    assert new(own, "b").proposal.serial == 2
    # One that was not added waits for nothing.
    assert handed_over(own) == [2]


def test_each_is_handed_over_once_until_that_may_be_lost() -> None:
    own = OwnProposals(RUN)
    new(own, "a")
    new(own, "b")
    assert (handed_over(own), handed_over(own)) == ([1, 2], [])
    settled = own.settle(RUN, 1)
    assert settled is not None
    new(own, "c")
    own.take_back()
    assert handed_over(own) == [2, 3]


def test_no_more_are_handed_over_than_are_permitted_before_some_are_settled() -> None:
    own = OwnProposals(RUN)
    for name in "abcd":
        new(own, name)
    assert (handed_over(own, 2), handed_over(own, 2)) == ([1, 2], [])
    own.settle(RUN, 2)
    assert handed_over(own, 2) == [3]
    own.take_back()
    assert handed_over(own, 2) == [1, 3]


def test_a_proposal_is_settled_once_and_by_its_own_run() -> None:
    own = OwnProposals(RUN)
    made = new(own, "a")
    assert own.settle(Incarnation(2, 8), 1) is None
    assert own.settle(Incarnation(1, 7), 1) is None
    assert own.settle(RUN, 1) is made
    assert own.settle(RUN, 1) is None
    own.take_back()
    assert handed_over(own) == []


def test_one_that_was_overtaken_gets_the_next_number() -> None:
    own = OwnProposals(RUN)
    made = new(own, "a")
    new(own, "b")
    handed_over(own)
    assert own.settle(RUN, 1) is made
    own.add_again(made)
    assert made.proposal == Proposal(PutVhost(name="a"), "u", RUN, 3)
    assert handed_over(own) == [3]
    assert own.settle(RUN, 3) is made


def test_those_that_have_waited_too_long_are_taken_out() -> None:
    own = OwnProposals(RUN)
    first = new(own, "a")
    handed_over(own)
    assert own.tick() == []
    second = new(own, "b")
    assert own.tick() == [first]
    assert own.tick() == [second]
    assert handed_over(own, 1) == []
    new(own, "c")
    # What was taken out does not count as handed over.
    assert handed_over(own, 1) == [3]


def test_each_waits_as_long_as_it_may_and_knows_whether_it_was_handed_over() -> None:
    own = OwnProposals(RUN)
    first, second = new(own, "a", 3), new(own, "b", 1)
    handed_over(own, 1)
    assert own.tick() == [second]
    assert (first.was_handed_over, second.was_handed_over) == (True, False)
    own.take_back()
    assert (first.is_handed_over, first.was_handed_over) == (False, True)
    assert own.tick() == []
    assert own.tick() == [first]


def test_an_end_completes_the_future_once() -> None:
    own = OwnProposals(RUN)
    made = new(own, "a")

    class Future:
        results = 0

        def set_result(self, result: None, /) -> None:
            self.results += 1

        def done(self) -> bool:
            return self.results > 0

        def __await__(self):  # type: ignore[no-untyped-def]
            yield

    made.future = Future()
    made.end(DONE)
    made.end(DONE)
    assert (made.result, made.future.results) == (DONE, 1)
