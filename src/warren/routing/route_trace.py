"""Traces where a message would be routed, with the reason for each binding.

Nothing is published, and no cache of the router is used. The trace relies on what exchanges say about their
bindings; tests verify that this agrees with what they do.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heappush, heappushpop

from msgspec import Struct, field

from warren.limits import EXPLAINED_PER_TURN, TRACED_BINDINGS_MAX
from warren.model.message import Message
from warren.routing.exchange import Binding, Exchange
from warren.routing.verdict import Verdict

CERTAIN = 1.0


class BindingVerdict(Struct, frozen=True):
    """A binding with its verdict, and the routing keys of the message that it concerns."""

    binding: Binding
    routing_key: str
    verdict: Verdict


class ExchangeVisit(Struct, eq=False):
    """An exchange on the way of the message."""

    exchange: Exchange
    # What led to it first: a binding, or the exchange whose alternate it is; None for both: the publish.
    binding: Binding | None = None
    alternate_of: Exchange | None = None
    # The number of its bindings.
    matched: int = 0
    missed: int = 0
    # The alternate exchange, if it was used; its name is set even if it does not exist.
    alternate: str | None = None
    is_alternate_missing: bool = False


class ReachedQueue(Struct, eq=False):
    """A queue that the message reaches."""

    queue: object
    # The first bindings that lead to it.
    through: list[BindingVerdict] = field(default_factory=list)
    count: int = 0
    # False if it depends on chance.
    is_certain: bool = False


class RouteTrace:
    """The trace of one message through `exchanges`; complete when `steps` has been exhausted."""

    __slots__ = (
        "_exchanges", "_is_shown", "_message", "_misses", "_misses_max", "_number", "_steps", "keys",
        "missed", "queues", "visits",
    )  # fmt: skip

    def __init__(
        self,
        exchanges: dict[str, Exchange],
        keys: Sequence[str],
        message: Message,
        *,
        misses_max: int,
        is_shown: Callable[[Binding], bool] = lambda binding: True,
    ) -> None:
        self._exchanges = exchanges
        # The routing key, and those in the headers CC and BCC.
        self.keys = keys
        self._message = message
        self.visits: dict[Exchange, ExchangeVisit] = {}
        self.queues: dict[object, ReachedQueue] = {}
        # The number of bindings examined that do not match, of which the nearest are kept.
        self.missed = 0
        self._misses: list[tuple[float, int, BindingVerdict]] = []
        self._misses_max = misses_max
        # True for a binding whose mismatch may be reported.
        self._is_shown = is_shown
        self._number = 0
        # All edges from exchanges, and whether they are certain.
        self._steps: list[tuple[Exchange, object, bool]] = []

    @property
    def misses(self) -> list[BindingVerdict]:
        """The bindings that nearly match, nearest first."""
        return [judged for _, _, judged in sorted(self._misses, key=lambda miss: miss[:2], reverse=True)]

    def steps(self, start: Exchange) -> Iterator[None]:
        """Trace from `start`, a turn's work with each step."""
        self._visit(ExchangeVisit(start))
        waiting = list(self.visits.values())
        for visit in waiting:
            known = len(self.visits)
            yield from self._look(visit)
            waiting += list(self.visits.values())[known:]
        self._find_certain(start)

    def _look(self, visit: ExchangeVisit) -> Iterator[None]:
        exchange = visit.exchange
        keys = self.keys if exchange.is_routed_by_copies else self.keys[:1]
        for number, binding in enumerate(list(exchange.each_binding()), 1):
            # It may have been deleted since the last turn.
            if exchange.holds(binding):
                self._judge(visit, self._judged(exchange, binding, keys))
            if not number % EXPLAINED_PER_TURN:
                yield
        yield
        # As in the router: the default exchange takes nothing as an alternate, and has none itself.
        if not visit.matched and exchange.alternate and exchange.name:
            alternate = self._exchanges.get(exchange.alternate)
            visit.alternate, visit.is_alternate_missing = exchange.alternate, alternate is None
            if alternate is not None:
                self._steps.append((exchange, alternate, True))
                self._visit(ExchangeVisit(alternate, alternate_of=exchange))

    def _judged(self, exchange: Exchange, binding: Binding, keys: Sequence[str]) -> BindingVerdict:
        """The verdict of `binding` for the routing key that it matches best."""
        best: BindingVerdict | None = None
        for key in keys:
            judged = BindingVerdict(binding, key, exchange.explain(binding, key, self._message))
            if judged.verdict.is_match:
                return judged
            if best is None or judged.verdict.nearness > best.verdict.nearness:
                best = judged
        assert best is not None
        return best

    def _judge(self, visit: ExchangeVisit, judged: BindingVerdict) -> None:
        if not judged.verdict.is_match:
            if not self._is_shown(judged.binding):
                return
            visit.missed += 1
            self.missed += 1
            self._number -= 1
            entry = (judged.verdict.nearness, self._number, judged)
            if len(self._misses) < self._misses_max:
                heappush(self._misses, entry)
            elif self._misses:
                heappushpop(self._misses, entry)
            return
        visit.matched += 1
        destination = judged.binding.destination
        self._steps.append((visit.exchange, destination, judged.verdict.chance >= CERTAIN))
        if isinstance(destination, Exchange):
            self._visit(ExchangeVisit(destination, binding=judged.binding))
            return
        reached = self.queues.get(destination)
        if reached is None:
            reached = self.queues[destination] = ReachedQueue(destination)
        reached.count += 1
        if len(reached.through) < TRACED_BINDINGS_MAX:
            reached.through.append(judged)

    def _visit(self, visit: ExchangeVisit) -> None:
        self.visits.setdefault(visit.exchange, visit)

    def _find_certain(self, start: Exchange) -> None:
        """Mark the queues that are reached without depending on chance."""
        certain: dict[object, list[object]] = {}
        for source, destination, is_certain in self._steps:
            if is_certain:
                certain.setdefault(source, []).append(destination)
        seen: dict[object, None] = {start: None}
        waiting: list[object] = [start]
        for known in waiting:
            for destination in certain.get(known, ()):
                if destination not in seen:
                    seen[destination] = None
                    waiting.append(destination)
        for queue, reached in self.queues.items():
            reached.is_certain = queue in seen
