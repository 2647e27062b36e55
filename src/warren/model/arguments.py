"""Checks, merges and parses x-arguments of queues and exchanges, with policies applied.

The checks, their order and their texts are those of RabbitMQ 3.10.8, measured. In addition,
`x-delivery-limit`, `x-consumer-timeout` and `x-queue-leader-locator` are accepted on classic queues, and the
arguments of quorum queues that RabbitMQ 4 added are checked. A quorum queue has a delivery limit by default,
as in RabbitMQ 4.
"""

from collections.abc import Callable, Mapping
from enum import Enum

from msgspec import Struct

from warren.errors import PreconditionFailed
from warren.limits import (
    DELIVERY_LIMIT_DEFAULT,
    EXPIRY_MS_MAX,
    PRIORITY_MAX,
    STREAM_SEGMENT_SIZE_MAX,
)
from warren.limits_metadata import STREAM_INITIAL_OFFSET_MAX
from warren.limits_raft import QUORUM_PRIORITY_MAX
from warren.model.names import ExchangeName, QueueName
from warren.wire.table import Value, type_name

Arguments = Mapping[str, Value]
# The definition of a policy as in its JSON: keys are those of the arguments without `x-`.
Definition = Mapping[str, object]

ALTERNATE_EXCHANGE = "alternate-exchange"
DEAD_LETTER_EXCHANGE = "x-dead-letter-exchange"
DEAD_LETTER_ROUTING_KEY = "x-dead-letter-routing-key"
QUEUE_TYPE = "x-queue-type"
# The policy key that retains what is published to a queue.
RETAIN = "retain"
CLASSIC, QUORUM, STREAM = QUEUE_KINDS = ("classic", "quorum", "stream")

_AGE_UNITS_MS = {
    "Y": 365 * 86_400_000,
    "M": 30 * 86_400_000,
    "D": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
}
_INTEGER_TYPES = frozenset(
    ("byte", "short", "signedint", "long", "unsignedbyte", "unsignedshort", "unsignedint")
)

# The arguments of each queue type, in the order in which a repeated declaration is compared.
KIND_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    CLASSIC: (
        "x-expires",
        "x-message-ttl",
        "x-dead-letter-exchange",
        "x-dead-letter-routing-key",
        "x-max-length",
        "x-max-length-bytes",
        "x-max-priority",
        "x-overflow",
        "x-queue-mode",
        "x-queue-version",
        "x-single-active-consumer",
        "x-queue-type",
        "x-queue-master-locator",
        "x-delivery-limit",
        "x-consumer-timeout",
        "x-queue-leader-locator",
    ),
    QUORUM: (
        "x-dead-letter-exchange",
        "x-dead-letter-routing-key",
        "x-dead-letter-strategy",
        "x-expires",
        "x-max-length",
        "x-max-length-bytes",
        "x-max-in-memory-length",
        "x-max-in-memory-bytes",
        "x-overflow",
        "x-single-active-consumer",
        "x-queue-type",
        "x-quorum-initial-group-size",
        "x-delivery-limit",
        "x-message-ttl",
        "x-queue-leader-locator",
        "x-consumer-timeout",
        "x-consumer-disconnected-timeout",
        "x-delayed-retry-type",
        "x-delayed-retry-min",
        "x-delayed-retry-max",
    ),
    STREAM: (
        "x-max-length-bytes",
        "x-queue-type",
        "x-max-age",
        "x-stream-max-segment-size-bytes",
        "x-initial-cluster-size",
        "x-queue-leader-locator",
        "x-stream-initial-offset",
    ),
}
# Those that are compared. RabbitMQ 3.10, the version that clients are told, does not know this one, so an
# application may declare its queue again with another value.
COMPARED_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    kind: tuple(key for key in keys if key != "x-consumer-timeout") for kind, keys in KIND_ARGUMENTS.items()
}
# RabbitMQ 3.10 ignores these arguments on queue types that do not support them.
_IGNORED_WHERE_UNKNOWN = frozenset(
    (
        "x-consumer-timeout",
        "x-consumer-disconnected-timeout",
        "x-delayed-retry-type",
        "x-delayed-retry-min",
        "x-delayed-retry-max",
    )
)

