"""The commands of the metadata, one frozen class for each, and their replies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.records import BindingRecord, ExchangeRecord, QueueRecord
from warren.wire.table import Value

# A value that JSON can represent.

Json = object

# RabbitMQ's name for the broker itself as the user who performed an operation.
INTERNAL_USER = "rmq-internal"


class Outcome(Enum):
    """The outcome of a command."""

    DONE = "done"
    # The object existed before, perhaps with other properties: the caller compares them.
    EXISTING = "existing"
    MISSING = "missing"
    # The command has done as much as it may at once, and there is more to do.
    PARTLY = "partly"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a command; `text` gives the reason of a refusal."""

    outcome: Outcome = Outcome.DONE
    text: str = ""


DONE = Reply()
EXISTING = Reply(Outcome.EXISTING)
MISSING = Reply(Outcome.MISSING)
PARTLY = Reply(Outcome.PARTLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """The context of a command: its index in the log, and the time at which it was proposed."""

    index: int
    now: int
    # The user who requested it.
    user: str = INTERNAL_USER


class MetadataCommand:
    """A change of the metadata, the same on every node."""

    __slots__ = ()


class VhostCommand(MetadataCommand):
    """A change inside a vhost, which must exist."""

    __slots__ = ()
    vhost: str


class PermissionCommand(VhostCommand):
    """A change of a user's permissions in a vhost; both must exist."""

    __slots__ = ()
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutVhost(MetadataCommand):
    """Create a vhost with its default exchanges, or replace the description of an existing one."""

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: str | None = None
    tracing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveVhost(MetadataCommand):
    """Remove a vhost with all its objects."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVhostLimits(VhostCommand):
    """Replace the limits of a vhost; an empty mapping clears them."""

    vhost: str
    limits: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class PutUser(MetadataCommand):
    """Create or replace a user; limits None keeps the existing limits."""

    name: str
    password_hash: bytes
    hashing_algorithm: str
    tags: tuple[str, ...] = ()
    limits: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveUser(MetadataCommand):
    """Remove a user with all permissions."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUserTags(MetadataCommand):
    """Replace the tags of a user."""

    name: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUserLimits(MetadataCommand):
    """Replace the limits of a user; an empty mapping clears them."""

    name: str
    limits: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPermissions(PermissionCommand):
    """Set the permissions of a user in a vhost: patterns of the names to configure, write and read."""

    user: str
    vhost: str
    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearPermissions(PermissionCommand):
    """Remove a user's permissions in a vhost."""

    user: str
    vhost: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTopicPermissions(PermissionCommand):
    """Restrict a user of a topic exchange to the routing keys that two patterns match."""

    user: str
    vhost: str
    exchange: str
    write: str
    read: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearTopicPermissions(PermissionCommand):
    """Remove the topic permissions on one exchange, or, if `exchange` is None, on all of a vhost."""

    user: str
    vhost: str
    exchange: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPolicy(VhostCommand):
    """Create or replace a policy, or an operator policy."""

    vhost: str
    name: str
    pattern: Json
    definition: Json
    priority: Json = 0
    apply_to: Json = "all"
    is_operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearPolicy(VhostCommand):
    """Remove a policy, or an operator policy."""

    vhost: str
    name: str
    is_operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetParameter(VhostCommand):
    """Set a parameter of a vhost: the configuration of shovels, federation and plugins."""

    vhost: str
    component: str
    name: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearParameter(VhostCommand):
    """Remove a parameter of a vhost."""

    vhost: str
    component: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGlobalParameter(MetadataCommand):
    """Set a parameter of the broker."""

    name: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearGlobalParameter(MetadataCommand):
    """Remove a parameter of the broker."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareExchange(VhostCommand):
    """Create an exchange unless one with the name exists."""

    vhost: str
    name: str
    type: str
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Mapping[str, Value] = field(default_factory=dict)
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteExchange(VhostCommand):
    """Delete an exchange and its bindings; with `if_unused`, only one without bindings from it."""

    vhost: str
    name: str
    if_unused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareQueue(VhostCommand):
    """Create a queue unless one with the name exists; `owner` is the connection it is exclusive to."""

    vhost: str
    name: str
    durable: bool = False
    auto_delete: bool = False
    owner: str | None = None
    arguments: Mapping[str, Value] = field(default_factory=dict)
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseQueue(VhostCommand):
    """Pause the deliveries of a queue, or resume them if `is_paused` is false."""

    vhost: str
    name: str
    is_paused: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantLease(VhostCommand):
    """Grant a lease: exclusive use of the messages at some places of a queue."""

    vhost: str
    lease: LeaseRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewLease(VhostCommand):
    """Change the time when a lease expires."""

    vhost: str
    id: str
    expires_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndLease(VhostCommand):
    """End a lease; `state` determines what happens to its messages."""

    vhost: str
    id: str
    state: LeaseState


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteQueue(VhostCommand):
    """Delete a queue and the bindings to it."""

    vhost: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteExclusiveQueues(VhostCommand):
    """Delete the queues that are exclusive to the connection `owner`, which was closed.

    The outcome is PARTLY after `count_max` queues and bindings.
    """

    vhost: str
    owner: str
    count_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind(VhostCommand):
    """Bind a queue, or an exchange, to an exchange unless the binding exists."""

    vhost: str
    source: str
    destination: str
    is_to_queue: bool = True
    routing_key: str = ""
    arguments: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbind(VhostCommand):
    """Remove one binding."""

    vhost: str
    source: str
    destination: str
    is_to_queue: bool = True
    routing_key: str = ""
    arguments: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreTopology(VhostCommand):
    """Restore the objects of a snapshot, queues with their numbers; existing objects are kept."""

    vhost: str
    exchanges: tuple[ExchangeRecord, ...] = ()
    queues: tuple[QueueRecord, ...] = ()
    bindings: tuple[BindingRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberRemoved(MetadataCommand):
    """Record vhosts that do not exist as removed by a command: their files may still exist."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtNumbers(MetadataCommand):
    """Mark all numbers up to `until` as in doubt after a loss of the log; none of them is used again."""

    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleNumbers(MetadataCommand):
    """Record that numbers in doubt belong to no queue: their files may be deleted."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetTransient(MetadataCommand):
    """Remove what does not survive a restart: exclusive and transient queues, and transient exchanges."""
