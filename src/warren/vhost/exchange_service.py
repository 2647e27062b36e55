"""Exchanges and bindings: all checks, in the order and with the texts of RabbitMQ 3.10.8, measured.

Binding and unbinding need write permission on the destination and read permission on the source, whether they
exist or not. Unlike in RabbitMQ, a passive declaration needs some permission on the exchange.
"""

from typing import Generic, TypeVar

from warren.errors import AccessRefused, MetadataTimeout, NotFound, PreconditionFailed
from warren.metadata.commands import Bind, DeclareExchange, DeleteExchange, Outcome, Reply, Unbind
from warren.metadata.declared_topology import DeclaredTopology as Records
from warren.metadata.machine import Metadata
from warren.metadata.proposals import Proposals
from warren.metadata.records import BindingRecord, ExchangeRecord, arguments_bytes
from warren.metadata.refusal_check import RefusalCheck
from warren.model.arguments import alternate_exchange
from warren.model.equivalence import check_same, check_same_arguments
from warren.model.erlang_terms import printed_atom
from warren.model.names import RESERVED_PREFIX, ExchangeName, QueueName, stripped
from warren.routing.types import exchange_type
from warren.vhost.binding_removal import remove_most_bindings
from warren.vhost.live_topology import LiveTopology, Q
from warren.vhost.metadata_timeout import metadata_timeout
from warren.vhost.queue_service import check_owner, queue_not_found
from warren.vhost.requester import Requester
from warren.wire import methods

_TOPIC = "topic"

B = TypeVar("B", Bind, Unbind)


