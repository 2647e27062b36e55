"""The link of a federated queue to one upstream: it consumes there only while the queue here has demand.

    upstream                                                   here
    queue Q ── consumer of priority -1, prefetch = window ──▶ default exchange ──▶ queue Q ──▶ consumers
                        ▲                                                            │
                        └── consume, cancel ── `PullWindow` ◀── `QueueDemand` ◀──────┘

The consumers of the upstream come first, because of the priority, and because of it the upstream does not
take messages of its own upstreams for this link. What it has sent before it sees a cancel is forwarded. Only
when no consumer is left here it is returned, since it could wait here for a long time.

Names and arguments are those of RabbitMQ 3.10.8.
"""

from collections.abc import Callable

from msgspec import Struct

from warren.client.channel import ChannelListener
from warren.client.connection import ClientConnection
from warren.client.errors import BrokerRefused
from warren.errors import NotFound
from warren.federation.pull_window import PAUSED, Demand, PullWindow
from warren.federation.queue_forwarding import QueueForwarding
from warren.metadata.federation_definition import Upstream
from warren.metadata.records import QueueRecord
from warren.model.coroutine_driver import drive
from warren.model.message import Message
from warren.relay.forwarder import AckMode
from warren.relay.link_run import LinkRun, at_end
from warren.wire import methods
from warren.wire.table import Table

# Of the consumer at the upstream, as RabbitMQ encodes it.
_ARGUMENTS: Table = {"x-priority": -1}
_CAPABILITY = "consumer_priorities"


class FederatedQueue(Struct, frozen=True, kw_only=True):
    """One queue and one of its upstreams."""

    record: QueueRecord
    upstream: Upstream
    # Returns the demand of the queue here. Raises BrokerRefused if there is no such queue now.
    observe: Callable[[], Demand]
    # Raises BrokerRefused if the user of the upstream may not publish to the queue.
    check_rights: Callable[[], None]


class QueueLink:
    """The plan of a link; `relay/link` runs it."""

    __slots__ = ("_federated", "_forwarding", "_run")

    def __init__(self, federated: FederatedQueue) -> None:
        self._federated = federated
        self._run: _QueueRun | None = None
        self._forwarding: QueueForwarding | None = None

    def demand_changed(self) -> None:
        """Consume, cancel, or change the window, as the demand of the queue requires."""
        if self._run is not None:
            self._run.follow_demand()

    # --- for the link -------------------------------------------------------------------------------

    async def set_up(self, run: LinkRun) -> None:
        """Connect both ends, and declare the queue at the upstream. Raises BrokerRefused."""
        self._run = None
        federated, upstream = self._federated, self._federated.upstream
        federated.check_rights()
        # First: while it cannot be reached, nothing is opened here.
        connection = await run.connect_source()
        _check_capability(connection)
        await run.connect_destination()
        await run.open_destination_channel()
        await at_end("source", self._declare(connection))
        queue_run = _QueueRun(upstream, federated.observe(), run)
        await run.open_source_channel()
        assert run.source is not None
        self._forwarding = QueueForwarding(
            run.source.uri,
            upstream.queue,
            federated.record.name,
            is_trusted=upstream.trusts_user_id,
            size_max=run.property_list_size_max,
        )
        self._run = queue_run
        queue_run.follow_demand()
        run.watch_source(upstream.queue)

    @property
    def leaves_objects(self) -> bool:
        """False: the queue at the upstream stays."""
        return False

    async def tear_down(self, run: LinkRun) -> None:
        """Leave the queue at the upstream, whose messages are not ours to delete."""

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        """Return the message to publish here."""
        assert self._forwarding is not None
        transformed = self._forwarding.transform(message, is_redelivered)
        if self._run is not None:
            has_returned = self._forwarding.has_returned
            self._run.set_reuse(not has_returned)
            if has_returned:
                self._run.follow_demand(has_returned=True)
        return transformed

    def completed(self) -> None:
        """Do nothing: a link forwards without end."""

    async def _declare(self, connection: ClientConnection) -> None:
        """Declare the queue at the upstream if it is missing; one with other properties is used as it is."""
        name, record = self._federated.upstream.queue, self._federated.record
        # On channels of their own, since a refusal closes them.
        channel = await connection.open_channel(ChannelListener())
        try:
            await channel.call(methods.QueueDeclare(queue=name, passive=True), methods.QueueDeclareOk)
        except BrokerRefused as error:
            if error.code != NotFound.code:
                raise
            channel = await connection.open_channel(ChannelListener())
            declaration = methods.QueueDeclare(
                queue=name,
                durable=record.durable,
                auto_delete=record.auto_delete,
                arguments=dict(record.arguments),
            )
            await channel.call(declaration, methods.QueueDeclareOk)
        await channel.close()


