"""Deprecated names of fields and parameters of Warren's own endpoints, served beside the current names.

A response has a field under both names, with the same value. A request may use either name; a request with
different values for them is refused. The OpenAPI document marks the old names as deprecated.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, Required, get_args, get_origin

import msgspec
from aiohttp import web

from warren.management.operation import OPERATION, Operation, Shape
from warren.management.replies import bad_request

# The current name of each deprecated field, by shape.
DEPRECATED_FIELDS: dict[Shape, Mapping[str, str]] = {}
_WRAPPERS = (Required, NotRequired, Annotated)


def deprecate(shape: Shape, **current_by_old: str) -> None:
    """Add deprecated names of fields to the TypedDict `shape`: `octets="bytes"`."""
    annotations = shape.__annotations__
    for old, current in current_by_old.items():
        note = msgspec.Meta(
            description=f"Deprecated: use `{current}`.", extra_json_schema={"deprecated": True}
        )
        annotations[old] = Annotated[_bare(annotations[current]), note]
        if current in shape.__required_keys__:
            shape.__required_keys__ |= {old}
        else:
            shape.__optional_keys__ |= {old}
    DEPRECATED_FIELDS[shape] = current_by_old


def with_deprecated(shape: Shape, answer: Mapping[str, object]) -> dict[str, Any]:
    """`answer`, which has the type `shape`, with its fields also under their deprecated names."""
    old = {old: answer[current] for old, current in DEPRECATED_FIELDS[shape].items() if current in answer}
    return {**answer, **old}


def with_current(shape: Shape, given: Mapping[str, object]) -> dict[str, object]:
    """The fields of a request under their current names; raises RequestRefused if two names contradict."""
    names = DEPRECATED_FIELDS.get(shape, {})
    found = {name: value for name, value in given.items() if name not in names}
    for old, current in names.items():
        if old in given:
            if current in given and given[current] != given[old]:
                raise _contradiction(old, current)
            found[current] = given[old]
    return found


def query_text(request: web.Request, name: str) -> str | None:
    """The query parameter `name`, which the client may give under a deprecated name; None if it is absent."""
    operation: Operation = request[OPERATION]
    value = request.query.get(name)
    for old, current in DEPRECATED_FIELDS.get(operation.query, {}).items():
        if current == name and old in request.query:
            if value is not None and value != request.query[old]:
                raise _contradiction(old, current)
            value = request.query[old]
    return value


def _contradiction(old: str, current: str) -> Exception:
    return bad_request(f"{old} is a deprecated name of {current}: they have different values")


def _bare(annotation: Any) -> Any:
    """`annotation` without Required, NotRequired and Annotated."""
    while get_origin(annotation) in _WRAPPERS:
        annotation = get_args(annotation)[0]
    return annotation
