"""The cold half of a channel: exchange.* and queue.*, which may have to wait for others to agree."""

from collections.abc import Awaitable, Callable
from typing import Any

from warren.session.domain import Domain
from warren.session.publishing import REPLY_TO, PublishRules
from warren.session.subscriber import Subscriber
from warren.vhost.requester import Requester
from warren.wire import methods
from warren.wire.method import Method


class Declarations:
    """Declares, binds and deletes for one channel."""

    __slots__ = ("_declaring", "_requester", "_rules", "_subscriber", "_wiring")

    def __init__(
        self, domain: Domain, requester: Requester, subscriber: Subscriber, rules: PublishRules
    ) -> None:
        self._declaring = domain.declaring
        self._wiring = domain.wiring
        self._requester = requester
        self._subscriber = subscriber
        self._rules = rules

    async def handle(self, method: Any) -> None:
        """Obey `method`, and answer unless it says no-wait."""
        self._subscriber.hold_cancels()
        try:
            answer = await HANDLERS[type(method)](self, method)
            if not getattr(method, "no_wait", False):
                self._subscriber.outbox.method(self._subscriber.channel_number, answer)
        finally:
            self._subscriber.send_cancels()

    async def _declare_exchange(self, method: methods.ExchangeDeclare) -> Method:
        await self._wiring.declare_exchange(self._requester, method)
        return methods.ExchangeDeclareOk()

    async def _delete_exchange(self, method: methods.ExchangeDelete) -> Method:
        await self._wiring.delete_exchange(self._requester, method)
        return methods.ExchangeDeleteOk()

    async def _bind_exchange(self, method: methods.ExchangeBind) -> Method:
        await self._wiring.bind_exchange(self._requester, method)
        return methods.ExchangeBindOk()

    async def _unbind_exchange(self, method: methods.ExchangeUnbind) -> Method:
        await self._wiring.unbind_exchange(self._requester, method)
        return methods.ExchangeUnbindOk()

    async def _declare_queue(self, method: methods.QueueDeclare) -> Method:
        if method.queue.startswith(REPLY_TO):
            self._rules.check_reply_name(method.queue)
            return methods.QueueDeclareOk(method.queue, 0, 1)
        state = await self._declaring.declare_queue(self._requester, method)
        return methods.QueueDeclareOk(state.name, state.message_count, state.consumer_count)

    async def _bind_queue(self, method: methods.QueueBind) -> Method:
        await self._wiring.bind_queue(self._requester, method)
        return methods.QueueBindOk()

    async def _unbind_queue(self, method: methods.QueueUnbind) -> Method:
        await self._wiring.unbind_queue(self._requester, method)
        return methods.QueueUnbindOk()

    async def _purge_queue(self, method: methods.QueuePurge) -> Method:
        return methods.QueuePurgeOk(await self._declaring.purge_queue(self._requester, method))

    async def _delete_queue(self, method: methods.QueueDelete) -> Method:
        return methods.QueueDeleteOk(await self._declaring.delete_queue(self._requester, method))


HANDLERS: dict[type[Method], Callable[[Declarations, Any], Awaitable[Method]]] = {
    methods.ExchangeDeclare: Declarations._declare_exchange,
    methods.ExchangeDelete: Declarations._delete_exchange,
    methods.ExchangeBind: Declarations._bind_exchange,
    methods.ExchangeUnbind: Declarations._unbind_exchange,
    methods.QueueDeclare: Declarations._declare_queue,
    methods.QueueBind: Declarations._bind_queue,
    methods.QueueUnbind: Declarations._unbind_queue,
    methods.QueuePurge: Declarations._purge_queue,
    methods.QueueDelete: Declarations._delete_queue,
}
