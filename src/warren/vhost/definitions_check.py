"""Checks definitions against what Warren supports, before any of them is applied."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from warren.errors import AmqpError
from warren.limits import DEFINITIONS_NAMED_MAX
from warren.metadata.commands import (
    Bind,
    DeclareExchange,
    DeclareQueue,
    MetadataCommand,
    PutVhost,
    SetPermissions,
)
from warren.metadata.costly_patterns import costly_pattern
from warren.metadata.declared_topology import DEFAULT_EXCHANGES
from warren.metadata.definition_entries import definition_key_of, place_of
from warren.metadata.definitions_import import DefinitionsError
from warren.metadata.machine import Metadata
from warren.model.arguments import (
    CLASSIC,
    QUEUE_TYPE,
    check_queue_arguments,
    check_queue_properties,
    queue_kind,
    with_default_type,
)
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


def check_definitions(
    commands: Iterable[MetadataCommand], metadata: Metadata, *, owner: str = ""
) -> CheckedDefinitions:
    """Check `commands`; bindings that their exchanges would refuse are dropped, as in RabbitMQ.

    The user `owner` gets all permissions in each virtual host that the document creates, which it may
    restrict; a queue gets the default type of its virtual host, as if it were declared. Left out is what
    RabbitMQ accepts and Warren does not: regular expressions that are too costly. DefinitionsError for an
    exchange or queue that is invalid anywhere.
    """
    return _Check(metadata, owner).checked(commands)


class _Check:
    """What the commands that were checked so far will make."""

    def __init__(self, metadata: Metadata, owner: str) -> None:
        self._metadata = metadata
        self._owner = owner if owner in metadata.users.by_name else ""
        self._checked: list[MetadataCommand] = []
        self._left_out: list[str] = []
        self._refused: list[MetadataCommand] = []
        self._exchanges: dict[tuple[str, str], tuple[str, dict[str, Value]]] = {}
        self._queues: dict[tuple[str, str], str] = {}
        # The default type of the queues of each virtual host.
        self._default_types = {
            name: vhost.default_queue_type for name, vhost in list(metadata.vhosts.by_name.items())
        }

    def checked(self, commands: Iterable[MetadataCommand]) -> CheckedDefinitions:
        """Check `commands`, which are those of one document, in its order."""
        for command in commands:
            reason = costly_pattern(command)
            if reason is not None:
                self._refused.append(command)
                reason = reason.removeprefix("Validation failed\n\n").rstrip()
                self._left_out.append(f"{place_of(definition_key_of(command))}: {reason}")
                continue
            try:
                self._add(command)
            except AmqpError as error:
                raise DefinitionsError(error.message) from None
        return CheckedDefinitions(self._checked, self._left_out, self._refused)

    def _add(self, command: MetadataCommand) -> None:
        """Keep `command`, unless it is a binding that is refused; AmqpError if it is invalid."""
        match command:
            case PutVhost():
                self._default_types[command.name] = command.default_queue_type
            case DeclareExchange():
                exchange_type(command.type).validate_arguments(command.arguments)
                found = command.type, dict(command.arguments)
                self._exchanges.setdefault((command.vhost, command.name), found)
            case DeclareQueue():
                command = self._with_default_type(command)
                _check_queue(command)
                self._queues[command.vhost, command.name] = queue_kind(command.arguments)
            case Bind():
                kind = _destination_kind(command, self._queues, self._metadata)
                if not _is_valid(command, self._exchanges, self._metadata, kind):
                    return
        self._checked.append(command)
        if isinstance(command, PutVhost) and self._owner and self._metadata.vhost(command.name) is None:
            self._checked.append(
                SetPermissions(user=self._owner, vhost=command.name, configure=".*", write=".*", read=".*")
            )

    def _with_default_type(self, command: DeclareQueue) -> DeclareQueue:
        vhost = self._metadata.vhost(command.vhost)
        existing = None if vhost is None else vhost.topology.queues.get(command.name)
        default = self._default_types.get(command.vhost)
        # A queue that exists stays as it is.
        if existing is not None and existing.arguments.get(QUEUE_TYPE) != default:
            return command
        is_transient = command.auto_delete or not command.durable
        arguments = with_default_type(command.arguments, default, is_transient=is_transient)
        return command if arguments is command.arguments else replace(command, arguments=arguments)


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
