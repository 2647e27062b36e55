"""One run of the link of a federated exchange: what it declares at the upstream, and its bindings there.

The bindings here are made at the upstream: all when the run starts, then each change. A new start makes
them at a new internal exchange, with the other suffix, and deletes the old one after that; so bindings that
were removed while the link was down are gone, and no message is missed meanwhile. Which suffix is in use is
asked of the upstream. If a start was interrupted both exist, and neither is certain to have all bindings:
the first gets what it lacks before the second is deleted.

The names contain that of the cluster here. After a change of it the queue of the former name, which gets no
messages any more, is emptied before the new one is consumed, so that messages arrive in order.

Names, arguments and order are those of RabbitMQ 3.10.8.
"""

from collections import deque
from collections.abc import Callable, Iterable

from msgspec import Struct

from warren.client.answer import Answer
from warren.client.channel import ChannelListener, ClientChannel
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.errors import CommandInvalid, NotFound, PreconditionFailed
from warren.federation.exchange_forwarding import ExchangeForwarding, PropertyLimit, Source
from warren.federation.link_names import SUFFIXES, internal_exchange_name, is_possible, upstream_queue_name
from warren.federation.propagated_bindings import LinkPlace, PropagatedBinding, PropagatedBindings
from warren.limits_relay import BINDINGS_UNANSWERED_MAX, FORMER_QUEUE_CHECKED_MS, INTERNAL_EXCHANGE_CHECKED_MS
from warren.metadata.federation_definition import Upstream
from warren.metadata.records import BindingRecord, ExchangeRecord
from warren.model.coroutine_driver import drive
from warren.relay.link_run import LinkRun
from warren.routing.federation_upstream import (
    DOWNSTREAM_NAME,
    DOWNSTREAM_VHOST,
    MAX_HOPS,
    FederationUpstreamExchange,
)
from warren.wire import methods
from warren.wire.table import Table

_PURPOSE: Table = {"x-internal-purpose": "federation"}


class FederatedExchange(Struct, frozen=True, kw_only=True):
    """One exchange and one of its upstreams, as of now."""

    vhost: str
    record: ExchangeRecord
    upstream: Upstream
    # The name of the cluster of this broker.
    cluster_name: str
    # The bindings of the exchange.
    bindings: Callable[[], Iterable[BindingRecord]]
    # Raises BrokerRefused if the user of the upstream may not publish to the exchange.
    check_rights: Callable[[], None]

    def queue_name(self, upstream_vhost: str, cluster_name: str | None = None) -> str:
        """The name of the queue at the upstream, now or when this cluster was called `cluster_name`."""
        return upstream_queue_name(
            (upstream_vhost, self.upstream.exchange),
            (self.vhost, self.record.name),
            self.cluster_name if cluster_name is None else cluster_name,
        )


