"""Batches of messages of a classic queue: taken for a lease, acknowledged, and read into columns.

Compiled, so that a message costs no interpreted call. The caller bounds the batch: each function runs until
the batch is done, without yielding to others.
"""

from array import array

from warren.model.message import Message, published_at_of
from warren.queues.queue import Delivery
from warren.queues.taking_queue import TakingQueue

_INT64_SIZE = 8
_UINT32_SIZE = 4


class MessageColumns:
    """Up to `capacity` messages as columns in the layout of Arrow.

    A shape is the address and the property list of a message; equal shapes are stored once, and `kinds` has
    the shape number of each message. Bodies are stored one after the other; `ends` has the end of each, with
    a leading 0.
    """

    __slots__ = (
        "_address", "_bodies", "_ends", "_ends_array", "_is_redelivered", "_kind", "_kinds", "_kinds_array",
        "_known", "_places", "_places_array", "_property_list", "_times", "_times_array", "byte_count",
        "count", "has_redelivered",
    )  # fmt: skip

    def __init__(self, capacity: int) -> None:
        # At least one entry: the compiled code takes no pointer to an empty array.
        room = max(capacity, 1)
        self.count = 0
        self.byte_count = 0
        self.has_redelivered = False
        self._places_array = array("q", bytes(_INT64_SIZE * room))
        self._times_array = array("q", bytes(_INT64_SIZE * room))
        self._kinds_array = array("I", bytes(_UINT32_SIZE * room))
        self._ends_array = array("I", bytes(_UINT32_SIZE * (room + 1)))
        # When compiled, these are views of the arrays.
        self._places = self._places_array
        self._times = self._times_array
        self._kinds = self._kinds_array
        self._ends = self._ends_array
        self._is_redelivered: list[bool] = []
        self._bodies: list[bytes] = []
        self._known: dict[tuple[bytes, bytes], int] = {}
        # The shape of the last added message, which is most often also that of the next one.
        self._address = b""
        self._property_list = b""
        self._kind = 0

    @property
    def places(self) -> "array[int]":
        """The places of the messages in their queue, in the order in which they were added."""
        return self._places_array[: self.count]

    @property
    def times(self) -> "array[int]":
        """The publishing time of each message (Unix time, ms)."""
        return self._times_array[: self.count]

    @property
    def kinds(self) -> "array[int] | None":
        """The shape number of each message; None if all have the first shape."""
        return self._kinds_array[: self.count] if len(self._known) > 1 else None

    @property
    def ends(self) -> "array[int]":
        """The end of each body within `bodies`, with a leading 0."""
        return self._ends_array[: self.count + 1]

    @property
    def shapes(self) -> list[tuple[bytes, bytes]]:
        """The address and the property list of each shape."""
        return list(self._known)

    @property
    def redelivered(self) -> list[bool] | None:
        """Whether each message was delivered before; None if none of them was."""
        return self._is_redelivered if self.has_redelivered else None

    @property
    def bodies(self) -> bytes:
        """All bodies one after the other."""
        return b"".join(self._bodies)

    def add(self, place: int, message: Message, is_redelivered: bool) -> None:
        """Add `message`, which is at `place`. IndexError if the columns are full."""
        self._append(place, message, message.content[:-1], is_redelivered)

    def _append(self, place: int, message: Message, body: bytes, is_redelivered: bool) -> None:
        """Add `message` with `body`."""
        count = self.count
        if count >= len(self._places_array):
            raise IndexError(count)
        if message.address != self._address or message.property_list != self._property_list:
            self._number_shape(message)
        self._places[count] = place
        self._times[count] = published_at_of(message)
        self._kinds[count] = self._kind
        self._is_redelivered.append(is_redelivered)
        if is_redelivered:
            self.has_redelivered = True
        self._bodies.append(body)
        self.byte_count += len(body)
        self._ends[count + 1] = self.byte_count
        self.count = count + 1

    def add_deliveries(
        self, queue: TakingQueue, deliveries: list[Delivery | None], first: int, bytes_max: int
    ) -> int:
        """Add those of `deliveries` that exist; the first of them is at place `first`.

        Stops before a body with which the bodies would exceed `bytes_max` bytes, unless it is the first;
        returns the number of deliveries examined. ConnectionForced if a message cannot be read from disk.
        """
        byte_count = count = 0
        for each in deliveries:
            delivery: Delivery | None = each
            if delivery is not None:
                byte_count += delivery.byte_count
                if count and byte_count > bytes_max:
                    break
                self._append(first + count, delivery.message, queue.body(delivery), delivery.attempts > 0)
            count += 1
        return count

    def _number_shape(self, message: Message) -> None:
        """Assign the shape number of `message`, which the following messages with the same shape share."""
        self._address = message.address
        self._property_list = message.property_list
        self._kind = self._known.setdefault((message.address, message.property_list), len(self._known))


def take_batch(queue: TakingQueue, taken: list[Delivery | None], count: int, bytes_max: int) -> int:
    """Take up to `count` ready messages out of `queue`, and append them to `taken`.

    Stops before a body with which the bodies would exceed `bytes_max` bytes, unless nothing was taken yet;
    returns the size of the bodies taken. Fewer than `count` are taken only for this reason, or if no more are
    ready.
    """
    byte_count = 0
    for _ in range(count):
        delivery: Delivery | None = queue.get()
        if delivery is None:
            break
        if taken and byte_count + delivery.byte_count > bytes_max:
            queue.give_back(delivery)
            queue.pump()
            break
        taken.append(delivery)
        byte_count += delivery.byte_count
    return byte_count


def extend_ranges(
    queue: TakingQueue, deliveries: list[Delivery | None], first: int, found: list[int]
) -> None:
    """Append to `found` the begin and end of each range of lasting places of `deliveries` from `first` on."""
    for number in range(first, len(deliveries)):
        delivery: Delivery = deliveries[number]  # type: ignore[assignment]
        place = queue.lasting_place(queue.place_of(delivery))
        if found and found[-1] == place:
            found[-1] = place + 1
        else:
            found.append(place)
            found.append(place + 1)


def acknowledge_batch(queue: TakingQueue, deliveries: list[Delivery | None], first: int, end: int) -> None:
    """Acknowledge those of `deliveries` from number `first` up to, not including, `end` that exist."""
    for number in range(first, min(end, len(deliveries))):
        delivery: Delivery | None = deliveries[number]
        if delivery is not None:
            queue.acknowledge(delivery)
