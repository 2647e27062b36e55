"""Fields and parameters of Warren's own paths that were renamed: which is which, and how both are served.

An answer has the deprecated name beside the current one, with the same value. A request may use either; both
with different values are refused. The OpenAPI document marks the old names as deprecated.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, Required, get_args, get_origin

import msgspec
from aiohttp import web

from warren.management.operation import OPERATION, Operation, Shape
from warren.management.replies import bad_request

# By shape, the deprecated name of a field and the current one.
DEPRECATED_FIELDS: dict[Shape, Mapping[str, str]] = {}
_WRAPPERS = (Required, NotRequired, Annotated)


def deprecate(shape: Shape, **current_by_old: str) -> None:
    """Give a TypedDict the deprecated names of its fields: `octets="bytes"`."""
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
    """`answer`, which is a `shape`, with its fields under their deprecated names as well."""
    old = {old: answer[current] for old, current in DEPRECATED_FIELDS[shape].items() if current in answer}
    return {**answer, **old}


def with_current(shape: Shape, given: Mapping[str, object]) -> dict[str, object]:
    """The fields of a request under their current names."""
    names = DEPRECATED_FIELDS.get(shape, {})
    found = {name: value for name, value in given.items() if name not in names}
    for old, current in names.items():
        if old in given:
            if current in given and given[current] != given[old]:
                raise _contradiction(old, current)
            found[current] = given[old]
    return found


def query_text(request: web.Request, name: str) -> str | None:
    """A parameter of the query, which may be given under a deprecated name."""
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
    """The type without what says whether the field is required and what it means."""
    while get_origin(annotation) in _WRAPPERS:
        annotation = get_args(annotation)[0]
    return annotation
