"""The policies and operator policies of a vhost, their validation, and the match for a queue or exchange."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from warren.metadata import validation
from warren.metadata.commands import Json, Outcome, Reply, SetPolicy
from warren.metadata.federation_definition import UPSTREAM, UPSTREAM_SET
from warren.model.arguments import (
    CLASSIC,
    QUORUM,
    RETAIN,
    STREAM,
    DeadLetterStrategy,
    DelayedRetry,
    Overflow,
    is_age,
)
from warren.model.erlang_terms import printed_json, printed_pairs, printed_text
from warren.model.patterns import Pattern, pattern_error, pattern_of

UPSTREAM_PATTERN = "federation-upstream-pattern"
_RETRY_TYPE, _RETRY_MIN, _RETRY_MAX = "delayed-retry-type", "delayed-retry-min", "delayed-retry-max"
_SEGMENT_SIZE_MAX = 3_000_000_000

# The values of `apply-to`, and the kinds of objects they mean. RabbitMQ 4 added the last three.
_APPLIES_TO: Final[Mapping[str, frozenset[str]]] = {
    "all": frozenset(("exchange", CLASSIC, QUORUM, STREAM)),
    "exchanges": frozenset(("exchange",)),
    "queues": frozenset((CLASSIC, QUORUM, STREAM)),
    "classic_queues": frozenset((CLASSIC,)),
    "quorum_queues": frozenset((QUORUM,)),
    "streams": frozenset((STREAM,)),
}

_STREAM_KEYS: Final = ("max-age", "stream-max-segment-size-bytes", "initial-cluster-size")
_QUORUM_KEYS: Final = (
    "dead-letter-strategy",
    "max-in-memory-length",
    "max-in-memory-bytes",
    "target-group-size",
)
_CLASSIC_KEYS: Final = (
    "queue-mode",
    "queue-master-locator",
    "ha-mode",
    "ha-params",
    "ha-sync-mode",
    "ha-promote-on-shutdown",
    "ha-promote-on-failure",
)
# A policy with one of these keys does not match such a queue at all, and the next one does: the lists of
# RabbitMQ 4.3.6, in which not every key is that a queue ignores. Here a classic queue has `delivery-limit` as
# well, and `retain` is a key of Warren's own, for queues that are not streams.
_UNSUPPORTED: Final[Mapping[str, frozenset[str]]] = {
    CLASSIC: frozenset((*_STREAM_KEYS, *_QUORUM_KEYS)),
    QUORUM: frozenset((*_STREAM_KEYS, *_CLASSIC_KEYS)),
    STREAM: frozenset(
        (
            *_CLASSIC_KEYS,
            *_QUORUM_KEYS,
            "expires",
            "message-ttl",
            "dead-letter-exchange",
            "dead-letter-routing-key",
            "max-length",
            "overflow",
            "delivery-limit",
            RETAIN,
        )
    ),
}
_NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy for the queues and exchanges whose names its pattern matches."""

    name: str
    pattern: str
    definition: Mapping[str, Json]
    priority: int | float
    apply_to: str
    # Compiled once, for as long as the policy exists.
    matcher: Pattern = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "matcher", pattern_of(self.pattern))

    def holds_for(self, name: str, kind: str) -> bool:
        """True if the policy applies to `name`, an `exchange` or a queue of that kind."""
        return (
            kind in _APPLIES_TO[self.apply_to]
            and _UNSUPPORTED.get(kind, _NOTHING).isdisjoint(self.definition)
            and self.matcher.matches(name)
        )


class Policies:
    """The policies of a vhost, or its operator policies.

    Of those that match, the highest priority applies.
    """

    __slots__ = ("_sorted", "by_name")

    def __init__(self) -> None:
        self.by_name: dict[str, Policy] = {}
        self._sorted: list[Policy] = []

    def put(self, policy: Policy) -> None:
        """Add `policy`, replacing one with the same name."""
        self.by_name[policy.name] = policy
        self._sort()

    def remove(self, name: str) -> bool:
        """Remove the policy `name`; False if there is none."""
        if self.by_name.pop(name, None) is None:
            return False
        self._sort()
        return True

    def match(self, name: str, kind: str) -> Policy | None:
        """The policy that applies to `name`, an `exchange` or a queue of that kind; None if there is none."""
        for policy in self._sorted:
            if policy.holds_for(name, kind):
                return policy
        return None

    def _sort(self) -> None:
        # RabbitMQ does not define the order of equal priorities; by name it is the same on every node.
        self._sorted = sorted(self.by_name.values(), key=lambda policy: (-policy.priority, policy.name))


