"""Messages of a classic queue, many at a time: taken for a lease, acknowledged, and read into columns.

Compiled, so that a message costs no call of the interpreter. Whoever calls bounds the batch: each function
works until its count is done, without giving anybody else a turn.
"""

from array import array

from warren.model.message import Message, published_at_of
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Delivery

_INT64_SIZE = 8
_UINT32_SIZE = 4


class MessageColumns:
    """Up to `capacity` messages as columns, in the layout of Arrow: a value of each message side by side.

    A shape is the address and the property list of a message; equal ones are kept once, and `kinds` has the
    number of each message's shape. Bodies lie end to end; `ends` says where, from a 0 in front on.
    """

    __slots__ = (
        "_address", "_bodies", "_ends", "_ends_array", "_is_redelivered", "_kind", "_kinds", "_kinds_array",
        "_known", "_places", "_places_array", "_property_list", "_times", "_times_array", "count",
        "has_redelivered", "octets",
    )  # fmt: skip

    def __init__(self, capacity: int) -> None:
        # Of one message at least: compiled, nothing looks into an empty array.
        room = max(capacity, 1)
        self.count = 0
        self.octets = 0
        self.has_redelivered = False
        self._places_array = array("q", bytes(_INT64_SIZE * room))
        self._times_array = array("q", bytes(_INT64_SIZE * room))
        self._kinds_array = array("I", bytes(_UINT32_SIZE * room))
        self._ends_array = array("I", bytes(_UINT32_SIZE * (room + 1)))
        # Compiled, these are views of the arrays.
        self._places = self._places_array
        self._times = self._times_array
        self._kinds = self._kinds_array
        self._ends = self._ends_array
        self._is_redelivered: list[bool] = []
        self._bodies: list[bytes] = []
        self._known: dict[tuple[bytes, bytes], int] = {}
        # The shape of the message that was added last, most often also the next one's.
        self._address = b""
        self._property_list = b""
        self._kind = 0

    @property
    def places(self) -> "array[int]":
        """Where the messages are in their queue, as they were given."""
        return self._places_array[: self.count]

    @property
    def times(self) -> "array[int]":
        """When each was published: Unix time in milliseconds."""
        return self._times_array[: self.count]

    @property
    def kinds(self) -> "array[int] | None":
        """The number of each message's shape; None if all have the first."""
        return self._kinds_array[: self.count] if len(self._known) > 1 else None

    @property
    def ends(self) -> "array[int]":
        """Where each body ends among the octets of all; one number more than messages."""
        return self._ends_array[: self.count + 1]

    @property
    def shapes(self) -> list[tuple[bytes, bytes]]:
        """The address and the property list of each shape."""
        return list(self._known)

    @property
    def redelivered(self) -> list[bool] | None:
        """Whether each was delivered before; None if none of them was."""
        return self._is_redelivered if self.has_redelivered else None

    @property
    def bodies(self) -> bytes:
        """The octets of all bodies."""
        return b"".join(self._bodies)

    def add(self, place: int, message: Message, is_redelivered: bool) -> None:
        """Add `message`, which is at `place`. IndexError beyond the capacity."""
        self._append(place, message, message.content[:-1], is_redelivered)

    def _append(self, place: int, message: Message, body: bytes, is_redelivered: bool) -> None:
        """Add `message`, which has `body` or has it on the disk."""
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
        self.octets += len(body)
        self._ends[count + 1] = self.octets
        self.count = count + 1

    def add_deliveries(
        self, queue: ClassicQueue, deliveries: list[Delivery | None], first: int, octets_max: int
    ) -> int:
        """Add those of `deliveries`, the first of which is at place `first`, that are there.

        Ends before a body that would make it more than `octets_max` octets, unless it is the first; answers
        how many were looked at. ConnectionForced if one cannot be read from the disk.
        """
        octets = count = 0
        for each in deliveries:
            delivery: Delivery | None = each
            if delivery is not None:
                octets += delivery.octets
                if count and octets > octets_max:
                    break
                self._append(first + count, delivery.message, queue.body(delivery), delivery.attempts > 0)
            count += 1
        return count

    def _number_shape(self, message: Message) -> None:
        """Have the number of the shape of `message` for it, and for those like it that follow."""
        self._address = message.address
        self._property_list = message.property_list
        self._kind = self._known.setdefault((message.address, message.property_list), len(self._known))


def take_batch(queue: ClassicQueue, taken: list[Delivery | None], count: int, octets_max: int) -> int:
    """Take up to `count` ready messages out of `queue`, and put them behind those in `taken`.

    Ends before a body that would make it more than `octets_max` octets, unless nothing was taken before;
    answers the octets of what was taken. Fewer than `count` are taken only if it ends there, or nothing is
    ready.
    """
    octets = 0
    for _ in range(count):
        delivery: Delivery | None = queue.get()
        if delivery is None:
            break
        if taken and octets + delivery.octets > octets_max:
            queue.give_back(delivery)
            queue.pump()
            break
        taken.append(delivery)
        octets += delivery.octets
    return octets


def extend_ranges(
    queue: ClassicQueue, deliveries: list[Delivery | None], first: int, found: list[int]
) -> None:
    """Add to `found` where ranges of the places of `deliveries`, from number `first` on, begin and end."""
    for number in range(first, len(deliveries)):
        delivery: Delivery = deliveries[number]  # type: ignore[assignment]
        place = queue.place_of(delivery)
        if found and found[-1] == place:
            found[-1] = place + 1
        else:
            found.append(place)
            found.append(place + 1)


def acknowledge_batch(queue: ClassicQueue, deliveries: list[Delivery | None], first: int, end: int) -> None:
    """Acknowledge those of `deliveries` from number `first` to before `end` that are there."""
    for number in range(first, min(end, len(deliveries))):
        delivery: Delivery | None = deliveries[number]
        if delivery is not None:
            queue.acknowledge(delivery)
