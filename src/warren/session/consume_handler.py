"""Handlers of basic.qos, basic.consume, basic.cancel and basic.get, with their checks."""

from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct

from warren.errors import (
    AmqpNotImplemented,
    ChannelException,
    NotAllowed,
    NotFound,
    PreconditionFailed,
    Undecided,
)
from warren.framing.outbox import Outbox
from warren.metadata.records import NO_ARGUMENTS
from warren.metadata.refusal_check import RefusalCheck
from warren.model.arguments import CLASSIC, QUORUM, STREAM, not_integer
from warren.model.coroutine_driver import Pending
from warren.model.decided import decided
from warren.model.message_position import POSITIONS_ARGUMENT
from warren.model.names import generated_name
from warren.queues.capabilities import taking_queue
from warren.queues.local import LocalQueue
from warren.queues.offset_header import OFFSET_HEADER
from warren.queues.position_starts import PositionStarts
from warren.queues.reply import REPLY_BYTES_COUNT, REPLY_TO
from warren.queues.stream_read_options import StreamReadOptions
from warren.queues.vhost_queue import VhostQueue
from warren.session.positioned_subscription import PositionedSubscription
from warren.session.publish_rules import PublishRules
from warren.session.subscriber import CONSUMER_TIMEOUT_ARGUMENT, ChannelSubscription, Subscriber
from warren.vhost.queue_service import QueueService
from warren.vhost.requester import Requester
from warren.vhost.vhost import VirtualHost
from warren.wire import methods
from warren.wire.method import Method

_TAG_BYTES = 16
# x-stream-offset is valid only for streams, and consumer priorities only for other queues.
_UNKNOWN_ARGUMENTS = {
    CLASSIC: (OFFSET_HEADER,),
    QUORUM: (OFFSET_HEADER,),
    STREAM: ("x-priority",),
}


