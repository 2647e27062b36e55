"""Forwards the messages of a source channel to a destination channel, in order.

    source ── delivered ──▶ transform ──▶ publish ──▶ destination
    source ◀── acknowledge ── settled in order ◀── confirmed ── destination

With the mode ON_CONFIRM a delivery is acknowledged when the destination has confirmed it, so that a crash of
either end loses nothing. Acknowledgements are sent once per turn, for all deliveries up to the first that is
not settled. What is not confirmed is bounded by the prefetch of the source and by LINK_UNCONFIRMED_MAX; what
waits because the destination takes nothing (an alarm, a full socket, refusals, a limited rate) is bounded
because the source is not read meanwhile.

A delivery that the destination refuses (basic.nack: for example its queue is full) returns to its queue, and
would be delivered again at once. Therefore nothing is published for a while, which is doubled as long as no
message is accepted, and then one at a time, and one more with each confirm. A refusal changes the order: what
was refused is delivered again behind what was delivered before.
"""

from collections import deque
from collections.abc import Callable
from enum import StrEnum

from warren.client.channel import ChannelListener, ClientChannel
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.flow.rate_limiter import RateLimiter
from warren.framing.outbox import Outbox
from warren.limits_relay import (
    LINK_SETTLED_RUN_MAX,
    LINK_SETTLED_RUN_SHARED_MAX,
    LINK_TRANSFORM_WORK,
    LINK_UNCONFIRMED_MAX,
    REFUSAL_PAUSE_MAX_MS,
    REFUSAL_PAUSE_MIN_MS,
)
from warren.model.message import NO_PROPERTIES, Message, published_at_of
from warren.model.turn import Turn
from warren.relay.last_transform import LastTransform
from warren.relay.status import Hold
from warren.relay.tag_queue import TagQueue

_TRANSFORM_WORK = LINK_TRANSFORM_WORK
_UNCONFIRMED_MAX = LINK_UNCONFIRMED_MAX
_SETTLED_RUN_MAX = LINK_SETTLED_RUN_MAX
_SETTLED_RUN_SHARED_MAX = LINK_SETTLED_RUN_SHARED_MAX


class AckMode(StrEnum):
    """When a delivery is acknowledged; the values are RabbitMQ's."""

    ON_CONFIRM = "on-confirm"
    ON_PUBLISH = "on-publish"
    NO_ACK = "no-ack"


class ForwardingListener:
    """Port: what the owner of a forwarder is told and asked; only `transform` may raise an exception."""

    __slots__ = ()

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        """Return the message to publish for the delivered `message`; None drops it.

        An unexpected exception is passed to `failed`; the message stays in the source. It is not called for
        every message if the forwarder `reuses_transformed`.
        """
        return message

    def failed(self, error: Exception) -> None:
        """`transform` has raised `error`; the forwarder publishes nothing more."""

    def call_later(self, pause_ms: int, action: Callable[[], None]) -> None:
        """Call `action` in `pause_ms` milliseconds, unless the forwarder is no longer used then."""

    def completed(self) -> None:
        """The requested number of messages was forwarded, and settled at both ends."""

    def source_ended(self, error: BrokerRefused) -> None:
        """The channel or connection of the source has ended, or its consumer was cancelled."""

    def destination_ended(self, error: BrokerRefused) -> None:
        """The channel or connection of the destination has ended."""


