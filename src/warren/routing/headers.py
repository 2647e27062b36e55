"""The headers exchange: by the message's headers instead of its routing key (0-9-1 §3.1.3.4).

A binding's arguments are facts: "this header has this value", or, with a void value, "this header is there".
A message states facts too, and a rule matches as sets do: `all` is a subset, `any` an intersection.
Bindings with the same facts and mode share a rule. An `all` rule is filed under one of its facts, the one
that the fewest rules are filed under; an `any` rule under each. So a message looks only at rules that share
a fact with it, however many others there are.
"""

from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal

from warren.errors import PreconditionFailed
from warren.model.terms import printed_value
from warren.routing.exchange import Binding, Exchange, Message, fingerprint
from warren.wire.table import type_name

# The argument that says how, and what it may say. With `-with-x`, headers that start with `x-` count too.
MATCH_ARGUMENT = "x-match"
MATCH_MODES = ("all", "any", "all-with-x", "any-with-x")

_RESERVED = "x-"
_PRESENT = "present"
_EMPTY = "empty"


class HeadersExchange(Exchange):
    """To every binding whose facts agree with the message's headers; its routing key is ignored."""

    __slots__ = ("_filed", "_rules")

    type_name = "headers"

    def prepare(self) -> None:
        self._rules: dict[tuple[bool, frozenset[Hashable]], Rule] = {}
        # The rules to look at when a message states a fact; under None, those that ask for nothing.
        self._filed: dict[Hashable, dict[Rule, None]] = {}

    @property
    def is_routed_by_key(self) -> bool:
        """Never: the same key may come with other headers."""
        return False

    def validate_binding(self, key: str, arguments: Mapping[str, object]) -> None:
        """Raise PreconditionFailed for an unknown mode; texts of RabbitMQ 3.10.8, measured."""
        if MATCH_ARGUMENT not in arguments:
            return
        mode = arguments[MATCH_ARGUMENT]
        if not isinstance(mode, str):
            kind, shown = type_name(mode), printed_value(mode)
            raise PreconditionFailed(f"Invalid x-match field type {kind} (value {shown}); expected longstr")
        if mode not in MATCH_MODES:
            shown = printed_value(mode)
            raise PreconditionFailed(
                f"Invalid x-match field value {shown}; expected all, any, all-with-x, or any-with-x"
            )

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """The destinations of all rules that the headers of `message` satisfy."""
        facts = stated_facts(message.headers())
        stated = frozenset(facts)
        matched: dict[Rule, None] = {}
        for fact in (*facts, None):
            for rule in self._filed.get(fact, ()):
                if rule.is_any or rule.facts <= stated:
                    matched[rule] = None
        return [binding.destination for rule in matched for binding in rule.bindings]

    def added(self, binding: Binding) -> None:
        identity = required_facts(binding.arguments)
        rule = self._rules.get(identity)
        if rule is None:
            rule = self._rules[identity] = Rule(*identity)
            rule.filed_under = self._places(rule)
            for fact in rule.filed_under:
                self._filed.setdefault(fact, {})[rule] = None
        rule.bindings[binding] = None

    def removed(self, binding: Binding) -> None:
        identity = required_facts(binding.arguments)
        rule = self._rules[identity]
        del rule.bindings[binding]
        if rule.bindings:
            return
        del self._rules[identity]
        for fact in rule.filed_under:
            filed = self._filed[fact]
            del filed[rule]
            if not filed:
                del self._filed[fact]

    def _places(self, rule: "Rule") -> tuple[Hashable, ...]:
        if rule.is_any:
            return tuple(rule.facts)
        if not rule.facts:
            return (None,)
        return (min(rule.facts, key=lambda fact: len(self._filed.get(fact, ()))),)


class Rule:
    """What bindings with the same facts and mode have in common."""

    __slots__ = ("bindings", "facts", "filed_under", "is_any")

    def __init__(self, is_any: bool, facts: frozenset[Hashable]) -> None:
        self.is_any = is_any
        self.facts = facts
        self.filed_under: tuple[Hashable, ...] = ()
        self.bindings: dict[Binding, None] = {}


def required_facts(arguments: Mapping[str, object]) -> tuple[bool, frozenset[Hashable]]:
    """Whether any fact will do, and the facts that the arguments of a binding ask for."""
    mode = str(arguments.get(MATCH_ARGUMENT, "all"))
    counts_reserved = mode.endswith("-with-x")
    facts = frozenset(
        (name, _PRESENT) if value is None else (name, comparable(value))
        for name, value in arguments.items()
        if not name.startswith(_RESERVED) or (counts_reserved and name != MATCH_ARGUMENT)
    )
    return mode.startswith("any"), facts


def stated_facts(headers: Mapping[str, object]) -> list[Hashable]:
    """The facts that the headers of a message state: for each that it is there, and what it is."""
    facts: list[Hashable] = []
    for name, value in headers.items():
        facts.append((name, _PRESENT))
        facts.append((name, comparable(value)))
    return facts


def comparable(value: object) -> Hashable:
    """Equal if RabbitMQ 3.10.8, measured, takes two values for equal.

    Numbers and timestamps are equal across their types, and so are strings of both kinds; true is not 1,
    a decimal equals only one with the same scale, an empty array equals an empty table, and what stands
    inside a table or an array must have the same type.
    """
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, int | float):
        return "number", value
    if isinstance(value, str):
        return "string", value
    if isinstance(value, bytes):
        return "string", value.decode("utf-8", "surrogateescape")
    if isinstance(value, Decimal):
        return Decimal, value.as_tuple()
    if isinstance(value, dict | list) and not value:
        return _EMPTY
    return fingerprint(value)