class ConsumeHandler:
    """Starts and cancels the consumers of one channel."""

    __slots__ = (
        "_check_timeouts",
        "_consumers_max",
        "_outbox",
        "_queue_service",
        "_random_bytes",
        "_refusal_check",
        "_requester",
        "_rules",
        "_subscriber",
        "_vhost",
    )

    def __init__(
        self, vhost: VirtualHost, subscriber: Subscriber, rules: PublishRules, *, context: "ConsumeContext"
    ) -> None:
        self._vhost = vhost
        self._subscriber = subscriber
        self._outbox: Outbox = subscriber.outbox
        self._rules = rules
        self._queue_service = context.queue_service
        self._refusal_check = context.refusal_check
        self._requester = context.requester
        self._random_bytes = context.random_bytes
        self._check_timeouts = context.check_timeouts
        self._consumers_max = context.consumers_max

    def handle(self, method: Method) -> Coroutine[Pending, None, None] | None:
        """Execute `method`; returns what is left of it if it has to wait."""
        try:
            rest = HANDLERS[type(method)](self, method)
        except ChannelException as refusal:
            return self._handle_again(method, refusal, self._refusal_check.index)
        return None if rest is None else self._finish(method, rest)

    async def _finish(self, method: Method, rest: Coroutine[Pending, None, None]) -> None:
        """Do the `rest` of `method`."""
        index = self._refusal_check.index
        try:
            await rest
        except ChannelException as refusal:
            await self._handle_again(method, refusal, index)

    async def _handle_again(self, method: Method, refusal: ChannelException, index: int) -> None:
        """Execute `method` again, or raise its `refusal` if the metadata at `index` are those of now."""
        if isinstance(refusal, Undecided):
            await self._refusal_check.attempt(lambda: self._execute(method), refusal)
        elif await self._refusal_check.is_refuted(refusal, index):
            await decided(lambda: self._execute(method))
        else:
            raise refusal

    async def _execute(self, method: Method) -> None:
        rest = HANDLERS[type(method)](self, method)
        if rest is not None:
            await rest

    def _qos(self, method: methods.BasicQos) -> None:
        if method.prefetch_size:
            raise AmqpNotImplemented(f"prefetch_size!=0 ({method.prefetch_size})")
        self._send(methods.BasicQosOk())
        self._subscriber.set_prefetch(method.prefetch_count, is_global=method.is_global)

    def _consume(self, method: methods.BasicConsume) -> Coroutine[Pending, None, None] | None:
        if method.queue == REPLY_TO:
            self._consume_replies(method)
        elif method.arguments.get(POSITIONS_ARGUMENT):
            return self._consume_with_positions(method)
        else:
            return self._start(method, ChannelSubscription)
        return None

    async def _consume_with_positions(self, method: methods.BasicConsume) -> None:
        """Start a consumer that receives positions, when it is on disk which start has given them."""
        named = self._queue(method.queue)
        queue = taking_queue(named)
        if queue is None:
            why = "is on another node, where its positions are given"
            if named.settings.kind == STREAM:
                why = "is a stream, which has no positions but offsets"
            raise PreconditionFailed(f"{_described(named)} {why}")
        if method.no_ack:
            raise PreconditionFailed(f"'{POSITIONS_ARGUMENT}' needs acknowledgements")
        if queue.starts() is None:
            queue.give_positions(self._new_starts(queue))
        await self._vhost.written()
        if queue.is_deleted:
            raise NotFound(f"no {_described(queue)}")
        await self._start(method, PositionedSubscription)

    def _new_starts(self, queue: VhostQueue) -> PositionStarts:
        """Begin to give the positions of `queue` away; they are stored if its messages are."""
        number = self._queue_service.number_of(queue.name)
        stores = self._vhost.stores
        store = stores.persistent if stores is not None and number else None
        starts = PositionStarts(store, number, self._random_bytes)
        starts.save()
        return starts

    async def _start(self, method: methods.BasicConsume, kind: type[ChannelSubscription]) -> None:
        """Start a consumer, of class `kind`."""
        tag = self._tag(method.consumer_tag)
        queue = self._queue(method.queue)
        consumer = kind(
            self._subscriber,
            tag,
            no_ack=method.no_ack,
            is_exclusive=method.exclusive,
            priority=self._priority(method, queue),
        )
        stream_read_options = self._reading(method, queue)
        self._check_timeout(method, queue)
        consumer.arguments = method.arguments
        queue.check_reader(consumer, self._subscriber.prefetch)
        consumer.start(queue, self._subscriber.prefetch)
        await queue.admit(consumer)
        queue.set_read_options(consumer, stream_read_options)
        if isinstance(consumer, PositionedSubscription):
            self._give_positions(queue, consumer)
        if not method.no_wait:
            self._send(methods.BasicConsumeOk(tag))
        self._subscriber.consume(queue, consumer)
        self._check_timeouts(consumer.timeout_ms(None))

    def _give_positions(self, queue: VhostQueue, consumer: PositionedSubscription) -> None:
        """Let `consumer` of `queue`, which gives positions, send them."""
        taking = taking_queue(queue)
        starts = None if taking is None else taking.starts()
        assert taking is not None
        assert starts is not None
        consumer.taking_queue, consumer.starts = taking, starts
        consumer.frame_size_max = self._outbox.frame_size_max

    def _consume_replies(self, method: methods.BasicConsume) -> None:
        if not method.no_ack:
            raise PreconditionFailed("reply consumer cannot acknowledge")
        tag = self._tag(method.consumer_tag)
        consumer = ChannelSubscription(self._subscriber, tag, no_ack=True, is_exclusive=False, priority=0)
        self._rules.open_reply(consumer, self._random_bytes(REPLY_BYTES_COUNT))
        if not method.no_wait:
            self._send(methods.BasicConsumeOk(tag))

    def _cancel(self, method: methods.BasicCancel) -> Coroutine[Pending, None, None] | None:
        if not self._rules.close_reply(method.consumer_tag):
            consumer = self._subscriber.find(method.consumer_tag)
            if consumer is not None and not consumer.queue.is_local:
                return self._end_deliveries(method, consumer)
            self._subscriber.cancel(method.consumer_tag)
        self._confirm_cancel(method)
        return None

    async def _end_deliveries(self, method: methods.BasicCancel, consumer: ChannelSubscription) -> None:
        """Cancel `consumer` of a queue on another node; what is on its way to the client comes first."""
        await consumer.queue.end_deliveries(consumer)
        self._subscriber.cancel(method.consumer_tag)
        self._confirm_cancel(method)

    def _confirm_cancel(self, method: methods.BasicCancel) -> None:
        if not method.no_wait:
            self._send(methods.BasicCancelOk(method.consumer_tag))

    def _cancelled(self, method: methods.BasicCancelOk) -> None:
        """The client answers the basic.cancel of the server: its consumer was removed before."""

    def _get(self, method: methods.BasicGet) -> Coroutine[Pending, None, None] | None:
        queue = self._queue(method.queue)
        if not method.no_ack:
            self._check_timeouts(queue.settings.consumer_timeout_ms)
        if not queue.is_local:
            return self._fetch(queue, method.no_ack)
        # Without the coroutine a basic.get takes a tenth less time.
        local: LocalQueue = queue  # type: ignore[assignment]
        delivery = local.get(method.no_ack)
        if delivery is None:
            self._send_get_empty()
        else:
            self._subscriber.send_fetched(local, delivery, method.no_ack, local.message_count)
        return None

    async def _fetch(self, queue: VhostQueue, no_ack: bool) -> None:
        fetched = await queue.fetch(no_ack)
        if fetched is None:
            self._send_get_empty()
        else:
            delivery, left = fetched
            self._subscriber.send_fetched(queue, delivery, no_ack, left)

    def _send_get_empty(self) -> None:
        self._subscriber.count_got_empty()
        self._send(methods.BasicGetEmpty(""))

    def _tag(self, tag: str) -> str:
        self._subscriber.check_tag(tag)
        most = self._consumers_max
        if most is not None and len(self._subscriber.consumers) >= most:
            raise NotAllowed(f"reached maximum ({most}) of consumers per channel")
        return tag or generated_name("amq.ctag", self._random_bytes(_TAG_BYTES))

    def _queue(self, name: str) -> VhostQueue:
        """Return the queue `name`; AmqpError if the user may not read it or another connection owns it."""
        name = self._requester.stripped_queue(name)
        self._requester.authorizer.check_read_queue(name)
        return self._queue_service.live_queue(self._requester, name)

    def _priority(self, method: methods.BasicConsume, queue: VhostQueue) -> int:
        priority = method.arguments.get("x-priority", 0)
        error = not_integer(priority)
        if error is not None or not isinstance(priority, int):
            raise PreconditionFailed(f"invalid arg 'x-priority' for {_described(queue)}: {error}")
        return priority

    def _check_timeout(self, method: methods.BasicConsume, queue: VhostQueue) -> None:
        """PreconditionFailed unless the consumer's own timeout is a number of ms, if it has one."""
        timeout_ms = method.arguments.get(CONSUMER_TIMEOUT_ARGUMENT, 0)
        error = not_integer(timeout_ms)
        if error is None and isinstance(timeout_ms, int) and timeout_ms < 0:
            error = f"{{value_negative,{timeout_ms}}}"
        if error is not None:
            raise PreconditionFailed(
                f"invalid arg '{CONSUMER_TIMEOUT_ARGUMENT}' for {_described(queue)}: {error}"
            )

    def _reading(self, method: methods.BasicConsume, queue: VhostQueue) -> StreamReadOptions:
        """The stream options of basic.consume; PreconditionFailed for one that the queue type lacks."""
        kind = queue.settings.kind
        for argument in _UNKNOWN_ARGUMENTS[kind]:
            if argument in method.arguments:
                raise PreconditionFailed(
                    f"invalid arg '{argument}' for {_described(queue)} of queue type rabbit_{kind}_queue"
                )
        try:
            return StreamReadOptions(method.arguments if kind == STREAM else NO_ARGUMENTS)
        except ValueError as error:
            raise PreconditionFailed(f"invalid arg for {_described(queue)}: {error}") from None

    def _send(self, method: Method) -> None:
        self._outbox.method(self._subscriber.channel_number, method)


def _described(queue: VhostQueue) -> str:
    return f"queue '{queue.name}' in vhost '{queue.vhost_name}'"


class ConsumeContext(Struct, kw_only=True):
    """What the consume handler needs from its connection."""

    queue_service: QueueService[VhostQueue]
    refusal_check: RefusalCheck
    requester: Requester
    random_bytes: Callable[[int], bytes]
    # Called with the consumer timeout of each consumed queue (ms).
    check_timeouts: Callable[[int | None], None]
    # The limit of consumers per channel; None is no limit.
    consumers_max: int | None


HANDLERS: dict[type[Method], Callable[[ConsumeHandler, Any], Coroutine[Pending, None, None] | None]] = {
    methods.BasicQos: ConsumeHandler._qos,
    methods.BasicConsume: ConsumeHandler._consume,
    methods.BasicCancel: ConsumeHandler._cancel,
    methods.BasicCancelOk: ConsumeHandler._cancelled,
    methods.BasicGet: ConsumeHandler._get,
}
