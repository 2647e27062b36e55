"""One run of a link, from its connections to its end, and the port that shovels and federation implement."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Protocol

from msgspec import Struct

from warren.client.answer import Answer
from warren.client.channel import ChannelListener, ClientChannel
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.errors import AmqpError
from warren.flow.rate_limiter import RateLimiter
from warren.limits import FRAME_OVERHEAD, FRAME_SIZE_MAX
from warren.limits_relay import LINK_RECONNECT_MAX_MS, LINK_SETTLE_MS, SOURCE_COUNTED_MS
from warren.model.coroutine_driver import Pending, drive
from warren.model.message import Message
from warren.model.message_position import (
    POSITIONS_ARGUMENT,
    POSITIONS_REALM,
    MessagePosition,
    take_position,
    with_position,
)
from warren.model.turn import Turn
from warren.relay.delivery_guarantee import DeliveryGuarantee, Guarantee, exactly_once
from warren.relay.dialer import Dialer
from warren.relay.endpoint import Endpoint, EndpointConnection, connect
from warren.relay.forwarder import (
    AckMode,
    DestinationConnectionListener,
    DestinationListener,
    Forwarder,
    ForwardingListener,
    SourceConnectionListener,
)
from warren.relay.link_filter import LinkFilter
from warren.wire import methods

# The argument of a consumer that reads a stream.
_STREAM_OFFSET = "x-stream-offset"
# The bytes of a content header frame beside the property list: class, weight and body size (0-9-1 §2.3.5.2).
_HEADER_SIZE = FRAME_OVERHEAD + 12

# Port: calls an action after a number of milliseconds; it cannot be cancelled.
After = Callable[[int, Callable[[], None]], None]
# Port: writes a line of the log: level, text, fields. An error is written while its exception is being
# handled, if it has one, so that the traceback can be added.
Log = Callable[[str, str, Mapping[str, object]], None]


class LinkSettings(Struct, frozen=True, kw_only=True):
    """How a link forwards and reconnects."""

    source: Endpoint
    destination: Endpoint
    ack_mode: AckMode = AckMode.ON_CONFIRM
    # Deliveries that the source may have outstanding; 0 is no limit of AMQP's.
    prefetch_count: int = 1000
    # The pause before the next attempt; 0: there is none until `restart`; None doubles it from
    # one attempt to the next.
    reconnect_delay_ms: int | None = None
    # Messages per second; None: no limit.
    rate_max: float | None = None
    # What is not accepted is removed from the source and not forwarded; None accepts everything.
    message_filter: LinkFilter | None = None
    # True to deliver exactly once if both brokers can; needs ON_CONFIRM, and a plan that connects to both
    # before it opens channels.
    is_exactly_once: bool = False


class LinkPlan(Protocol):
    """Port: what a shovel or a federation link does; one object for all runs of its link.

    A run is set up like this, in this order:

        destination = await run.connect_destination()
        publishing = await run.open_destination_channel()   # in confirm mode if the ack mode needs it
        ... declare at the destination with `await publishing.call(...)`
        source = await run.connect_source()
        consuming = await run.open_source_channel()         # with the prefetch of the settings
        ... declare at the source; `run.forwarder.remaining = n` limits the number of messages
        await run.consume("queue")

    An unexpected exception of the plan ends the run as well, and is logged with its traceback.

    An end of either connection or channel ends the run, which the link then closes and begins anew; no
    callback of an ended run has an effect. More channels can be opened on both connections (`run.source`,
    `run.destination`); when one of them fails, `run.fail(error)` ends the run.
    """

    async def set_up(self, run: "LinkRun") -> None:
        """Open both ends, declare, and start the consumer. Raises BrokerRefused."""

    async def tear_down(self, run: "LinkRun") -> None:
        """Remove at the ends what shall not outlive the link, which is stopped.

        If `run` was set up, this is called before its connections are closed. If the link is stopped while a
        run is set up or between two runs, or if that call has failed, it is called after the end of the last
        run if the plan `leaves_objects`. It is not waited for longer than LINK_SETTLE_MS. May raise
        BrokerRefused, which is logged.
        """

    @property
    def leaves_objects(self) -> bool:
        """True if objects that shall not outlive the link may be at an end, also if no run was set up."""
        return False

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        """Return the message to publish for the delivered `message`; None drops it.

        Its properties can be read with `properties()` and `headers()`.
        """

    def completed(self) -> None:
        """The link has stopped because the requested number of messages was forwarded. Raises nothing."""


class LinkRun(ForwardingListener):
    """The connections and the forwarder of one run."""

    __slots__ = (
        "_after", "_attempt", "_count_failure", "_dialer", "_failure", "_filter", "_has_positions", "_log",
        "_name", "_plan", "_settings", "_started_at", "_tear_down_connections", "_turn", "consuming",
        "destination", "forwarder", "is_abandoned", "is_completed", "is_ended", "is_set_up", "is_torn_down",
        "outcome", "paused_since", "property_list_size_max", "publishing", "set_up_ended", "settled",
        "source", "source_counted_at", "source_ready",
    )  # fmt: skip

    def __init__(
        self,
        plan: LinkPlan,
        settings: LinkSettings,
        *,
        dialer: Dialer,
        turn: Turn,
        after: After,
        log: Log,
        count_failure: Callable[[], None],
        name: str,
        attempt: int,
    ) -> None:
        self._log = log
        self._count_failure = count_failure
        # What a line of the log calls the link.
        self._name = name
        self._plan = plan
        self._settings = settings
        self._dialer = dialer
        self._turn = turn
        self._attempt = attempt
        self._after = after
        self._filter = settings.message_filter
        self._started_at = turn.now()
        self.forwarder = Forwarder(settings.ack_mode, self, turn)
        if settings.rate_max is not None:
            self.forwarder.rate_limiter = RateLimiter(settings.rate_max, turn.now() / 1000)
        # The connections, and the channels on which messages are consumed and published.
        self.source: EndpointConnection | None = None
        self.destination: EndpointConnection | None = None
        self.consuming: ClientChannel | None = None
        self.publishing: ClientChannel | None = None
        # Completed when the run ends: with the error, or with None if that was planned.
        self.outcome: Answer[BrokerRefused | None] = Answer()
        # Completed when nothing published is unconfirmed any more after the planned end.
        self.settled: Answer[None] = Answer()
        self.is_ended = False
        self.is_set_up = False
        # Completed when the plan has set the run up, or has failed to.
        self.set_up_ended: Answer[None] = Answer()
        # True if the plan has torn it down; True if that must not go on, because it has taken too long.
        self.is_torn_down = False
        self.is_abandoned = False
        # The connections that are open only for that.
        self._tear_down_connections: list[ClientConnection] = []
        # Why the next message cannot be forwarded; the run ends when those before it are settled.
        self._failure: BrokerRefused | None = None
        # The largest property list that fits a frame of the destination.
        self.property_list_size_max = FRAME_SIZE_MAX - _HEADER_SIZE
        # True if it has ended because the requested number of messages was forwarded.
        self.is_completed = False
        # True if messages are delivered and published with their positions, for exactly once.
        self._has_positions = False
        # The number of messages ready in the source and when that was known; -1: unknown.
        self.source_ready = -1
        self.source_counted_at = 0
        # Since when the plan does not consume, for want of demand at the destination; 0 while it does.
        self.paused_since = 0

    # --- for the plan -----------------------------------------------------------------------------

    async def connect_source(self) -> ClientConnection:
        """Connect to the source. Raises BrokerRefused."""
        self.source = await self._connect(self._settings.source, SourceConnectionListener(self))
        return self.source.connection

    async def connect_source_again(self, listener: ConnectionListener) -> ClientConnection:
        """Open another connection to the address of the source, for calls that may end a connection.

        The caller closes it. Raises BrokerRefused.
        """
        assert self.source is not None
        settings = self._settings.source
        endpoint = Endpoint(targets=(self.source.target,), name=settings.name, user=settings.user)
        return (await self._connect(endpoint, listener)).connection

    async def connect_elsewhere(self, endpoint: Endpoint, listener: ConnectionListener) -> EndpointConnection:
        """Connect to a broker to tear the run down, also after its end; the caller closes the connection.

        Raises BrokerRefused.
        """
        found = await connect(self._dialer, endpoint, listener)
        if self.is_abandoned:
            await found.connection.close()
            raise BrokerRefused("it has taken too long to connect")
        self._tear_down_connections.append(found.connection)
        return found

    async def connect_to_tear_down(self) -> EndpointConnection:
        """Connect to the source, whose connection has ended; the caller closes the connection.

        Raises BrokerRefused.
        """
        endpoint = self._settings.source
        if self.source is not None:
            endpoint = Endpoint(targets=(self.source.target,), name=endpoint.name, user=endpoint.user)
        return await self.connect_elsewhere(endpoint, ConnectionListener())

    async def connect_destination(self) -> ClientConnection:
        """Connect to the destination. Raises BrokerRefused."""
        listener = DestinationConnectionListener(self.forwarder, self)
        self.destination = await self._connect(self._settings.destination, listener)
        connection = self.destination.connection
        self.property_list_size_max = connection.outbox.frame_size_max - _HEADER_SIZE
        return connection

    async def open_destination_channel(self) -> ClientChannel:
        """Open the channel on which the forwarder publishes. Raises BrokerRefused."""
        assert self.destination is not None
        connection = self.destination.connection
        channel = await connection.open_channel(DestinationListener(self.forwarder, self))
        if self._settings.ack_mode is AckMode.ON_CONFIRM:
            await channel.call(methods.ConfirmSelect(), methods.ConfirmSelectOk)
        self._has_positions = self.delivery.guarantee is Guarantee.EXACTLY_ONCE
        if self._has_positions:
            announcement = methods.AccessRequest(realm=POSITIONS_REALM)
            await channel.call(announcement, methods.AccessRequestOk)
        self.publishing = channel
        self.forwarder.attach_destination(connection, channel)
        return channel

    async def open_source_channel(self) -> ClientChannel:
        """Open the channel from which the forwarder receives, with the prefetch of the settings.

        Raises BrokerRefused.
        """
        assert self.source is not None
        connection = self.source.connection
        channel = await connection.open_channel(self.forwarder)
        self.consuming = channel
        self.forwarder.attach_source(connection, channel)
        if self._settings.ack_mode is not AckMode.NO_ACK:
            qos = methods.BasicQos(prefetch_count=self._settings.prefetch_count)
            await channel.call(qos, methods.BasicQosOk)
        return channel

    async def consume(
        self, queue: str, arguments: dict[str, object] | None = None, consumer_tag: str = ""
    ) -> str:
        """Consume from `queue` on the channel of the source; returns the consumer tag.

        The messages of a stream, which has an offset to begin at, stay there and are no lag. Raises
        BrokerRefused.
        """
        assert self.consuming is not None
        if self._has_positions:
            arguments = {**(arguments or {}), POSITIONS_ARGUMENT: True}
        consume = methods.BasicConsume(
            queue=queue,
            consumer_tag=consumer_tag,
            no_ack=self._settings.ack_mode is AckMode.NO_ACK,
            arguments=arguments or {},
        )
        answer = await self.consuming.call(consume, methods.BasicConsumeOk)
        if queue and _STREAM_OFFSET not in consume.arguments:
            self.watch_source(queue)
        return answer.consumer_tag

    def watch_source(self, queue: str) -> None:
        """Count the ready messages of `queue` now and then, for the lag that the status shows.

        `consume` calls it. The count ends when the broker refuses it.
        """
        self.call_later(SOURCE_COUNTED_MS, lambda: drive(self._count_source(queue)))

    async def _count_source(self, queue: str) -> None:
        """Ask for the number of ready messages, on a channel of its own, which a refusal ends."""
        assert self.source is not None
        try:
            channel = await self.source.connection.open_channel(ChannelListener())
            declare = methods.QueueDeclare(queue=queue, passive=True)
            self.source_ready = (await channel.call(declare, methods.QueueDeclareOk)).message_count
            self.source_counted_at = self._turn.now()
            await channel.close()
        except BrokerRefused:
            return
        self.watch_source(queue)

    def note_pause(self, is_paused: bool) -> None:
        """Note, for the status, whether the plan does not consume because the destination wants nothing."""
        if is_paused != bool(self.paused_since):
            self.paused_since = self._turn.now() if is_paused else 0

    def fail(self, error: BrokerRefused) -> None:
        """End the run because of `error`; ignored if it has ended."""
        if not self.is_ended:
            self.is_ended = True
            self.outcome.complete(error)

    def end(self) -> None:
        """End the run as planned; ignored if it has ended."""
        if not self.is_ended:
            self.is_ended = True
            self.outcome.complete(None)

    # --- from the forwarder -------------------------------------------------------------------------

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        """Have the plan transform `message`, unless it is filtered out.

        Raises BrokerRefused if no frame of the destination has room for its properties.
        """
        position: MessagePosition | None = None
        if self._has_positions:
            message, position = _without_position(message)
        if self._filter is not None and not self._filter.accepts(message):
            return None
        transformed = self._plan.transform(message, is_redelivered)
        if position is not None and transformed is not None:
            transformed = with_position(transformed, position)
        if transformed is not None and len(transformed.property_list) > self.property_list_size_max:
            raise BrokerRefused(_too_large(transformed, self.property_list_size_max))
        return transformed

    def failed(self, error: Exception) -> None:
        """End the run because of an exception, which is being handled, when the messages before are settled.

        Otherwise these would be forwarded again with each run.
        """
        if isinstance(error, BrokerRefused):
            failure = error
        else:
            self._log("error", f"unexpected {type(error).__name__} in {self._name}: {error}", {})
            self._count_failure()
            failure = BrokerRefused(f"unexpected {type(error).__name__}: see the log")
        if self.forwarder.unconfirmed_count:
            self._failure = failure
            self.call_later(LINK_SETTLE_MS, lambda: self.fail(failure))
        else:
            self.fail(failure)

    def warn(self, text: str) -> None:
        """Write a warning about a message to the log."""
        self._log("warning", f"{self._name}: {text}", {})

    def call_later(self, pause_ms: int, action: Callable[[], None]) -> None:
        """Call `action` in `pause_ms` milliseconds, unless the run has ended then."""
        self._after(pause_ms, lambda: None if self.is_ended else action())

    def completed(self) -> None:
        """End the run, because the requested number of messages was forwarded, or none can follow."""
        if self._failure is not None:
            self.fail(self._failure)
        if not self.is_ended:
            self.is_completed = True
        self.end()
        self.settled.complete(None)

    def source_ended(self, error: BrokerRefused) -> None:
        """End the run, because the source has ended."""
        self.fail(BrokerRefused(f"source: {error.text}", error.code))

    def destination_ended(self, error: BrokerRefused) -> None:
        """End the run, because the destination has ended."""
        self.fail(BrokerRefused(f"destination: {error.text}", error.code))

    # --- for the link -------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """True if the run was set up, and the source can still be reached."""
        return self.is_set_up and self.source is not None and self.source.connection.is_open

    @property
    def delivery(self) -> DeliveryGuarantee:
        """How often the run delivers each message."""
        return delivery_of(self._settings, self.source, self.destination)

    @property
    def has_worked(self) -> bool:
        """True if the run was of use, so that the next attempt may follow soon."""
        duration = self._turn.now() - self._started_at
        return self.forwarder.confirmed_count > 0 or (self.is_set_up and duration > LINK_RECONNECT_MAX_MS)

    async def settle(self) -> None:
        """Publish no more, and wait until all publishes are confirmed or `settled` is completed."""
        self.forwarder.finish()
        if self.forwarder.unconfirmed_count:
            await self.settled

    async def close(self) -> None:
        """Close both connections, the source first, so that what is not settled returns to its queue."""
        self.is_ended = True
        if self.source is not None:
            self.forwarder.flush()
            self.source.connection.pause_reading(False)
            await self.source.connection.close()
        if self.destination is not None:
            await self.destination.connection.close()

    def abandon(self) -> None:
        """End the tearing down, so that it does not disturb the link that comes next."""
        self.is_abandoned = True
        for connection in self._tear_down_connections:
            drive(connection.close())

    # --- private ------------------------------------------------------------------------------------

    async def _connect(self, endpoint: Endpoint, listener: ConnectionListener) -> EndpointConnection:
        connected = await connect(self._dialer, endpoint, listener, self._attempt)
        if self.is_ended:
            await connected.connection.close()
            raise BrokerRefused("the link was stopped while it connected")
        return connected


def _too_large(message: Message, most: int) -> str:
    """The reason why the properties of `message` do not fit a frame of `most` bytes beside its own."""
    named = f"exchange '{message.exchange}', routing key '{message.routing_key}'"
    message_id = message.properties().message_id
    if message_id is not None:
        named += f", message-id '{message_id}'"
    size = len(message.property_list)
    return f"destination: a message ({named}) has {size} bytes of properties, and its frames hold {most}"


def delivery_of(
    settings: LinkSettings, source: EndpointConnection | None, destination: EndpointConnection | None
) -> DeliveryGuarantee:
    """How often a link with `settings` delivers each message, with the connections that it has."""
    if settings.ack_mode is not AckMode.ON_CONFIRM:
        return DeliveryGuarantee(Guarantee.AT_MOST_ONCE, "")
    if not settings.is_exactly_once:
        return DeliveryGuarantee(Guarantee.AT_LEAST_ONCE, "")
    if source is None or destination is None:
        return exactly_once(None, None)
    return exactly_once(source.connection.server_properties, destination.connection.server_properties)


def _without_position(message: Message) -> tuple[Message, MessagePosition]:
    """Split a message that the source has delivered from its position."""
    taken = take_position(message.property_list)
    if taken is None:
        raise BrokerRefused("source: a message was delivered without its position")
    property_list, position = taken
    return message.with_property_list(property_list), position


async def at_end(end: str, coroutine: Coroutine[Pending, None, None]) -> None:
    """Await `coroutine`, and say at which end it was refused."""
    try:
        await coroutine
    except BrokerRefused as error:
        raise BrokerRefused(f"{end}: {error.text}", error.code) from None
    except (AmqpError, ValueError) as error:
        # A name or an argument that no method can contain.
        raise BrokerRefused(f"{end}: {error}") from None
