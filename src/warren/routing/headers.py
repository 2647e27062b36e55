"""The headers exchange: by the message's headers instead of its routing key (0-9-1 §3.1.3.4).

A binding's arguments are facts: "this header has this value", a pair, or, with a void value, "this header is
there", its name.
A message states facts too, and a rule matches as sets do: `all` is a subset, `any` an intersection.
Bindings with the same facts and mode share a rule. An `all` rule is filed under one of its facts, the one
that the fewest rules are filed under; an `any` rule under each. So a message looks only at rules that share
a fact with it, however many others there are.
"""

from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal

from warren.errors import PreconditionFailed
from warren.model.groups import Groups
from warren.model.message import Message
from warren.model.terms import printed_value
from warren.routing.exchange import Binding, Exchange, fingerprint
from warren.wire.table import type_name

# The argument that says how, and what it may say. With `-with-x`, headers that start with `x-` count too.
MATCH_ARGUMENT = "x-match"
MATCH_MODES = ("all", "any", "all-with-x", "any-with-x")

_RESERVED = "x-"
_EMPTY = (dict, list)


class HeadersExchange(Exchange):
    """To every binding whose facts agree with the message's headers; its routing key is ignored."""

    __slots__ = ("_filed", "_members", "_rules")

    type_name = "headers"

    def prepare(self) -> None:
        self._rules: dict[Rule, Rule] = {}
        self._members: Groups[Binding] = Groups()
        # The rules to look at when a message states a fact; under None, those that ask for nothing.
        # Most facts have one rule: it stands there without a dict.
        self._filed: dict[Hashable, Rule | dict[Rule, None]] = {}

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
        facts: list[Hashable] = [None]
        for name, value in message.headers().items():
            facts.append(name)
            facts.append((name, comparable(value)))
        stated = frozenset(facts)
        matched: dict[Rule, None] = {}
        for fact in facts:
            filed = self._filed.get(fact)
            if filed is not None:
                for rule in filed if isinstance(filed, dict) else (filed,):
                    if rule.is_any or rule.facts <= stated:
                        matched[rule] = None
        return [binding.destination for rule in matched for binding in self._members.get(rule)]

    def added(self, binding: Binding) -> None:
        asked = required(binding.arguments)
        rule = self._rules.get(asked)
        if rule is None:
            rule = self._rules[asked] = asked
            if not rule.is_any:
                rule.filed_under = min(rule.facts, key=self._crowd, default=None)
            for fact in rule.places():
                self._file(fact, rule)
        self._members.add(rule, binding)

    def removed(self, binding: Binding) -> None:
        rule = self._rules[required(binding.arguments)]
        self._members.remove(rule, binding)
        if self._members.size(rule):
            return
        del self._rules[rule]
        for fact in rule.places():
            filed = self._filed[fact]
            if isinstance(filed, dict):
                del filed[rule]
            if not filed or filed is rule:
                del self._filed[fact]

    def _file(self, fact: Hashable, rule: "Rule") -> None:
        filed = self._filed.get(fact)
        if filed is None:
            self._filed[fact] = rule
        elif isinstance(filed, dict):
            filed[rule] = None
        else:
            self._filed[fact] = {filed: None, rule: None}

    def _crowd(self, fact: Hashable) -> int:
        """How many rules are filed under `fact`."""
        filed = self._filed.get(fact)
        if filed is None:
            return 0
        return len(filed) if isinstance(filed, dict) else 1


class Rule:
    """What bindings with the same facts and mode have in common."""

    __slots__ = ("_hash", "facts", "filed_under", "is_any")

    def __init__(self, is_any: bool, facts: frozenset[Hashable]) -> None:
        self.is_any = is_any
        self.facts = facts
        # Of an `all` rule: the one of its facts that it is filed under, None if it has none.
        self.filed_under: Hashable = None
        self._hash = hash((is_any, facts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.is_any == other.is_any and self.facts == other.facts

    def __hash__(self) -> int:
        return self._hash

    def places(self) -> Iterable[Hashable]:
        """The facts that it is filed under."""
        return self.facts if self.is_any else (self.filed_under,)


def required(arguments: Mapping[str, object]) -> Rule:
    """What the arguments of a binding ask for."""
    mode = str(arguments.get(MATCH_ARGUMENT, "all"))
    counts_reserved = mode.endswith("-with-x")
    facts = frozenset(
        name if value is None else (name, comparable(value))
        for name, value in arguments.items()
        if not name.startswith(_RESERVED) or (counts_reserved and name != MATCH_ARGUMENT)
    )
    return Rule(mode.startswith("any"), facts)


def comparable(value: object) -> Hashable:
    """Equal if RabbitMQ 3.10.8, measured, takes two values for equal.

    Numbers and timestamps are equal across their types, and so are strings of both kinds; true is not 1,
    a decimal equals only one with the same scale, an empty array equals an empty table, and what stands
    inside a table or an array must have the same type.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, int | float):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, Decimal):
        return Decimal, value.as_tuple()
    if isinstance(value, dict | list) and not value:
        return _EMPTY
    return fingerprint(value)
