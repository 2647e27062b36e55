"""Each publish is confirmed once, in few frames, and none after the close."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.session.client import CountingWake, parse

from warren.framing.outbox import Outbox
from warren.model.counters import Counters
from warren.session.confirms import Confirms
from warren.wire.methods import BasicAck, BasicNack

CHANNEL = 3


class Answers:
    """The confirms of one channel, and how its client interprets them."""

    def __init__(self) -> None:
        self.output_listener = CountingWake()
        self.outbox = Outbox(self.output_listener)
        self.confirms = Confirms(self.outbox, CHANNEL, Counters(), Counters())
        self.outstanding: list[int] = []
        self.answered: dict[int, str] = {}

    def publish(self, *, due: int = 0, is_refused: bool = False) -> int:
        """One publish that `due` queues will confirm later, and that may be refused at once."""
        sequence = self.confirms.next()
        for _ in range(due + is_refused):
            self.confirms.expect(sequence)
        if is_refused:
            self.confirms.refused(sequence)
        self.outstanding.append(sequence)
        return sequence

    def take(self) -> list[BasicAck | BasicNack]:
        """The confirms that are sent now."""
        received = parse(b"".join(self.outbox.take()))
        assert all(one.channel == CHANNEL for one in received)
        for one in received:
            self._note(one.method)
        return [one.method for one in received]

    def _note(self, answer: BasicAck | BasicNack) -> None:
        tag = answer.delivery_tag
        assert tag in self.outstanding, "the last number of an answer must still be open"
        meant = [one for one in self.outstanding if one <= tag] if answer.multiple else [tag]
        for one in meant:
            self.outstanding.remove(one)
            assert one not in self.answered
            self.answered[one] = answer.name


def test_a_single_number_is_acknowledged() -> None:
    answers = Answers()
    answers.publish()
    assert answers.take() == [BasicAck(1, False)]
    assert answers.take() == []


def test_publishes_since_the_last_write_are_acknowledged_together() -> None:
    answers = Answers()
    for _ in range(5):
        answers.publish()
    assert answers.take() == [BasicAck(5, True)]
    answers.publish()
    assert answers.take() == [BasicAck(6, False)]


def test_the_outbox_is_notified_once_of_pending_confirms() -> None:
    answers = Answers()
    for _ in range(5):
        answers.publish()
    assert answers.output_listener.count == 1


def test_runs_of_refused_numbers_are_nacked_separately() -> None:
    answers = Answers()
    for is_refused in (False, False, True, True, False):
        answers.publish(is_refused=is_refused)
    assert answers.take() == [BasicAck(2, True), BasicNack(4, True, True), BasicAck(5, False)]


def test_no_publish_is_confirmed_before_it_is_safe() -> None:
    answers = Answers()
    answers.publish()
    waits = answers.publish(due=2)
    answers.publish()
    assert answers.take() == [BasicAck(1, False)]
    answers.confirms.done(waits, waits)
    assert answers.take() == []
    answers.confirms.done(waits, waits)
    assert answers.take() == [BasicAck(3, True)]


def test_a_refusal_by_one_queue_causes_a_nack() -> None:
    answers = Answers()
    waits = answers.publish(due=2)
    answers.confirms.refused(waits)
    answers.confirms.done(waits, waits)
    assert answers.take() == [BasicNack(1, True, True)]


def test_an_immediate_refusal_still_awaits_the_other_queues() -> None:
    answers = Answers()
    waits = answers.publish(due=1, is_refused=True)
    assert answers.take() == []
    answers.confirms.done(waits, waits)
    assert answers.take() == [BasicNack(1, True, True)]


def test_a_safe_publish_does_not_wait_for_earlier_ones_and_is_confirmed_once() -> None:
    answers = Answers()
    first, second, third = (answers.publish(due=1) for _ in range(3))
    answers.confirms.done(second, second)
    assert answers.take() == [BasicAck(2, False)]
    answers.confirms.refused(third)
    assert answers.take() == [BasicNack(3, False, True)]
    answers.confirms.done(first, first)
    assert answers.take() == [BasicAck(1, False)]


def test_no_confirm_follows_the_close() -> None:
    answers = Answers()
    answers.publish()
    first, second = answers.publish(due=1), answers.publish(due=1)
    answers.confirms.close()
    assert answers.take() == [BasicAck(1, False)]
    answers.confirms.done(second, second)
    answers.confirms.done(first, first)
    answers.confirms.close()
    assert answers.take() == []


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("done"), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("all done"), st.integers(0, 9), st.just(False)),
        st.tuples(st.just("write"), st.just(0), st.just(False)),
    ),
    max_size=60,
)


@given(STEPS)
def test_each_number_is_confirmed_exactly_once_and_correctly(steps: list[tuple[str, int, bool]]) -> None:
    answers = Answers()
    due: list[int] = []
    announced: set[int] = set()
    refused: set[int] = set()
    for step, value, is_refused in steps:
        if step == "publish":
            sequence = answers.publish(due=value, is_refused=is_refused)
            due += [sequence] * value
            announced |= {sequence} if value or is_refused else set()
            refused |= {sequence} if is_refused else set()
        elif step == "done" and due:
            sequence = due.pop(value % len(due))
            if is_refused:
                answers.confirms.refused(sequence)
                refused.add(sequence)
            else:
                answers.confirms.done(sequence, sequence)
        elif step == "all done" and due:
            first = last = due[value % len(due)]
            while last + 1 in due:
                last += 1
            answers.confirms.done(first, last)
            for sequence in range(first, last + 1):
                due.remove(sequence)
        elif step == "write":
            answers.take()
            # Unannounced numbers are confirmed once all earlier ones are; announced ones when they are
            # settled.
            first_due = min(due, default=answers.confirms.last + 1)
            settled = {*range(1, first_due), *announced} - set(due)
            assert set(answers.answered) == settled
    for sequence in due:
        answers.confirms.done(sequence, sequence)
    answers.take()
    assert answers.outstanding == []
    assert sorted(answers.answered) == list(range(1, answers.confirms.last + 1))
    assert {number for number, name in answers.answered.items() if name == "basic.nack"} == refused