class ExchangeService(Generic[Q]):
    """Declares, deletes, binds and unbinds the exchanges of one vhost."""

    __slots__ = (
        "_later", "_metadata", "_node_name", "_proposals", "_queues", "_refusal_check", "_router", "_vhost",
    )  # fmt: skip

    def __init__(
        self, metadata: Metadata, proposals: Proposals, topology: LiveTopology[Q], *, node_name: str
    ) -> None:
        """`node_name` is that of this node."""
        self._node_name = node_name
        self._metadata = metadata
        self._proposals = proposals
        self._refusal_check = RefusalCheck(metadata, proposals)
        self._router = topology.router
        self._queues = topology.queues
        self._later = topology.later
        self._vhost = topology.vhost

    async def declare_exchange(self, requester: Requester, method: methods.ExchangeDeclare) -> None:
        """Declare the exchange of `method`, or check that it exists if `method` is passive."""
        exchange = ExchangeName(self._vhost, stripped(method.exchange))
        if method.passive:
            self._check_found(requester, exchange)
            return
        exchange_type(method.type)
        check_not_default(exchange)
        requester.authorizer.check_configure(exchange)
        command = DeclareExchange(
            vhost=self._vhost,
            name=exchange.name,
            type=method.type,
            durable=method.durable,
            auto_delete=method.auto_delete,
            internal=method.internal,
            arguments=method.arguments,
            user=requester.user,
        )
        is_checked = False
        while True:
            record = self._records().exchanges.get(exchange.name)
            if record is not None:
                check_redeclared(exchange, record, command)
                if command.durable and self._proposals.is_in_doubt:
                    await self._proposals.resolve()
                    continue
                # Another node may have deleted it, and this declaration must create it anew then.
                if is_checked or not await self._refusal_check.is_outdated(self._metadata.index):
                    return
                is_checked = True
                continue
            check_declared(command, requester)
            try:
                reply = await self._proposals.propose(command, requester.user)
            except MetadataTimeout:
                raise metadata_timeout("declare", exchange, self._node_name) from None
            if reply.outcome is Outcome.DONE:
                return
            if reply.outcome is Outcome.REFUSED:
                raise PreconditionFailed(f"cannot declare {exchange}: {reply.text}")
            if reply.outcome is not Outcome.EXISTING:
                raise NotFound(f"{reply.text or 'cannot declare'}: {exchange}")
            # Someone else was faster: compare with what is there now.

    async def delete_exchange(self, requester: Requester, method: methods.ExchangeDelete) -> None:
        """Delete an exchange; does nothing if it does not exist."""
        exchange = ExchangeName(self._vhost, stripped(method.exchange))
        check_not_default(exchange)
        if exchange.name.startswith(RESERVED_PREFIX):
            raise AccessRefused(f"deletion of system {exchange} not allowed")
        requester.authorizer.check_configure(exchange)
        try:
            reply = await self._deleted(exchange, requester, is_if_unused=method.if_unused)
        except MetadataTimeout:
            raise metadata_timeout("delete", exchange, self._node_name) from None
        if reply.outcome is Outcome.REFUSED:
            raise PreconditionFailed(f"{exchange} in use")

    async def _deleted(self, exchange: ExchangeName, requester: Requester, *, is_if_unused: bool) -> Reply:
        if not is_if_unused:
            records = self._records()
            bindings = records.bindings_from(exchange.name) + records.bindings_to_exchange(exchange.name)
            await remove_most_bindings(
                bindings, self._vhost, self._proposals, self._later, user=requester.user
            )
        command = DeleteExchange(vhost=self._vhost, name=exchange.name, if_unused=is_if_unused)
        return await self._proposals.propose(command, requester.user)

    async def bind_queue(self, requester: Requester, method: methods.QueueBind) -> None:
        """Bind a queue; an empty queue name stands for the last queue that the channel declared."""
        await self._bind(requester, self._of_queue(Bind, requester, method))

    async def unbind_queue(self, requester: Requester, method: methods.QueueUnbind) -> None:
        """Unbind a queue; does nothing if there is no such binding."""
        await self._unbind(requester, self._of_queue(Unbind, requester, method))

    async def bind_exchange(self, requester: Requester, method: methods.ExchangeBind) -> None:
        """Bind an exchange to an exchange."""
        await self._bind(requester, self._of_exchange(Bind, method))

    async def unbind_exchange(self, requester: Requester, method: methods.ExchangeUnbind) -> None:
        """Unbind an exchange from an exchange; does nothing if there is no such binding."""
        await self._unbind(requester, self._of_exchange(Unbind, method))

    async def _bind(self, requester: Requester, command: Bind) -> None:
        self._check_permitted(requester, command)
        source = self._router.exchanges.get(command.source)
        if source is None:
            raise NotFound(f"no {ExchangeName(self._vhost, command.source)}")
        if command.is_to_queue:
            queue = QueueName(self._vhost, command.destination)
            record = self._records().queues.get(queue.name)
            if record is None:
                raise queue_not_found(queue)
            self._check_reachable(queue.name)
            source.validate_binding(command.routing_key, command.arguments)
            source.validate_destination(record.kind)
            check_owner(queue, record, requester)
        else:
            if command.destination not in self._router.exchanges:
                raise NotFound(f"no {ExchangeName(self._vhost, command.destination)}")
            source.validate_binding(command.routing_key, command.arguments)
            source.validate_destination(None)
        try:
            reply = await self._proposals.propose(command, requester.user)
        except MetadataTimeout:
            raise metadata_timeout("bind", _destination(command), self._node_name) from None
        if reply.outcome is Outcome.MISSING:
            raise NotFound(f"no {_destination(command)}")
        if reply.outcome is Outcome.REFUSED:
            raise PreconditionFailed(f"cannot bind {_destination(command)}: {reply.text}")

    async def _unbind(self, requester: Requester, command: Unbind) -> None:
        self._check_permitted(requester, command)
        records = self._records()
        if command.is_to_queue:
            self._check_reachable(command.destination)
        if command.is_to_queue and command.source in records.exchanges:
            record = records.queues.get(command.destination)
            if record is not None and self._is_bound(records, command):
                check_owner(QueueName(self._vhost, command.destination), record, requester)
        try:
            await self._proposals.propose(command, requester.user)
        except MetadataTimeout:
            raise metadata_timeout("unbind", _destination(command), self._node_name) from None

    def _of_queue(
        self, make: type[B], requester: Requester, method: methods.QueueBind | methods.QueueUnbind
    ) -> B:
        routing_key = method.routing_key
        if not method.queue and not routing_key:
            routing_key = requester.queue("")
        return make(
            vhost=self._vhost,
            source=stripped(method.exchange),
            destination=requester.stripped_queue(method.queue),
            routing_key=routing_key,
            arguments=method.arguments,
        )

    def _of_exchange(self, make: type[B], method: methods.ExchangeBind | methods.ExchangeUnbind) -> B:
        return make(
            vhost=self._vhost,
            source=stripped(method.source),
            destination=stripped(method.destination),
            is_to_queue=False,
            routing_key=method.routing_key,
            arguments=method.arguments,
        )

    def _check_permitted(self, requester: Requester, command: Bind | Unbind) -> None:
        destination = _destination(command)
        requester.authorizer.check_write(destination)
        source = ExchangeName(self._vhost, command.source)
        if isinstance(destination, ExchangeName):
            check_not_default(destination)
        check_not_default(source)
        requester.authorizer.check_read(source)
        exchange = self._router.exchanges.get(command.source)
        if exchange is not None and exchange.type_name == _TOPIC:
            requester.authorizer.check_topic_read(command.source, command.routing_key)

    def _check_found(self, requester: Requester, exchange: ExchangeName) -> None:
        check_not_default(exchange)
        requester.authorizer.check_any(exchange)
        if exchange.name not in self._router.exchanges:
            raise NotFound(f"no {exchange}")

    def _check_reachable(self, name: str) -> None:
        """HomeDown if the node of the queue `name` is down."""
        live = self._queues.get(name)
        if live is not None:
            live.check_reachable()

    def _is_bound(self, records: Records, command: Unbind) -> bool:
        data = arguments_bytes(command.arguments)
        return records.has_binding(
            BindingRecord(command.source, True, command.destination, command.routing_key, data)
        )

    def _records(self) -> Records:
        vhost = self._metadata.vhost(self._vhost)
        if vhost is None:
            raise NotFound(f"no vhost '{self._vhost}'")
        return vhost.topology


