"""Heartbeats in both directions, decided from byte counters only (RabbitMQ 3.10.8, measured).

A heartbeat is sent after every half interval in which nothing was sent; the first half counts as such,
whatever the handshake has sent in it. A peer from which nothing came in two successive checks, one per
interval, is dead: that is between two and three intervals after its last byte. Intervals are counted from
the client's tune-ok. Any byte counts, so that reading and writing only maintain their totals.
"""

from enum import Enum

from warren.errors import FrameError, UnexpectedFrame
from warren.wire.erlang import frame_bytes
from warren.wire.frames import HEARTBEAT, FrameReader

# 0-9-1 §4.2.7: type 8, channel 0, no payload.
HEARTBEAT_FRAME = b"\x08\x00\x00\x00\x00\x00\x00\xce"

_SILENT_CHECKS_MAX = 2


class HeartbeatAction(Enum):
    """The result of a check."""

    NONE = "nothing to do"
    SEND = "send a heartbeat"
    DEAD = "the peer is gone"


class Heartbeat:
    """The heartbeat of one connection; an interval of 0 disables it."""

    __slots__ = ("_half_ms", "_is_half_way", "_next", "_received", "_sent", "_silent_checks")

    def __init__(self, interval_s: int, tuned_at: int) -> None:
        self._half_ms = interval_s * 500
        self._next = tuned_at + self._half_ms
        self._is_half_way = True
        self._received = 0
        # None before the first check.
        self._sent: int | None = None
        self._silent_checks = 0

    def deadline(self) -> int | None:
        """The time (ms) of the next check; None if heartbeats are disabled."""
        return self._next if self._half_ms else None

    def due(self, now: int, bytes_received: int, bytes_sent: int) -> HeartbeatAction:
        """Compare the totals with those of the last check; does nothing before `deadline()`."""
        if not self._half_ms or now < self._next:
            return HeartbeatAction.NONE
        # The next deadline is computed from the last one, so that small delays do not add up; after a long
        # pause of the process one check is enough.
        self._next += self._half_ms
        if self._next <= now:
            self._next = now + self._half_ms
        if not self._is_half_way and self._is_dead(bytes_received):
            return HeartbeatAction.DEAD
        self._is_half_way = not self._is_half_way
        if self._sent is not None and bytes_sent != self._sent:
            self._sent = bytes_sent
            return HeartbeatAction.NONE
        self._sent = bytes_sent + len(HEARTBEAT_FRAME)
        return HeartbeatAction.SEND

    def _is_dead(self, bytes_received: int) -> bool:
        if bytes_received != self._received:
            self._received = bytes_received
            self._silent_checks = 0
            return False
        self._silent_checks += 1
        return self._silent_checks >= _SILENT_CHECKS_MAX


def check_heartbeat(reader: FrameReader) -> None:
    """Raise AmqpError unless the heartbeat frame under the cursor is on channel 0 and empty."""
    if reader.channel:
        raise UnexpectedFrame(frame_bytes(HEARTBEAT, reader.payload()), method_index=0)
    if reader.size:
        raise FrameError(f"{frame_bytes(HEARTBEAT, reader.payload())}: unknown_frame", method_index=0)
