"""The plan of an import of definitions: what it would create, change, keep and, with pruning, delete.

The commands of the document are compared with what exists, entry by entry. Pruning deletes what an export
would contain and the document does not, in the sections that the document has: a document without users
deletes no users.
"""

from collections.abc import Collection, Iterable, Iterator
from enum import Enum

from msgspec import Struct

from warren.limits import PLAN_RELEASED_PER_TURN, PLANNED_PER_TURN
from warren.metadata.bounds import beyond_bounds
from warren.metadata.commands import (
    Bind,
    DeclareExchange,
    DeclareQueue,
    MetadataCommand,
    PermissionCommand,
    PutUser,
    Reply,
    SetParameter,
    SetPermissions,
    SetPolicy,
    SetTopicPermissions,
    VhostCommand,
)
from warren.metadata.costly_patterns import costly_pattern
from warren.metadata.definition_entries import (
    DefinitionEntry,
    DefinitionKey,
    Facts,
    definition_key_of,
    existing_entries,
    facts_of,
    is_empty_setting,
)
from warren.metadata.events import Event
from warren.metadata.machine import Metadata
from warren.metadata.parameters import Parameters, checked_parameter
from warren.metadata.permissions import pattern_refusal
from warren.metadata.policies import checked_policy
from warren.metadata.vhosts import protection_refusal

# The order of deletions: an earlier one does not block a later one.
_REMOVAL_ORDER = (
    "bindings", "queues", "exchanges", "policies", "parameters", "global_parameters", "topic_permissions",
    "permissions", "users", "vhosts",
)  # fmt: skip
_FIRST_STAYS = (DeclareExchange, DeclareQueue, Bind)
_EXISTS_DIFFERENTLY = "it exists with other properties, which an import cannot change: delete it first"


