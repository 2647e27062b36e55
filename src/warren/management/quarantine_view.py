"""The quarantine as the HTTP API sees it: data found on disk at start that the metadata do not name."""

from collections.abc import Awaitable, Callable

from msgspec import Struct


class QuarantinedItem(Struct, frozen=True, kw_only=True):
    """A virtual host, stream or queue that is kept until an operator removes it."""

    id: str
    # One of vhost, stream, queue and metadata.
    kind: str
    # The name of the virtual host, if it is known.
    vhost: str
    # The internal id of the queue or stream, whose name is not known.
    number: int
    # The path it was moved to; empty for messages that stay in the store of their virtual host.
    path: str
    messages: int
    byte_count: int
    # True when an operator has acknowledged it.
    acknowledged: bool = False


class QuarantineView(Struct, frozen=True, kw_only=True):
    """The quarantine: its items, their acknowledgement and their removal."""

    items: Callable[[], list[QuarantinedItem]]
    # Acknowledges all items in the name of a user; returns how many were not acknowledged before.
    acknowledge: Callable[[str], int]
    # Removes the item with an id in the name of a user; returns False if there is no such item.
    remove: Callable[[str, str], Awaitable[bool]]


def totals_of(items: list[QuarantinedItem]) -> tuple[int, int, int]:
    """The number of items, and the sums of their messages and bytes."""
    return len(items), sum(item.messages for item in items), sum(item.byte_count for item in items)


def unacknowledged(items: list[QuarantinedItem]) -> list[QuarantinedItem]:
    """The items that no operator has acknowledged."""
    return [item for item in items if not item.acknowledged]
