"""The checker of linearizability: known histories, and what trying all orders says."""

import random
from itertools import permutations
from typing import NamedTuple

import pytest
from tests.seeds import SEEDS

from warren.simulation.linearizability import (
    CheckedHistory,
    ClientOperation,
    HistoryVerdict,
    check,
    partitioned,
)


class Access(NamedTuple):
    """An access to a register: a read, a write of `value`, or a write of it if it has `expected`."""

    kind: str
    value: int = 0
    expected: int = 0
    register: str = "x"


class Register:
    """A register that begins with 0."""

    def begin(self) -> int:
        return 0

    def step(self, state: int, access: Access, /) -> tuple[int, object]:
        if access.kind == "read":
            return state, state
        if access.kind == "write":
            return access.value, "done"
        is_swapped = state == access.expected
        return access.value if is_swapped else state, is_swapped


def op(access: Access, output: object, call: int, returned: int | None) -> ClientOperation[Access, object]:
    return ClientOperation(access, output, call, returned)


def read(value: int, call: int, returned: int | None) -> ClientOperation[Access, object]:
    return op(Access("read"), value, call, returned)


def write(value: int, call: int, returned: int | None) -> ClientOperation[Access, object]:
    return op(Access("write", value), "done", call, returned)


def swap(
    expected: int, value: int, *, done: bool, call: int, returned: int
) -> ClientOperation[Access, object]:
    return op(Access("swap", value, expected), done, call, returned)


History = list[ClientOperation[Access, object]]

LINEARIZABLE: dict[str, History] = {
    "nothing happened": [],
    "one after the other": [write(1, 0, 1), read(1, 2, 3)],
    "a read during a write may see it": [write(1, 0, 10), read(1, 2, 3)],
    "a read during a write may not see it": [write(1, 0, 10), read(0, 2, 3)],
    "two reads during a write see it once it was seen": [write(1, 0, 10), read(0, 1, 2), read(1, 3, 4)],
    "writes at the same time have any order": [write(1, 0, 10), write(2, 0, 10), read(1, 11, 12)],
    "a write without a return may have happened": [write(1, 0, None), read(1, 5, 6)],
    "a write without a return need not have happened": [write(1, 0, None), read(0, 5, 6)],
    "a write without a return may happen late": [write(1, 0, None), read(0, 5, 6), read(1, 7, 8)],
    "one of two swaps succeeds": [
        swap(0, 1, done=True, call=0, returned=9), swap(0, 2, done=False, call=0, returned=9),
    ],
    "a call and a return at the same time overlap": [write(1, 0, 5), read(0, 5, 6)],
}  # fmt: skip
VIOLATED: dict[str, History] = {
    "a stale read": [write(1, 0, 1), read(0, 2, 3)],
    "a value from nowhere": [read(7, 0, 1)],
    "a value is seen and then not": [write(1, 0, 10), read(1, 1, 2), read(0, 3, 4)],
    "two readers see writes in different orders": [
        write(1, 0, 20), write(2, 0, 20), read(1, 1, 2), read(2, 3, 4), read(1, 5, 6),
    ],
    "a lost update": [
        write(1, 0, 1), swap(1, 2, done=True, call=2, returned=9), swap(1, 3, done=True, call=2, returned=9),
    ],
    "a write without a return happens once": [
        write(1, 0, None), write(2, 1, 2), read(1, 3, 4), write(3, 5, 6), read(1, 7, 8),
    ],
    "a future value": [read(1, 0, 1), write(1, 2, 3)],
}  # fmt: skip


def verdict(history: History) -> HistoryVerdict:
    return check(history, Register()).verdict


@pytest.mark.parametrize("name", LINEARIZABLE)
def test_a_history_is_accepted(name: str) -> None:
    assert verdict(LINEARIZABLE[name]) is HistoryVerdict.LINEARIZABLE


@pytest.mark.parametrize("name", VIOLATED)
def test_a_history_is_rejected(name: str) -> None:
    assert verdict(VIOLATED[name]) is HistoryVerdict.VIOLATED