def checked_policy(command: SetPolicy) -> Policy | Reply:
    """The policy that `command` describes, or a refusal with RabbitMQ's text."""
    checks: dict[str, validation.Check] = {
        "priority": validation.number,
        "pattern": validation.pattern,
        "apply-to": _apply_to,
        "definition": _operator_definition if command.is_operator else _definition,
    }
    apply_to = "all" if command.apply_to is None else command.apply_to
    priority = 0 if command.priority is None else command.priority
    definition = command.definition
    term = {"pattern": command.pattern, "definition": definition, "priority": priority, "apply-to": apply_to}
    errors = validation.fields(command.name, term, checks)
    if errors:
        return Reply(Outcome.REFUSED, validation.failed(errors))
    assert isinstance(command.pattern, str)
    assert isinstance(apply_to, str)
    assert isinstance(priority, int | float)
    assert isinstance(definition, Mapping)
    return Policy(
        name=command.name,
        pattern=command.pattern,
        definition=definition,
        priority=priority,
        apply_to=apply_to,
    )


def _apply_to(_: str, term: object) -> str | None:
    if isinstance(term, str) and term in _APPLIES_TO:
        return None
    return f"apply-to '{printed_text(term)}' unrecognised; should be 'queues', 'exchanges' or 'all'"


def _definition(name: str, term: object) -> str | None:
    return _wrong_definition(name, term, _SETTINGS)


def _operator_definition(name: str, term: object) -> str | None:
    return _wrong_definition(name, term, _OPERATOR_SETTINGS)


def _wrong_definition(name: str, term: object, settings: Mapping[str, "_Setting"]) -> str | None:
    if not isinstance(term, Mapping):
        return f"parse error while reading policy {name}: {printed_json(term)}"
    if not term:
        return "no policy provided"
    for key, value in term.items():
        setting = settings.get(key)
        if setting is not None and not setting.is_right(value):
            return f"{printed_json(value)} is not a valid {setting.noun}"
    error = _wrong_retry(term) or (_wrong_federation(term) if settings is _SETTINGS else None)
    if error:
        return error
    unknown = {key: value for key, value in term.items() if key not in settings}
    return f"{printed_pairs(unknown)} are not recognised policy settings" if unknown else None


def _wrong_retry(term: Mapping[str, object]) -> str | None:
    """The error in keys of delayed retries that are right one by one."""
    kind, least, most = (term.get(key) for key in (_RETRY_TYPE, _RETRY_MIN, _RETRY_MAX))
    if kind not in (None, DelayedRetry.DISABLED.value) and least is None:
        return f"{_RETRY_MIN} is required when {_RETRY_TYPE} is {kind}"
    if isinstance(least, int) and isinstance(most, int) and most < least:
        return f"{_RETRY_MAX} ({most}) must not be smaller than {_RETRY_MIN} ({least})"
    return None


def _wrong_federation(term: Mapping[str, object]) -> str | None:
    """The error in the keys of federation, which RabbitMQ checks after the other keys."""
    given = [(key, noun) for key, noun in _FEDERATION.items() if key in term]
    if len(given) > 1:
        return f"cannot specify {UPSTREAM}, {UPSTREAM_SET} or {UPSTREAM_PATTERN} together"
    for key, noun in given:
        value = term[key]
        if not isinstance(value, str):
            return f"{printed_json(value)} is not a valid federation upstream {noun}"
        error = pattern_error(value) if key == UPSTREAM_PATTERN else None
        if error is not None:
            reason = f'{{"{error[0]}",{error[1]}}}'
            return f"could not compile pattern {value} to a regular expression. Error: {reason}"
    return None


class _Setting(Struct, frozen=True):
    noun: str
    is_right: Callable[[object], bool]


def _string(value: object) -> bool:
    return isinstance(value, str)


def _anything(_: object) -> bool:
    return True


def _at_least(least: int, most: int | None = None) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int):
            return False
        return value >= least and (most is None or value <= most)

    return check


def _among(*allowed: object) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, bool) and value in allowed


_byte_count = _at_least(1)


