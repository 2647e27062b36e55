"""The status of a link, as the API, the commands and the metrics show it; it contains no secrets."""

from enum import StrEnum

from msgspec import Struct

from warren.relay.delivery_guarantee import Guarantee


class LinkKind(StrEnum):
    """What a link belongs to."""

    SHOVEL = "shovel"
    EXCHANGE = "exchange"
    QUEUE = "queue"


class LinkKey(Struct, frozen=True, order=True):
    """Identifies a link of a node."""

    kind: LinkKind
    vhost: str
    # The name of the shovel, or of the federated exchange or queue.
    name: str
    # The upstream of a federation link, and the name of the exchange or queue there.
    upstream: str = ""
    upstream_name: str = ""


class LinkState(StrEnum):
    """The states of a link; the values are RabbitMQ's, except the last, which RabbitMQ shows nowhere."""

    STARTING = "starting"
    RUNNING = "running"
    # It does not forward: it closes its connections, waits for the next attempt, or does not reconnect.
    TERMINATED = "terminated"
    STOPPED = "stopped"


class Hold(StrEnum):
    """Why a forwarder publishes nothing at the moment, although messages may wait."""

    NONE = ""
    # The destination has an alarm (connection.blocked).
    ALARM = "alarm"
    # The destination has refused messages (basic.nack), and is given time.
    REFUSED = "refused"
    # The rate of the link is limited.
    RATE = "rate"
    # The socket of the destination takes no more.
    FULL = "full"
    # The destination has not confirmed as many as are allowed to be unconfirmed.
    UNCONFIRMED = "unconfirmed"
    # The requested number of messages was published.
    FINISHED = "finished"


class LinkCounters(Struct):
    """What a link has done since it was created, in messages, and how often it was restarted."""

    # Published at the destination.
    forwarded: int = 0
    confirmed: int = 0
    # Not forwarded because of a filter or a rule of the link, and removed from the source.
    dropped: int = 0
    # Refused by the destination, and returned to the source.
    rejected: int = 0
    # Delivered again by the source, so that they may be duplicates at the destination.
    redelivered: int = 0
    restarts: int = 0


class LinkStatus(Struct, frozen=True, kw_only=True):
    """What is known about a link at one time. Times are Unix time in ms; 0 for never."""

    key: LinkKey
    state: LinkState
    # Since when it is in this state, and why, in one sentence; empty while starting or running.
    since: int
    reason: str
    # The last error that ended a run, also while it is running again, and its reply code (0: none).
    last_error: str
    last_error_code: int
    last_error_at: int
    # When the next attempt begins; 0 if none is planned.
    next_attempt_at: int
    # Since when it forwards without a break; 0 while it is not running.
    connected_at: int
    # The addresses, without credentials: while not connected, that of the source which was tried first, and
    # none of the destination.
    source_uri: str
    destination_uri: str
    counters: LinkCounters
    # Deliveries that wait in memory for the destination, and publishes that are not confirmed.
    pending: int
    unconfirmed: int
    # Since when none of these was confirmed; 0 if nothing is unconfirmed.
    unconfirmed_since: int
    # The prefetch of the source; 0 is no limit.
    prefetch_count: int
    # Messages per second; None: no limit.
    rate_max: float | None
    # Why nothing is published at the moment, since when, and the text of the broker about it.
    hold: Hold
    hold_since: int
    hold_reason: str
    # The number of messages still to be settled, and still to be published; -1 without end.
    remaining: int
    remaining_unacked: int
    # When the last message was delivered by the source, and its timestamp (0: it had none).
    delivered_at: int
    delivered_timestamp: int
    # The number of messages ready in the source, as of `source_counted_at`; -1 if it is not known.
    source_ready: int
    source_counted_at: int
    # Since when it has not been running, over all attempts to connect; 0 while it is running.
    down_since: int = 0
    # How often it delivers each message, and why not exactly once although that was asked for; else empty.
    delivery: Guarantee = Guarantee.AT_LEAST_ONCE
    delivery_reason: str = ""
    # Since when a federated queue wants no messages, so that the link does not consume; 0 if it does.
    paused_since: int = 0

    @property
    def age_ms(self) -> int | None:
        """The age of the last message when it was delivered; None if it had no timestamp."""
        if not self.delivered_timestamp or not self.delivered_at:
            return None
        return max(0, self.delivered_at - self.delivered_timestamp)

    @property
    def blocked_status(self) -> str:
        """RabbitMQ's `blocked_status`: running, flow or blocked."""
        if self.hold is Hold.ALARM:
            return "blocked"
        return "running" if self.hold in (Hold.NONE, Hold.FINISHED) else "flow"
