"""The headers exchange: by the message's headers instead of its routing key (0-9-1 §3.1.3.4).

A binding's arguments are facts: "this header has this value" or, with a void value, "this header is there".
A message states facts too, and a rule matches as sets do: `all` is a subset, `any` an intersection.
Bindings with the same facts and mode share a rule. An `all` rule is filed under one of its facts, the one
that the fewest rules are filed under; an `any` rule under each. So a message looks only at rules that share
a fact with it, however many others there are, and of its headers only at those that a rule is filed under.

    _filed   header ─▶ Drawer   present    rules filed under "the header is there"
                                by_value   value ─▶ rules filed under "the header has this value"
"""

from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal

from warren.errors import PreconditionFailed
from warren.model.erlang_terms import printed_value
from warren.model.message import HAS_HEADERS, Message
from warren.routing.exchange import BY_PROPERTIES, Binding, Exchange, fingerprint
from warren.routing.verdict import Verdict, shown
from warren.wire.properties import decode_some_headers
from warren.wire.table import type_name

# The argument that says how, and what it may say. With `-with-x`, headers that start with `x-` count too.
MATCH_ARGUMENT = "x-match"
MATCH_MODES = ("all", "any", "all-with-x", "any-with-x")

_RESERVED = "x-"
_EMPTY = (dict, list)
_HAS_HEADERS = HAS_HEADERS

# The maximum number of missing headers that are named.
_LACKING_SHOWN_MAX = 5

# Represents any value.
_PRESENT = object()
# (header, comparable value)
Fact = tuple[str, Hashable]


class HeadersExchange(Exchange):
    """Routes by the message's headers; the routing key is ignored."""

    __slots__ = ("_always", "_index", "_rules", "_turn", "_wanted")

    type_name = "headers"

    def prepare(self) -> None:
        self._rules: dict[Rule, Rule] = {}
        self._index: dict[str, HeaderIndex] = {}
        # The headers that rules refer to, each with a number; only these are decoded.
        self._wanted: dict[str, int] = {}
        # The rule without conditions, which every message satisfies.
        self._always: Rule | None = None
        # The number of the current message.
        self._turn = 0

    @property
    def decides(self) -> int:
        """BY_PROPERTIES: messages with the same key may have other headers."""
        return BY_PROPERTIES

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
        found: list[object] = []
        if self._always is not None:
            self._take(self._always, found)
        if message.flags & _HAS_HEADERS and self._index:
            self._turn += 1
            headers = decode_some_headers(message.property_list, self._wanted)
            for name, value in headers.items():
                header_index = self._index.get(name)
                if header_index is not None:
                    if header_index.present is not None:
                        self._try(header_index.present, headers, found)
                    if header_index.by_value:
                        filed = header_index.by_value.get(comparable(value))
                        if filed is not None:
                            self._try(filed, headers, found)
        return found

    def explain(self, binding: Binding, routing_key: str, message: Message) -> Verdict:
        """Explains for each header of the binding whether it is present with that value, missing or
        different.
        """
        rule = rule_for(binding.arguments)
        headers = message.headers()
        unmet = sorted(
            _mismatch(name, binding.arguments[name], headers)
            for name, value in rule.facts
            if name not in headers or (value is not _PRESENT and comparable(headers[name]) != value)
        )
        mode = str(binding.arguments.get(MATCH_ARGUMENT, "all"))
        count = len(rule.facts)
        met = count - len(unmet)
        if met if rule.is_any else not unmet:
            return Verdict(True, f"x-match is {mode}: {met} of {count} headers match")
        if not count:
            return Verdict(False, f"x-match is {mode}, but the binding has no headers: nothing matches", 0.0)
        lacking = "; ".join(unmet[:_LACKING_SHOWN_MAX])
        more = f"; and {len(unmet) - _LACKING_SHOWN_MAX} more" if len(unmet) > _LACKING_SHOWN_MAX else ""
        return Verdict(False, f"x-match is {mode}: {lacking}{more}", met / (count + 1))

    def _try(self, filed: object, headers: dict[str, object], found: list[object]) -> None:
        """Add the rules of one header's index that `headers` satisfy to `found`."""
        if isinstance(filed, dict):
            for rule in filed:
                self._try_one(rule, headers, found)
        else:
            self._try_one(filed, headers, found)  # type: ignore[arg-type]

    def _try_one(self, rule: "Rule", headers: dict[str, object], found: list[object]) -> None:
        if rule.is_any:
            if rule.turn != self._turn:
                rule.turn = self._turn
                self._take(rule, found)
        elif rule.is_met_by(headers):
            self._take(rule, found)

    def _take(self, rule: "Rule", found: list[object]) -> None:
        bindings = rule.bindings
        if isinstance(bindings, dict):
            found.extend([binding.destination for binding in bindings])
        elif bindings is not None:
            found.append(bindings.destination)

    def added(self, binding: Binding) -> None:
        asked = rule_for(binding.arguments)
        rule = self._rules.get(asked)
        if rule is None:
            rule = self._rules[asked] = asked
            self._add_to_index(rule)
        rule.add(binding)

    def removed(self, binding: Binding) -> None:
        rule = self._rules[rule_for(binding.arguments)]
        rule.remove(binding)
        if rule.bindings is not None:
            return
        del self._rules[rule]
        if rule is self._always:
            self._always = None
        for name, _ in rule.facts:
            self._wanted[name] -= 1
            if not self._wanted[name]:
                del self._wanted[name]
        for name, value in rule.places():
            header_index = self._index[name]
            header_index.remove(value, rule)
            if header_index.is_empty():
                del self._index[name]

    def _add_to_index(self, rule: "Rule") -> None:
        if not rule.is_any:
            if not rule.facts:
                self._always = rule
                return
            rule.index_under(min(rule.facts, key=self._indexed_count))
        for name, _ in rule.facts:
            self._wanted[name] = self._wanted.get(name, 0) + 1
        for name, value in rule.places():
            header_index = self._index.get(name)
            if header_index is None:
                header_index = self._index[name] = HeaderIndex()
            header_index.add(value, rule)

    def _indexed_count(self, fact: Fact) -> int:
        """The number of rules indexed under `fact`."""
        header_index = self._index.get(fact[0])
        return 0 if header_index is None else header_index.size(fact[1])