def _age(value: object) -> bool:
    return isinstance(value, str) and is_age(value)


# The keys of federation, and the words for their values in RabbitMQ's texts.
_FEDERATION: Final = {UPSTREAM: "name", UPSTREAM_SET: "set name", UPSTREAM_PATTERN: "pattern name"}
FEDERATION_SETTINGS: Final = frozenset(_FEDERATION)

_OPERATOR_SETTINGS: Final[Mapping[str, _Setting]] = {
    "expires": _Setting("queue expiry", _at_least(1)),
    "message-ttl": _Setting("message TTL", _at_least(0)),
    "max-length": _Setting("maximum length", _at_least(0)),
    "max-length-bytes": _Setting("maximum length in bytes", _at_least(0)),
    "max-in-memory-length": _Setting("maximum memory in bytes", _at_least(0)),
    "max-in-memory-bytes": _Setting("maximum memory in bytes", _at_least(0)),
    # A negative limit is none, as in RabbitMQ 4: RabbitMQ 3.10 refuses it, but has no limit by default.
    "delivery-limit": _Setting("delivery limit", _at_least(-1)),
    "overflow": _Setting("overflow value", _among(*(overflow.value for overflow in Overflow))),
    "queue-version": _Setting("queue-version value", _among(1, 2)),
    # Keys of quorum queues that RabbitMQ 4 added.
    "target-group-size": _Setting("target group size", _at_least(1)),
    _RETRY_TYPE: _Setting(
        "delayed retry type. Must be one of: all, failed, returned, disabled",
        _among(*(each.value for each in DelayedRetry)),
    ),
    _RETRY_MIN: _Setting("delayed retry minimum delay. Must be a positive integer", _at_least(1)),
    _RETRY_MAX: _Setting("delayed retry maximum delay. Must be a positive integer", _at_least(1)),
}
_SETTINGS: Final[Mapping[str, _Setting]] = {
    **_OPERATOR_SETTINGS,
    "alternate-exchange": _Setting("alternate exchange name", _string),
    "dead-letter-exchange": _Setting("dead letter exchange name", _string),
    "dead-letter-routing-key": _Setting("dead letter routing key", _string),
    "dead-letter-strategy": _Setting(
        "dead letter strategy", _among(*(strategy.value for strategy in DeadLetterStrategy))
    ),
    "queue-mode": _Setting("queue-mode value", _among("default", "lazy")),
    "consumer-timeout": _Setting("consumer timeout", _at_least(0)),
    "max-age": _Setting("max age", _age),
    # By age or by bytes, in a stream beside the queue; RabbitMQ has no such key.
    RETAIN: _Setting("retention: an age as 7D, or bytes", lambda value: _byte_count(value) or _age(value)),
    "queue-leader-locator": _Setting(
        "queue leader locator value", _among("client-local", "balanced", "random", "least-leaders")
    ),
    "queue-master-locator": _Setting("queue master locator value", _string),
    "initial-cluster-size": _Setting("cluster size", _at_least(0)),
    "stream-max-segment-size-bytes": _Setting("segment size", _at_least(0, _SEGMENT_SIZE_MAX)),
    # The size of Bloom filters, which RabbitMQ 4 writes with the chunks. Here they are not stored.
    "stream-filter-size-bytes": _Setting("filter size. Valid range is 16-255", _at_least(16, 255)),
    # RabbitMQ 4 added this key of quorum queues.
    "consumer-disconnected-timeout": _Setting("consumer disconnected timeout", _at_least(0)),
    # Mirrored queues were removed in RabbitMQ 4; policies that mention them remain valid.
    "ha-mode": _Setting("ha-mode value", _among("all", "exactly", "nodes")),
    "ha-params": _Setting("ha-params value", _anything),
    "ha-sync-mode": _Setting("ha-sync-mode value", _among("manual", "automatic")),
    "ha-sync-batch-size": _Setting("ha-sync-batch-size value", _at_least(1)),
    "ha-promote-on-shutdown": _Setting("ha-promote-on-shutdown value", _among("always", "when-synced")),
    "ha-promote-on-failure": _Setting("ha-promote-on-failure value", _among("always", "when-synced")),
    # Their values are checked after all others.
    **{key: _Setting("", _anything) for key in _FEDERATION},
}
# All keys that a policy can have.
SETTING_NAMES: Final = tuple(_SETTINGS)
