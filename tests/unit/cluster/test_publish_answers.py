"""A home answers publishes in their order, when the queue has said what became of each."""

import random

import pytest
from tests.seeds import SEEDS

from warren.cluster.publish_answers import PublishAnswers


def test_publishes_that_nobody_waits_for_are_settled() -> None:
    told: list[None] = []
    answers = PublishAnswers(lambda: told.append(None))
    assert [answers.next() for _ in range(3)] == [1, 2, 3]
    assert answers.take() == [(False, 3)]
    assert answers.take() == []
    assert told == [None], "told once until they are taken"


def test_an_answer_waits_for_those_before_it() -> None:
    answers = PublishAnswers(lambda: None)
    answers.expect(answers.next())
    answers.next()
    assert answers.take() == []
    answers.done(1, 1)
    assert answers.take() == [(False, 2)]


def test_a_refused_publish_is_answered_in_its_place() -> None:
    answers = PublishAnswers(lambda: None)
    for _ in range(2):
        answers.expect(answers.next())
    answers.refuse(answers.next())
    answers.expect(answers.next())
    answers.done(2, 2)
    answers.refused(1)
    assert answers.take() == [(True, 1), (False, 1), (True, 1)]
    answers.done(4, 4)
    assert answers.take() == [(False, 1)]


@pytest.mark.seeds(SEEDS)
def test_every_publish_gets_its_answer_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    answers = PublishAnswers(lambda: None)
    expected: list[bool | None] = []
    taken: list[bool] = []
    for _ in range(100):
        due = [number for number, outcome in enumerate(expected) if outcome is None]
        action = chance.random()
        if action < 0.4 or not due:
            number = answers.next()
            kind = chance.choice(("kept", "due", "due", "refused"))
            if kind == "due":
                answers.expect(number)
            elif kind == "refused":
                answers.refuse(number)
            expected.append({"kept": False, "due": None, "refused": True}[kind])
        elif action < 0.6:
            at = chance.choice(due) if chance.random() < 0.3 else due[0]
            last = at
            while last + 1 < len(expected) and expected[last + 1] is None and chance.random() < 0.7:
                last += 1
            answers.done(at + 1, last + 1)
            expected[at : last + 1] = [False] * (last - at + 1)
        elif action < 0.8:
            at = chance.choice(due)
            answers.refused(at + 1)
            expected[at] = True
        else:
            for is_refused, count in answers.take():
                taken += [is_refused] * count
            settled = expected.index(None) if None in expected else len(expected)
            assert taken == expected[:settled]