# The keys of which the smaller value applies, of two policies; of others, the operator policy applies.
_SMALLER_HOLDS = frozenset(
    (
        "expires",
        "message-ttl",
        "max-length",
        "max-length-bytes",
        "max-in-memory-length",
        "max-in-memory-bytes",
        "delayed-retry-max",
    )
)
# Those of which the smaller value applies, of a policy and an argument.
_SMALLER_THAN_ARGUMENT = _SMALLER_HOLDS | {
    "consumer-timeout",
    "consumer-disconnected-timeout",
    "delayed-retry-min",
}
# The keys of which the policy applies, even if there is an argument, by queue type (RabbitMQ 4.3.6). Of all
# other keys the argument applies.
_POLICY_HOLDS: Mapping[str, frozenset[str]] = {
    CLASSIC: frozenset(),
    QUORUM: frozenset(("overflow", "delayed-retry-type")),
    STREAM: frozenset(("max-length-bytes", "max-age", "stream-max-segment-size-bytes")),
}
_DELIVERY_LIMIT = "delivery-limit"
# The keys of which the larger value of two policies applies.
_LARGER_HOLDS = frozenset(("target-group-size", "delayed-retry-min"))


class Overflow(Enum):
    """What a full queue does with another message."""

    DROP_HEAD = "drop-head"
    REJECT_PUBLISH = "reject-publish"
    REJECT_PUBLISH_DLX = "reject-publish-dlx"


class DeadLetterStrategy(Enum):
    """When a message that died may be forgotten: once it is published, or once every target has it."""

    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"


class DelayedRetry(Enum):
    """Which messages that come back to a quorum queue wait before they are delivered again."""

    DISABLED = "disabled"
    ALL = "all"
    # Those whose delivery has failed, and the others.
    FAILED = "failed"
    RETURNED = "returned"


class QueueSettings(Struct, frozen=True, kw_only=True):
    """The settings of a queue, from arguments and policies; None is no limit."""

    kind: str = "classic"
    message_ttl_ms: int | None = None
    expires_ms: int | None = None
    length_max: int | None = None
    length_bytes_max: int | None = None
    overflow: Overflow = Overflow.DROP_HEAD
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None
    # As asked for; `keeps_dead_letters` says whether it can be obeyed.
    dead_letter_strategy: DeadLetterStrategy = DeadLetterStrategy.AT_MOST_ONCE
    priority_max: int | None = None
    single_active_consumer: bool = False
    delivery_limit: int | None = None
    # It has no effect without a minimum.
    delayed_retry: DelayedRetry = DelayedRetry.DISABLED
    delayed_retry_ms_min: int | None = None
    delayed_retry_ms_max: int | None = None
    consumer_timeout_ms: int | None = None
    # Of a quorum queue: how long a node that the leader cannot reach keeps what its consumers hold.
    consumer_disconnected_ms: int | None = None
    # True if messages published to it are also kept in its retained stream.
    is_retained: bool = False
    # For streams: the maximum age of messages (ms), and the size of a segment file in bytes.
    age_ms_max: int | None = None
    segment_size_max: int | None = None
    # The offset of its first message.
    initial_offset: int = 0

    @property
    def keeps_dead_letters(self) -> bool:
        """True if dead letters are kept until all their targets have confirmed them.

        As in RabbitMQ, at-least-once needs a quorum queue with a dead-letter exchange that rejects publishes
        when it is full; without, the strategy is at-most-once.
        """
        return (
            self.dead_letter_strategy is DeadLetterStrategy.AT_LEAST_ONCE
            and self.kind == QUORUM
            and self.dead_letter_exchange is not None
            and self.overflow is Overflow.REJECT_PUBLISH
        )

    def retry_delay_ms(self, failures: int, *, has_failed: bool) -> int:
        """How long (ms) a message that comes back to a quorum queue waits; 0 if it is ready at once.

        `has_failed` says whether its last delivery has failed, and `failures` how many have, with that one.
        Without a longest delay it is always the shortest one, as in RabbitMQ 4.3.6.
        """
        wanted = DelayedRetry.FAILED if has_failed else DelayedRetry.RETURNED
        if self.delayed_retry_ms_min is None or self.delayed_retry not in (DelayedRetry.ALL, wanted):
            return 0
        limit = self.delayed_retry_ms_min if self.delayed_retry_ms_max is None else self.delayed_retry_ms_max
        return min(self.delayed_retry_ms_min * max(failures, 1), limit, EXPIRY_MS_MAX)


