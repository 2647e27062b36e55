"""The counts of a proof are right for histories whose faults are known."""

import pytest
from tests.cluster.proof import Findings, Taken, findings

PUBLISHED = [b"p0 %d" % number for number in range(1, 6)]


def session(name: str, number: int) -> int:
    """The first three on one connection, the others on another."""
    return int(number > 3)


def taken(*numbers: int, is_marked: bool = False) -> list[Taken]:
    return [Taken(b"p0 %d" % number, is_marked) for number in numbers]


def found(*by_clients: list[Taken]) -> Findings:
    return findings(set(PUBLISHED), by_clients, session, 0.5)


def test_what_each_client_took_in_order_is_all_well() -> None:
    result = found(taken(1, 3, 5), taken(2, 4))
    assert result == Findings(confirmed=5, lost=0, recovered=0, twice=0, redelivered=0, late=0, gap_s=0.5)
    result.check()


@pytest.mark.parametrize(
    ("by_clients", "name", "count"),
    [
        ([taken(1, 2, 4, 5)], "lost", 1),
        ([taken(1, 2, 3, 4, 5), taken(2, 5)], "twice", 2),
        ([taken(2, 1, 3, 4, 5)], "late", 1),
    ],
)
def test_what_must_not_be_is_counted_and_refused(
    by_clients: list[list[Taken]], name: str, count: int
) -> None:
    result = found(*by_clients)
    assert getattr(result, name) == count
    with pytest.raises(AssertionError):
        result.check()


@pytest.mark.parametrize(
    ("by_clients", "name", "count"),
    [
        ([taken(1, 2, 3, 4, 5), taken(2, 5, is_marked=True)], "redelivered", 2),
        ([taken(1, 2, 3, 4, 5, 6)], "recovered", 1),
        # Another connection, whose messages may overtake those of the one before.
        ([taken(4, 1, 2, 3, 5)], "late", 0),
    ],
)
def test_what_may_be_is_counted(by_clients: list[list[Taken]], name: str, count: int) -> None:
    result = found(*by_clients)
    assert getattr(result, name) == count
    result.check()


def test_dead_letters_may_come_twice_and_not_be_lost() -> None:
    found(taken(1, 2, 3, 4, 5, 5)).check(may_come_twice=True)
    with pytest.raises(AssertionError):
        found(taken(1, 2, 3, 4)).check(may_come_twice=True)


def test_a_proof_in_which_nothing_was_confirmed_proves_nothing() -> None:
    with pytest.raises(AssertionError):
        findings(set(), [], session, 0).check()
