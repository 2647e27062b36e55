"""Where a message would go, and why nowhere else: the walk of the router, explained binding by binding.

Nothing is published or kept, and no cache of the router is used. What an exchange says of its bindings is all
that counts here: that it agrees with what it does is what the tests hold it to.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heappushpop

from warren.limits import EXPLAINED_PER_TURN, TRACED_BINDINGS_MAX
from warren.model.message import Message
from warren.routing.exchange import Binding, Exchange
from warren.routing.verdict import Verdict

CERTAIN = 1.0


@dataclass(frozen=True, slots=True)
class BindingVerdict:
    """A binding, with what it says to which of the message's routing keys."""

    binding: Binding
    routing_key: str
    verdict: Verdict


@dataclass(slots=True, eq=False)
class ExchangeVisit:
    """One exchange on the way."""

    exchange: Exchange
    # What led to it first: a binding, or the exchange that it is the alternate of; None of that, the publish.
    binding: Binding | None = None
    alternate_of: Exchange | None = None
    # Of its bindings.
    matched: int = 0
    missed: int = 0
    # What takes what no binding does, if it came to that; the name is there if the exchange is not.
    alternate: str | None = None
    is_alternate_missing: bool = False


@dataclass(slots=True, eq=False)
class ReachedQueue:
    """A queue that the message comes to."""

    queue: object
    # The bindings that lead to it, the first of them.
    through: list[BindingVerdict] = field(default_factory=list)
    count: int = 0
    # False if chance has a say.
    is_certain: bool = False


class RouteTrace:
    """One message on its way through `exchanges`; complete when `steps` is through."""

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
        # How many bindings were looked at that do not match; the nearest of them are kept.
        self.missed = 0
        self._misses: list[tuple[float, int, BindingVerdict]] = []
        self._misses_max = misses_max
        # Whether a binding that does not match may be told of.
        self._is_shown = is_shown
        self._number = 0
        # Every step from an exchange, and whether it is certain.
        self._steps: list[tuple[Exchange, object, bool]] = []

    @property
    def misses(self) -> list[BindingVerdict]:
        """The bindings that nearly match, the nearest first."""
        return [judged for _, _, judged in sorted(self._misses, key=lambda miss: miss[:2], reverse=True)]

    def steps(self, start: Exchange) -> Iterator[None]:
        """Walk from `start`, a turn's work with each step."""
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
            # It may be gone since the turn before.
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
        """What `binding` says to the key that it likes best."""
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
        """Mark the queues that are reached whatever chance says."""
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