# Shared by the many queues without arguments and policies.
DEFAULT_SETTINGS = QueueSettings()


def queue_kind(arguments: Arguments) -> str:
    """The queue type that `arguments` ask for."""
    if not arguments:
        return CLASSIC
    kind = arguments.get(QUEUE_TYPE, CLASSIC)
    return kind if isinstance(kind, str) else CLASSIC


def with_default_type(arguments: Arguments, default: str | None, *, is_transient: bool) -> Arguments:
    """`arguments` with the type of queue that is the default of the vhost, if none is given, or an empty one.

    A transient queue, which is not durable, or exclusive or deleted automatically, can only be a classic one.
    """
    if arguments.get(QUEUE_TYPE, "") != "":
        return arguments
    if not default or (default != CLASSIC and is_transient):
        return {key: value for key, value in arguments.items() if key != QUEUE_TYPE}
    return {**arguments, QUEUE_TYPE: default}


def check_queue_arguments(queue: QueueName, arguments: Arguments) -> None:
    """Raise PreconditionFailed unless `queue` may be declared with `arguments`."""
    if not arguments:
        return
    _check_value(queue, QUEUE_TYPE, arguments)
    kind = queue_kind(arguments)
    known = KIND_ARGUMENTS[kind]
    for key in _CHECKS:
        if key in known:
            _check_value(queue, key, arguments)
    size = arguments.get(_SEGMENT_SIZE)
    if kind == "stream" and isinstance(size, int) and size > STREAM_SEGMENT_SIZE_MAX:
        raise PreconditionFailed(f"Exceeded max value for {_SEGMENT_SIZE}")
    for key in arguments:
        if key in _ALL_ARGUMENTS and key not in known and key not in _IGNORED_WHERE_UNKNOWN:
            raise PreconditionFailed(f"invalid arg '{key}' for {queue} of queue type rabbit_{kind}_queue")


def check_queue_properties(
    queue: QueueName, kind: str, *, durable: bool, exclusive: bool, auto_delete: bool
) -> None:
    """Raise PreconditionFailed unless a queue of type `kind` may have these properties."""
    if kind == CLASSIC:
        return
    for is_wrong, name in (
        (auto_delete, "auto-delete"),
        (exclusive, "exclusive-owner"),
        (not durable, "non-durable"),
    ):
        if is_wrong:
            raise PreconditionFailed(f"invalid property '{name}' for {queue}")


def dead_letter_exchange(queue: QueueName, arguments: Arguments) -> ExchangeName | None:
    """The dead-letter exchange in `arguments`, whose permissions are checked before all others."""
    return _exchange_argument(queue, DEAD_LETTER_EXCHANGE, arguments, "queue")


def alternate_exchange(exchange: ExchangeName, arguments: Arguments) -> ExchangeName | None:
    """The alternate exchange in `arguments`."""
    return _exchange_argument(exchange, ALTERNATE_EXCHANGE, arguments, "exchange")


