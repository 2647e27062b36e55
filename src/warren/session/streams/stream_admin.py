"""Creates, deletes and finds streams for a connection; a refusal becomes a response code."""

import re
from collections.abc import Mapping
from functools import partial
from math import inf

from warren import limits
from warren.errors import AccessRefused, AmqpError, InternalError, NotFound, ResourceError
from warren.metadata.records import BindingRecord
from warren.model.arguments import STREAM
from warren.model.decided import decided
from warren.model.message import BODY_END, NO_PROPERTIES, encode_address, new_message
from warren.model.names import stripped
from warren.queues.capabilities import declared_queue, stream_queue
from warren.queues.stream import StreamQueue
from warren.queues.vhost_queue import VhostQueue
from warren.session.vhost_services import VhostServices
from warren.vhost.requester import Requester
from warren.wire import methods
from warren.wire.streams.codes import ResponseCode
from warren.wire.table import Table

_ORDER = "x-stream-partition-order"
_SUPER = "x-super-stream"
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
# Arguments of Create -> queue arguments; RabbitMQ ignores all others.
_TEXTS = {"max-age": "x-max-age", "queue-leader-locator": "x-queue-leader-locator"}
_NUMBERS = {
    "max-length-bytes": "x-max-length-bytes",
    "stream-max-segment-size-bytes": "x-stream-max-segment-size-bytes",
    "initial-cluster-size": "x-initial-cluster-size",
    "stream-initial-offset": "x-stream-initial-offset",
}


class CommandRefused(Exception):
    """A refused command, with its response code."""

    def __init__(self, code: ResponseCode) -> None:
        super().__init__(code)
        self.code = code


def code_of(error: AmqpError) -> ResponseCode:
    """The response code that corresponds best to `error`."""
    if isinstance(error, AccessRefused):
        return ResponseCode.ACCESS_REFUSED
    if isinstance(error, NotFound):
        return ResponseCode.STREAM_DOES_NOT_EXIST
    if isinstance(error, InternalError | ResourceError):
        return ResponseCode.INTERNAL_ERROR
    return ResponseCode.PRECONDITION_FAILED


