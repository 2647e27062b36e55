"""The queues, exchange and bindings of a load: declared before it, deleted after it."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from warren.cli.perf.load import Load
from warren.client.connection import ClientConnection
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

CHANNEL = 1
# So many things are declared between two words about it.
_PART = 10_000


@dataclass(frozen=True, slots=True)
class LoadNames:
    """Names of one length each, so that all frames of a load have one length."""

    run: str
    width: int

    @property
    def exchange(self) -> str:
        """The load's exchange."""
        return f"p{self.run}"

    def queue(self, number: int) -> str:
        """Queue number `number`."""
        return f"p{self.run}.{number:0{self.width}}"

    def key(self, binding: int) -> str:
        """A routing key that binding number `binding`, and no other, matches."""
        return f"p.{binding:0{self.width}}.x"

    def pattern(self, binding: int) -> str:
        """The pattern of binding number `binding`."""
        return f"p.{binding:0{self.width}}.*"


def names_for(load: Load) -> LoadNames:
    """Fresh names that are long enough for what `load` declares."""
    return LoadNames(secrets.token_hex(3), len(str(max(load.queues, load.bindings))))


def routes(load: Load, names: LoadNames, producer: int) -> list[tuple[str, str]]:
    """The exchanges and routing keys that producer number `producer` publishes to in turn."""
    if load.bindings:
        return [(names.exchange, names.key(binding)) for binding in range(load.bindings)]
    if load.exchange_type:
        return [(names.exchange, "")]
    return [("", names.queue(number)) for number in load.producer_queues(producer)]


def declare(
    connection: ClientConnection,
    load: Load,
    names: LoadNames,
    tell: Callable[[str], None] = lambda text: None,
) -> None:
    """Declare all of it on channel 1 of `connection`; `tell` is told how far that is, if it is much."""
    durable = load.is_persistent
    queues: list[Method] = [
        QueueDeclare(queue=names.queue(number), durable=durable) for number in range(load.queues)
    ]
    _call_all(connection, queues, QueueDeclareOk, lambda count: tell(f"queues declared: {count}"))
    if not load.exchange_type:
        return
    exchange = ExchangeDeclare(exchange=names.exchange, type=load.exchange_type, durable=durable)
    connection.call(CHANNEL, exchange, ExchangeDeclareOk)
    bindings: list[Method] = [
        QueueBind(queue=names.queue(number % load.queues), exchange=names.exchange, routing_key=key)
        for number, key in enumerate(_binding_keys(load, names))
    ]
    _call_all(connection, bindings, QueueBindOk, lambda count: tell(f"queues bound: {count}"))


def delete(
    connection: ClientConnection,
    load: Load,
    names: LoadNames,
    tell: Callable[[str], None] = lambda text: None,
) -> None:
    """Delete all of it; `tell` as in `declare`."""
    queues: list[Method] = [QueueDelete(queue=names.queue(number)) for number in range(load.queues)]
    if load.exchange_type:
        connection.call(CHANNEL, ExchangeDelete(exchange=names.exchange), ExchangeDeleteOk)
    _call_all(connection, queues, QueueDeleteOk, lambda count: tell(f"queues deleted: {count}"))


def _call_all(
    connection: ClientConnection, methods: list[Method], answer: type[Method], tell: Callable[[str], None]
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
