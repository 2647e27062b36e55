"""Checks that a history is linearizable: as if each operation had happened at once, between call and return.

The algorithm is that of Wing and Gong, "Testing and verifying concurrent objects" (1993), with the cache of
Lowe, "Testing for linearizability" (2017): operations are put in order one by one, each that was called
before any of the others has returned; a set of operations that has led to a state once is not tried again.

An operation without a return may have happened at any time after its call, or never. Of several such with
the same input, the one that was called first is put in order first: it explains what the others explain. They
are tried last, and what cannot be put in order with some of them left is not tried with fewer left. So what
is tried does not double with each of them.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from operator import le
from typing import Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct

State = TypeVar("State", bound=Hashable)
Input = TypeVar("Input", bound=Hashable)
Output = TypeVar("Output")
Taken = TypeVar("Taken", contravariant=True)
Returned = TypeVar("Returned", covariant=True)
Key = TypeVar("Key", bound=Hashable)


class ClientOperation(NamedTuple, Generic[Input, Output]):
    """One operation of a client, with the times of its call and of its return."""

    input: Input
    # What was returned; None if nothing was.
    output: Output | None
    call: int
    # None if it is not known whether it happened: its client was told nothing, or an error.
    returned: int | None


class Model(Protocol[State, Taken, Returned]):
    """Port: what an object does if operations come one by one."""

    def begin(self) -> State:
        """Return the state before the first operation."""

    def step(self, state: State, input: Taken, /) -> tuple[State, Returned]:
        """Return the state after an operation, and what it returns."""


class HistoryVerdict(Enum):
    """What is known of a history."""

    LINEARIZABLE = "linearizable"
    VIOLATED = "violated"
    # It was given up after too many steps.
    UNDECIDED = "undecided"


class CheckedHistory(Struct, frozen=True):
    """The verdict, and the longest order that was found, as indexes of operations."""

    verdict: HistoryVerdict
    order: tuple[int, ...]


def check(
    history: Sequence[ClientOperation[Input, Output]],
    model: Model[State, Input, Output],
    *,
    steps_max: int = 1_000_000,
) -> CheckedHistory:
    """Say whether `history` is linearizable, within `steps_max` operations that are tried."""
    return _Search(history, model).run(steps_max)


def partitioned(
    history: Iterable[ClientOperation[Input, Output]], key_of: Callable[[Input], Key]
) -> dict[Key, list[ClientOperation[Input, Output]]]:
    """Divide a history by the objects of its operations: it is linearizable if each part is."""
    parts: dict[Key, list[ClientOperation[Input, Output]]] = {}
    for operation in history:
        parts.setdefault(key_of(operation.input), []).append(operation)
    return parts


class _Event:
    """A call or a return in the list of what is not put in order."""

    __slots__ = ("after", "at", "before", "index", "returned")

    def __init__(self, index: int, at: int) -> None:
        self.index = index
        self.at = at
        # Of a call: its return.
        self.returned: _Event | None = None
        self.before: _Event | None = None
        self.after: _Event | None = None

    def lift(self) -> None:
        """Take it out of the list."""
        assert self.before is not None
        self.before.after = self.after
        if self.after is not None:
            self.after.before = self.before

    def unlift(self) -> None:
        """Put it back where it was."""
        assert self.before is not None
        self.before.after = self
        if self.after is not None:
            self.after.before = self


class _Unreturned:
    """The operations of one input without returns, by their calls."""

    __slots__ = ("count", "indexes")

    def __init__(self) -> None:
        self.indexes: list[int] = []
        # How many of them, from the first, are in order.
        self.count = 0


class _Move(NamedTuple, Generic[State]):
    """One operation that was put in order."""

    # Its index in the history.
    operation: int
    # Its call; without a return, what had returned and could not be put in order before it.
    event: _Event
    # The number of its input among those without returns; None if it has returned.
    group: int | None
    # The states before it and behind it.
    state: State
    after: State


class _Search(Generic[State, Input, Output]):
    """One search for an order."""

    def __init__(
        self, history: Sequence[ClientOperation[Input, Output]], model: Model[State, Input, Output]
    ) -> None:
        self._history = history
        self._model = model
        self._head = self._list()
        self._groups = self._unreturned()
        self._moves: list[_Move[State]] = []
        # What has returned and is in order, as a set of bits.
        self._ordered = 0
        self._longest: tuple[int, ...] = ()
        # By what had returned and was in order, and the state: how many without returns were, of each input.
        self._tried: dict[tuple[int, State], list[tuple[int, ...]]] = {}

    def run(self, steps_max: int) -> CheckedHistory:
        """Search until an order is found, there is none, or it takes too long."""
        state = self._model.begin()
        event = self._head.after
        # The first input without returns that is tried when `event` is a return.
        group = 0
        for _ in range(steps_max):
            if event is None:
                # No return is left: whatever else was called need not have happened.
                return CheckedHistory(HistoryVerdict.LINEARIZABLE, self._order())
            move = self._call(event, state) if event.returned else self._unknown(event, state, group)
            if move is not None:
                self._moves.append(move)
                self._put(move)
                state, event, group = move.after, self._head.after, 0
            elif event.returned:
                event = event.after
            elif self._moves:
                move = self._moves.pop()
                self._take_back(move)
                state = move.state
                if move.group is None:
                    event, group = move.event.after, 0
                else:
                    event, group = move.event, move.group + 1
            else:
                # What has returned here was called before, and nothing explains it.
                return CheckedHistory(HistoryVerdict.VIOLATED, self._longest)
        return CheckedHistory(HistoryVerdict.UNDECIDED, self._longest)

    def _call(self, call: _Event, state: State) -> _Move[State] | None:
        """What has returned, unless that contradicts the state or was tried."""
        operation = self._history[call.index]
        after, output = self._model.step(state, operation.input)
        counts = tuple(group.count for group in self._groups)
        if output != operation.output or not self._is_new(self._ordered | 1 << call.index, counts, after):
            return None
        return _Move(call.index, call, None, state, after)

    def _unknown(self, blocking: _Event, state: State, first: int) -> _Move[State] | None:
        """What was called before `blocking` without a return, from the input `first`."""
        for number in range(first, len(self._groups)):
            group = self._groups[number]
            if group.count == len(group.indexes):
                continue
            index = group.indexes[group.count]
            operation = self._history[index]
            after, _ = self._model.step(state, operation.input)
            # What need not have happened, and would change nothing, explains nothing.
            if operation.call > blocking.at or after == state:
                continue
            counts = tuple(one.count + (one is group) for one in self._groups)
            if self._is_new(self._ordered, counts, after):
                return _Move(index, blocking, number, state, after)
        return None

    def _is_new(self, ordered: int, counts: tuple[int, ...], state: State) -> bool:
        """Note that this is tried; False if it was, with as many operations left or more."""
        tried = self._tried.setdefault((ordered, state), [])
        if any(all(map(le, one, counts)) for one in tried):
            return False
        tried.append(counts)
        return True

    def _put(self, move: _Move[State]) -> None:
        """Put it in order."""
        if move.group is None:
            self._ordered |= 1 << move.operation
            move.event.lift()
            assert move.event.returned is not None
            move.event.returned.lift()
        else:
            self._groups[move.group].count += 1
        if len(self._moves) > len(self._longest):
            self._longest = self._order()

    def _take_back(self, move: _Move[State]) -> None:
        if move.group is None:
            self._ordered &= ~(1 << move.operation)
            assert move.event.returned is not None
            move.event.returned.unlift()
            move.event.unlift()
        else:
            self._groups[move.group].count -= 1

    def _order(self) -> tuple[int, ...]:
        return tuple(move.operation for move in self._moves)

    def _list(self) -> _Event:
        """Calls and returns of what has returned, by time; a call comes before a return of the same time."""
        events: list[tuple[int, int, _Event]] = []
        for index, operation in enumerate(self._history):
            if operation.returned is None:
                continue
            call, returned = _Event(index, operation.call), _Event(index, operation.returned)
            call.returned = returned
            events += (operation.call, 0, call), (operation.returned, 1, returned)
        head = last = _Event(-1, 0)
        for _, _, event in sorted(events, key=lambda row: row[:2]):
            last.after, event.before = event, last
            last = event
        return head

    def _unreturned(self) -> list[_Unreturned]:
        groups: dict[Input, _Unreturned] = {}
        for index in sorted(range(len(self._history)), key=lambda index: self._history[index].call):
            if self._history[index].returned is None:
                groups.setdefault(self._history[index].input, _Unreturned()).indexes.append(index)
        return list(groups.values())