def check_not_default(exchange: ExchangeName) -> None:
    """Raise AccessRefused for the default exchange, which cannot be changed."""
    if not exchange.name:
        raise AccessRefused("operation not permitted on the default exchange")


def check_redeclared(exchange: ExchangeName, record: ExchangeRecord, command: DeclareExchange) -> None:
    """Raise PreconditionFailed unless `command` declares the existing exchange with the same properties."""
    check_same(exchange, "type", current=printed_atom(record.type), received=printed_atom(command.type))
    check_same(exchange, "durable", current=record.durable, received=command.durable)
    check_same(exchange, "auto_delete", current=record.auto_delete, received=command.auto_delete)
    check_same(exchange, "internal", current=record.internal, received=command.internal)
    compared = exchange_type(record.type).compared_arguments
    check_same_arguments(exchange, compared, current=record.arguments, received=command.arguments)


def check_declared(command: DeclareExchange, requester: Requester) -> None:
    """Raise unless the new exchange of `command` is permitted and valid."""
    exchange = ExchangeName(command.vhost, command.name)
    if exchange.name.startswith(RESERVED_PREFIX):
        raise AccessRefused(f"exchange name '{exchange.name}' contains reserved prefix 'amq.*'")
    alternate = alternate_exchange(exchange, command.arguments)
    if alternate is not None:
        requester.authorizer.check_read(exchange)
        requester.authorizer.check_write(alternate)
    exchange_type(command.type).validate_arguments(command.arguments)


def _destination(command: Bind | Unbind) -> QueueName | ExchangeName:
    if command.is_to_queue:
        return QueueName(command.vhost, command.destination)
    return ExchangeName(command.vhost, command.destination)
