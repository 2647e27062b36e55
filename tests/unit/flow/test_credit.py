"""Who goes on when there is credit, in which order, and when that ends."""

from collections.abc import Callable

from warren.flow.credit import PublishCredit


class Line:
    """Credit, its turns, and who has gone on."""

    def __init__(self) -> None:
        self.turns: list[Callable[[int], None]] = []
        self.gone: list[str] = []
        self.credit = PublishCredit(self.turns.append)

    def wait(self, name: str, then: Callable[[], None] = lambda: None) -> None:
        def go_on(now: int) -> None:
            assert now == 7
            self.gone.append(name)
            then()

        self.credit.wait(go_on)

    def turn(self) -> None:
        self.turns.pop(0)(7)


def test_there_is_credit_at_first() -> None:
    assert not Line().credit.is_spent


def test_there_is_credit_again_when_every_store_can_take_more() -> None:
    line = Line()
    line.credit.spend()
    line.credit.spend()
    line.wait("a")
    line.credit.renew()
    assert (line.credit.is_spent, line.turns) == (True, [])
    line.credit.renew()
    assert not line.credit.is_spent
    line.turn()
    assert line.gone == ["a"]


def test_those_who_wait_go_on_one_in_each_turn_first_come_first() -> None:
    line = Line()
    line.credit.spend()
    for name in "abc":
        line.wait(name)
    assert (line.credit.is_spent, line.turns) == (True, [])
    line.credit.renew()
    assert not line.credit.is_spent
    for gone in (["a"], ["a", "b"], ["a", "b", "c"]):
        line.turn()
        assert line.gone == gone
    assert line.turns == []


def test_credit_that_is_spent_again_keeps_the_others_waiting_in_their_places() -> None:
    line = Line()
    line.credit.spend()
    line.wait("a", line.credit.spend)
    line.wait("b")
    line.credit.renew()
    line.turn()
    assert (line.gone, line.turns) == (["a"], [])
    line.wait("a")
    line.credit.renew()
    line.turn()
    line.turn()
    assert line.gone == ["a", "b", "a"]


def test_a_turn_that_comes_when_credit_is_spent_lets_nobody_go_on() -> None:
    line = Line()
    line.credit.spend()
    line.wait("a")
    line.credit.renew()
    line.credit.spend()
    line.turn()
    assert line.gone == []
    line.credit.renew()
    assert len(line.turns) == 1


def test_it_is_spent_for_all_as_long_as_a_store_says_so() -> None:
    credit = Line().credit
    credit.spend(for_all=False)
    assert (credit.is_spent, credit.is_spent_for_all) == (True, False)
    credit.spend()
    assert (credit.is_spent, credit.is_spent_for_all) == (True, True)
    credit.renew()
    assert (credit.is_spent, credit.is_spent_for_all) == (True, False)
    credit.renew(for_all=False)
    assert (credit.is_spent, credit.is_spent_for_all) == (False, False)


def test_credit_renewed_twice_before_a_turn_calls_nobody_twice() -> None:
    line = Line()
    for _ in range(2):
        line.credit.spend()
        line.wait("a")
        line.credit.renew()
    assert len(line.turns) == 1
    line.turn()
    line.turn()
    assert (line.gone, line.turns) == (["a", "a"], [])
