"""One AMQP channel: dispatches frames to handlers, and closes itself when a handler raises ChannelException.

basic.publish and basic.ack are parsed in place. Other methods are decoded and looked up in a table. A
handler that must wait suspends the channel, which buffers the frames that arrive in the meantime.
"""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from msgspec import Struct

from warren.errors import (
    AmqpError,
    AmqpNotImplemented,
    ChannelException,
    ChannelNumberError,
    CommandInvalid,
    FrameError,
    PreconditionFailed,
)
from warren.framing.outbox import Outbox
from warren.limits import (
    DECLARATION_WORK,
    HELD_PIECE_SIZE,
    HELD_PIECE_SIZE_MAX,
    METHOD_WORK,
    WORK_PER_TURN_MAX,
)
from warren.metadata.refusal_check import RefusalCheck
from warren.model.coroutine_driver import Pending, step
from warren.model.counters import Counters
from warren.model.message_position import POSITIONS_REALM
from warren.model.samples import Samples
from warren.queues.capabilities import declared_queue
from warren.queues.queue import NACKED, REJECTED, Queue, QueueHost
from warren.queues.vhost_queue import VhostQueue
from warren.session import consume_handler, declare_handler
from warren.session.confirms import Confirms
from warren.session.consume_handler import ConsumeHandler
from warren.session.declare_handler import DeclareHandler
from warren.session.held_frames import HeldFrames, settles
from warren.session.pending_confirms import PendingConfirms
from warren.session.protocol_errors import close_text
from warren.session.publish_retry import PublishRetry
from warren.session.publish_rules import PublishRules
from warren.session.publisher import ChannelPublisher
from warren.session.subscriber import ACKNOWLEDGE, REJECT, ChannelSubscription, Subscriber
from warren.session.throttle import Throttle
from warren.session.transaction import Transaction
from warren.session.unacked import RevokedDelivery
from warren.wire import methods
from warren.wire.erlang import frame_bytes
from warren.wire.frames import BODY, HEADER, METHOD, FrameReader
from warren.wire.method import Method
from warren.wire.methods import decode_method

_METHOD = METHOD
_HEADER = HEADER
_BODY = BODY
_PUBLISH = methods.BasicPublish.index
_ACK = methods.BasicAck.index
_ACKNOWLEDGE = ACKNOWLEDGE
_METHOD_WORK = METHOD_WORK
_DECLARATION_WORK = DECLARATION_WORK
_METHOD_SIZE = 4
_ACK_SIZE = 13
# RabbitMQ's text for channel.open on a channel that is open or waits for close-ok.
_OPEN_ALREADY = "second 'channel.open' seen"


