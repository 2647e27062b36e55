"""What a start has found on the disk and the metadata do not name, as the HTTP API looks at it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedItem:
    """One virtual host, stream or queue that is kept until an operator has it removed."""

    id: str
    # vhost, stream, queue or metadata.
    kind: str
    # The name of the virtual host, as far as that is known.
    vhost: str
    # Of the queue or stream, whose name nobody knows any more.
    number: int
    # Where it was moved to; empty for messages that stay in the store of their virtual host.
    path: str
    messages: int
    octets: int
    # Whether an operator knows of it.
    acknowledged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineView:
    """What is kept, that an operator knows of it, and removing it."""

    items: Callable[[], list[QuarantinedItem]]
    # All of it is known to a user from now on; answers of how many nobody had known.
    acknowledge: Callable[[str], int]
    # Removes what an id names in the name of a user; answers False if it names nothing.
    remove: Callable[[str, str], Awaitable[bool]]


def totals_of(items: list[QuarantinedItem]) -> tuple[int, int, int]:
    """How many there are, and the messages and octets of all of them."""
    return len(items), sum(item.messages for item in items), sum(item.octets for item in items)


def unacknowledged(items: list[QuarantinedItem]) -> list[QuarantinedItem]:
    """Those that no operator knows of."""
    return [item for item in items if not item.acknowledged]
