"""Forwards the messages of a source channel to a destination channel, in order.

    source ── delivered ──▶ transform ──▶ publish ──▶ destination
    source ◀── acknowledge ── settled in order ◀── confirmed ── destination

With the mode ON_CONFIRM a delivery is acknowledged when the destination has confirmed it, so that a crash of
either end loses nothing. Acknowledgements are sent once per turn, for all deliveries up to the first that is
not settled. What is not confirmed is bounded by the prefetch of the source; what waits because the
destination takes nothing (an alarm, a full socket) is bounded because the source is not read meanwhile.
"""

from collections import deque
from enum import StrEnum

from warren.client.channel import ChannelListener, ClientChannel
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.framing.outbox import Outbox
from warren.model.message import Message


class AckMode(StrEnum):
    """When a delivery is acknowledged; the values are RabbitMQ's."""

    ON_CONFIRM = "on-confirm"
    ON_PUBLISH = "on-publish"
    NO_ACK = "no-ack"


class ForwardingListener:
    """Port: what the owner of a forwarder is told; the methods raise nothing."""

    __slots__ = ()

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        """Return the message to publish for the delivered `message`; None drops it."""
        return message

    def completed(self) -> None:
        """The requested number of messages was forwarded, and settled at both ends."""

    def source_ended(self, error: BrokerRefused) -> None:
        """The channel or connection of the source has ended, or its consumer was cancelled."""

    def destination_ended(self, error: BrokerRefused) -> None:
        """The channel or connection of the destination has ended."""


class Forwarder(ChannelListener):
    """The listener of the source channel; `DestinationListener` is that of the destination channel."""

    __slots__ = (
        "_acknowledged_tag", "_ahead", "_destination", "_destination_outbox", "_first", "_is_flush_due",
        "_is_on_confirm", "_is_on_publish", "_listener", "_settled_tag", "_source", "_source_connection",
        "_tags", "_waiting", "blocked_reason", "confirmed_count", "dropped_count", "forwarded_count",
        "redelivered_count", "rejected_count", "remaining",
    )  # fmt: skip

    def __init__(self, ack_mode: AckMode, listener: ForwardingListener, remaining: int = -1) -> None:
        """Forward `remaining` messages and then none; -1 forwards without end."""
        self._listener = listener
        self._is_on_confirm = ack_mode is AckMode.ON_CONFIRM
        self._is_on_publish = ack_mode is AckMode.ON_PUBLISH
        self._source: ClientChannel = None  # type: ignore[assignment]
        self._source_connection: ClientConnection = None  # type: ignore[assignment]
        self._destination: ClientChannel = None  # type: ignore[assignment]
        self._destination_outbox: Outbox = None  # type: ignore[assignment]
        # The delivery tags of the messages published and not settled: the first has the sequence `_first`.
        self._tags: deque[int] = deque()
        self._first = 1
        # Sequences above `_first` that are settled: True if acknowledged, False if rejected.
        self._ahead: dict[int, bool] = {}
        # The tag up to which all deliveries are settled, and up to which the source was told so.
        self._settled_tag = 0
        self._acknowledged_tag = 0
        # True while `flush` is registered with the output of the source.
        self._is_flush_due = False
        # Deliveries that wait until the destination takes publishes: message, tag, whether redelivered.
        self._waiting: deque[tuple[Message, int, bool]] = deque()
        # Why the destination takes no publishes (connection.blocked); empty while it does.
        self.blocked_reason = ""
        # The number of messages that are still to be published; -1 without end.
        self.remaining = remaining
        # Counters since the start of this forwarder.
        self.forwarded_count = 0
        self.confirmed_count = 0
        self.rejected_count = 0
        self.dropped_count = 0
        self.redelivered_count = 0

    def attach_destination(self, connection: ClientConnection, channel: ClientChannel) -> None:
        """Publish on `channel` of `connection`, which is in confirm mode if the ack mode needs it."""
        self._destination = channel
        self._destination_outbox = connection.outbox

    def attach_source(self, connection: ClientConnection, channel: ClientChannel) -> None:
        """Settle deliveries on `channel` of `connection`; call it before the first consumer is started."""
        self._source = channel
        self._source_connection = connection

    @property
    def unconfirmed_count(self) -> int:
        """The number of messages published that the destination has not confirmed."""
        return len(self._tags) - len(self._ahead)

    @property
    def unsettled_remaining(self) -> int:
        """The number of messages that are still to be settled; -1 without end."""
        return self.remaining + self.unconfirmed_count if self.remaining >= 0 else -1

    def finish(self) -> None:
        """Publish nothing more; what is published is settled, and `completed` is called after it."""
        self.remaining = 0
        self._waiting.clear()

    @property
    def waiting_count(self) -> int:
        """The number of deliveries that wait because the destination takes no publishes."""
        return len(self._waiting)

    # --- from the source ------------------------------------------------------------------------

    def delivered(self, message: Message, delivery_tag: int, is_redelivered: bool) -> None:
        """Publish `message`, at once unless the destination takes no publishes now."""
        if self.blocked_reason or self._waiting or self._destination_outbox.is_full():
            self._waiting.append((message, delivery_tag, is_redelivered))
            self._source_connection.pause_reading(True)
        else:
            self._forward(message, delivery_tag, is_redelivered)

    def _forward(self, message: Message, delivery_tag: int, is_redelivered: bool) -> None:
        if not self.remaining:
            # It returns to its queue when the channel is closed.
            return
        self.redelivered_count += is_redelivered
        transformed = self._listener.transform(message, is_redelivered)
        if transformed is None:
            self.dropped_count += 1
            if self._is_on_confirm or self._is_on_publish:
                self._source.acknowledge(delivery_tag, False)
            return
        if self.remaining > 0:
            self.remaining -= 1
        self.forwarded_count += 1
        self._destination.publish(transformed)
        if self._is_on_confirm:
            self._tags.append(delivery_tag)
            return
        if self._is_on_publish:
            self._settle(delivery_tag)
        if not self.remaining:
            self._listener.completed()

    def cancelled(self, consumer_tag: str) -> None:
        """The source has cancelled the consumer."""
        self._listener.source_ended(BrokerRefused(f"the source has cancelled the consumer {consumer_tag!r}"))

    def ended(self, error: BrokerRefused) -> None:
        """The source channel has ended."""
        self._listener.source_ended(error)

    # --- from the destination -------------------------------------------------------------------

    def settle_published(self, sequence: int, is_multiple: bool, is_acked: bool) -> None:
        """Settle the delivery that was published with `sequence`, or all up to it."""
        if is_multiple:
            while self._tags and self._first <= sequence:
                self._settle_first(is_acked)
        elif sequence == self._first:
            self._settle_first(is_acked)
        elif sequence > self._first and sequence not in self._ahead:
            self._ahead[sequence] = is_acked
            if not is_acked:
                self._reject(self._tags[sequence - self._first])
        while self._ahead and self._first in self._ahead:
            self._settle_first(True)
        if not self.remaining and not self._tags:
            self._listener.completed()

    def block(self, reason: str) -> None:
        """Hold back publishes because the destination takes none for `reason`; an empty one resumes them."""
        self.blocked_reason = reason
        self.resume()

    def resume(self) -> None:
        """Publish what has waited, as far as the destination takes it."""
        while self._waiting and not self.blocked_reason and not self._destination_outbox.is_full():
            message, delivery_tag, is_redelivered = self._waiting.popleft()
            self._forward(message, delivery_tag, is_redelivered)
        if not self._waiting and self._source_connection is not None:
            self._source_connection.pause_reading(False)

    def flush(self) -> None:
        """Acknowledge all that is settled; called by the outbox of the source before it is written."""
        self._is_flush_due = False
        if self._settled_tag > self._acknowledged_tag:
            self._acknowledged_tag = self._settled_tag
            self._source.acknowledge(self._settled_tag, True)

    # --- private ----------------------------------------------------------------------------------

    def _settle_first(self, is_acked: bool) -> None:
        """Settle the oldest delivery that is not settled; what was known of it before prevails."""
        tag = self._tags.popleft()
        sequence = self._first
        self._first += 1
        if sequence in self._ahead:
            if not self._ahead.pop(sequence):
                return
        elif not is_acked:
            self._reject(tag)
            return
        self.confirmed_count += 1
        self._settle(tag)

    def _settle(self, delivery_tag: int) -> None:
        """Acknowledge all deliveries up to `delivery_tag` at the end of this turn."""
        self._settled_tag = delivery_tag
        if not self._is_flush_due:
            self._is_flush_due = True
            self._source_connection.outbox.flush_later(self)

    def _reject(self, delivery_tag: int) -> None:
        """Return a delivery to its queue, because the destination has refused it."""
        self.rejected_count += 1
        if self.remaining >= 0:
            self.remaining += 1
        self._source.reject(delivery_tag, False, True)


