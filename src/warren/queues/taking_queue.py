"""The contract of a queue from which messages can be taken by their places: for leases, moves and searches.

The place of a message never changes on a node, and its lasting place is the same on all nodes that may have
it: leases name messages by lasting places, and find them again after a restart and at the next leader.
"""

from collections.abc import Callable

from warren.model.message import Message
from warren.queues.consumers import ConsumerSet
from warren.queues.demand_listener import DemandListener
from warren.queues.local import LocalQueue
from warren.queues.position_starts import PositionStarts
from warren.queues.queue import Delivery, PeekedMessage
from warren.store.recovered_queue import RecoveredQueue


class TakingQueue(LocalQueue):
    """A queue whose messages are taken and settled one by one, unlike those of a stream."""

    __slots__ = ()

    def take(self, peeked: PeekedMessage) -> Delivery | None:
        """Take the `peeked` message out of the queue for a move; None if it is not ready any more.

        The caller must `release` the delivery or `give_back` it.
        """
        raise NotImplementedError

    def take_unacked(self, peeked: PeekedMessage) -> Delivery | None:
        """Take the `peeked` message as unacknowledged, to settle it like a delivery; None if it is not ready.

        If there are many, the bodies of those on disk are dropped from memory.
        """
        raise NotImplementedError

    def release(self, delivery: Delivery) -> None:
        """Settle `delivery`, which `take` returned and which is stored elsewhere now."""
        raise NotImplementedError

    def give_back(self, delivery: Delivery) -> None:
        """Return `delivery`, which `take` returned, to its place; `pump` makes it available to consumers."""
        raise NotImplementedError

    def place_of(self, delivery: Delivery) -> int:
        """The place of `delivery`, to which it would return; the places are those of `peek`."""
        raise NotImplementedError

    def lasting_place(self, place: int) -> int:
        """The place that the message at `place` has for all members of a group; `place` without a group."""
        return place

    def place_here(self, lasting: int) -> int:
        """The place on this node of the message with the `lasting` place, or of the first one behind it."""
        return lasting

    def last_place(self, message: Message) -> int:
        """The place of `message`, which was the last one published to the queue."""
        raise NotImplementedError

    def body(self, delivery: Delivery) -> bytes:
        """The body of the message of `delivery`. ConnectionForced if it cannot be read."""
        raise NotImplementedError

    def drop_bodies(self) -> None:
        """Drop bodies of unacknowledged messages that are on disk, as far as they exceed the memory limit."""
        raise NotImplementedError

    @property
    def is_restored(self) -> bool:
        """True if the messages that were there before a restart are there again."""
        return True

    def is_behind(self, byte_count: int) -> bool:
        """True if another message with a body of `byte_count` may have to wait before it can be proposed."""
        return False

    def when_restored(self, callback: Callable[[], None]) -> None:
        """Call `callback` when they are, before any of them is delivered. Only while they are not."""
        raise NotImplementedError

    def restore(self, level: int, found: RecoveredQueue) -> None:
        """Restore the messages of priority `level` that a store has `found`."""
        raise NotImplementedError

    def listen_to_demand(self, listener: DemandListener | None) -> ConsumerSet:
        """Tell `listener` when its demand may have changed; returns its consumers."""
        raise NotImplementedError

    def starts(self) -> PositionStarts | None:
        """The starts that have given positions of this queue; None until a consumer asks for positions."""
        raise NotImplementedError

    def give_positions(self, starts: PositionStarts) -> None:
        """Give positions away from now on, which are complete with `starts`."""
        raise NotImplementedError
