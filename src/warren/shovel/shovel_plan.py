"""What a shovel does with its two connections, in the order in which RabbitMQ 3.10.8 does it (measured).

    connect to the source, connect to the destination
    destination: declare the queue, or what a static shovel declares; confirm.select
    source: declare the queue, or bind a new one to the exchange; basic.qos; count; basic.consume

A queue is declared passively first, and then, if it does not exist, as durable with the arguments given.
"""

from collections.abc import Callable, Mapping

from warren.client.channel import ChannelListener, ClientChannel
from warren.client.connection import ClientConnection
from warren.client.errors import BrokerRefused
from warren.metadata.definition_reader import ON_CONFIRM
from warren.metadata.shovel_definition import NEVER, QUEUE_LENGTH
from warren.model.message import Message
from warren.model.turn import Turn
from warren.relay.link_run import LinkPlan, LinkRun, at_end
from warren.shovel.message_rewriter import MessageRewriter, forward_entry
from warren.shovel.shovel_settings import ShovelSettings
from warren.wire import methods
from warren.wire.method import Method
from warren.wire.table import Table

# Methods that a static shovel may call before it starts, with their answers.
DECLARATIONS: Mapping[type[Method], type[Method]] = {
    methods.ExchangeDeclare: methods.ExchangeDeclareOk,
    methods.ExchangeDelete: methods.ExchangeDeleteOk,
    methods.ExchangeBind: methods.ExchangeBindOk,
    methods.ExchangeUnbind: methods.ExchangeUnbindOk,
    methods.QueueDeclare: methods.QueueDeclareOk,
    methods.QueueBind: methods.QueueBindOk,
    methods.QueuePurge: methods.QueuePurgeOk,
    methods.QueueDelete: methods.QueueDeleteOk,
    methods.QueueUnbind: methods.QueueUnbindOk,
}

# Why a shovel with `single-run` does not begin again.
RUN_BEFORE = "it has a single run, which is over: set it again to begin anew"

_NOT_FOUND = 404
_ENDLESS = -1


