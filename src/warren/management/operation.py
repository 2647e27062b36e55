"""What is said of a handler beside it: the query and the body that it takes, and what it answers.

The document of the API is made of this, and so is what a handler reads: a field of a body that is not
described cannot be read, and a test holds the answers of every route against their shapes. What follows
from the route itself, as its path, its right and its refusals, is not said again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NotRequired, TypeAlias, TypedDict, TypeVar

import msgspec

T = TypeVar("T")
H = TypeVar("H", bound=Callable[..., object])

# A TypedDict, or another type whose values are JSON; None for no body at all.
Shape: TypeAlias = Any

JSON = "application/json"
# Where a request keeps the description of what answers it.
OPERATION = "described"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What a handler takes, and gives."""

    # TypedDicts of the parameters of the query, and of the fields of the body.
    query: Shape = None
    body: Shape = None
    # How the body is sent, if not as JSON.
    body_type: str = "application/json"
    # By status, where it is another than the method has anyway.
    responses: Mapping[int, Shape] | None = None
    response_type: str = JSON


def doc(words: str) -> msgspec.Meta:
    """For Annotated: what a field or a parameter means."""
    return msgspec.Meta(description=words)


# True or false, or a string that says so.
Flag: TypeAlias = bool | str
JsonTable: TypeAlias = dict[str, Any]


class ListQuery(TypedDict, total=False):
    """What every list knows."""

    columns: Annotated[str, doc("Fields that are shown: `name,arguments.x-max-length`")]
    sort: Annotated[str, doc("What it is sorted by: a field, or one in another: `message_stats.publish`")]
    sort_reverse: Annotated[bool, doc("The other way round")]


class PageQuery(ListQuery, total=False):
    """What a list with pages knows."""

    page: Annotated[int, doc("From 1 on: a page, inside an object that counts, in place of the whole list")]
    page_size: Annotated[int, doc("100 unless it is said")]
    name: Annotated[str, doc("What names have in them; only with `page`")]
    use_regex: Annotated[bool, doc("`name` is a regular expression")]


class ColumnsQuery(TypedDict, total=False):
    """What is known where one object is shown."""

    columns: Annotated[str, doc("Fields that are shown: `name,arguments.x-max-length`")]


class Page(TypedDict, Generic[T]):
    """A page of a list, and how many there are."""

    filtered_count: int
    item_count: int
    items: list[T]
    page: int
    page_count: int
    page_size: int
    total_count: int


class ErrorShape(TypedDict):
    """Why a request was not obeyed."""

    error: str
    reason: Any
    # For people, where the reason is for programs.
    message: NotRequired[str]


_UNDOCUMENTED = Operation()
_by_handler: dict[object, Operation] = {}


def paged(shape: Shape) -> Shape:
    """A list of such, or a page of it."""
    return list[shape] | Page[shape]


def shape(name: str, text: str, *fields: Mapping[str, Shape]) -> Shape:
    """A shape with all `fields`, of which those marked `Required` are always there.

    For shapes with fields that follow from other tables, such as the columns of statistics.
    """
    together = {key: kind for some in fields for key, kind in some.items()}
    made: Shape = TypedDict(name, together, total=False)  # type: ignore[misc]
    made.__doc__ = text
    return made


def documented(
    *,
    query: Shape = None,
    body: Shape = None,
    response: Shape = None,
    responses: Mapping[int, Shape] | None = None,
) -> Callable[[H], H]:
    """Say what a handler takes and gives; `response` is short for `responses` with 200."""
    if response is not None:
        responses = {200: response, **(responses or {})}
    return documented_as(Operation(query=query, body=body, responses=responses))


def documented_as(description: Operation) -> Callable[[H], H]:
    """The same, in full."""

    def note(handler: H) -> H:
        _by_handler[handler] = description
        return handler

    return note


def operation_of(handler: object) -> Operation:
    """What was said of `handler`."""
    return _by_handler.get(getattr(handler, "__func__", handler), _UNDOCUMENTED)


def required_fields(shape: Shape) -> list[str]:
    """The fields that have to be there, in their order."""
    return [name for name in shape.__annotations__ if name in shape.__required_keys__]
