"""Reads the JSON answers of the HTTP API, and refuses those that are not as documented."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_warren.streams import StreamBounds

# Offsets, counts and sizes are 64-bit integers.
_COUNT_MAX = 2**63 - 1
# Characters of a wrong value in an error.
_SHOWN_MAX = 60


class UnexpectedAnswer(Exception):
    """An answer is not what the HTTP API documents: another program has answered, or another version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseAnswer:
    """A lease that was granted; `state` is empty for one that is in force."""

    id: str
    messages: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAnswer:
    """The progress of a commit; `unroutable` of the published messages were routed to no queue."""

    state: str
    rows: int
    published: int
    unroutable: int
    reason: str


def stream_bounds(told: object) -> StreamBounds:
    """Read the description of a stream."""
    fields = _object(told)
    first, committed = _count(fields, "first_offset"), _count(fields, "committed_offset")
    if committed < first:
        raise UnexpectedAnswer(f"the stream begins at {first} and ends at {committed}")
    return StreamBounds(
        epoch=_text(fields, "epoch"),
        first=first,
        committed=committed,
        message_bytes=_count(fields, "bytes", 0) // (committed - first) if committed > first else 0,
    )


def stream_offset(told: object) -> int:
    """Read the offset that belongs to a time."""
    return _count(_object(told), "offset")


def first_offset(told: Mapping[str, Any], start: int) -> int | None:
    """Read where a stream begins of which `start` was deleted; None if the answer does not say that."""
    try:
        first = _count(told, "first_offset")
    except UnexpectedAnswer:
        return None
    return first if first > start else None


def granted_lease(told: object) -> LeaseAnswer:
    """Read the answer to the request of a lease; without messages there is no lease, and no id."""
    fields = _object(told)
    messages, state = _count(fields, "messages"), _text(fields, "state", "")
    is_granted = bool(messages or state)
    return LeaseAnswer(id=_text(fields, "lease") if is_granted else "", messages=messages, state=state)


def ready_messages(told: object) -> int:
    """Read the number of messages in the description of a queue."""
    return _count(_object(told), "messages")


def staged_rows(told: object) -> int | None:
    """Read the number of staged rows; None if the batch was committed before."""
    fields = _object(told)
    return None if "state" in fields else _count(fields, "rows")


def commit(told: object) -> CommitAnswer:
    """Read the answer to a commit."""
    fields = _object(told)
    return CommitAnswer(
        state=_text(fields, "state"),
        rows=_count(fields, "rows", 0),
        published=_count(fields, "published", 0),
        unroutable=_count(fields, "unroutable", 0),
        reason=_text(fields, "reason", ""),
    )


def queue_type(told: object) -> str:
    """Read the type in the description of a queue, such as classic or stream."""
    return _text(_object(told), "type")


def bound_queues(told: object) -> set[str]:
    """Read the names of the queues in a list of bindings."""
    return {
        _text(each, "destination") for each in _objects(told) if _text(each, "destination_type") == "queue"
    }


def queue_types(told: object) -> dict[str, str]:
    """Read the types in a list of queues, by name; a queue that is down has no type."""
    return {_text(each, "name"): _text(each, "type", "") for each in _objects(told)}


def traced_vhosts(told: object) -> set[str]:
    """Read the names of the traced virtual hosts in a list of virtual hosts."""
    return {_text(each, "name") for each in _objects(told) if each.get("tracing") is True}


def product(told: object) -> str:
    """Read the name and the version of the broker in an overview."""
    fields = _object(told)
    name, version = _text(fields, "product_name", "RabbitMQ"), _text(fields, "product_version", "")
    return f"{name} {version}".strip()


def _object(told: object) -> Mapping[str, Any]:
    if not isinstance(told, dict):
        raise UnexpectedAnswer(f"an object is expected, not {_shown(told)}")
    return told


def _objects(told: object) -> list[Mapping[str, Any]]:
    if not isinstance(told, list):
        raise UnexpectedAnswer(f"a list is expected, not {_shown(told)}")
    return [_object(each) for each in told]


def _text(fields: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """Return the text in a field; `default`, if that is given, for a field that is missing or null."""
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise UnexpectedAnswer(f"{name!r} must be a text, not {_shown(value)}")
    return value


def _count(fields: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """Return the number in a field; `default`, if that is given, for a field that is missing or null."""
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _COUNT_MAX:
        raise UnexpectedAnswer(f"{name!r} must be a number of 0 or more, not {_shown(value)}")
    return value


def _shown(value: object) -> str:
    match value:
        case dict() | list():
            return "an object" if isinstance(value, dict) else "a list"
        case str() if len(value) > _SHOWN_MAX:
            return f"{value[:_SHOWN_MAX]!a}..."
    return ascii(value)