class PlanAction(Enum):
    """What the import does with an entry."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    # The document asks for what an import cannot do.
    BLOCKED = "blocked"


class PlanItem(Struct, frozen=True, kw_only=True):
    """An entry that differs from the document: its current and its new state, and the command."""

    action: PlanAction
    key: DefinitionKey
    before: Facts | None = None
    after: Facts | None = None
    # The reason why it is blocked.
    reason: str = ""
    command: MetadataCommand | None = None


class ImportPlan:
    """A comparison of a document with what exists; complete when `steps` has been exhausted."""

    __slots__ = (
        "_commands",
        "_existing",
        "_metadata",
        "_possible",
        "_pruned",
        "_spared",
        "_vhost",
        "_wanted",
        "items",
        "kept",
    )

    def __init__(
        self,
        metadata: Metadata,
        commands: Iterable[MetadataCommand],
        *,
        vhost: str | None,
        pruned: Collection[str],
        spared: Collection[DefinitionKey] = (),
    ) -> None:
        """`pruned` are the sections in which entries without a command are deleted, with `vhost` only in that
        one.

        Entries in `spared` are kept.
        """
        self._metadata = metadata
        self._commands = list(commands)
        self._vhost = vhost
        self._pruned = pruned
        self._spared = spared
        self._existing: dict[DefinitionKey, DefinitionEntry] = {}
        # The entries of the document, and those that exist afterwards since nothing blocks them.
        self._wanted: set[DefinitionKey] = set()
        self._possible: set[DefinitionKey] = set()
        # In the order of execution.
        self.items: list[PlanItem] = []
        # The number of entries of the document that exist unchanged.
        self.kept = 0

    def steps(self) -> Iterator[None]:
        """Compute the plan, a turn's work with each step."""
        for number, (key, entry) in enumerate(existing_entries(self._metadata, self._vhost), 1):
            self._existing[key] = entry
            if not number % PLANNED_PER_TURN:
                yield
        wanted: dict[DefinitionKey, MetadataCommand] = {}
        for number, command in enumerate(self._commands, 1):
            key = definition_key_of(command)
            # If a document has an entry twice, the first declaration counts, and the last setting.
            if key not in wanted or not isinstance(command, _FIRST_STAYS):
                wanted[key] = command
            if not number % PLANNED_PER_TURN:
                yield
        for number, (key, command) in enumerate(wanted.items(), 1):
            self._compare(key, command)
            if not number % PLANNED_PER_TURN:
                yield
        yield from self._prune()
        yield

    def end(self) -> Iterator[None]:
        """Free the plan, a turn's work with each step, since freeing very much at once takes long."""
        while self._existing:
            for _ in range(min(len(self._existing), PLAN_RELEASED_PER_TURN)):
                self._existing.popitem()
            yield
        while self.items or self._commands:
            del self.items[-PLAN_RELEASED_PER_TURN:], self._commands[-PLAN_RELEASED_PER_TURN:]
            yield

    @property
    def is_empty(self) -> bool:
        """True if nothing would be created, changed or deleted."""
        return all(item.action is PlanAction.BLOCKED for item in self.items)

    def _compare(self, key: DefinitionKey, command: MetadataCommand) -> None:
        refusal = self._refusal(command)
        if isinstance(command, SetParameter) and not refusal:
            # Hidden passwords are those that are stored: a document that was read and is uploaded again is
            # no change.
            vhost = self._metadata.vhost(key.vhost)
            stored = Parameters(key.vhost, _ignore) if vhost is None else vhost.parameters
            checked = checked_parameter(stored, command, self._metadata.users.by_name)
            if isinstance(checked, SetParameter):
                command = checked
            else:
                refusal = checked.text
        self._wanted.add(key)
        if not refusal:
            self._possible.add(key)
        after, entry = facts_of(command), self._existing.get(key)
        if refusal:
            self.items.append(PlanItem(action=PlanAction.BLOCKED, key=key, after=after, reason=refusal))
        elif entry is None and is_empty_setting(command):
            self.kept += 1
        elif entry is None:
            self.items.append(PlanItem(action=PlanAction.CREATE, key=key, after=after, command=command))
        elif entry.facts == after and self._has_hash_of(command):
            self.kept += 1
        elif isinstance(command, DeclareQueue | DeclareExchange):
            before = entry.facts
            self.items.append(
                PlanItem(
                    action=PlanAction.BLOCKED, key=key, before=before, after=after, reason=_EXISTS_DIFFERENTLY
                )
            )
        else:
            if not self._has_hash_of(command):
                after = {**after, "password": "another"}
            self.items.append(
                PlanItem(action=PlanAction.CHANGE, key=key, before=entry.facts, after=after, command=command)
            )

    def _refusal(self, command: MetadataCommand) -> str:
        """The reason why `command` cannot be executed, as far as it is known in advance.

        Empty if there is none.
        """
        refusal = costly_pattern(command) or beyond_bounds(self._metadata, command)
        if refusal is not None:
            return refusal
        if isinstance(command, VhostCommand) and not self._is_vhost(command.vhost):
            return f"no vhost '{command.vhost}'"
        if isinstance(command, PermissionCommand) and not self._is_there(
            DefinitionKey("users", "", command.user)
        ):
            return f"no user '{command.user}'"
        checked: object = None
        if isinstance(command, SetPolicy):
            checked = checked_policy(command)
        elif isinstance(command, SetPermissions):
            checked = pattern_refusal(command.configure, command.write, command.read)
        elif isinstance(command, SetTopicPermissions):
            checked = pattern_refusal(command.write, command.read)
        if isinstance(checked, Reply):
            return checked.text
        if isinstance(command, Bind):
            return self._missing_end(command)
        return ""

    def _is_vhost(self, name: str) -> bool:
        return name == self._vhost or self._is_there(DefinitionKey("vhosts", "", name))

    def _is_there(self, key: DefinitionKey) -> bool:
        return key in self._existing or key in self._possible

    def _missing_end(self, command: Bind) -> str:
        """The end of a binding that does not exist and will not be created; empty if both will exist."""
        vhost = self._metadata.vhost(command.vhost)
        # Some exchanges and queues are in no document.
        exchanges = {} if vhost is None else vhost.topology.exchanges
        queues = {} if vhost is None else vhost.topology.queues
        destinations = queues if command.is_to_queue else exchanges
        section = "queues" if command.is_to_queue else "exchanges"
        if (
            command.source not in exchanges
            and DefinitionKey("exchanges", command.vhost, command.source) not in self._possible
        ):
            return f"no exchange '{command.source}'"
        key = DefinitionKey(section, command.vhost, command.destination)
        if command.destination not in destinations and key not in self._possible:
            return f"no {section[:-1]} '{command.destination}'"
        return ""

    def _has_hash_of(self, command: MetadataCommand) -> bool:
        """True unless `command` gives a user another password."""
        if not isinstance(command, PutUser):
            return True
        user = self._metadata.users.by_name.get(command.name)
        return user is None or (user.password_hash, user.hashing_algorithm) == (
            command.password_hash,
            command.hashing_algorithm,
        )

    def _prune(self) -> Iterator[None]:
        going: dict[str, list[DefinitionKey]] = {section: [] for section in _REMOVAL_ORDER}
        gone: set[DefinitionKey] = set()
        for number, key in enumerate(self._existing, 1):
            if key.section in self._pruned and key not in self._wanted and key not in self._spared:
                going[key.section].append(key)
                if key.section in _OWNERS and not self._is_protected(key):
                    gone.add(key)
            if not number % PLANNED_PER_TURN:
                yield
        for section in _REMOVAL_ORDER:
            for number, key in enumerate(going[section], 1):
                if gone.isdisjoint(_owners(key)):
                    entry = self._existing[key]
                    self.items.append(self._removal(key, entry))
                if not number % PLANNED_PER_TURN:
                    yield

    def _is_protected(self, key: DefinitionKey) -> bool:
        vhost = self._metadata.vhost(key.name) if key.section == "vhosts" else None
        return vhost is not None and vhost.protected_from_deletion

    def _removal(self, key: DefinitionKey, entry: DefinitionEntry) -> PlanItem:
        if self._is_protected(key):
            reason = protection_refusal(key.name)
            return PlanItem(action=PlanAction.BLOCKED, key=key, before=entry.facts, reason=reason)
        return PlanItem(action=PlanAction.DELETE, key=key, before=entry.facts, command=entry.removal)


def _ignore(_: Event) -> None:
    """Of a vhost that does not exist yet, nobody is told anything."""


# Deleting these deletes others with them.
_OWNERS = ("vhosts", "users", "exchanges", "queues")


def _owners(key: DefinitionKey) -> list[DefinitionKey]:
    """The entries whose deletion deletes the entry with `key` as well."""
    owners = [DefinitionKey("vhosts", "", key.vhost)] if key.vhost else []
    if key.section in ("permissions", "topic_permissions"):
        owners.append(DefinitionKey("users", "", key.name))
    if key.section == "bindings":
        kind, destination = key.more[:2]
        owners.append(DefinitionKey("exchanges", key.vhost, key.name))
        owners.append(DefinitionKey("queues" if kind == "queue" else "exchanges", key.vhost, destination))
    return owners