class StreamAdmin:
    """The streams of a virtual host, for one connection."""

    __slots__ = ("_partitions_max", "_requester", "_services")

    def __init__(self, services: VhostServices, requester: Requester, *, partitions_max: int) -> None:
        self._services = services
        self._requester = requester
        self._partitions_max = partitions_max

    def find(self, name: str) -> StreamQueue:
        """Return the stream `name`; CommandRefused if there is none, or if another node has it."""
        queue = stream_queue(self._declared(name))
        if queue is None:
            raise CommandRefused(ResponseCode.STREAM_NOT_AVAILABLE)
        return queue

    def home_of(self, name: str) -> int | None:
        """The node that has the stream `name`, None if it is this one; CommandRefused if there is none."""
        if self._declared(name).is_local:
            return None
        vhost = self._services.metadata.vhost(self._services.vhost.name)
        record = None if vhost is None else vhost.topology.queues.get(name)
        if record is None:
            raise CommandRefused(ResponseCode.STREAM_DOES_NOT_EXIST)
        return record.home

    async def create(self, name: str, arguments: Mapping[str, str]) -> None:
        """Create the stream `name`; CommandRefused if it exists or may not be created."""
        name = stripped(name)
        if not name or len(name.encode("utf-8", "surrogateescape")) > limits.NAME_SIZE_MAX:
            raise CommandRefused(ResponseCode.PRECONDITION_FAILED)
        method = methods.QueueDeclare(queue=name, durable=True, arguments=queue_arguments(arguments))
        is_there = name in self._services.vhost.queues
        try:
            await self._services.queue_service.declare_queue(self._requester, method)
        except AccessRefused:
            # Also raised for a reserved name, which has another code.
            raise CommandRefused(
                ResponseCode.PRECONDITION_FAILED if name.startswith("amq.") else ResponseCode.ACCESS_REFUSED
            ) from None
        if is_there:
            raise CommandRefused(ResponseCode.STREAM_ALREADY_EXISTS)

    async def delete(self, name: str) -> None:
        """Delete the stream `name`."""
        name = stripped(name)
        self._services.queue_service.configurable_queue(self._requester, name)
        self._declared(name)
        await self._services.queue_service.delete_queue(self._requester, methods.QueueDelete(queue=name))

    def route(self, routing_key: str, super_stream: str) -> tuple[str, ...]:
        """The streams to which a message with `routing_key` to `super_stream` is routed."""
        vhost = self._services.vhost
        if not super_stream or super_stream not in vhost.router.exchanges:
            raise CommandRefused(ResponseCode.STREAM_DOES_NOT_EXIST)
        try:
            address = encode_address(super_stream, routing_key)
        except ValueError:
            raise CommandRefused(ResponseCode.PRECONDITION_FAILED) from None
        message = new_message(address, NO_PROPERTIES, BODY_END, vhost.turn.now())
        found = vhost.router.rehearse(address, message)
        return tuple(queue.name for queue in filter(None, map(_stream, found)))

    def partitions(self, super_stream: str) -> tuple[str, ...]:
        """The streams of `super_stream`, each as often as it is bound, in the order of its bindings.

        Publishers that hash use this order, so that it is RabbitMQ's: by `x-stream-partition-order`, then
        bindings without it; equal ones by key and name.
        """
        vhost = self._services.metadata.vhost(self._services.vhost.name)
        if vhost is None or not super_stream or super_stream not in vhost.topology.exchanges:
            raise CommandRefused(ResponseCode.STREAM_DOES_NOT_EXIST)
        bound = [one for one in vhost.topology.bindings_from(super_stream) if one.is_to_queue]
        return tuple(binding.destination for binding in sorted(bound, key=_partition_order))

    async def create_super(
        self, name: str, partitions: tuple[str, ...], keys: tuple[str, ...], arguments: Mapping[str, str]
    ) -> None:
        """Create the streams `partitions`, and the exchange `name` that routes to each by its key."""
        is_odd = len(partitions) != len(keys) or len(set(partitions)) != len(partitions)
        if not name or is_odd or not 0 < len(partitions) <= self._partitions_max:
            raise CommandRefused(ResponseCode.PRECONDITION_FAILED)
        taken = self._services.vhost.queues.keys() & set(partitions)
        if taken or name in self._services.vhost.router.exchanges:
            raise CommandRefused(ResponseCode.STREAM_ALREADY_EXISTS)
        made: list[str] = []
        try:
            exchange = methods.ExchangeDeclare(
                exchange=name, type="direct", durable=True, arguments={_SUPER: True}
            )
            exchange_service, requester = self._services.exchange_service, self._requester
            # Here, and not where every command is tried again, so that no stream is deleted in between.
            await decided(partial(exchange_service.declare_exchange, requester, exchange))
            for number, (partition, key) in enumerate(zip(partitions, keys, strict=True)):
                await self.create(partition, arguments)
                made.append(partition)
                bind = methods.QueueBind(
                    queue=partition, exchange=name, routing_key=key, arguments={_ORDER: number}
                )
                await decided(partial(exchange_service.bind_queue, requester, bind))
        except (AmqpError, CommandRefused):
            await self._remove(name, made)
            raise

    async def delete_super(self, name: str) -> None:
        """Delete the exchange `name` and the streams bound to it."""
        partitions = list(dict.fromkeys(self.partitions(name)))
        for partition in partitions:
            self._services.queue_service.configurable_queue(self._requester, partition)
            self._declared(partition)
        await self._remove(name, partitions)

    def _declared(self, name: str) -> VhostQueue:
        """The stream `name` of any node; CommandRefused if there is none."""
        stream = _stream(self._services.vhost.queues.get(name))
        if stream is None:
            raise CommandRefused(ResponseCode.STREAM_DOES_NOT_EXIST)
        return stream

    async def _remove(self, name: str, partitions: list[str]) -> None:
        if name in self._services.vhost.router.exchanges:
            await self._services.exchange_service.delete_exchange(
                self._requester, methods.ExchangeDelete(exchange=name)
            )
        for partition in partitions:
            await self.delete(partition)


def queue_arguments(arguments: Mapping[str, str]) -> Table:
    """Convert stream `arguments` to queue arguments; CommandRefused for an invalid one."""
    found: Table = {"x-queue-type": "stream"}
    for name, value in arguments.items():
        if name in _TEXTS:
            found[_TEXTS[name]] = value
        elif name in _NUMBERS:
            if not (value.isascii() and value.isdigit()) or len(value) > 18:
                raise CommandRefused(ResponseCode.PRECONDITION_FAILED)
            found[_NUMBERS[name]] = int(value)
    return found


def _stream(destination: object) -> VhostQueue | None:
    """`destination` as a stream of any node; None for everything else."""
    queue = declared_queue(destination)
    return None if queue is None or queue.settings.kind != STREAM else queue


def _partition_order(binding: BindingRecord) -> tuple[float, str, str]:
    order = binding.arguments.get(_ORDER)
    if isinstance(order, str) and _WHOLE.fullmatch(order):
        order = int(order)
    # If it is not a number, RabbitMQ closes the connection.
    place = order if isinstance(order, int) and not isinstance(order, bool) else inf
    return place, binding.routing_key, binding.destination