class Channel:
    """One channel of an open connection."""

    __slots__ = (
        "_consume_handler", "_declare_handler", "_failed", "_held", "_holds_settlement", "_host",
        "_is_resuming", "_is_waiting", "_method_index", "_outbox", "_publish_retry", "_publisher",
        "_rules", "_run_in_channel", "_throttle", "_transaction_publishes_max", "_waiting", "history",
        "is_closed", "is_closing", "is_interrupted", "number", "subscriber",
    )  # fmt: skip

    def __init__(self, number: int, parts: "ChannelParts") -> None:
        self.number = number
        # True between sending channel.close and receiving channel.close-ok.
        self.is_closing = False
        # True when the channel has ended and its number may be used again.
        self.is_closed = False
        # True when `resume` has left frames for another turn, in which it must be called again.
        self.is_interrupted = False
        self.subscriber = parts.subscriber
        # Samples of its counters, set by the sampler; they end with the channel.
        self.history: Samples | None = None
        self._host = parts.host
        self._outbox = parts.outbox
        self._throttle = parts.throttle
        self._publisher = parts.publisher
        self._publish_retry = PublishRetry(parts.publisher, parts.refusal_check, parts.throttle)
        self._rules = parts.rules
        self._consume_handler = parts.consume_handler
        self._declare_handler = parts.declare_handler
        # Runs actions that no frame caused, with the same exception handling as for frames.
        self._run_in_channel = parts.run_in_channel
        # Called with the error that closes the channel, and the index of the method that caused it.
        self._failed = parts.failed
        # Whole frames that arrived while a handler was waiting or publishing was blocked.
        self._held = HeldFrames()
        # True while one of them settles deliveries.
        self._holds_settlement = False
        # True while a held frame is processed, until `_hold` decides that it must stay held.
        self._is_resuming = False
        # True while a handler waits, and the handler.
        self._is_waiting = False
        self._waiting: Coroutine[Pending, None, None] | None = None
        # The method that an exception is attributed to: class id << 16 | method id.
        self._method_index = 0
        self._publisher.size_max = parts.message_size_max
        self._transaction_publishes_max = parts.transaction_publishes_max
        self._publisher.check_properties = self._rules.check_properties

    @property
    def confirms(self) -> Confirms | None:
        """The publisher confirms of the channel; None unless it is in confirm mode."""
        return self._publisher.confirms

    @property
    def publisher_counters(self) -> Counters:
        """The counters of the publishing side; `subscriber` has those of the consuming side."""
        return self._publisher

    @property
    def uncommitted(self) -> tuple[int, int]:
        """The numbers of publishes and of acknowledgements that wait for tx.commit."""
        transaction = self._publisher.transaction
        return (0, 0) if transaction is None else (transaction.published_count, len(transaction.settled))

    @property
    def is_transactional(self) -> bool:
        """True in tx mode."""
        return self._publisher.transaction is not None

    def handle(self, reader: FrameReader) -> None:
        """Process the frame under the cursor. ConnectionException if the error must close the connection."""
        if self.is_closing or self._is_waiting or self._held.size:
            self._handle_later(reader)
        else:
            self._handle_guarded(reader)

    def resume(self) -> None:
        """Process held frames, at most one turn's work; see `is_interrupted`."""
        self.is_interrupted = False
        work = WORK_PER_TURN_MAX
        size = HELD_PIECE_SIZE
        while self._held.size and not self._is_waiting:
            held = self._held
            reader = held.first(size)
            size = min(size * 4, HELD_PIECE_SIZE_MAX)
            done = 0
            while reader.advance():
                self._is_resuming = True
                self._handle_guarded(reader)
                if not self._is_resuming:
                    # This frame and those after it remain held.
                    self._release_held(done)
                    return
                self._is_resuming = False
                done = reader.start + reader.size + 1
                work -= 1
                if self.is_closing or self.is_closed:
                    self._end_held(held, done)
                    return
                if self._is_waiting:
                    self._release_held(done)
                    return
                if work <= self._host.work:
                    self._release_held(done)
                    self.is_interrupted = self._held.size > 0
                    return
            self._release_held(done)

    def release(self) -> None:
        """Release the channel's resources: requeue unacknowledged deliveries and drop uncommitted work."""
        queues: dict[VhostQueue, None] = {}
        self.leave(queues)
        for queue in queues:
            queue.pump()

    def stop(self) -> None:
        """End at once, with its connection: it delivers, answers and confirms nothing more.

        What it holds is released by `leave`.
        """
        self.is_closed = True
        self.subscriber.stop()
        self._drop_held()

    def leave(self, queues: dict[VhostQueue, None]) -> None:
        """Release without pumping: the affected `queues` are added, for the caller to `pump`."""
        self._drop_held()
        self._rules.release()
        self.subscriber.leave(queues)
        if self._publisher.transaction is not None:
            self._publisher.transaction.take()

    def _drop_held(self) -> None:
        """Drop the handler that waits, if any, and the frames behind it; confirm for the last time."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            # Its queue undoes what it was asked for.
            self._is_waiting = False
            waiting.close()
        self._throttle.released(self._held.size)
        self._held = HeldFrames()
        self._holds_settlement = False
        if self._publisher.confirms is not None:
            self._publisher.confirms.close()

    def revoke(self, tags: Iterable[int]) -> int:
        """Requeue the deliveries `tags` for an operator, except those that wait for tx.commit."""
        transaction = self._publisher.transaction
        if transaction is not None:
            tags = [tag for tag in tags if tag not in transaction.settled]
        return self.subscriber.revoke(tags)

    def time_out(self, now: int, timeout_ms: int | None) -> list[ChannelSubscription]:
        """Cancel and return the consumers that hold a delivery too long.

        If the client would not notice (it has no consumer_cancel_notify), close the channel, as RabbitMQ 4.3.
        As in RabbitMQ 3.10, a delivery of basic.get that is held too long closes the channel, and one that
        waits for tx.commit is not held any more.
        """
        transaction = self._publisher.transaction
        settled = set() if transaction is None else transaction.settled
        timed_out = self.subscriber.time_out(now, timeout_ms, settled)
        exceeded_ms = self.subscriber.fetch_timed_out(now, timeout_ms, settled)
        if timed_out and not self.subscriber.sends_cancel:
            exceeded_ms = timed_out[0].timeout_ms(timeout_ms)
        if exceeded_ms is not None:
            error = PreconditionFailed(
                f"delivery acknowledgement on channel {self.number} timed out. Timeout value used: "
                f"{exceeded_ms} ms. This timeout value can be configured, see consumers doc guide to learn "
                "more"
            )
            error.method_index = 0
            self._fail(error)
        return timed_out

    def _handle_guarded(self, reader: FrameReader) -> None:
        try:
            self._handle(reader)
        except RevokedDelivery:
            # An operator or a timeout has requeued the delivery, which the client may not know.
            pass
        except ChannelException as error:
            if self._publish_retry.has_message:
                self._run_guarded(self._publish_retry.publish_again(error))
            else:
                self._fail(error)
        except AmqpError as error:
            self._blame(error)
            raise

    def _release_held(self, size: int) -> None:
        """Remove the first `size` bytes of the held frames, which were processed."""
        self._held.remove(size)
        self._holds_settlement = self._holds_settlement and self._held.size > 0
        self._throttle.released(size)

    def _end_held(self, held: HeldFrames, done: int) -> None:
        """Process `held` from byte `done` on an ended channel: only close and close-ok have an effect."""
        reader = held.after(done)
        while not self.is_closed and reader.advance():
            self._handle_later(reader)

    def _handle(self, reader: FrameReader) -> None:
        kind = reader.kind
        if kind == _BODY:
            self._publisher.body(reader)
        elif kind == _HEADER:
            self._publisher.header(reader)
        elif kind == _METHOD:
            if reader.size < _METHOD_SIZE:
                raise FrameError(f"{frame_bytes(1, reader.payload())}: unknown_frame", method_index=0)
            data = reader.data
            raw = data
            at = reader.start
            index = (raw[at] << 24) | (raw[at + 1] << 16) | (raw[at + 2] << 8) | raw[at + 3]
            self._method_index = index
            if index == _PUBLISH:
                if self._throttle.reason or (self._throttle.credit.is_spent and self._waits_for_disk()):
                    self._throttle.hold_publisher(self._host.turn.now())
                    self._hold(reader)
                elif self._publisher.behind is not None and self._waits_for_queue():
                    self._hold(reader)
                else:
                    self._publisher.method(reader)
            elif not self._publisher.is_idle():
                self._publisher.refuse_method()
            elif index == _ACK and reader.size == _ACK_SIZE and self._publisher.transaction is None:
                tag = _u64(raw, at + 4)
                self.subscriber.settle(tag, raw[at + 12] & 1 != 0, _ACKNOWLEDGE)
            else:
                self._dispatch(decode_method(reader.payload()))
        else:
            raise FrameError(f"{frame_bytes(kind, reader.payload())}: unknown_frame", method_index=0)

    def _waits_for_disk(self) -> bool:
        """True if publishes wait for credit; without persistent ones only if `is_spent_for_all`."""
        return self._publisher.has_persistent or self._throttle.credit.is_spent_for_all

    def _waits_for_queue(self) -> bool:
        """True if publishes wait for the credit of a queue on another node."""
        credit = self._publisher.behind
        if credit is None or not credit.is_spent:
            self._publisher.behind = None
            return False
        self._throttle.wait_for(credit, self._host.turn.now())
        return True

    def _handle_later(self, reader: FrameReader) -> None:
        """Process a frame of a channel that is closing, waiting, or holding frames."""
        if not self.is_closing:
            is_method = reader.kind == _METHOD and reader.size >= _METHOD_SIZE
            if is_method and settles(_u32(reader.data, reader.start)) and self._overtakes_held(reader):
                self._handle_guarded(reader)
            else:
                self._hold(reader)
        elif reader.kind == _METHOD:
            index = int.from_bytes(reader.payload()[:4], "big")
            if index == methods.ChannelCloseOk.index:
                self.is_closed = True
            elif index == methods.ChannelClose.index:
                self._outbox.method(self.number, methods.ChannelCloseOk())
            elif index == methods.ChannelOpen.index:
                raise ChannelNumberError(_OPEN_ALREADY, method_index=index)

    def _overtakes_held(self, reader: FrameReader) -> bool:
        """True if the frame, which settles, settles known deliveries before the held publishes.

        Acknowledgements may end the memory alarm. A frame with an unknown tag waits, so that its error does
        not precede earlier frames; in a transaction the order matters, so that every frame waits. Behind one
        that waits others wait as well: it may be among what they settle.
        """
        payload = reader.payload()
        if self._is_waiting or self._publisher.transaction is not None or not self._settles_known(payload):
            self._holds_settlement = True
        return not self._holds_settlement

    def _settles_known(self, payload: bytes) -> bool:
        method = decode_method(payload)
        tag: int = method.delivery_tag  # type: ignore[attr-defined]
        unacked = self.subscriber.unacked
        if not tag:
            return getattr(method, "multiple", False)
        return unacked.holds(tag)

    def _hold(self, reader: FrameReader) -> None:
        """Append the frame under the cursor to the held frames, unless it is the first of them already."""
        if self._is_resuming:
            self._is_resuming = False
            return
        self._throttle.held(self._held.add(reader))

    def _blame(self, error: AmqpError) -> None:
        if error.method_index is None:
            error.method_index = self._method_index

    def _fail(self, error: ChannelException) -> None:
        """Close the channel because of `error` (0-9-1 §1.5.2.5)."""
        index = self._method_index if error.method_index is None else error.method_index
        self.is_closing = True
        self._failed(error, index)
        # `resume` does that itself.
        held = None if self._is_resuming else self._held
        self.release()
        close = methods.ChannelClose(error.code, close_text(error), index >> 16, index & 0xFFFF)
        self._outbox.method(self.number, close)
        if held is not None and held.size:
            self._end_held(held, 0)

    def _dispatch(self, method: Method) -> None:
        self._host.work += _METHOD_WORK
        handler = _HANDLERS.get(type(method))
        if handler is None:
            raise CommandInvalid("unimplemented method")
        handler(self, method)

    def _consume(self, method: Method) -> None:
        coroutine = self._consume_handler.handle(method)
        if coroutine is not None:
            self._run(coroutine)

    def _declare(self, method: Method) -> None:
        self._host.work += _DECLARATION_WORK
        self._run(self._declare_handler.handle(method))

    def _run(self, coroutine: Coroutine[Pending, None, None]) -> None:
        """Run `coroutine` until it ends or waits; it is continued when what it waits for is done."""
        pending = step(coroutine)
        if pending is not None:
            self._is_waiting = True
            self._waiting = coroutine
            pending.add_done_callback(
                lambda _: self._run_in_channel(self, lambda: self._continue_handler(coroutine))
            )

    def _continue_handler(self, coroutine: Coroutine[Pending, None, None]) -> None:
        if self._waiting is not coroutine:
            # The channel was released in the meantime.
            return
        self._is_waiting = False
        self._waiting = None
        self._run_guarded(coroutine)
        self.resume()

    def _run_guarded(self, coroutine: Coroutine[Pending, None, None]) -> None:
        """Run `coroutine`; its refusal closes the channel."""
        try:
            self._run(coroutine)
        except ChannelException as error:
            self._fail(error)
        except AmqpError as error:
            self._blame(error)
            raise

    def _close(self, _: Method) -> None:
        self.release()
        self.is_closed = True
        self._outbox.method(self.number, methods.ChannelCloseOk())

    def _open(self, _: Method) -> None:
        raise ChannelNumberError(_OPEN_ALREADY)

    def _flow(self, method: methods.ChannelFlow) -> None:
        if not method.active:
            raise AmqpNotImplemented("active=false")
        self._outbox.method(self.number, methods.ChannelFlowOk(True))

    def _access(self, method: methods.AccessRequest) -> None:
        if method.realm == POSITIONS_REALM:
            self._publisher.take_positions()
        self._outbox.method(self.number, methods.AccessRequestOk(1))

    def _ack(self, method: methods.BasicAck) -> None:
        self._settle(method.delivery_tag, method.multiple, ACKNOWLEDGE)

    def _nack(self, method: methods.BasicNack) -> None:
        self._settle(method.delivery_tag, method.multiple, NACKED if method.requeue else REJECT)

    def _reject(self, method: methods.BasicReject) -> None:
        self._settle(method.delivery_tag, False, REJECTED if method.requeue else REJECT)

    def _settle(self, tag: int, multiple: bool, how: int) -> None:
        transaction = self._publisher.transaction
        if transaction is None:
            self.subscriber.settle(tag, multiple, how)
        else:
            transaction.settle(self.subscriber.unacked.tags(tag, multiple, transaction.settled), how)

    def _recover(self, method: methods.BasicRecover) -> None:
        if not method.requeue:
            raise AmqpNotImplemented("requeue=false")
        self._outbox.method(self.number, methods.BasicRecoverOk())
        self._requeue()

    def _recover_async(self, method: methods.BasicRecoverAsync) -> None:
        if not method.requeue:
            raise AmqpNotImplemented("requeue=false")
        self._requeue()

    def _requeue(self) -> None:
        """Requeue all unacknowledged, except what the transaction settles (RabbitMQ 3.10.8, measured)."""
        transaction = self._publisher.transaction
        if transaction is None:
            self.subscriber.recover()
        else:
            unacked = self.subscriber.unacked
            tags = unacked.tags(0, True, transaction.settled)
            self.subscriber.settle_all([unacked.take(tag) for tag in tags], NACKED)

    def _confirm_select(self, method: methods.ConfirmSelect) -> None:
        if self.is_transactional:
            raise PreconditionFailed("cannot switch from tx to confirm mode")
        if self._publisher.confirms is None:
            self._publisher.confirms = Confirms(self._outbox, self.number, self._publisher, self._host)
        if not method.no_wait:
            self._outbox.method(self.number, methods.ConfirmSelectOk())

    def _tx_select(self, _: Method) -> None:
        if self._publisher.confirms is not None:
            raise PreconditionFailed("cannot switch from confirm to tx mode")
        if self._publisher.transaction is None:
            self._publisher.transaction = Transaction(self._transaction_publishes_max)
        self._outbox.method(self.number, methods.TxSelectOk())

    def _tx_commit(self, _: Method) -> None:
        self._run(self._commit())

    async def _commit(self) -> None:
        await self._publish_retry.await_routes(self._transaction().published)
        published, settled = self._transaction().take()
        confirms = PendingConfirms()
        for sequence, (message, is_mandatory) in enumerate(published):
            self._publisher.publish_committed(message, is_mandatory, confirms, sequence)
        queues: dict[Queue, None] = {}
        for tags, how in settled:
            deliveries = [self.subscriber.unacked.take(tag) for tag in tags]
            queues.update((delivery.queue, None) for delivery in deliveries)
            self.subscriber.settle_all(deliveries, how)
        if settled:
            await self._host.written()
            for queue in filter(None, map(declared_queue, queues)):
                await queue.committed()
        await confirms
        if confirms.is_refused:
            # What was not refused stays published, and all settlements have taken effect.
            raise PreconditionFailed("partial tx completion")
        self._outbox.method(self.number, methods.TxCommitOk())

    def _tx_rollback(self, _: Method) -> None:
        self._transaction().take()
        self._outbox.method(self.number, methods.TxRollbackOk())

    def _transaction(self) -> Transaction:
        if self._publisher.transaction is None:
            raise PreconditionFailed("channel is not transactional")
        return self._publisher.transaction


def _u32(data: bytes, at: int) -> int:
    return (data[at] << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3]


def _u64(data: bytes, at: int) -> int:
    high = (data[at] << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3]
    low = (data[at + 4] << 24) | (data[at + 5] << 16) | (data[at + 6] << 8) | data[at + 7]
    wide = high
    return (wide << 32) | low


class ChannelParts(Struct, kw_only=True):
    """The components of a channel."""

    host: QueueHost
    outbox: Outbox
    throttle: Throttle
    publisher: ChannelPublisher
    subscriber: Subscriber
    refusal_check: RefusalCheck
    rules: PublishRules
    consume_handler: ConsumeHandler
    declare_handler: DeclareHandler
    run_in_channel: Callable[["Channel", Callable[[], None]], None]
    failed: Callable[[ChannelException, int], None]
    message_size_max: int
    # None is no limit.
    transaction_publishes_max: int | None


_HANDLERS: dict[type[Method], Callable[[Channel, Any], None]] = {
    **dict.fromkeys(consume_handler.HANDLERS, Channel._consume),
    **dict.fromkeys(declare_handler.HANDLERS, Channel._declare),
    methods.ChannelOpen: Channel._open,
    methods.ChannelClose: Channel._close,
    methods.ChannelFlow: Channel._flow,
    methods.AccessRequest: Channel._access,
    methods.BasicAck: Channel._ack,
    methods.BasicNack: Channel._nack,
    methods.BasicReject: Channel._reject,
    methods.BasicRecover: Channel._recover,
    methods.BasicRecoverAsync: Channel._recover_async,
    methods.ConfirmSelect: Channel._confirm_select,
    methods.TxSelect: Channel._tx_select,
    methods.TxCommit: Channel._tx_commit,
    methods.TxRollback: Channel._tx_rollback,
}