class _QueueRun:
    """One run of a link: its window, and its consumer at the upstream."""

    __slots__ = ("_consumed_count", "_demand", "_is_acknowledged", "_run", "_upstream", "_window")

    def __init__(self, upstream: Upstream, demand: Demand, run: LinkRun) -> None:
        self._upstream = upstream
        self._demand = demand
        self._run = run
        self._window = PullWindow(upstream.prefetch_count)
        self._is_acknowledged = upstream.ack_mode != AckMode.NO_ACK
        self._consumed_count = 0

    def set_reuse(self, may_reuse: bool) -> None:
        """Say whether messages that are equal to the last one need no decision of their own."""
        self._run.forwarder.reuses_transformed = may_reuse

    def follow_demand(self, *, has_returned: bool = False) -> None:
        """Adapt the window, and the consumer at the upstream to it.

        `has_returned` is True while a message is forwarded that was taken from the upstream before.
        """
        was_consuming = self._window.size != PAUSED
        channel = self._run.consuming
        if self._run.is_ended or channel is None or not channel.is_open:
            return
        received_count = self._run.forwarder.delivered_count
        has_changed = self._window.follow(self._demand, received_count, has_returned=has_returned)
        self._run.note_pause(self._window.size == PAUSED)
        if not has_changed:
            return
        upstream = self._upstream
        if was_consuming:
            channel.send(methods.BasicCancel(self._consumer_tag(), True))
        if self._window.size == PAUSED:
            # From a cancel for want of consumers until the next consume.
            self._run.forwarder.is_returning = self._is_acknowledged and not self._demand.has_consumer()
            return
        self._run.forwarder.is_returning = False
        if self._is_acknowledged:
            drive(self._limit(self._window.size))
        self._consumed_count += 1
        channel.send(
            methods.BasicConsume(
                queue=upstream.queue,
                consumer_tag=self._consumer_tag(),
                no_ack=not self._is_acknowledged,
                no_wait=True,
                arguments=_ARGUMENTS,
            )
        )

    def _consumer_tag(self) -> str:
        """The tag of the last consumer, which no other has had on this channel.

        A quorum queue of RabbitMQ numbers the deliveries of a cancelled consumer on, under its tag, until all
        are settled. A new consumer with that tag misses the first numbers, and 3.10.8 ends the channel with
        541 when it looks for them (measured).
        """
        tag, count = self._upstream.consumer_tag, self._consumed_count
        return tag if count == 1 else f"{tag}-{count}"

    async def _limit(self, prefetch_count: int) -> None:
        """Set the prefetch of the next consumer; a refusal ends the channel, which ends the run."""
        channel = self._run.consuming
        assert channel is not None
        try:
            await channel.call(methods.BasicQos(prefetch_count=prefetch_count), methods.BasicQosOk)
        except BrokerRefused:
            return


def _check_capability(connection: ClientConnection) -> None:
    capabilities = connection.server_properties.get("capabilities")
    if not isinstance(capabilities, dict) or capabilities.get(_CAPABILITY) is not True:
        raise BrokerRefused("source: the broker does not support priorities of consumers")
