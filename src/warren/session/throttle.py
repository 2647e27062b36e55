"""Why a client is held up, and whether it was told (RabbitMQ's connection.blocked).

While an alarm is on, the frames of a channel that publishes are held, and all other channels go on: the
acknowledgements that would clear the alarm are still read. Only when too much is held is nothing read at all.
"""

from warren.limits import HELD_FRAMES_SIZE_MAX
from warren.session.outbox import Outbox
from warren.wire.methods import ConnectionBlocked, ConnectionUnblocked


class Throttle:
    """The state of one connection under alarms."""

    __slots__ = ("_outbox", "held_size", "is_blocked", "reason", "tells")

    def __init__(self, outbox: Outbox, reason: str) -> None:
        self._outbox = outbox
        # Why publishers are to be held up now; empty when they are not.
        self.reason = reason
        self.held_size = 0
        # The client announced connection.blocked.
        self.tells = False
        # A publish of this connection was held up since the alarm began.
        self.is_blocked = False

    def hold_publisher(self) -> None:
        """Something was published although there is a reason to wait: the client is told so, once."""
        if not self.is_blocked:
            self.is_blocked = True
            if self.tells:
                self._outbox.method(0, ConnectionBlocked(self.reason))

    def block(self, reason: str) -> None:
        """Hold publishers up for `reason`; an empty one ends that."""
        self.reason = reason
        if not reason and self.is_blocked:
            self.is_blocked = False
            if self.tells:
                self._outbox.method(0, ConnectionUnblocked())

    def held(self, size: int) -> None:
        """`size` more octets of frames wait in memory."""
        self.held_size += size

    def released(self, size: int) -> None:
        """`size` octets of frames wait no longer."""
        self.held_size -= size

    @property
    def is_reading_paused(self) -> bool:
        """True if no more may be read from this client."""
        return self.held_size >= HELD_FRAMES_SIZE_MAX