class HeaderIndex:
    """The rules indexed under one header. Most values have one rule, which is stored without a dict."""

    __slots__ = ("by_value", "present")

    def __init__(self) -> None:
        self.present: Rule | dict[Rule, None] | None = None
        self.by_value: dict[Hashable, Rule | dict[Rule, None]] = {}

    def add(self, value: Hashable, rule: "Rule") -> None:
        """Add `rule` under `value`."""
        filed = self._get(value)
        if isinstance(filed, dict):
            filed[rule] = None
        else:
            self._put(value, rule if filed is None else {filed: None, rule: None})

    def remove(self, value: Hashable, rule: "Rule") -> None:
        """Remove `rule`, which is indexed under `value`."""
        filed = self._get(value)
        if isinstance(filed, dict) and len(filed) > 1:
            del filed[rule]
        else:
            self._put(value, None)

    def size(self, value: Hashable) -> int:
        """The number of rules under `value`."""
        filed = self._get(value)
        if filed is None:
            return 0
        return len(filed) if isinstance(filed, dict) else 1

    def is_empty(self) -> bool:
        """True if it has no rules."""
        return self.present is None and not self.by_value

    def _get(self, value: Hashable) -> "Rule | dict[Rule, None] | None":
        return self.present if value is _PRESENT else self.by_value.get(value)

    def _put(self, value: Hashable, filed: "Rule | dict[Rule, None] | None") -> None:
        if value is _PRESENT:
            self.present = filed
        elif filed is None:
            del self.by_value[value]
        else:
            self.by_value[value] = filed


class Rule:
    """Bindings with the same facts and mode. Most rules have one binding, which is stored without a dict."""

    __slots__ = ("_hash", "_others", "_place", "bindings", "facts", "is_any", "turn")

    def __init__(self, is_any: bool, facts: frozenset[Fact]) -> None:
        self.is_any = is_any
        self.facts = facts
        # For an `all` rule: the fact it is indexed under, and the other facts.
        self._place: Fact | None = None
        self._others: tuple[Fact, ...] = ()
        self.bindings: Binding | dict[Binding, None] | None = None
        # For an `any` rule: the number of the last message that it matched.
        self.turn = 0
        self._hash = hash((is_any, facts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.is_any == other.is_any and self.facts == other.facts

    def __hash__(self) -> int:
        return self._hash

    def add(self, binding: Binding) -> None:
        """Add `binding`, which is not in the rule yet."""
        held = self.bindings
        if isinstance(held, dict):
            held[binding] = None
        else:
            self.bindings = binding if held is None else {held: None, binding: None}

    def remove(self, binding: Binding) -> None:
        """Remove `binding`; `bindings` is None after the last."""
        held = self.bindings
        if isinstance(held, dict) and len(held) > 1:
            del held[binding]
        else:
            self.bindings = None

    def index_under(self, place: Fact) -> None:
        """Index the rule under `place`: messages found there state that fact."""
        self._place = place
        self._others = tuple(fact for fact in self.facts if fact[0] != place[0])

    def places(self) -> Iterable[Fact]:
        """The facts that the rule is indexed under."""
        if self.is_any:
            return self.facts
        return () if self._place is None else (self._place,)

    def is_met_by(self, headers: dict[str, object]) -> bool:
        """True if `headers` state the other facts, too."""
        for name, value in self._others:
            if name not in headers:
                return False
            if value is not _PRESENT and comparable(headers[name]) != value:
                return False
        return True


def rule_for(arguments: Mapping[str, object]) -> Rule:
    """A rule with the conditions in the arguments of a binding."""
    mode = str(arguments.get(MATCH_ARGUMENT, "all"))
    counts_reserved = mode.endswith("-with-x")
    facts = frozenset(
        (name, _PRESENT if value is None else comparable(value))
        for name, value in arguments.items()
        if not name.startswith(_RESERVED) or (counts_reserved and name != MATCH_ARGUMENT)
    )
    return Rule(mode.startswith("any"), facts)


def _mismatch(name: str, wanted: object, headers: Mapping[str, object]) -> str:
    """A description of how `headers` fail the condition that `name` is `wanted`."""
    if name not in headers:
        return f"header {shown(name)} is missing"
    found = headers[name]
    told = f"header {shown(name)} is {shown(found)}, not {shown(wanted)}"
    # They look equal, so the types are named.
    is_alike = shown(found).strip("'") == shown(wanted).strip("'")
    return f"{told} ({type_name(found)}, not {type_name(wanted)})" if is_alike else told


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