def effective_definition(policy: Definition | None, operator_policy: Definition | None) -> Definition:
    """Merge a policy and an operator policy."""
    if not operator_policy:
        return policy or {}
    if not policy:
        return operator_policy
    merged = dict(policy)
    for key, value in operator_policy.items():
        if key in merged and key in _SMALLER_HOLDS:
            merged[key] = _smaller(merged[key], value)
        elif key in merged and key == _DELIVERY_LIMIT:
            merged[key] = _lower_limit(merged[key], value)
        elif key in merged and key in _LARGER_HOLDS:
            merged[key] = _larger(merged[key], value)
        else:
            merged[key] = value
    return dict(sorted(merged.items()))


def queue_settings(
    arguments: Arguments, policy: Definition | None = None, operator_policy: Definition | None = None
) -> QueueSettings:
    """Merge checked `arguments` and policies into queue settings, with RabbitMQ's precedence."""
    definition = effective_definition(policy, operator_policy)
    if not arguments and not definition:
        return DEFAULT_SETTINGS
    kind = queue_kind(arguments)
    said = _MergedArguments(kind, arguments, definition)
    return QueueSettings(
        kind=kind,
        message_ttl_ms=said.number("message-ttl"),
        expires_ms=said.number("expires"),
        length_max=said.number("max-length"),
        length_bytes_max=said.number("max-length-bytes"),
        overflow=Overflow(said.string("overflow") or "drop-head"),
        dead_letter_exchange=said.string("dead-letter-exchange"),
        dead_letter_routing_key=said.string("dead-letter-routing-key"),
        dead_letter_strategy=DeadLetterStrategy(said.string("dead-letter-strategy") or "at-most-once"),
        priority_max=_priority_max(kind, arguments),
        single_active_consumer=arguments.get("x-single-active-consumer") is True,
        delivery_limit=said.delivery_limit(DELIVERY_LIMIT_DEFAULT if kind == QUORUM else None),
        delayed_retry=DelayedRetry(said.string("delayed-retry-type") or "disabled"),
        delayed_retry_ms_min=said.number("delayed-retry-min"),
        delayed_retry_ms_max=said.number("delayed-retry-max"),
        consumer_timeout_ms=said.number("consumer-timeout"),
        consumer_disconnected_ms=said.number("consumer-disconnected-timeout") if kind == QUORUM else None,
        is_retained=RETAIN in definition,
        age_ms_max=said.age("max-age"),
        segment_size_max=said.number("stream-max-segment-size-bytes"),
        initial_offset=_number(arguments.get("x-stream-initial-offset")) or 0,
    )


def _priority_max(kind: str, arguments: Arguments) -> int | None:
    """The highest priority level; None for queues without priorities."""
    if kind == QUORUM:
        return QUORUM_PRIORITY_MAX
    # A single priority is the same as none.
    return _number(arguments.get("x-max-priority")) or None


def retention(definition: Definition) -> Definition:
    """The settings of the retained stream of a queue to which `definition` applies."""
    value = definition.get(RETAIN)
    if value is None:
        return {}
    return {"max-age" if isinstance(value, str) else "max-length-bytes": value}


def exchange_alternate(
    arguments: Arguments, policy: Definition | None = None, operator_policy: Definition | None = None
) -> str | None:
    """The name of the alternate exchange: of the argument, else of the policies."""
    name = arguments.get(ALTERNATE_EXCHANGE)
    if name is None:
        name = effective_definition(policy, operator_policy).get(ALTERNATE_EXCHANGE)
    return name if isinstance(name, str) else None


