"""Publishes messages that another broker's queue has given positions, each once.

    publish ─▶ due ─ end of the turn ─▶ one group: the messages that are new, and the set with their positions
                                        └─ synced ─▶ confirms, also of those that were published before

A message whose position is in the set is confirmed without being routed, but not before the set is on disk:
its first copy may be in a group that is not synced. A message that a full queue would refuse is refused
before any queue has it, and its position is not added, so that it can be published again.
"""

from warren.errors import PreconditionFailed
from warren.framing.outbox import Outbox
from warren.limits_relay import POSITIONED_GROUP_MAX, POSITIONED_GROUP_SIZE_MAX
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.model.message_position import MessagePosition, take_position
from warren.queues.capabilities import existing, refusing_queue
from warren.queues.queue import Queue
from warren.session.confirms import Confirms
from warren.vhost.published_positions import PublishedPositions
from warren.vhost.vhost import ROUTED, UNROUTED, VirtualHost

# A message with its destinations, its position, and its sequence on the channel.
_Publish = tuple[Message, tuple[object, ...], MessagePosition, int]


class PositionedPublisher(ConfirmListener):
    """The publishes with positions of one channel in confirm mode."""

    __slots__ = (
        "_answers", "_confirms", "_due", "_due_size", "_is_flush_due", "_outbox", "_position", "_positions",
        "_turns", "_user", "_vhost",
    )  # fmt: skip

    def __init__(self, vhost: VirtualHost, outbox: Outbox, confirms: Confirms, user: str) -> None:
        self._vhost = vhost
        self._outbox = outbox
        self._confirms = confirms
        self._user = user
        if vhost.published_positions is None:
            store = vhost.stores.persistent if vhost.stores is not None else None
            vhost.published_positions = PublishedPositions(store, vhost.turn)
        self._positions: PublishedPositions = vhost.published_positions
        # The position of the message whose header was received last, until it is published.
        self._position: MessagePosition | None = None
        # What is to be published at the end of the turn, and the size of it in bytes.
        self._due: list[_Publish] = []
        self._due_size = 0
        # True while `flush` is registered with the outbox.
        self._is_flush_due = False
        # The runs of sequences, as (first, last), that are answered when a turn's publishes are synced, by
        # the number of the turn.
        self._turns = 0
        self._answers: dict[int, list[tuple[int, int]]] = {}

    def take_position(self, property_list: bytes) -> bytes:
        """Note the position in the property list of the next message; returns the list without it."""
        taken = take_position(property_list)
        if taken is None:
            self._position = None
            return property_list
        rest, self._position = taken
        return rest

    def publish(self, message: Message, destinations: tuple[object, ...], sequence: int) -> int:
        """Publish `message`, which is routed to `destinations`, unless its position was published before.

        Returns ROUTED or UNROUTED. PreconditionFailed if it has no position, or goes to a stream.
        """
        position, self._position = self._position, None
        if position is None:
            raise PreconditionFailed("the message has no position, which the channel has announced")
        for destination in destinations:
            queue: Queue = destination  # type: ignore[assignment]
            queue.check_positioned()
        self._confirms.expect(sequence)
        self._due.append((message, destinations, position, sequence))
        self._due_size += len(message.content)
        if len(self._due) >= POSITIONED_GROUP_MAX or self._due_size >= POSITIONED_GROUP_SIZE_MAX:
            self._publish_due()
        elif not self._is_flush_due:
            self._is_flush_due = True
            self._outbox.flush_later(self)
        return ROUTED if destinations else UNROUTED

    def flush(self) -> None:
        """Publish what is due; called by the outbox at the end of the turn."""
        self._is_flush_due = False
        if self._due:
            self._publish_due()

    def expect(self, sequence: int) -> None:
        """The publishes of turn number `sequence` are being written."""

    def done(self, first: int, last: int) -> None:
        """Confirm the publishes of the turns from `first` to `last`, which were synced."""
        for turn in range(first, last + 1):
            for run in self._answers.pop(turn):
                self._confirms.done(*run)

    # --- private ----------------------------------------------------------------------------------

    def _publish_due(self) -> None:
        """Publish all that is due, as one group for each source queue in a row."""
        due, self._due, self._due_size = self._due, [], 0
        refused: list[int] = []
        place = 0
        while place < len(due):
            place = self._publish_group(due, place, refused)
        self._turns += 1
        self._answers[self._turns] = _runs([publish[3] for publish in due], refused)
        if self._positions.store is None:
            self.done(self._turns, self._turns)
        else:
            self._positions.store.confirm(self, self._turns)
        for sequence in refused:
            self._confirms.refused(sequence)

    def _publish_group(self, due: list[_Publish], place: int, refused: list[int]) -> int:
        """Publish from `place` on what has the same origin; returns the place behind it.

        The sequences of refused messages are added to `refused`.
        """
        origin = due[place][2].origin
        ranges = self._positions.of(self._user, origin)
        self._positions.begin()
        try:
            while place < len(due) and due[place][2].origin == origin:
                message, destinations, position, sequence = due[place]
                place += 1
                if ranges.has(position.start, position.place):
                    continue
                if refusing_queue(destinations, message) is not None:
                    refused.append(sequence)
                    continue
                ranges.add(position.start, position.place)
                self._send(message, destinations)
        finally:
            self._positions.end(self._user, origin)
        return place

    def _send(self, message: Message, destinations: tuple[object, ...]) -> None:
        """Publish `message` to those of `destinations` that were not deleted since it was routed."""
        vhost = self._vhost
        exchange = vhost.router.exchanges.get(message.exchange)
        destinations = existing(destinations)
        if exchange is None:
            vhost.publish_to_queues(destinations, message, None, 0)
        else:
            vhost.publish_routed(destinations, message, None, 0)


def _runs(sequences: list[int], without: list[int]) -> list[tuple[int, int]]:
    """Return the increasing `sequences`, except those `without`, as runs (first, last)."""
    excluded = set(without)
    runs: list[tuple[int, int]] = []
    for sequence in sequences:
        if sequence in excluded:
            continue
        if runs and runs[-1][1] == sequence - 1:
            runs[-1] = runs[-1][0], sequence
        else:
            runs.append((sequence, sequence))
    return runs