def test_a_hundred_operations_without_returns_are_decided() -> None:
    unreturned = [write(value, 0, None) for value in (1, 2) for _ in range(50)]
    seen = [read(1 + at % 2, 2 * at + 1, 2 * at + 2) for at in range(100)]
    assert verdict([*unreturned, *seen]) is HistoryVerdict.LINEARIZABLE
    assert verdict([*unreturned, *seen, read(3, 300, 301)]) is HistoryVerdict.VIOLATED
    # Each can have happened only once.
    assert verdict([*unreturned[1:], *seen]) is HistoryVerdict.VIOLATED


def is_linearizable(history: History) -> bool:
    """What trying all orders of all choices of unreturned operations says."""
    certain = [one for one in range(len(history)) if history[one].returned is not None]
    open_ones = [one for one in range(len(history)) if history[one].returned is None]
    for choice in range(1 << len(open_ones)):
        chosen = certain + [one for at, one in enumerate(open_ones) if choice >> at & 1]
        if any(_is_order(history, order) for order in permutations(chosen)):
            return True
    return False


def _is_order(history: History, order: tuple[int, ...]) -> bool:
    state = 0
    for at, index in enumerate(order):
        operation = history[index]
        for later in order[at + 1 :]:
            returned = history[later].returned
            if returned is not None and returned < operation.call:
                return False
        state, output = Register().step(state, operation.input)
        if operation.returned is not None and output != operation.output:
            return False
    return True


def any_history(chance: random.Random) -> History:
    history: History = []
    for _ in range(chance.randrange(1, 6)):
        call = chance.randrange(8)
        returned = None if chance.random() < 0.2 else call + chance.randrange(6)
        kind, value = chance.choice(["read", "read", "write", "swap"]), chance.randrange(3)
        output = {"read": chance.randrange(3), "write": "done", "swap": chance.random() < 0.5}[kind]
        history.append(op(Access(kind, value, chance.randrange(3)), output, call, returned))
    return history


@pytest.mark.seeds(SEEDS * 5)
def test_the_verdict_is_that_of_trying_all_orders(seed: int) -> None:
    history = any_history(random.Random(seed))
    found = verdict(history)
    assert (found is HistoryVerdict.LINEARIZABLE) == is_linearizable(history), history


def executed(chance: random.Random, count: int, clients: int) -> History:
    """What so many clients see of operations that happen one after the other."""
    state, now = 0, 0
    free = dict.fromkeys(range(clients), 0)
    history: History = []
    for _ in range(count):
        now += 10
        client = chance.choice(list(free))
        call = max(free[client], now - chance.randrange(60))
        access = Access(chance.choice(["read", "write", "swap"]), chance.randrange(5), chance.randrange(5))
        now = max(now, call)
        state, output = Register().step(state, access)
        free[client] = now + chance.randrange(60) + 1
        history.append(op(access, output, call, free[client] - 1))
    return history


@pytest.mark.seeds(SEEDS // 10)
def test_what_one_register_has_done_is_accepted_and_one_wrong_read_is_found(seed: int) -> None:
    chance = random.Random(seed)
    history = executed(chance, 200, 5)
    assert verdict(history) is HistoryVerdict.LINEARIZABLE
    at = chance.choice([at for at, one in enumerate(history) if one.input.kind == "read"])
    history[at] = history[at]._replace(output=9)
    assert verdict(history) is HistoryVerdict.VIOLATED


def test_a_finding_has_an_order_that_explains_the_history() -> None:
    history = [write(1, 0, 10), write(2, 0, 10), read(1, 11, 12)]
    assert check(history, Register()) == CheckedHistory(HistoryVerdict.LINEARIZABLE, (1, 0, 2))


def test_a_violation_tells_the_longest_order_that_was_found() -> None:
    history = [write(1, 0, 1), read(1, 2, 3), read(0, 4, 5)]
    assert check(history, Register()) == CheckedHistory(HistoryVerdict.VIOLATED, (0, 1))


def test_a_search_that_takes_too_long_is_given_up() -> None:
    assert (
        check(executed(random.Random(1), 100, 5), Register(), steps_max=50).verdict
        is HistoryVerdict.UNDECIDED
    )


def test_objects_are_checked_one_by_one() -> None:
    history = [write(1, 0, 1), op(Access("read", register="y"), 0, 2, 3), read(1, 2, 3)]
    parts = partitioned(history, lambda access: access.register)
    assert {name: len(part) for name, part in parts.items()} == {"x": 2, "y": 1}
    assert all(verdict(part) is HistoryVerdict.LINEARIZABLE for part in parts.values())