class _MergedArguments:
    """Arguments of a queue of one type merged with a policy, by policy key."""

    __slots__ = ("_arguments", "_definition", "_policy_holds")

    def __init__(self, kind: str, arguments: Arguments, definition: Definition) -> None:
        self._arguments = arguments
        self._definition = definition
        self._policy_holds = _POLICY_HOLDS[kind]

    def number(self, key: str) -> int | None:
        argument = _number(self._arguments.get("x-" + key))
        policy = _number(self._definition.get(key))
        if argument is None or policy is None:
            return policy if argument is None else argument
        if key in self._policy_holds:
            return policy
        return min(argument, policy) if key in _SMALLER_THAN_ARGUMENT else argument

    def delivery_limit(self, default: int | None) -> int | None:
        """The lower limit of argument and policy; None if those given are negative, `default` without any."""
        said = (self._arguments.get("x-" + _DELIVERY_LIMIT), self._definition.get(_DELIVERY_LIMIT))
        if said == (None, None):
            return default
        return min((limit for limit in map(_number, said) if limit is not None), default=None)

    def age(self, key: str) -> int | None:
        """The age (ms) under `key`."""
        age = self.string(key)
        return age_ms(age) if age is not None and is_age(age) else None

    def string(self, key: str) -> str | None:
        argument, policy = self._arguments.get("x-" + key), self._definition.get(key)
        value = policy if argument is None or (policy is not None and key in self._policy_holds) else argument
        if isinstance(value, bytes):
            return value.decode("utf-8", "surrogateescape")
        return value if isinstance(value, str) else None


def _number(value: object) -> int | None:
    # A negative limit means none: so RabbitMQ 4 reads x-delivery-limit, and it refuses others.
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return int(value)


def _smaller(one: object, other: object) -> object:
    return min(one, other) if isinstance(one, int) and isinstance(other, int) else other


def _larger(one: object, other: object) -> object:
    return max(one, other) if isinstance(one, int) and isinstance(other, int) else other


def _lower_limit(one: object, other: object) -> object:
    """The lower of two delivery limits, of which a negative one is none (RabbitMQ 4)."""
    if not isinstance(one, int) or not isinstance(other, int):
        return other
    return max(one, other) if one < 0 or other < 0 else min(one, other)


def _exchange_argument(
    entity: QueueName | ExchangeName, key: str, arguments: Arguments, noun: str
) -> ExchangeName | None:
    if key not in arguments:
        return None
    value = arguments[key]
    if not isinstance(value, str):
        raise PreconditionFailed(f"invalid type '{type_name(value)}' for arg '{key}' in {entity}")
    return ExchangeName(entity.vhost, value)


def _check_value(queue: QueueName, key: str, arguments: Arguments) -> None:
    if key in arguments:
        error = _CHECKS[key](arguments[key], arguments)
        if error is not None:
            raise PreconditionFailed(f"invalid arg '{key}' for {queue}: {error}")


def not_integer(value: Value) -> str | None:
    """RabbitMQ's error for a `value` that is no integer; None if it is one. A timestamp is no integer."""
    kind = type_name(value)
    return None if kind in _INTEGER_TYPES else f'"expected integer, got {kind}"'


def _integer(value: Value, _: Arguments) -> str | None:
    return not_integer(value)


def _natural(value: Value, arguments: Arguments) -> str | None:
    return _integer(value, arguments) or (f"{{value_negative,{value:d}}}" if value < 0 else None)


def _positive(value: Value, arguments: Arguments) -> str | None:
    return _natural(value, arguments) or (f"{{value_zero,{value:d}}}" if value == 0 else None)


def _ttl(value: Value, arguments: Arguments) -> str | None:
    error = _natural(value, arguments)
    return error or (f"{{value_too_large,{value:d}}}" if value > EXPIRY_MS_MAX else None)


def _expires(value: Value, arguments: Arguments) -> str | None:
    return _positive(value, arguments) or _ttl(value, arguments)


def _priority(value: Value, arguments: Arguments) -> str | None:
    error = _natural(value, arguments)
    return error or (f"{{max_value_exceeded,{value:d}}}" if value > PRIORITY_MAX else None)


def _initial_offset(value: Value, arguments: Arguments) -> str | None:
    error = _natural(value, arguments)
    return error or (f"{{value_too_large,{value:d}}}" if value > STREAM_INITIAL_OFFSET_MAX else None)


def _boolean(value: Value, _: Arguments) -> str | None:
    return None if isinstance(value, bool) else _unacceptable(value)


def _string(value: Value, _: Arguments) -> str | None:
    return None if isinstance(value, str) else _unacceptable(value)


