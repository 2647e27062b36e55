"""Declares the queues, the exchange and the bindings of a load, and deletes them afterwards."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from warren.blocking.connection import BlockingConnection
from warren.cli.perf.load import Load
from warren.wire.method import Method
from warren.wire.methods import (
    ExchangeDeclare,
    ExchangeDeclareOk,
    ExchangeDelete,
    ExchangeDeleteOk,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)
from warren.wire.table import Table

CHANNEL = 1
# Progress is reported after this many declarations.
_PART = 10_000


@dataclass(frozen=True, slots=True)
class LoadNames:
    """Names of equal length, so that all frames of a load have equal length."""

    run: str
    width: int

    @property
    def exchange(self) -> str:
        """The name of the exchange."""
        return f"p{self.run}"

    def queue(self, number: int) -> str:
        """Return the name of queue number `number`."""
        return f"p{self.run}.{number:0{self.width}}"

    def key(self, binding: int) -> str:
        """Return a routing key that only binding number `binding` matches."""
        return f"p.{binding:0{self.width}}.x"

    def pattern(self, binding: int) -> str:
        """Return the pattern of binding number `binding`."""
        return f"p.{binding:0{self.width}}.*"


def names_for(load: Load) -> LoadNames:
    """Return names with enough digits for `load`, new ones unless it has a name."""
    return LoadNames(load.run or secrets.token_hex(3), len(str(max(load.queues, load.bindings))))


def routes(load: Load, names: LoadNames, producer: int) -> list[tuple[str, str]]:
    """Return the exchanges and routing keys that a producer publishes to in turn."""
    if load.bindings:
        return [(names.exchange, names.key(binding)) for binding in range(load.bindings)]
    if load.exchange_type:
        return [(names.exchange, "")]
    return [("", names.queue(number)) for number in load.producer_queues(producer)]


def declare(
    connection: BlockingConnection,
    load: Load,
    names: LoadNames,
    tell: Callable[[str], None] = lambda text: None,
) -> None:
    """Declare everything for `load` on channel 1 of `connection`; `tell` is called with the progress.

    All of it is durable: RabbitMQ 4.3 refuses queues that are neither durable nor exclusive.
    """
    arguments: Table = {"x-queue-type": load.queue_type} if load.queue_type else {}
    queues: list[Method] = [
        QueueDeclare(queue=names.queue(number), durable=True, arguments=arguments)
        for number in range(load.queues)
    ]
    _call_all(connection, queues, QueueDeclareOk, lambda count: tell(f"queues declared: {count}"))
    if not load.exchange_type:
        return
    exchange = ExchangeDeclare(exchange=names.exchange, type=load.exchange_type, durable=True)
    connection.call(CHANNEL, exchange, ExchangeDeclareOk)
    bindings: list[Method] = [
        QueueBind(queue=names.queue(number % load.queues), exchange=names.exchange, routing_key=key)
        for number, key in enumerate(_binding_keys(load, names))
    ]
    _call_all(connection, bindings, QueueBindOk, lambda count: tell(f"queues bound: {count}"))


def delete(
    connection: BlockingConnection,
    load: Load,
    names: LoadNames,
    tell: Callable[[str], None] = lambda text: None,
) -> None:
    """Delete everything that `declare` declared; `tell` is called with the progress."""
    queues: list[Method] = [QueueDelete(queue=names.queue(number)) for number in range(load.queues)]
    if load.exchange_type:
        connection.call(CHANNEL, ExchangeDelete(exchange=names.exchange), ExchangeDeleteOk)
    _call_all(connection, queues, QueueDeleteOk, lambda count: tell(f"queues deleted: {count}"))


def _call_all(
    connection: BlockingConnection, methods: list[Method], answer: type[Method], tell: Callable[[str], None]
) -> None:
    for start in range(0, len(methods), _PART):
        connection.call_many(CHANNEL, methods[start : start + _PART], answer)
        if len(methods) > _PART:
            tell(f"{min(start + _PART, len(methods)):,} of {len(methods):,}")


def _binding_keys(load: Load, names: LoadNames) -> list[str]:
    if load.bindings:
        make = names.pattern if load.exchange_type == "topic" else names.key
        return [make(binding) for binding in range(load.bindings)]
    return [""] * load.queues
