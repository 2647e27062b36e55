"""Checks definitions against what Warren supports, before any of them is applied."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from warren.errors import AmqpError, NotFound
from warren.limits import DEFINITIONS_NAMED_MAX
from warren.metadata.commands import (
    Bind,
    DeclareExchange,
    DeclareQueue,
    Json,
    MetadataCommand,
    Outcome,
    PutVhost,
    SetParameter,
    SetPermissions,
)
from warren.metadata.costly_patterns import costly_pattern
from warren.metadata.declared_topology import DEFAULT_EXCHANGES
from warren.metadata.definition_entries import definition_key_of, place_of
from warren.metadata.definitions_import import (
    IMPORTER,
    DefinitionsError,
    PasswordHasher,
    import_commands,
)
from warren.metadata.import_rehearsal import ImportRehearsal
from warren.metadata.machine import Metadata
from warren.metadata.parameters import is_component
from warren.model.arguments import (
    QUEUE_TYPE,
    Arguments,
    check_queue_arguments,
    check_queue_properties,
    queue_kind,
    with_default_type,
)
from warren.model.names import RESERVED_PREFIX, QueueName
from warren.routing.exchange import ExchangeSettings
from warren.routing.types import exchange_type
from warren.wire.table import Value


class CheckedDefinitions(Struct, frozen=True):
    """The commands of a document that can be applied, and descriptions of those that cannot.

    A description names the type, the name and the virtual host of the entry.
    """

    commands: list[MetadataCommand]
    # The names and reasons of the entries that are refused, and the commands of those that could be read.
    left_out: list[str]
    refused: list[MetadataCommand]
    # Bindings that are skipped, as RabbitMQ skips them, and what is kept without effect.
    warnings: list[str]

    def complete(self) -> list[MetadataCommand]:
        """The commands if all can be applied; DefinitionsError naming those that cannot."""
        if self.left_out:
            named = "; ".join(named_entries(self.left_out))
            raise DefinitionsError(
                f"nothing was imported, as the document has entries that cannot be declared: {named}"
            )
        return self.commands


def named_entries(texts: Sequence[str]) -> list[str]:
    """The first of `texts`, and how many more there are."""
    more = len(texts) - DEFINITIONS_NAMED_MAX
    return [*texts[:DEFINITIONS_NAMED_MAX], *([f"and {more} more"] if more > 0 else [])]


def check_document(
    document: Json,
    metadata: Metadata,
    hash_password: PasswordHasher,
    *,
    vhost: str | None = None,
    user: str = IMPORTER,
    owner: str = "",
    default_type: str = "",
) -> CheckedDefinitions:
    """Read and check all entries of `document`, as `import_commands` and `check_definitions` do.

    They are also tried on a copy of the metadata without its topology, so that nothing is refused when the
    import has begun. DefinitionsError for a document that has no entries.
    """
    unread: list[str] = []
    read = import_commands(document, hash_password, vhost=vhost, user=user, left_out=unread)
    found = check_definitions(read, metadata, owner=owner, default_type=default_type)
    commands, left_out, refused = [], [*unread, *found.left_out], [*found.refused]
    rehearsal = ImportRehearsal(metadata)
    for command in found.commands:
        reply = rehearsal.apply(command)
        if reply.outcome in (Outcome.REFUSED, Outcome.MISSING):
            refused.append(command)
            left_out.append(_described(command, reply.text))
        else:
            commands.append(command)
    return CheckedDefinitions(commands, left_out, refused, found.warnings)


def check_definitions(
    commands: Iterable[MetadataCommand], metadata: Metadata, *, owner: str = "", default_type: str = ""
) -> CheckedDefinitions:
    """Check `commands`; bindings that cannot be are skipped, as in RabbitMQ, with a warning.

    The user `owner` gets all permissions in each virtual host that the document creates, which it may
    restrict; a queue gets the default type of its virtual host, or else `default_type`, as if it were
    declared. Left out are exchanges and queues that are invalid anywhere, and what RabbitMQ accepts and
    Warren does not: regular expressions that are too costly.
    """
    return _Check(metadata, owner, default_type).checked(commands)


class _Check:
    """What the commands that were checked so far will make."""

    def __init__(self, metadata: Metadata, owner: str, default_type: str) -> None:
        self._metadata = metadata
        self._default_type = default_type
        self._owner = owner if owner in metadata.users.by_name else ""
        self._found = CheckedDefinitions([], [], [], [])
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
            if reason is None:
                try:
                    self._add(command)
                except AmqpError as error:
                    reason = error.message
            if reason is not None:
                self._found.refused.append(command)
                self._found.left_out.append(_described(command, reason))
        return self._found

    def _add(self, command: MetadataCommand) -> None:
        """Keep `command`, unless it is a binding that is skipped; AmqpError if it is invalid."""
        match command:
            case PutVhost():
                self._default_types[command.name] = command.default_queue_type
            case DeclareExchange():
                if self._exchange(command.vhost, command.name) is None:
                    exchange_type(command.type).validate_arguments(command.arguments)
                found = command.type, dict(command.arguments)
                self._exchanges.setdefault((command.vhost, command.name), found)
            case DeclareQueue():
                is_new = self._queue_kind(command.vhost, command.name) is None
                command = self._with_default_type(command)
                # One that exists stays as it is, as in RabbitMQ.
                if is_new:
                    _check_queue(command)
                    self._queues[command.vhost, command.name] = queue_kind(command.arguments)
            case SetParameter() if not is_component(command.component):
                reason = f"it is kept without effect, as Warren has no component '{command.component}'"
                self._found.warnings.append(_described(command, reason))
            case Bind():
                try:
                    self._check_binding(command)
                except AmqpError as error:
                    self._found.warnings.append(_described(command, f"skipped: {error.message}"))
                    return
        self._found.commands.append(command)
        if isinstance(command, PutVhost) and self._owner and self._metadata.vhost(command.name) is None:
            self._found.commands.append(
                SetPermissions(user=self._owner, vhost=command.name, configure=".*", write=".*", read=".*")
            )

    def _with_default_type(self, command: DeclareQueue) -> DeclareQueue:
        vhost = self._metadata.vhost(command.vhost)
        existing = None if vhost is None else vhost.topology.queues.get(command.name)
        default = self._default_types.get(command.vhost) or self._default_type or None
        # A queue that exists stays as it is.
        if existing is not None and existing.arguments.get(QUEUE_TYPE) != default:
            return command
        is_transient = command.auto_delete or not command.durable
        arguments = with_default_type(command.arguments, default, is_transient=is_transient)
        return command if arguments is command.arguments else replace(command, arguments=arguments)

    def _check_binding(self, command: Bind) -> None:
        """Raise an AmqpError if an end of a binding is missing, or if its source refuses it."""
        source = self._exchange(command.vhost, command.source)
        if source is None:
            raise NotFound(f"no exchange '{command.source}'")
        if not command.is_to_queue:
            kind = None
            if self._exchange(command.vhost, command.destination) is None:
                raise NotFound(f"no exchange '{command.destination}'")
        elif command.destination.startswith(RESERVED_PREFIX):
            # RabbitMQ up to 4.4.0 exports bindings of queues that ended with their connections.
            raise NotFound("a queue that the server has named is not imported")
        else:
            kind = self._queue_kind(command.vhost, command.destination)
            if kind is None:
                raise NotFound(f"no queue '{command.destination}'")
        type_name, arguments = source
        exchange = exchange_type(type_name)(command.source, ExchangeSettings(arguments=arguments))
        exchange.validate_binding(command.routing_key, command.arguments)
        exchange.validate_destination(kind)

    def _exchange(self, vhost_name: str, name: str) -> tuple[str, Arguments] | None:
        """The type and the arguments of an exchange that exists or will be created; None if there is none."""
        vhost = self._metadata.vhost(vhost_name)
        record = None if vhost is None else vhost.topology.exchanges.get(name)
        if record is not None:
            return record.type, record.arguments
        if name in _DEFAULTS:
            return _DEFAULTS[name], {}
        return self._exchanges.get((vhost_name, name))

    def _queue_kind(self, vhost_name: str, name: str) -> str | None:
        """The type of a queue that exists or will be created; None if there is none."""
        vhost = self._metadata.vhost(vhost_name)
        record = None if vhost is None else vhost.topology.queues.get(name)
        return self._queues.get((vhost_name, name)) if record is None else record.kind


def _described(command: MetadataCommand, reason: str) -> str:
    reason = reason.removeprefix("Validation failed\n\n").rstrip()
    return f"{place_of(definition_key_of(command))}: {reason}"


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


_DEFAULTS = {name: kind for name, kind, _ in DEFAULT_EXCHANGES}
