"""What was published to a quorum queue, by number, until it is answered."""

from tests.unit.queues.samples import sent

from warren.cluster.replicated.numbered_publishes import NumberedPublish, NumberedPublishes
from warren.model.confirm_listener import ConfirmListener


class Told(ConfirmListener):
    """Notes the answers."""

    def __init__(self) -> None:
        self.answers: list[str] = []

    def expect(self, sequence: int) -> None:
        self.answers.append(f"expect {sequence}")

    def done(self, first: int, last: int) -> None:
        self.answers += [f"done {sequence}" for sequence in range(first, last + 1)]

    def refused(self, sequence: int) -> None:
        self.answers.append(f"refused {sequence}")


def published(count: int) -> tuple[NumberedPublishes, Told]:
    publishes, told = NumberedPublishes(), Told()
    for sequence in range(1, count + 1):
        publishes.add(sent(b"12"), told, sequence)
    told.answers.clear()
    return publishes, told


def test_answers_are_of_the_oldest() -> None:
    publishes, told = published(3)
    assert publishes.confirm(2)
    assert told.answers == ["done 1", "done 2"]
    assert (publishes.first, publishes.last, publishes.count, publishes.byte_count) == (3, 3, 1, 2)
    assert not publishes.confirm(2)


def test_numbers_of_refused_publishes_are_given_again() -> None:
    publishes, told = published(3)
    publishes.confirm(1)
    publishes.refuse_sent()
    assert (publishes.first, publishes.last) == (2, 1)
    publishes.add(sent(b"x"), told, 4)
    assert (publishes.first, publishes.last) == (2, 2)
    assert [each.sequence for each in publishes.numbered()] == [4]
    assert publishes.refuse(3) == 2
    assert publishes.refuse(1) == 0
    assert publishes.confirm(1)
    assert told.answers == ["done 1", "expect 4", "refused 2", "refused 3", "done 4"]


def test_what_a_lost_leader_has_refused_is_refused() -> None:
    publishes, told = published(2)
    publishes.refuse_sent()
    publishes.add(sent(b"x"), told, 3)
    publishes.forget_refused()
    assert told.answers == ["expect 3", "refused 1", "refused 2"]
    assert (publishes.first, publishes.last, publishes.is_refused) == (1, 1, False)


def test_a_leader_on_this_node_answers_by_number() -> None:
    publishes, told = published(4)
    publishes.done(1, 1)
    publishes.done(3, 3)
    publishes.refuse_from(4)
    assert told.answers == ["done 1", "done 2", "done 3", "refused 4"]
    assert (publishes.first, publishes.last, publishes.byte_count) == (4, 3, 0)


def test_what_a_leader_on_this_node_had_is_added_once() -> None:
    publishes, told = published(2)
    more = [NumberedPublish(sent(b"x"), told, sequence) for sequence in (2, 3)]
    more[1].more = [(told, 7, 8)]
    publishes.add_placed(2, more)
    assert (publishes.first, publishes.last) == (1, 3)
    publishes.complete()
    assert told.answers == ["done 1", "done 2", "done 3", "done 7", "done 8"]
    publishes.continue_behind(9)
    assert (publishes.first, publishes.last) == (10, 9)
