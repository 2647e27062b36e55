"""The declaration of a handler's query, body and responses, written beside the handler.

The OpenAPI document is generated from it, and handlers read requests by it: a body field that is not
declared cannot be read, and a test checks the responses of every route against their shapes. What follows
from the route itself, such as its path, its right and its errors, is not declared again.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Generic, NotRequired, TypeAlias, TypedDict, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")
H = TypeVar("H", bound=Callable[..., object])

# A TypedDict or another type whose values are JSON; None means no body.
Shape: TypeAlias = Any

JSON = "application/json"
# The key under which a request holds the operation of its handler.
OPERATION = "described"


class Operation(Struct, frozen=True, kw_only=True):
    """The query, the body and the responses of a handler."""

    # TypedDicts of the query parameters and of the body fields.
    query: Shape = None
    body: Shape = None
    # The content type of the request body.
    body_type: str = "application/json"
    # The shapes of responses by status, if these are not the default ones of the method.
    responses: Mapping[int, Shape] | None = None
    response_type: str = JSON


def doc(words: str) -> msgspec.Meta:
    """The description of a field or parameter, for Annotated."""
    return msgspec.Meta(description=words)


# True or false, or the strings "true" and "false".
Flag: TypeAlias = bool | str
JsonTable: TypeAlias = dict[str, Any]


class ListQuery(TypedDict, total=False):
    """Parameters of every list."""

    columns: Annotated[str, doc("Fields to return, separated by commas: `name,arguments.x-max-length`.")]
    sort: Annotated[str, doc("Field to sort by; a nested field has dots: `message_stats.publish`.")]
    sort_reverse: Annotated[bool, doc("Sort in descending order.")]


class PageQuery(ListQuery, total=False):
    """Parameters of a list with pages."""

    page: Annotated[
        int,
        doc("Page to return, from 1; the response is an object with the page and its counts, not a list."),
    ]
    page_size: Annotated[int, doc("Items in a page; 100 by default.")]
    name: Annotated[str, doc("Only items whose name contains this text, ignoring case; requires `page`.")]
    use_regex: Annotated[bool, doc("Treat `name` as a regular expression.")]


class ColumnsQuery(TypedDict, total=False):
    """Parameters of a single object."""

    columns: Annotated[str, doc("Fields to return, separated by commas: `name,arguments.x-max-length`.")]


class Page(TypedDict, Generic[T]):
    """One page of a list, with the numbers of its items."""

    filtered_count: int
    item_count: int
    items: list[T]
    page: int
    page_count: int
    page_size: int
    total_count: int


class ErrorShape(TypedDict):
    """The reason why a request failed."""

    error: str
    reason: Any
    # The reason in words, if `reason` is a term for programs.
    message: NotRequired[str]


_UNDOCUMENTED = Operation()
_by_handler: dict[object, Operation] = {}


def paged(shape: Shape) -> Shape:
    """The shape of a list of `shape`, or of a page of it."""
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
    """Declare the query, body and responses of a handler; `response` is the one with status 200."""
    if response is not None:
        responses = {200: response, **(responses or {})}
    return documented_as(Operation(query=query, body=body, responses=responses))


def documented_as(description: Operation) -> Callable[[H], H]:
    """Declare the operation of a handler by a whole `Operation`."""

    def note(handler: H) -> H:
        _by_handler[handler] = description
        return handler

    return note


def operation_of(handler: object) -> Operation:
    """The declared operation of `handler`; an empty one if it has none."""
    return _by_handler.get(getattr(handler, "__func__", handler), _UNDOCUMENTED)


def required_fields(shape: Shape) -> list[str]:
    """The names of the required fields of `shape`, in the order of their declaration."""
    return [name for name in shape.__annotations__ if name in shape.__required_keys__]
