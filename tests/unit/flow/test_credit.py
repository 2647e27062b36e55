"""Publish credit: the order in which waiting connections resume, and when they wait again."""

from collections.abc import Callable

from warren.flow.credit import PublishCredit


class CreditWaiters:
    """Publish credit with its scheduled turns and the names of the waiters that have resumed."""

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


def test_credit_is_available_at_first() -> None:
    assert not CreditWaiters().credit.is_spent


def test_credit_returns_when_every_store_can_accept_more() -> None:
    line = CreditWaiters()
    line.credit.spend()
    line.credit.spend()
    line.wait("a")
    line.credit.renew()
    assert (line.credit.is_spent, line.turns) == (True, [])
    line.credit.renew()
    assert not line.credit.is_spent
    line.turn()
    assert line.gone == ["a"]


def test_waiters_resume_in_order_one_per_turn() -> None:
    line = CreditWaiters()
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


def test_when_credit_is_spent_again_the_other_waiters_keep_their_order() -> None:
    line = CreditWaiters()
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


def test_a_turn_without_credit_resumes_no_waiter() -> None:
    line = CreditWaiters()
    line.credit.spend()
    line.wait("a")
    line.credit.renew()
    line.credit.spend()
    line.turn()
    assert line.gone == []
    line.credit.renew()
    assert len(line.turns) == 1


def test_credit_is_spent_while_any_store_cannot_accept_more() -> None:
    credit = CreditWaiters().credit
    credit.spend(for_all=False)
    assert (credit.is_spent, credit.is_spent_for_all) == (True, False)
    credit.spend()
    assert (credit.is_spent, credit.is_spent_for_all) == (True, True)
    credit.renew()
    assert (credit.is_spent, credit.is_spent_for_all) == (True, False)
    credit.renew(for_all=False)
    assert (credit.is_spent, credit.is_spent_for_all) == (False, False)


def test_renewing_credit_twice_resumes_no_waiter_twice() -> None:
    line = CreditWaiters()
    for _ in range(2):
        line.credit.spend()
        line.wait("a")
        line.credit.renew()
    assert len(line.turns) == 1
    line.turn()
    line.turn()
    assert (line.gone, line.turns) == (["a", "a"], [])