class Forwarder(ChannelListener):
    """The listener of the source channel; `DestinationListener` is that of the destination channel.

    Nothing else is published on the channel of the destination, since confirms are counted.
    """

    __slots__ = (
        "_acknowledged_tag", "_ahead", "_blocked_since", "_confirmed", "_destination",
        "_destination_outbox", "_first", "_is_continuing", "_is_finishing", "_is_flush_due",
        "_is_on_confirm", "_is_on_publish", "_is_refused", "_is_resuming", "_is_wake_due",
        "_last_transform", "_listener", "_progress_at",
        "_refusal_pause_ms", "_refused_since", "_settled_tag", "_source", "_source_connection", "_tags",
        "_turn", "_unconfirmed_max", "_waiting", "_waiting_since", "blocked_reason", "confirmed_count",
        "delivered_at", "delivered_count", "delivered_properties", "dropped_count", "forwarded_count",
        "is_returning", "rate_limiter", "redelivered_count", "rejected_count", "remaining",
        "reuses_transformed",
    )  # fmt: skip

    def __init__(
        self, ack_mode: AckMode, listener: ForwardingListener, turn: Turn, remaining: int = -1
    ) -> None:
        """Forward `remaining` messages and then none; -1 forwards without end."""
        self._listener = listener
        self._turn = turn
        self._is_on_confirm = ack_mode is AckMode.ON_CONFIRM
        self._is_on_publish = ack_mode is AckMode.ON_PUBLISH
        self._source: ClientChannel = None  # type: ignore[assignment]
        self._source_connection: ClientConnection = None  # type: ignore[assignment]
        self._destination: ClientChannel = None  # type: ignore[assignment]
        self._destination_outbox: Outbox = None  # type: ignore[assignment]
        # The delivery tags of the messages published and not settled: the first has the sequence `_first`.
        self._tags = TagQueue()
        self._first = 1
        # The sequence up to which all are confirmed; True while the next turn is to settle more of them.
        self._confirmed, self._is_continuing = 0, False
        # Sequences above `_first` that are settled: True if acknowledged, False if rejected.
        self._ahead: dict[int, bool] = {}
        # How many may be unconfirmed: after a refusal one, and one more with each confirm.
        self._unconfirmed_max = _UNCONFIRMED_MAX
        # When the last confirm came, or the first publish that is unconfirmed.
        self._progress_at = 0
        # The tag up to which all deliveries are settled, and up to which the source was told so.
        self._settled_tag = self._acknowledged_tag = 0
        # True while `flush` is registered with the output of the source.
        self._is_flush_due = False
        # Deliveries that wait until the destination takes publishes: message, tag, whether redelivered.
        self._waiting: deque[tuple[Message, int, bool]] = deque()
        self._waiting_since = 0
        # True while `resume` is running: what is settled meanwhile does not call it again.
        self._is_resuming = False
        # Why the destination takes no publishes (connection.blocked), since when; empty while it does.
        self.blocked_reason = ""
        self._blocked_since = 0
        # True while a destination that has refused messages is given time, and since when it refuses.
        self._is_refused = False
        self._refused_since = 0
        self._refusal_pause_ms = REFUSAL_PAUSE_MIN_MS
        # None does not limit the rate; `_is_wake_due` is True while a timer waits for the next message.
        self.rate_limiter: RateLimiter | None = None
        self._is_wake_due = False
        # True once `finish` was called.
        self._is_finishing = False
        # True if `transform` passes on the body, and whatever else it returns depends on the address, the
        # properties, `is_redelivered`, and the time in seconds alone: it is called once for consecutive
        # messages that are equal in these.
        self.reuses_transformed = False
        self._last_transform = LastTransform()
        # True while what is delivered is returned to its queue, because nobody wants it at the destination.
        self.is_returning = False
        # The number of messages that are still to be published or dropped; -1 without end. One that the
        # destination refuses has had its turn, as in RabbitMQ.
        self.remaining = remaining
        # When the last message was delivered (Unix time, ms; 0: none), and its properties.
        self.delivered_at = 0
        self.delivered_properties = NO_PROPERTIES
        # Counters since the start of this forwarder.
        self.delivered_count = self.forwarded_count = self.confirmed_count = 0
        self.rejected_count = self.dropped_count = self.redelivered_count = 0

    def attach_destination(self, connection: ClientConnection, channel: ClientChannel) -> None:
        """Publish on `channel` of `connection`, which is in confirm mode if the ack mode needs it."""
        self._destination = channel
        self._destination_outbox = connection.outbox

    def attach_source(self, connection: ClientConnection, channel: ClientChannel) -> None:
        """Settle deliveries on `channel` of `connection`; call it before the first consumer is started."""
        self._source = channel
        self._source_connection = connection

    def finish(self) -> None:
        """Publish nothing more; `completed` is called when all that is published is settled."""
        self._is_finishing = True
        self._waiting.clear()

    # --- what is shown ----------------------------------------------------------------------------

    @property
    def unconfirmed_count(self) -> int:
        """The number of messages published that the destination has not confirmed."""
        return self._tags.count - len(self._ahead)

    @property
    def unsettled_remaining(self) -> int:
        """The number of messages that are still to be settled; -1 without end."""
        return self.remaining + self.unconfirmed_count if self.remaining >= 0 else -1

    @property
    def waiting_count(self) -> int:
        """The number of deliveries that wait because the destination takes no publishes."""
        return len(self._waiting)

    @property
    def unconfirmed_since(self) -> int:
        """Since when the destination has confirmed nothing of what is unconfirmed; 0 if nothing is."""
        return self._progress_at if self._tags.count else 0

    def hold(self) -> tuple[Hold, int]:
        """Return why nothing is published now, and since when (Unix time, ms)."""
        if self.blocked_reason:
            return Hold.ALARM, self._blocked_since
        if self._is_refused or (self._refused_since and (self._waiting or self._tags.count)):
            return Hold.REFUSED, self._refused_since
        if not self._waiting:
            return Hold.NONE, 0
        if not self.remaining or self._is_finishing:
            return Hold.FINISHED, self._waiting_since
        if self._is_wake_due:
            return Hold.RATE, self._waiting_since
        is_full = self._destination_outbox.is_full()
        return Hold.FULL if is_full else Hold.UNCONFIRMED, self._waiting_since

    # --- from the source ------------------------------------------------------------------------

    def delivered(self, message: Message, delivery_tag: int, is_redelivered: bool) -> None:
        """Publish `message`, at once unless the destination takes no publishes now."""
        self.delivered_count += 1
        if self.is_returning:
            self._source.reject(delivery_tag, False, True)
            return
        self.delivered_at = published_at_of(message)
        self.delivered_properties = message.property_list
        if self._waiting or not self._may_publish():
            if self._is_finishing:
                # It returns to its queue when the channel is closed.
                return
            if not self._waiting:
                self._waiting_since = self.delivered_at
                self._source_connection.pause_reading(True)
            self._waiting.append((message, delivery_tag, is_redelivered))
        else:
            self._forward(message, delivery_tag, is_redelivered)

    def _may_publish(self) -> bool:
        """True if the next message may be published now."""
        if self.blocked_reason or self._is_refused or not self.remaining or self._is_finishing:
            return False
        if self._tags.count >= self._unconfirmed_max or self._destination_outbox.is_full():
            return False
        return self.rate_limiter is None or self._is_within_rate(self.rate_limiter)

    def _is_within_rate(self, rate_limiter: RateLimiter) -> bool:
        """True if the rate allows a message now; otherwise a timer waits for the next."""
        if rate_limiter.allowed(self._turn.now() / 1000, 1):
            return True
        if not self._is_wake_due:
            self._is_wake_due = True
            self._listener.call_later(int(rate_limiter.delay_s() * 1000) + 1, self._wake)
        return False

    def _wake(self) -> None:
        self._is_wake_due = False
        self.resume()

    def _forward(self, message: Message, delivery_tag: int, is_redelivered: bool) -> None:
        self.redelivered_count += is_redelivered
        if self.remaining > 0:
            self.remaining -= 1
        try:
            transformed = self._transform(message, is_redelivered)
        except Exception as error:
            self.finish()
            self._listener.failed(error)
            return
        if transformed is None:
            self._drop(delivery_tag)
            return
        if self.rate_limiter is not None:
            self.rate_limiter.spend(1)
        self.forwarded_count += 1
        self._destination.publish(transformed)
        if self._is_on_confirm:
            if not self._tags.count:
                self._progress_at = self._turn.now()
            self._tags.append(delivery_tag)
            return
        if self._is_on_publish:
            self._settle(delivery_tag)
        if not self.remaining:
            self._listener.completed()

    def _transform(self, message: Message, is_redelivered: bool) -> Message | None:
        """Return the message to publish for `message`, as for the one before if that was equal."""
        last, second = self._last_transform, self._turn.now() // 1000
        if self.reuses_transformed and last.applies(message, is_redelivered, second):
            return None if last.is_dropped else last.apply(message, self.delivered_at)
        transformed = self._listener.transform(message, is_redelivered)
        if transformed is not None and last.is_new(message, transformed):
            self._source.extra_work += _TRANSFORM_WORK
        # The owner may have changed its mind about this message.
        if self.reuses_transformed:
            last.keep(message, transformed, is_redelivered, second)
        return transformed

    def _drop(self, delivery_tag: int) -> None:
        """Remove a delivery from the source that is not forwarded."""
        self.dropped_count += 1
        if self._tags.count:
            self._source.acknowledge(delivery_tag, False)
        elif self._is_on_confirm or self._is_on_publish:
            self._settle(delivery_tag)
        if not self.remaining and not self._tags.count:
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
        self._progress_at = self._turn.now()
        if is_multiple and is_acked and not self._ahead and self._unconfirmed_max == _UNCONFIRMED_MAX:
            self._confirmed = max(self._confirmed, min(sequence, self._first + self._tags.count - 1))
            if not self._is_continuing:
                self._settle_run(self._settled_run_max())
            self._follow_settled()
            return
        if self._first <= self._confirmed and (is_multiple or sequence <= self._confirmed):
            self._settle_run(self._tags.count)
        if is_multiple:
            while self._tags.count and self._first <= sequence:
                self._settle_first(is_acked)
        elif sequence == self._first and self._tags.count:
            self._settle_first(is_acked)
        elif sequence > self._first and sequence not in self._ahead:
            self._ahead[sequence] = is_acked
            if not is_acked:
                self._reject(self._tags.get(sequence - self._first))
        self._follow_settled()

    def block(self, reason: str) -> None:
        """Hold back publishes because the destination takes none for `reason`; an empty one resumes them."""
        self.blocked_reason = reason
        self._blocked_since = self._turn.now()
        self.resume()

    def resume(self) -> None:
        """Publish what has waited, as far as the destination takes it."""
        if self._is_resuming:
            return
        self._is_resuming = True
        while self._waiting and self._may_publish():
            message, delivery_tag, is_redelivered = self._waiting.popleft()
            self._forward(message, delivery_tag, is_redelivered)
        self._is_resuming = False
        if not self._waiting and self._source_connection is not None:
            self._source_connection.pause_reading(False)

    def flush(self) -> None:
        """Acknowledge all that is settled; called by the outbox of the source before it is written."""
        self._is_flush_due = False
        if self._settled_tag > self._acknowledged_tag:
            self._acknowledged_tag = self._settled_tag
            self._source.acknowledge(self._settled_tag, True)

    # --- private ----------------------------------------------------------------------------------

    def _settle_run(self, count_max: int) -> None:
        """Settle up to `count_max` of the deliveries that were confirmed in order; a next turn continues."""
        count = min(self._confirmed + 1 - self._first, count_max)
        if count > 0:
            tag = self._tags.take(count)
            self._first += count
            self.confirmed_count += count
            self._settle(tag)
        if self._first <= self._confirmed and not self._is_continuing:
            self._is_continuing = True
            self._listener.call_later(0, self._continue)

    def _settled_run_max(self) -> int:
        return _SETTLED_RUN_SHARED_MAX if self._turn.is_shared() else _SETTLED_RUN_MAX

    def _continue(self) -> None:
        self._is_continuing = False
        if self._first <= self._confirmed:
            self._settle_run(self._settled_run_max())
            self._follow_settled()

    def _follow_settled(self) -> None:
        """Settle what was confirmed ahead of its turn, and do what waits for confirms."""
        while self._ahead and self._first in self._ahead:
            self._settle_first(True)
        if self._waiting:
            self.resume()
        if not self._tags.count and (self._is_finishing or not self.remaining):
            self._listener.completed()

    def _settle_first(self, is_acked: bool) -> None:
        """Settle the oldest delivery that is not settled; what was known of it before prevails."""
        tag = self._tags.take(1)
        sequence = self._first
        self._first += 1
        if sequence in self._ahead:
            if not self._ahead.pop(sequence):
                return
        elif not is_acked:
            self._reject(tag)
            return
        self.confirmed_count += 1
        if self._unconfirmed_max < _UNCONFIRMED_MAX:
            self._accept()
        self._settle(tag)

    def _accept(self) -> None:
        """Trust a destination that has refused messages a little more, because it has confirmed one."""
        self._unconfirmed_max += 1
        self._refused_since = 0
        self._refusal_pause_ms = REFUSAL_PAUSE_MIN_MS

    def _settle(self, delivery_tag: int) -> None:
        """Acknowledge all deliveries up to `delivery_tag` at the end of this turn."""
        self._settled_tag = delivery_tag
        if not self._is_flush_due:
            self._is_flush_due = True
            self._source_connection.outbox.flush_later(self)

    def _reject(self, delivery_tag: int) -> None:
        """Return a delivery to its queue because the destination has refused it, and give that time."""
        self.rejected_count += 1
        self._source.reject(delivery_tag, False, True)
        self._unconfirmed_max = 1
        if not self._is_refused:
            self._is_refused = True
            self._refused_since = self._refused_since or self._turn.now()
            self._listener.call_later(self._refusal_pause_ms, self._retry)
            self._refusal_pause_ms = min(self._refusal_pause_ms * 2, REFUSAL_PAUSE_MAX_MS)

    def _retry(self) -> None:
        self._is_refused = False
        self.resume()


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
