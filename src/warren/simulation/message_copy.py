"""What is known of one message in one queue.

It follows from what clients have sent and what the broker has written; where both orders are possible,
nothing is required.
"""

from msgspec import Struct


class Publisher(Struct, eq=False):
    """One channel that publishes: the order of its messages is kept in each queue."""

    name: str


class Copy(Struct, eq=False):
    """One message in one queue."""

    id: int
    publisher: Publisher
    persistent: bool
    priority: int
    # True while it must be there: it was confirmed, and nobody has settled it.
    is_promised: bool = False
    # True if a client has settled it, so that it may be gone; and true if it must be gone.
    is_settled: bool = False
    is_gone: bool = False
    # True if the next delivery must have the flag `redelivered`.
    is_delivered: bool = False
    # Where it is delivered and not settled: a channel; None if nowhere.
    holder: object | None = None
    # The channel on which it was settled, until that is known to have arrived.
    settled_on: object | None = None
    # The time at which it was sent, how long it may wait (ms; None: for ever), and the time by which it has
    # certainly expired in the queue to which it was sent.
    sent_at: int = 0
    ttl_ms: int | None = None
    expired_at: int | None = None
    # The time (ms) before which it is not delivered again, and true while the return may not be synced.
    ready_at: int = 0
    is_returning: bool = False
    # True once it was confirmed; true once its dead-lettering may have been cut short, or refused, after
    # which it may be lost; and true if it may be in two queues, or twice in one.
    is_confirmed: bool = False
    is_uncertain: bool = False
    may_repeat: bool = False
