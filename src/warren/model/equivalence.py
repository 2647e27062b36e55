"""Checks that a repeated declaration is equivalent: RabbitMQ's `inequivalent arg` (3.10.8, measured)."""

from collections.abc import Iterable, Mapping
from typing import Final

from warren.errors import PreconditionFailed
from warren.model.arguments import QUEUE_TYPE
from warren.model.erlang_terms import printed_value
from warren.model.names import ExchangeName, QueueName
from warren.wire.table import Value, type_name

# An absent argument differs from void, which a field table can hold.
_ABSENT: Final = object()


def check_same(entity: QueueName | ExchangeName, key: str, *, current: object, received: object) -> None:
    """Raise PreconditionFailed unless the property `key` of `entity` has the declared value."""
    if current != received:
        raise _inequivalent(entity, key, f"'{_written(received)}'", f"'{_written(current)}'")


def check_same_arguments(
    entity: QueueName | ExchangeName,
    keys: Iterable[str],
    *,
    current: Mapping[str, Value],
    received: Mapping[str, Value],
) -> None:
    """Raise PreconditionFailed unless the arguments `keys` that exist in either table are equal.

    The width of an integer is ignored: 5 as 8 bits equals 5 as 64 bits.
    """
    for key in keys:
        was, asked = current.get(key, _ABSENT), received.get(key, _ABSENT)
        if was is asked or _is_equal(was, asked) or _is_classic_by_default(key, was, asked):
            continue
        if was is _ABSENT or asked is _ABSENT:
            raise _inequivalent(entity, key, _described(asked), _described(was))
        raise _inequivalent(entity, key, f"'{_written(asked)}'", f"'{_written(was)}'")


def _inequivalent(
    entity: QueueName | ExchangeName, key: str, received: str, current: str
) -> PreconditionFailed:
    return PreconditionFailed(
        f"inequivalent arg '{key}' for {entity}: received {received} but current is {current}"
    )


def _is_equal(one: Value, other: Value) -> bool:
    return bool(_class(one) == _class(other) and _comparable(one) == _comparable(other))


def _class(value: Value) -> type:
    """The type for comparison: one for all integers, one for all floats, one for strings and byte arrays."""
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind
    return bytes if isinstance(value, str) else type(value)


def _comparable(value: Value) -> Value:
    """Encode a string: RabbitMQ does not distinguish strings from byte arrays."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _is_classic_by_default(key: str, one: Value, other: Value) -> bool:
    return key == QUEUE_TYPE and (one is _ABSENT or other is _ABSENT) and "classic" in (one, other)


def _described(value: Value) -> str:
    if value is _ABSENT:
        return "none"
    return f"the value '{_written(value)}' of type '{type_name(value)}'"


def _written(value: Value) -> str:
    if isinstance(value, str):
        return value
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else printed_value(value)
