"""What the clients of a simulated broker do with one queue or exchange, as chance decides."""

import random
from collections.abc import Mapping

from warren.simulation.actions import Action, Kind
from warren.simulation.client import SimulatedChannel, SimulatedClient
from warren.simulation.existence import Existence
from warren.simulation.expected_routes import BindingSpecification, sample_key
from warren.simulation.history import History
from warren.simulation.queue_history import QueueHistory
from warren.wire import methods
from warren.wire.properties import BasicProperties
from warren.wire.table import Value

# Channels of a client, by what they do.
_CONFIRMED, _UNCONFIRMED, _TRANSACTIONAL, _CONSUMING, _GETTING, _DECLARING, _READING = range(1, 8)
# Expirations of messages that may have one of their own.
_EXPIRATIONS = (None, "300", "1500", "5000")
_SIZES = (8, 8, 60, 900, 5_000, 150_000)
# What streams are not asked.
_NOT_OF_STREAMS = (Kind.GET, Kind.PURGE, Kind.CANCEL)
# What a client asks only of its own exclusive queues.
_OF_OWNERS = (Kind.DECLARE, Kind.DELETE, Kind.PURGE, Kind.CONSUME, Kind.GET, Kind.UNBIND)


class ClientActions:
    """Sends what an action is, and tells the history; what the broker answers comes later."""

    def __init__(self, chance: random.Random, history: History) -> None:
        self._chance = chance
        self._history = history
        self._consumer_count = 0

    def can_declare(self, client: SimulatedClient, queue: QueueHistory) -> bool:
        """True if `client` may declare `queue`."""
        return queue.specification.owner in ("", client.name)

    def perform(self, action: Action, client: SimulatedClient, queue: QueueHistory) -> None:
        """Perform `action`, whose client is connected."""
        if action.kind in _OF_OWNERS and not self.can_declare(client, queue):
            return
        if action.kind in _NOT_OF_STREAMS and queue.stream is not None:
            return
        match action.kind:
            case Kind.DECLARE:
                self.declare(client, queue)
            case Kind.DELETE:
                self._delete(client, queue)
            case Kind.PURGE:
                self._purge(client, queue)
            case Kind.UNBIND:
                self._unbind(client, queue)
            case Kind.PUBLISH | Kind.PUBLISH_UNCONFIRMED:
                may_expire = queue.specification.may_expire
                self._publish(action, client, _route_to(queue), {}, may_expire=may_expire)
            case Kind.ROUTE:
                self._route(action, client)
            case Kind.TRANSACTION:
                self._transact(action, client, queue)
            case Kind.GET:
                channel = self._channel(client, _GETTING)
                if channel is not None:
                    channel.get(queue)
            case Kind.CONSUME:
                self._consume(client, queue)
            case Kind.CANCEL:
                channel = client.channels.get(_CONSUMING)
                if channel is not None and channel.consumers and not channel.is_closing:
                    tag = self._chance.choice(list(channel.consumers))
                    channel.call(methods.BasicCancel(consumer_tag=tag), methods.BasicCancelOk)
            case Kind.CLOSE_CHANNEL:
                channel = client.channels.get(1 + action.count % _READING)
                if channel is not None and not channel.is_closing:
                    channel.close()
            case _:
                self._answer(action, client)

    def _channel(self, client: SimulatedClient, number: int) -> SimulatedChannel | None:
        """The channel `number`, opened if need be; None while it is being closed."""
        channel = client.channel(number)
        return None if channel.is_closing else channel

    # --- declaring ------------------------------------------------------------------------------------

    def declare(self, client: SimulatedClient, queue: QueueHistory) -> None:
        """Declare `queue`, and bind it."""
        channel = self._channel(client, _DECLARING)
        if channel is None:
            return
        specification = queue.specification
        declare = methods.QueueDeclare(
            queue=specification.name,
            durable=specification.durable,
            auto_delete=specification.auto_delete,
            exclusive=bool(specification.owner),
            arguments=dict(specification.arguments),
        )
        endings = queue.existence.creating()
        channel.call(declare, methods.QueueDeclareOk, then=lambda _: queue.existence.created(endings))
        for binding, existence in queue.bindings:
            self._bind(channel, queue, binding, existence)

    def _bind(
        self,
        channel: SimulatedChannel,
        queue: QueueHistory,
        binding: BindingSpecification,
        existence: Existence,
    ) -> None:
        endings = existence.creating()
        bind = methods.QueueBind(
            queue=queue.specification.name,
            exchange=binding.source,
            routing_key=binding.key,
            arguments=dict(binding.arguments),
        )
        channel.call(bind, methods.QueueBindOk, then=lambda _: existence.created(endings))

    def _unbind(self, client: SimulatedClient, queue: QueueHistory) -> None:
        """Remove a binding, and perhaps add it again at once."""
        channel = self._channel(client, _DECLARING)
        if channel is None or not queue.bindings or queue.specification.is_defined:
            return
        binding, existence = self._chance.choice(queue.bindings)
        existence.ending(channel)
        unbind = methods.QueueUnbind(
            queue=queue.specification.name,
            exchange=binding.source,
            routing_key=binding.key,
            arguments=dict(binding.arguments),
        )
        channel.call(unbind, methods.QueueUnbindOk, then=lambda _: existence.ended(channel))
        if self._chance.random() < 0.5:
            self._bind(channel, queue, binding, existence)

    def _delete(self, client: SimulatedClient, queue: QueueHistory) -> None:
        channel = self._channel(client, _DECLARING)
        if channel is None or queue.specification.is_defined:
            return
        queue.deleting(channel)
        delete = methods.QueueDelete(queue=queue.specification.name)
        channel.call(delete, methods.QueueDeleteOk, then=lambda _: queue.deleted(channel))

    def _purge(self, client: SimulatedClient, queue: QueueHistory) -> None:
        channel = self._channel(client, _DECLARING)
        if channel is None or queue.specification.chain:
            return
        queue.purging(channel)
        purge = methods.QueuePurge(queue=queue.specification.name)
        channel.call(purge, methods.QueuePurgeOk, then=lambda _: queue.purged(channel))

    # --- publishing -----------------------------------------------------------------------------------

    def _properties(self, headers: Mapping[str, Value], *, may_expire: bool = False) -> BasicProperties:
        mode = 1 if self._chance.random() < 0.2 else 2
        return BasicProperties(
            delivery_mode=mode,
            priority=self._chance.choice((None, 0, 1, 3)),
            headers=dict(headers) or None,
            expiration=self._chance.choice(_EXPIRATIONS) if may_expire else None,
        )

    def _publish(
        self,
        action: Action,
        client: SimulatedClient,
        route: tuple[str, str],
        headers: Mapping[str, Value],
        *,
        may_expire: bool = False,
    ) -> None:
        is_confirmed = action.kind is not Kind.PUBLISH_UNCONFIRMED
        channel = self._channel(client, _CONFIRMED if is_confirmed else _UNCONFIRMED)
        if channel is None:
            return
        if is_confirmed and not channel.is_confirming:
            channel.is_confirming = True
            channel.call(methods.ConfirmSelect(), methods.ConfirmSelectOk)
        for _ in range(action.count):
            is_mandatory = self._chance.random() < 0.5
            size = self._chance.choice(_SIZES)
            properties = self._properties(headers, may_expire=may_expire)
            channel.publish(route, properties, size, is_mandatory=is_mandatory)

    def _route(self, action: Action, client: SimulatedClient) -> None:
        """Publish to an exchange: by one of the bindings there are, or by something that hardly any has."""
        history = self._history
        exchanges = [one for one in history.exchanges if one.vhost == client.vhost and one.is_public]
        if not exchanges:
            return
        exchange = self._chance.choice(exchanges)
        bindings = [
            binding
            for queue in history.queues
            if queue.specification.vhost == client.vhost
            for binding, _ in queue.bindings
            if binding.source == exchange.name
        ]
        bindings += exchange.bindings
        word = self._chance.choice(("a", "all", "other", "direct"))
        if not bindings or self._chance.random() < 0.25:
            self._publish(action, client, (exchange.name, f"{word}.{word}"), {"kind": "none"})
            return
        binding = self._chance.choice(bindings)
        arguments = [one for one in binding.arguments.items() if not one[0].startswith("x-")]
        if arguments and self._chance.random() < 0.3:
            arguments.pop()
        self._publish(action, client, (exchange.name, sample_key(binding.key, word)), dict(arguments))

    def _transact(self, action: Action, client: SimulatedClient, queue: QueueHistory) -> None:
        channel = self._channel(client, _TRANSACTIONAL)
        if channel is None:
            return
        if not channel.is_transactional:
            channel.is_transactional = True
            channel.call(methods.TxSelect(), methods.TxSelectOk)
        for _ in range(action.count):
            channel.publish(_route_to(queue), self._properties({}), 30)
        if self._chance.random() < 0.8:
            channel.commit()

    # --- consuming ------------------------------------------------------------------------------------

    def _consume(self, client: SimulatedClient, queue: QueueHistory) -> None:
        channel = self._channel(client, _CONSUMING if queue.stream is None else _READING)
        if channel is None:
            return
        self._consumer_count += 1
        offset = 0
        # A stream is consumed with a prefetch only.
        prefetch = self._chance.choice((0, 1, 5) if queue.stream is None else (1, 5, 20))
        if queue.stream is not None:
            offset = self._chance.choice((0, self._chance.randrange(queue.stream.length + 1)))
        channel.call(methods.BasicQos(prefetch_count=prefetch), methods.BasicQosOk)
        channel.consume(queue, f"tag{self._consumer_count}", offset)

    def _answer(self, action: Action, client: SimulatedClient) -> None:
        """Acknowledge, requeue or reject what has arrived."""
        for number in (_CONSUMING, _GETTING, _READING):
            channel = client.channels.get(number)
            if channel is None or channel.is_closing or not channel.arrived:
                continue
            is_multiple = self._chance.random() < 0.3
            tags = list(channel.arrived)
            self._chance.shuffle(tags)
            for tag in [max(tags)] if is_multiple else tags[: action.count]:
                if action.kind is Kind.ACK or number == _READING:
                    channel.acknowledge(tag, is_multiple=is_multiple)
                else:
                    is_requeued = action.kind is Kind.REQUEUE
                    channel.reject(tag, is_multiple=is_multiple, is_requeued=is_requeued)


def _route_to(queue: QueueHistory) -> tuple[str, str]:
    """Exchange and key that lead to `queue`, or to the beginning of its chain."""
    return "", queue.specification.chain or queue.specification.name
