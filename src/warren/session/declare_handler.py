"""Handlers of the exchange.* and queue.* methods, which may wait for the metadata to be replicated."""

from collections.abc import Awaitable, Callable
from typing import Any

from warren.queues.reply import REPLY_TO
from warren.session.publish_rules import PublishRules
from warren.session.subscriber import Subscriber
from warren.session.vhost_services import VhostServices
from warren.vhost.requester import Requester
from warren.wire import methods
from warren.wire.method import Method


class DeclareHandler:
    """Executes the declarations, bindings and deletions of one channel."""

    __slots__ = (
        "_exchange_service", "_queue_service", "_refusal_check", "_requester", "_rules", "_subscriber",
    )  # fmt: skip

    def __init__(
        self, services: VhostServices, requester: Requester, subscriber: Subscriber, rules: PublishRules
    ) -> None:
        self._queue_service = services.queue_service
        self._exchange_service = services.exchange_service
        self._refusal_check = services.refusal_check
        self._requester = requester
        self._subscriber = subscriber
        self._rules = rules

    async def handle(self, method: Any) -> None:
        """Execute `method`, and send the answer unless no-wait is set."""
        handler = HANDLERS[type(method)]
        self._subscriber.hold_cancels()
        try:
            answer = await self._refusal_check.attempt(lambda: handler(self, method))
            if not getattr(method, "no_wait", False):
                self._subscriber.outbox.method(self._subscriber.channel_number, answer)
        finally:
            self._subscriber.send_cancels()

    async def _declare_exchange(self, method: methods.ExchangeDeclare) -> Method:
        await self._exchange_service.declare_exchange(self._requester, method)
        return methods.ExchangeDeclareOk()

    async def _delete_exchange(self, method: methods.ExchangeDelete) -> Method:
        await self._exchange_service.delete_exchange(self._requester, method)
        return methods.ExchangeDeleteOk()

    async def _bind_exchange(self, method: methods.ExchangeBind) -> Method:
        await self._exchange_service.bind_exchange(self._requester, method)
        return methods.ExchangeBindOk()

    async def _unbind_exchange(self, method: methods.ExchangeUnbind) -> Method:
        await self._exchange_service.unbind_exchange(self._requester, method)
        return methods.ExchangeUnbindOk()

    async def _declare_queue(self, method: methods.QueueDeclare) -> Method:
        if method.queue.startswith(REPLY_TO):
            await self._rules.check_reply_name(method.queue)
            return methods.QueueDeclareOk(method.queue, 0, 1)
        state = await self._queue_service.declare_queue(self._requester, method)
        return methods.QueueDeclareOk(state.name, state.message_count, state.consumer_count)

    async def _bind_queue(self, method: methods.QueueBind) -> Method:
        await self._exchange_service.bind_queue(self._requester, method)
        return methods.QueueBindOk()

    async def _unbind_queue(self, method: methods.QueueUnbind) -> Method:
        await self._exchange_service.unbind_queue(self._requester, method)
        return methods.QueueUnbindOk()

    async def _purge_queue(self, method: methods.QueuePurge) -> Method:
        return methods.QueuePurgeOk(await self._queue_service.purge_queue(self._requester, method))

    async def _delete_queue(self, method: methods.QueueDelete) -> Method:
        return methods.QueueDeleteOk(await self._queue_service.delete_queue(self._requester, method))


HANDLERS: dict[type[Method], Callable[[DeclareHandler, Any], Awaitable[Method]]] = {
    methods.ExchangeDeclare: DeclareHandler._declare_exchange,
    methods.ExchangeDelete: DeclareHandler._delete_exchange,
    methods.ExchangeBind: DeclareHandler._bind_exchange,
    methods.ExchangeUnbind: DeclareHandler._unbind_exchange,
    methods.QueueDeclare: DeclareHandler._declare_queue,
    methods.QueueBind: DeclareHandler._bind_queue,
    methods.QueueUnbind: DeclareHandler._unbind_queue,
    methods.QueuePurge: DeclareHandler._purge_queue,
    methods.QueueDelete: DeclareHandler._delete_queue,
}