class DestinationListener(ChannelListener):
    """The listener of the channel on which a forwarder publishes."""

    __slots__ = ("_forwarder", "_listener")

    def __init__(self, forwarder: Forwarder, listener: ForwardingListener) -> None:
        self._forwarder = forwarder
        self._listener = listener

    def confirmed(self, sequence: int, is_multiple: bool, is_acked: bool) -> None:
        """Settle what was delivered for it."""
        self._forwarder.settle_published(sequence, is_multiple, is_acked)

    def ended(self, error: BrokerRefused) -> None:
        """The destination channel has ended."""
        self._listener.destination_ended(error)


class SourceConnectionListener(ConnectionListener):
    """The listener of the source connection."""

    __slots__ = ("_listener",)

    def __init__(self, listener: ForwardingListener) -> None:
        self._listener = listener

    def ended(self, error: BrokerRefused | None) -> None:
        """The source connection has ended."""
        if error is not None:
            self._listener.source_ended(error)


class DestinationConnectionListener(ConnectionListener):
    """The listener of the destination connection: alarms and room hold and resume the forwarder."""

    __slots__ = ("_forwarder", "_listener")

    def __init__(self, forwarder: Forwarder, listener: ForwardingListener) -> None:
        self._forwarder = forwarder
        self._listener = listener

    def blocked(self, reason: str) -> None:
        """Hold back publishes while the broker has an alarm."""
        self._forwarder.block(reason)

    def has_room(self) -> None:
        """Continue after a full socket."""
        self._forwarder.resume()

    def ended(self, error: BrokerRefused | None) -> None:
        """The destination connection has ended."""
        if error is not None:
            self._listener.destination_ended(error)