class ExchangeRun(ChannelListener):
    """One run of a link: its names at the upstream, and its commands there."""

    __slots__ = (
        "_bindings", "_changes", "_command_channel", "_connection", "_federated", "_internal_exchange",
        "_is_changing", "_link_run", "_upstream_vhost", "queue",
    )  # fmt: skip

    def __init__(self, federated: FederatedExchange, link_run: LinkRun) -> None:
        assert link_run.source is not None
        self._federated = federated
        self._link_run = link_run
        self._connection: ClientConnection = link_run.source.connection
        self._upstream_vhost = link_run.source.target.vhost
        self._command_channel: ClientChannel | None = None
        self._internal_exchange = ""
        self.queue = federated.queue_name(self._upstream_vhost)
        # The bindings to make at the upstream; None before the first is made.
        self._bindings: PropagatedBindings | None = None
        # Changes that are not made there yet, and whether they or all bindings are being made.
        self._changes: deque[PropagatedBinding] = deque()
        self._is_changing = True

    # --- changes of bindings ------------------------------------------------------------------------

    def bound(self, binding: BindingRecord) -> None:
        """Make `binding`, which the exchange has got, at the upstream."""
        if self._bindings is not None:
            self._note(self._bindings.add(binding))

    def unbound(self, binding: BindingRecord) -> None:
        """Remove `binding`, which the exchange has lost, at the upstream."""
        if self._bindings is not None:
            self._note(self._bindings.remove(binding))

    def _note(self, change: PropagatedBinding | None) -> None:
        if change is not None:
            self._changes.append(change)
            if not self._is_changing:
                self._is_changing = True
                drive(self._make_changes())

    async def _make_changes(self) -> None:
        """Make the noted changes in their order; an error ends the run."""
        try:
            while self._changes:
                count = min(len(self._changes), BINDINGS_UNANSWERED_MAX)
                await self._change([self._changes.popleft() for _ in range(count)])
        except BrokerRefused as error:
            self.ended(error)
        self._is_changing = False

    # --- set up and tear down -----------------------------------------------------------------------

    def ended(self, error: BrokerRefused) -> None:
        """End the run, because the command channel has ended."""
        self._link_run.source_ended(error)

    def forwarding(self) -> ExchangeForwarding:
        """How messages of this run are transformed."""
        federated, upstream = self._federated, self._federated.upstream
        assert self._link_run.source is not None
        source = Source(
            uri=self._link_run.source.uri,
            exchange=federated.record.name,
            cluster_name=self._cluster_name(),
            vhost=self._upstream_vhost,
        )
        return ExchangeForwarding(
            source,
            PropertyLimit(self._link_run.property_list_size_max, self._link_run.warn),
            cluster_name=federated.cluster_name,
            vhost=federated.vhost,
            max_hops=upstream.max_hops,
            is_trusted=upstream.trusts_user_id,
        )

    async def open_command_channel(self) -> None:
        """Choose the channel for commands: that of the consumer, or one of its own."""
        if self._federated.upstream.uses_one_channel:
            self._command_channel = self._link_run.consuming
        else:
            self._command_channel = await self._connection.open_channel(self)

    async def declare(self) -> None:
        """Declare the queue and, if it is missing, the exchange at the upstream."""
        upstream, record = self._federated.upstream, self._federated.record
        arguments: Table = {
            "x-expires": upstream.expires,
            "x-message-ttl": upstream.message_ttl,
            "x-ha-policy": upstream.ha_policy,
            "x-queue-type": upstream.queue_type,
        }
        present = {name: value for name, value in arguments.items() if value is not None}
        if not is_possible(self.queue):
            raise BrokerRefused(f"'{self.queue}' and the internal exchange have names of more than 255 bytes")
        queue = methods.QueueDeclare(queue=self.queue, durable=True, arguments={**present, **_PURPOSE})
        await self._channel.call(queue, methods.QueueDeclareOk)
        if not await self._exists(upstream.exchange):
            exchange = methods.ExchangeDeclare(
                exchange=upstream.exchange,
                type=record.type,
                durable=record.durable,
                auto_delete=record.auto_delete,
                internal=record.internal,
                arguments=dict(record.arguments),
            )
            await self._channel.call(exchange, methods.ExchangeDeclareOk)

    async def replace_bindings(self) -> None:
        """Make the bindings of now at a new internal exchange, and delete the old one."""
        first, second = (internal_exchange_name(self.queue, suffix) for suffix in SUFFIXES)
        has_first, has_second = await self._exists(first), await self._exists(second)
        if has_first and has_second:
            await self._complete(first)
            await self._delete_exchange(second)
        suffix, old = (SUFFIXES[1], first) if has_first else (SUFFIXES[0], second)
        self._internal_exchange = internal_exchange_name(self.queue, suffix)
        await self._declare_internal_exchange()
        await self._bind_queue()
        await self._make_bindings(suffix)
        if has_first or has_second:
            await self._delete_exchange(old)
        await self._make_changes()

    async def _change(self, changes: list[PropagatedBinding]) -> None:
        """Make `changes` at the upstream, in order; returns when all are made.

        Only the last is answered, because a refusal of any of them closes the channel.
        """
        for change in changes[:-1]:
            self._channel.send(self._method(change, has_answer=False))
        for change in changes[-1:]:
            if self._federated.upstream.bind_nowait:
                self._channel.send(self._method(change, has_answer=False))
            else:
                answer = methods.ExchangeBindOk if change.is_added else methods.ExchangeUnbindOk
                await self._channel.call(self._method(change, has_answer=True), answer)

    async def consume(self) -> None:
        """Consume from the queue."""
        await self._link_run.consume(self.queue)

    def check_later(self) -> None:
        """Check now and then that the upstream has the internal exchange."""
        self._link_run.call_later(INTERNAL_EXCHANGE_CHECKED_MS, lambda: drive(self._check()))

    async def _check(self) -> None:
        """End the run if the internal exchange is gone; a refusal to say so is ignored, as in RabbitMQ."""
        try:
            exists = await self._exists(self._internal_exchange)
        except BrokerRefused:
            exists = True
        if exists:
            self.check_later()
        else:
            self.ended(BrokerRefused(f"the exchange '{self._internal_exchange}' was deleted", NotFound.code))

    # --- former names -------------------------------------------------------------------------------

    async def drain(self, cluster_name: str) -> None:
        """Forward what waits in the queue of a former name of this cluster, and delete it."""
        queue, consumer_tag = self._federated.queue_name(self._upstream_vhost, cluster_name), ""
        if not is_possible(queue):
            return
        for suffix in SUFFIXES:
            await self._delete_exchange(internal_exchange_name(queue, suffix))
        run, channel = self._link_run, self._link_run.consuming
        assert channel is not None
        while (ready_count := await self._ready_count(queue)) is not None:
            if ready_count and not consumer_tag:
                consumer_tag = await run.consume(queue)
            elif not ready_count and consumer_tag:
                await channel.call(methods.BasicCancel(consumer_tag), methods.BasicCancelOk)
                consumer_tag = ""
            elif not ready_count and not _has_unsettled(run) and await self._delete_empty(queue):
                return
            pause: Answer[None] = Answer()
            run.call_later(FORMER_QUEUE_CHECKED_MS, lambda pause=pause: pause.complete(None))  # type: ignore[misc]
            await pause

    # --- private ------------------------------------------------------------------------------------

    @property
    def _channel(self) -> ClientChannel:
        assert self._command_channel is not None
        return self._command_channel

    def _cluster_name(self) -> str | None:
        name = self._connection.server_properties.get("cluster_name")
        return name if isinstance(name, str) else None

    async def _exists(self, exchange: str) -> bool:
        """True if the upstream has `exchange`; asked on a channel of its own, since a refusal closes it."""
        channel = await self._connection.open_channel(ChannelListener())
        question = methods.ExchangeDeclare(exchange=exchange, passive=True)
        try:
            await channel.call(question, methods.ExchangeDeclareOk)
        except BrokerRefused as error:
            if error.code == NotFound.code:
                return False
            raise
        await channel.close()
        return True

    async def _declare_internal_exchange(self) -> None:
        """Declare the internal exchange, which must not exist.

        An upstream that does not know its type closes the connection, so that it is declared on another one.
        """
        arguments: Table = {
            MAX_HOPS: self._federated.upstream.max_hops,
            DOWNSTREAM_NAME: self._federated.cluster_name,
            DOWNSTREAM_VHOST: self._federated.vhost,
            **_PURPOSE,
        }
        connection = await self._link_run.connect_source_again(ConnectionListener())
        channel = await connection.open_channel(ChannelListener())
        try:
            await self._declare_internal(channel, FederationUpstreamExchange.type_name, arguments)
        except BrokerRefused as error:
            if not _is_unknown_type(error):
                raise
            await self._declare_internal(self._channel, "fanout", dict(_PURPOSE))
        finally:
            await connection.close()

    async def _declare_internal(self, channel: ClientChannel, kind: str, arguments: Table) -> None:
        method = methods.ExchangeDeclare(
            exchange=self._internal_exchange,
            type=kind,
            durable=True,
            auto_delete=True,
            internal=True,
            arguments=arguments,
        )
        await channel.call(method, methods.ExchangeDeclareOk)

    async def _bind_queue(self) -> None:
        method = methods.QueueBind(queue=self.queue, exchange=self._internal_exchange)
        await self._channel.call(method, methods.QueueBindOk)

    async def _complete(self, internal_exchange: str) -> None:
        """Make what `internal_exchange` may lack of an interrupted start."""
        self._internal_exchange = internal_exchange
        await self._bind_queue()
        await self._make_bindings(internal_exchange[-1])

    async def _make_bindings(self, suffix: str) -> None:
        """Make the bindings of now at the internal exchange, which has `suffix`."""
        federated = self._federated
        place = LinkPlace(
            cluster_name=federated.cluster_name,
            vhost=federated.vhost,
            exchange=federated.record.name,
            suffix=suffix,
            upstream_cluster_name=self._cluster_name(),
            upstream_vhost=self._upstream_vhost,
            max_hops=federated.upstream.max_hops,
        )
        bindings = PropagatedBindings(place)
        changes = [bindings.add(binding) for binding in federated.bindings()]
        made = [change for change in changes if change is not None]
        # What changes from here on is made afterwards.
        self._bindings = bindings
        self._changes.clear()
        for start in range(0, len(made), BINDINGS_UNANSWERED_MAX):
            await self._change(made[start : start + BINDINGS_UNANSWERED_MAX])

    def _method(
        self, change: PropagatedBinding, *, has_answer: bool
    ) -> methods.ExchangeBind | methods.ExchangeUnbind:
        kind = methods.ExchangeBind if change.is_added else methods.ExchangeUnbind
        return kind(
            destination=self._internal_exchange,
            source=self._federated.upstream.exchange,
            routing_key=change.routing_key,
            no_wait=not has_answer,
            arguments=change.arguments,
        )

    async def _ready_count(self, queue: str) -> int | None:
        """The number of ready messages of `queue`; None if there is no such queue."""
        channel = await self._connection.open_channel(ChannelListener())
        question = methods.QueueDeclare(queue=queue, passive=True)
        try:
            count = (await channel.call(question, methods.QueueDeclareOk)).message_count
        except BrokerRefused as error:
            if error.code == NotFound.code:
                return None
            raise
        await channel.close()
        return count

    async def _delete_empty(self, queue: str) -> bool:
        """Delete `queue` unless it has messages or consumers; True if it is deleted."""
        channel = await self._connection.open_channel(ChannelListener())
        delete = methods.QueueDelete(queue=queue, if_unused=True, if_empty=True)
        try:
            await channel.call(delete, methods.QueueDeleteOk)
        except BrokerRefused as error:
            if error.code == PreconditionFailed.code:
                return False
            raise
        await channel.close()
        return True

    async def _delete_exchange(self, name: str) -> None:
        await self._channel.call(methods.ExchangeDelete(exchange=name), methods.ExchangeDeleteOk)


def _is_unknown_type(error: BrokerRefused) -> bool:
    """True if a broker refuses to declare an exchange because it does not know the type."""
    # RabbitMQ 3.10.8 answers 503, and 4.3.6 answers 406 (measured), as it does to other properties.
    return error.code == CommandInvalid.code or (
        error.code == PreconditionFailed.code and "exchange type" in error.text
    )


def _has_unsettled(run: LinkRun) -> bool:
    """True if something that the source has delivered is not confirmed by the destination."""
    return bool(run.forwarder.unconfirmed_count or run.forwarder.waiting_count)
