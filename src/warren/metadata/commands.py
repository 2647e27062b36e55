"""Everything that can be asked of the metadata: one frozen class per command, and the answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.records import BindingRecord, ExchangeRecord, QueueRecord
from warren.wire.table import Value

# A value that JSON can hold.

Json = object

# RabbitMQ's name of the broker itself, where a user is said to have done something.
INTERNAL_USER = "rmq-internal"


class Outcome(Enum):
    """How a command ended."""

    DONE = "done"
    # It was there before, perhaps otherwise than asked: the asker compares.
    EXISTING = "existing"
    MISSING = "missing"
    # So much was done as was asked for at once, and there is more to do.
    PARTLY = "partly"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a command; `text` says why it was refused."""

    outcome: Outcome = Outcome.DONE
    text: str = ""


DONE = Reply()
EXISTING = Reply(Outcome.EXISTING)
MISSING = Reply(Outcome.MISSING)
PARTLY = Reply(Outcome.PARTLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """What the log says about a command: its place, and the time at which it was proposed."""

    index: int
    now: int
    # Who asked for it.
    user: str = INTERNAL_USER


class MetadataCommand:
    """A change of the metadata, the same on every node."""

    __slots__ = ()


class VhostCommand(MetadataCommand):
    """A change inside a vhost, which must exist."""

    __slots__ = ()
    vhost: str


class PermissionCommand(VhostCommand):
    """A change of what a user may do in a vhost; both must exist."""

    __slots__ = ()
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutVhost(MetadataCommand):
    """Create a vhost with its default exchanges, or describe an existing one anew."""

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: str | None = None
    tracing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveVhost(MetadataCommand):
    """Remove a vhost with everything in it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVhostLimits(VhostCommand):
    """Replace the limits of a vhost; none at all clears them."""

    vhost: str
    limits: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class PutUser(MetadataCommand):
    """Create or replace a user; limits None keeps what they were."""

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
    """Replace the limits of a user; none at all clears them."""

    name: str
    limits: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPermissions(PermissionCommand):
    """Let a user into a vhost, to configure, write and read what three patterns match."""

    user: str
    vhost: str
    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearPermissions(PermissionCommand):
    """Keep a user out of a vhost."""

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
    """Lift the restriction on one topic exchange, or, if `exchange` is None, on all of a vhost."""

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
    """Set a parameter of a vhost: what shovels, federation and plugins are configured with."""

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
    """Create an exchange unless there is one of the name."""

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
    """Create a queue unless there is one of the name; `owner` is the connection it is exclusive to."""

    vhost: str
    name: str
    durable: bool = False
    auto_delete: bool = False
    owner: str | None = None
    arguments: Mapping[str, Value] = field(default_factory=dict)
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseQueue(VhostCommand):
    """Have a queue hand nothing out, or, if `is_paused` is false, hand out again."""

    vhost: str
    name: str
    is_paused: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantLease(VhostCommand):
    """Have somebody, and nobody else, work on the messages at some places of a queue."""

    vhost: str
    lease: LeaseRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewLease(VhostCommand):
    """Have a lease end later, or earlier."""

    vhost: str
    id: str
    expires_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndLease(VhostCommand):
    """End a lease: what becomes of its messages follows from `state`."""

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
    """Delete the queues that are exclusive to the connection `owner`, which is gone.

    PARTLY once it was `count_max` queues and bindings.
    """

    vhost: str
    owner: str
    count_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind(VhostCommand):
    """Bind a queue, or an exchange, to an exchange unless it is bound so already."""

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
    """Have what existed when this was noted, queues with their numbers; what is there already stays."""

    vhost: str
    exchanges: tuple[ExchangeRecord, ...] = ()
    queues: tuple[QueueRecord, ...] = ()
    bindings: tuple[BindingRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberRemoved(MetadataCommand):
    """Have vhosts, which do not exist, count as removed by a command: their files may still be there."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtNumbers(MetadataCommand):
    """A part of the log is lost: nobody knows what had numbers up to `until`; none of them is used again."""

    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleNumbers(MetadataCommand):
    """Numbers that are in doubt are nobody's: what is kept for them may go."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetTransient(MetadataCommand):
    """Remove what does not survive a restart: exclusive and transient queues, transient exchanges."""