def _dead_letter_key(value: Value, arguments: Arguments) -> str | None:
    error = _string(value, arguments)
    return error or (None if DEAD_LETTER_EXCHANGE in arguments else "routing_key_but_no_dlx_defined")


def _version(value: Value, arguments: Arguments) -> str | None:
    error = _natural(value, arguments)
    return error or (None if value in (1, 2) else f"\"unsupported queue version '{value:d}'\"")


def _max_age(value: Value, arguments: Arguments) -> str | None:
    if error := _string(value, arguments):
        return error
    return None if is_age(value) else "invalid_max_age"


def is_age(value: str) -> bool:
    """True if `value` is a number with a unit, such as `7D`, as in `x-max-age` and its policy key."""
    count, unit = value[:-1], value[-1:]
    return unit in _AGE_UNITS_MS and count.isascii() and count.isdigit() and int(count[:18]) > 0


def age_ms(value: str) -> int:
    """Convert a valid age such as `7D` to ms; a month has 30 days, a year 365 (RabbitMQ)."""
    return int(value[:-1][:18]) * _AGE_UNITS_MS[value[-1]]


def _one_of(*allowed: str, error: str) -> Callable[[Value, Arguments], str | None]:
    def check(value: Value, _: Arguments) -> str | None:
        if not isinstance(value, str):
            return _unacceptable(value)
        return None if value in allowed else error.format(value)

    return check


_delayed_retry_type = _one_of(*(each.value for each in DelayedRetry), error="invalid_delayed_retry_type")


def _delayed_retry(value: Value, arguments: Arguments) -> str | None:
    if error := _delayed_retry_type(value, arguments):
        return error
    is_enabled = value != DelayedRetry.DISABLED.value
    is_timed = "x-delayed-retry-min" in arguments
    return "delayed_retry_type_but_no_min_defined" if is_enabled and not is_timed else None


def _unacceptable(value: Value) -> str:
    return f"{{unacceptable_type,{type_name(value)}}}"


# In RabbitMQ's order: the first of several wrong arguments is reported.
_CHECKS: Mapping[str, Callable[[Value, Arguments], str | None]] = {
    "x-expires": _expires,
    "x-message-ttl": _ttl,
    "x-dead-letter-exchange": _string,
    "x-dead-letter-routing-key": _dead_letter_key,
    "x-dead-letter-strategy": _one_of(
        *(strategy.value for strategy in DeadLetterStrategy), error="invalid_dlx_strategy"
    ),
    "x-max-length": _natural,
    "x-max-length-bytes": _natural,
    "x-max-in-memory-length": _natural,
    "x-max-in-memory-bytes": _natural,
    "x-max-priority": _priority,
    "x-overflow": _one_of(*(overflow.value for overflow in Overflow), error="invalid_overflow"),
    "x-queue-mode": _one_of("default", "lazy", error="\"unsupported queue mode '{}'\""),
    "x-queue-version": _version,
    "x-single-active-consumer": _boolean,
    "x-queue-type": _one_of(*QUEUE_KINDS, error="\"unsupported queue type '{}'\""),
    "x-quorum-initial-group-size": _positive,
    "x-max-age": _max_age,
    "x-stream-max-segment-size-bytes": _natural,
    "x-initial-cluster-size": _positive,
    "x-queue-leader-locator": _one_of(
        "client-local", "balanced", "random", "least-leaders", error="invalid_queue_locator_arg"
    ),
    # RabbitMQ 3.10 does not check these; it ignores them on a classic queue.
    "x-delivery-limit": _integer,
    "x-consumer-timeout": _natural,
    # RabbitMQ 4 added these.
    "x-consumer-disconnected-timeout": _natural,
    "x-delayed-retry-type": _delayed_retry,
    "x-delayed-retry-min": _positive,
    "x-delayed-retry-max": _positive,
    "x-stream-initial-offset": _initial_offset,
}
_SEGMENT_SIZE = "x-stream-max-segment-size-bytes"
_ALL_ARGUMENTS = frozenset(key for keys in KIND_ARGUMENTS.values() for key in keys)
