"""A property test: the router against a brute-force model under random changes."""

from itertools import product

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.unit.routing.samples import PLAIN, made, sent

from warren.model.message import Message, encode_address
from warren.routing.direct import DirectExchange
from warren.routing.exchange import Binding, Exchange
from warren.routing.fanout import FanoutExchange
from warren.routing.headers import HeadersExchange
from warren.routing.router import Router
from warren.routing.topic import TopicExchange

KINDS: dict[str, type[Exchange]] = {
    "d": DirectExchange,
    "f": FanoutExchange,
    "t": TopicExchange,
    "h": HeadersExchange,
    "e": DirectExchange,
}
NAMES = st.sampled_from(sorted(KINDS))
QUEUES = st.sampled_from(["q1", "q2", "q3"])
PATTERNS = st.sampled_from(["a", "b", "a.b", "*", "#", "a.#", ""])
KEYS = ["a", "b", "a.b", ""]
HEADERS = st.sampled_from([None, {}, {"n": 1}, {"CC": ["b"]}, {"BCC": ["a.b", "b"], "n": 1}])
ARGUMENTS = st.sampled_from([{}, {"n": 1}, {"x-match": "any", "n": 1}])


class RouterMachine(RuleBasedStateMachine):
    """A model with bindings as a list, traversed anew for each message."""

    def __init__(self) -> None:
        super().__init__()
        self.router = Router("v")
        self.exchanges = {name: made(kind, name) for name, kind in KINDS.items()}
        for exchange in self.exchanges.values():
            self.router.add(exchange)
        self.bindings: list[Binding] = []
        self.alternates: dict[str, str | None] = {}
        self.gone: set[str] = set()

    def destination(self, name: str) -> object:
        return self.exchanges.get(name, name)

    @rule(source=NAMES, key=PATTERNS, to=QUEUES | NAMES, arguments=ARGUMENTS)
    def bind(self, source: str, key: str, to: str, arguments: dict[str, object]) -> None:
        if {source, to} & self.gone:
            return
        binding = Binding(self.exchanges[source], key, arguments, self.destination(to))
        assert self.router.bind(binding) is (binding not in self.bindings)
        if binding not in self.bindings:
            self.bindings.append(binding)

    @rule(data=st.data())
    def unbind(self, data: st.DataObject) -> None:
        if self.bindings:
            binding = self.bindings.pop(data.draw(st.integers(0, len(self.bindings) - 1)))
            assert self.router.unbind(
                Binding(binding.source, binding.key, dict(binding.arguments), binding.destination)
            )
            assert not self.router.unbind(binding)

    @rule(to=QUEUES | NAMES)
    def unbind_all_of_a_destination(self, to: str) -> None:
        gone = [binding for binding in self.bindings if binding.destination is self.destination(to)]
        assert self.router.bindings_of(self.destination(to)) == gone
        assert all(self.router.unbind(binding) for binding in gone)
        self.bindings = [binding for binding in self.bindings if binding not in gone]

    @rule(name=NAMES, alternate=NAMES | st.none())
    def set_alternate(self, name: str, alternate: str | None) -> None:
        self.exchanges[name].alternate = alternate
        self.alternates[name] = alternate

    @rule(name=NAMES)
    def remove_or_return(self, name: str) -> None:
        if name in self.gone:
            self.router.add(self.exchanges[name])
            self.gone.discard(name)
        else:
            self.router.remove(name)
            self.gone.add(name)
            exchange = self.exchanges[name]
            self.bindings = [one for one in self.bindings if exchange not in (one.source, one.destination)]

    @rule(name=NAMES, key=st.sampled_from(KEYS), headers=HEADERS)
    def route(self, name: str, key: str, headers: dict[str, object] | None) -> None:
        if name not in self.gone:
            message = sent(headers)
            found = self.router.route(encode_address(name, key), message)
            assert len(found) == len(set(found))
            assert set(found) == self.walked(name, [key, *copies(headers)], message)

    @invariant()
    def every_cached_result_equals_a_traversal(self) -> None:
        for name, key in product(sorted(set(KINDS) - self.gone), KEYS):
            assert set(self.router.route(encode_address(name, key), PLAIN)) == self.walked(name, [key], PLAIN)

    def walked(self, start: str, keys: list[str], message: Message) -> set[object]:
        """The queues by the rules of RabbitMQ, one binding after the other."""
        seen, queue, found = {start}, [start], set()
        for name in queue:
            exchange = self.exchanges[name]
            targets = [
                binding.destination
                for binding in self.bindings
                if binding.source is exchange and any(matching(binding, key, message) for key in keys)
            ]
            alternate = self.alternates.get(name)
            if not targets and alternate is not None and alternate not in self.gone:
                targets = [self.exchanges[alternate]]
            for target in targets:
                if not isinstance(target, Exchange):
                    found.add(target)
                elif target.name not in seen:
                    seen.add(target.name)
                    queue.append(target.name)
        return found


def copies(headers: dict[str, object] | None) -> list[str]:
    """The keys in CC and BCC."""
    return [key for name in ("CC", "BCC") for key in (headers or {}).get(name, [])]


def matching(binding: Binding, key: str, message: Message) -> bool:
    """Whether one binding matches one key."""
    kind = binding.source.type_name
    if kind == "headers":
        asked = {name: value for name, value in binding.arguments.items() if name != "x-match"}
        agree = [message.headers().get(name) == value for name, value in asked.items()]
        return any(agree) if binding.arguments.get("x-match") == "any" else all(agree)
    if kind == "topic":
        patterns = {"*": key != "" and "." not in key, "#": True, "a.#": key.split(".")[0] == "a"}
        return patterns.get(binding.key, binding.key == key)
    return kind == "fanout" or binding.key == key


RouterMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
test_the_router_answers_what_a_walk_answers = RouterMachine.TestCase