class ShovelPlan(LinkPlan):
    """One shovel, for all runs of its link."""

    __slots__ = (
        "_check_rights",
        "_cluster_name",
        "_completed",
        "_has_consumed",
        "_rewriter",
        "_run",
        "_settings",
        "_settled",
        "_turn",
    )

    def __init__(
        self,
        settings: ShovelSettings,
        turn: Turn,
        cluster_name: Callable[[], str],
        completed: Callable[[], None],
        *,
        check_rights: Callable[[], None],
    ) -> None:
        """`completed` is called when the shovel has moved all that it had to move, and has stopped.

        `check_rights` raises BrokerRefused if its user may have no shovel.
        """
        self._check_rights = check_rights
        self._settings = settings
        self._turn = turn
        self._cluster_name = cluster_name
        self._completed = completed
        self._rewriter = MessageRewriter(settings.definition.destination, {}, turn, size_max=0)
        # The current run, and the number of messages that the runs before it have moved.
        self._run: LinkRun | None = None
        self._settled = 0
        # True if a run has begun to consume.
        self._has_consumed = False

    async def set_up(self, run: LinkRun) -> None:
        """Open both ends, declare, and start the consumer. Raises BrokerRefused."""
        self._check_rights()
        if self._has_consumed and self._settings.definition.is_single_run:
            raise BrokerRefused(RUN_BEFORE)
        if self._run is not None:
            self._settled += self._settled_in(self._run)
        self._run = run
        run.forwarder.reuses_transformed = True
        source_connection = await run.connect_source()
        destination_connection = await run.connect_destination()
        assert run.source is not None
        assert run.destination is not None
        entry = forward_entry(self._settings, self._cluster_name(), run.source.uri, run.destination.uri)
        self._rewriter = MessageRewriter(
            self._settings.definition.destination, entry, self._turn, run.property_list_size_max
        )
        await at_end("destination", self._set_up_destination(run, destination_connection))
        await at_end("source", self._set_up_source(run, source_connection))

    async def tear_down(self, run: LinkRun) -> None:
        """Remove nothing: what a shovel declares stays, except its own queue, which is exclusive."""

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        """Return the message to publish for the delivered `message`."""
        return self._rewriter.rewrite(message)

    def completed(self) -> None:
        """The link has stopped because the requested number of messages was forwarded."""
        # A static shovel may begin anew, and counts anew then.
        self._run = None
        self._settled = 0
        self._completed()

    # --- private ----------------------------------------------------------------------------------

    async def _set_up_destination(self, run: LinkRun, connection: ClientConnection) -> None:
        destination = self._settings.definition.destination
        channel = await run.open_destination_channel()
        declarations = self._settings.destination_declarations
        if declarations is not None:
            await _declare(channel, declarations)
        elif destination.queue is not None:
            arguments = dict(destination.queue_arguments)
            await _ensure_queue(connection, destination.queue, arguments, destination.is_predeclared)

    async def _set_up_source(self, run: LinkRun, connection: ClientConnection) -> None:
        source = self._settings.definition.source
        declarations = self._settings.source_declarations
        queue = source.queue
        if queue is not None and declarations is None:
            await _ensure_queue(connection, queue, dict(source.queue_arguments), source.is_predeclared)
        channel = await run.open_source_channel()
        if declarations is not None:
            declared_queue = await _declare(channel, declarations)
            # An empty name is that of the last queue declared, on this channel only (0-9-1 §1.7.2.1).
            queue = queue or declared_queue
        if queue is None:
            declared = await channel.call(methods.QueueDeclare(exclusive=True), methods.QueueDeclareOk)
            queue = declared.queue
            binding = methods.QueueBind(
                queue=queue, exchange=source.exchange or "", routing_key=source.exchange_key
            )
            await channel.call(binding, methods.QueueBindOk)
        run.forwarder.remaining = await self._remaining(channel, queue)
        if not run.forwarder.remaining:
            run.completed()
            return
        self._has_consumed = True
        await run.consume(queue, dict(source.consumer_arguments), source.consumer_tag)

    def _settled_in(self, run: LinkRun) -> int:
        """Return the number of messages that had their turn in `run`: moved, refused or filtered out."""
        forwarder = run.forwarder
        if self._settings.definition.ack_mode == ON_CONFIRM:
            return forwarder.confirmed_count + forwarder.rejected_count + forwarder.dropped_count
        return forwarder.forwarded_count + forwarder.dropped_count

    async def _remaining(self, channel: ClientChannel, queue: str) -> int:
        """Return the number of messages that this run has to move; -1 without end."""
        delete_after = self._settings.definition.source.delete_after
        if delete_after == NEVER:
            return _ENDLESS
        if delete_after == QUEUE_LENGTH:
            passive = methods.QueueDeclare(queue=queue, passive=True)
            return (await channel.call(passive, methods.QueueDeclareOk)).message_count
        return max(0, int(delete_after) - self._settled)


async def _declare(channel: ClientChannel, declarations: tuple[Method, ...]) -> str:
    """Call `declarations` in order; returns the name of the last queue declared, empty if there is none."""
    queue = ""
    for declaration in declarations:
        answer = await channel.call(declaration, DECLARATIONS[type(declaration)])
        if isinstance(answer, methods.QueueDeclareOk):
            queue = answer.queue
    return queue


async def _ensure_queue(
    connection: ClientConnection, queue: str, arguments: Table, is_predeclared: bool
) -> None:
    """Declare `queue` as durable if it does not exist; raises BrokerRefused if it does not and should."""
    channel = await connection.open_channel(ChannelListener())
    passive = methods.QueueDeclare(queue=queue, passive=True)
    try:
        await channel.call(passive, methods.QueueDeclareOk)
    except BrokerRefused as error:
        if error.code != _NOT_FOUND or is_predeclared:
            raise
        channel = await connection.open_channel(ChannelListener())
        declare = methods.QueueDeclare(queue=queue, durable=True, arguments=arguments)
        await channel.call(declare, methods.QueueDeclareOk)
    await channel.close()
