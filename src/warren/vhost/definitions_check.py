"""Checks definitions against what Warren supports, before any of them is applied."""

from collections.abc import Iterable

from msgspec import Struct

from warren.errors import AmqpError
from warren.limits import DEFINITIONS_NAMED_MAX
from warren.metadata.commands import (
    Bind,
    DeclareExchange,
    DeclareQueue,
    MetadataCommand,
    SetParameter,
    SetPolicy,
)
from warren.metadata.costly_patterns import costly_pattern
from warren.metadata.declared_topology import DEFAULT_EXCHANGES
from warren.metadata.definitions_import import DefinitionsError
from warren.metadata.machine import Metadata
from warren.model.arguments import CLASSIC, check_queue_arguments, check_queue_properties, queue_kind
from warren.model.names import QueueName
from warren.routing.exchange import ExchangeSettings
from warren.routing.types import exchange_type
from warren.wire.table import Value


class CheckedDefinitions(Struct, frozen=True):
    """The commands of a document that can be applied, and descriptions of those that cannot."""

    commands: list[MetadataCommand]
    # The names and reasons of those that Warren refuses, and the commands themselves.
    left_out: list[str]
    refused: list[MetadataCommand]

    def complete(self) -> list[MetadataCommand]:
        """The commands if all can be applied; DefinitionsError naming those that cannot."""
        if self.left_out:
            named = "; ".join(self.left_out[:DEFINITIONS_NAMED_MAX])
            more = len(self.left_out) - DEFINITIONS_NAMED_MAX
            rest = f"; and {more} more" if more > 0 else ""
            raise DefinitionsError(
                f"nothing was imported, as the document has entries that are not supported: {named}{rest}"
            )
        return self.commands


def check_definitions(commands: Iterable[MetadataCommand], metadata: Metadata) -> CheckedDefinitions:
    """Check `commands`; bindings that their exchanges would refuse are dropped, as in RabbitMQ.

    Left out is what RabbitMQ accepts and Warren does not: regular expressions that are too costly.
    DefinitionsError for an exchange or queue that is invalid anywhere.
    """
    checked: list[MetadataCommand] = []
    left_out: list[str] = []
    refused: list[MetadataCommand] = []
    exchanges: dict[tuple[str, str], tuple[str, dict[str, Value]]] = {}
    queues: dict[tuple[str, str], str] = {}
    for command in commands:
        reason = costly_pattern(command)
        if reason is not None:
            refused.append(command)
            left_out.append(_place(command) + reason.removeprefix("Validation failed\n\n").rstrip())
            continue
        try:
            if isinstance(command, DeclareExchange):
                exchange_type(command.type).validate_arguments(command.arguments)
                exchanges.setdefault((command.vhost, command.name), (command.type, dict(command.arguments)))
            elif isinstance(command, DeclareQueue):
                _check_queue(command)
                queues[command.vhost, command.name] = queue_kind(command.arguments)
        except AmqpError as error:
            raise DefinitionsError(error.message) from None
        if not isinstance(command, Bind) or (
            _is_valid(command, exchanges, metadata, _destination_kind(command, queues, metadata))
        ):
            checked.append(command)
    return CheckedDefinitions(checked, left_out, refused)


def _place(command: MetadataCommand) -> str:
    if isinstance(command, SetParameter | SetPolicy):
        kind = "parameter" if isinstance(command, SetParameter) else "policy"
        return f"{kind} '{command.name}' in vhost '{command.vhost}': "
    return ""


def _check_queue(command: DeclareQueue) -> None:
    queue = QueueName(command.vhost, command.name)
    check_queue_arguments(queue, command.arguments)
    check_queue_properties(
        queue,
        queue_kind(command.arguments),
        durable=command.durable,
        exclusive=False,
        auto_delete=command.auto_delete,
    )


def _destination_kind(command: Bind, queues: dict[tuple[str, str], str], metadata: Metadata) -> str | None:
    """The type of the queue that is bound; None for an exchange. Unless it is known, a classic queue."""
    if not command.is_to_queue:
        return None
    vhost = metadata.vhost(command.vhost)
    record = None if vhost is None else vhost.topology.queues.get(command.destination)
    return queues.get((command.vhost, command.destination), CLASSIC) if record is None else record.kind


def _is_valid(
    command: Bind,
    exchanges: dict[tuple[str, str], tuple[str, dict[str, Value]]],
    metadata: Metadata,
    destination_kind: str | None,
) -> bool:
    """True unless the source of `command` would refuse it; a missing source is found when it is applied."""
    vhost = metadata.vhost(command.vhost)
    record = None if vhost is None else vhost.topology.exchanges.get(command.source)
    if record is not None:
        kind, arguments = record.type, dict(record.arguments)
    else:
        kind, arguments = exchanges.get((command.vhost, command.source)) or (
            _DEFAULTS.get(command.source, ""),
            {},
        )
    if not kind:
        return True
    exchange = exchange_type(kind)(command.source, ExchangeSettings(arguments=arguments))
    try:
        exchange.validate_binding(command.routing_key, command.arguments)
        exchange.validate_destination(destination_kind)
    except AmqpError:
        return False
    return True


_DEFAULTS = {name: kind for name, kind, _ in DEFAULT_EXCHANGES}
