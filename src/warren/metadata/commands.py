"""The commands of the metadata, one frozen class for each, and their replies."""

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct, field

from warren.metadata.incarnation import FIRST_INCARNATION, Incarnation
from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.records import BindingRecord, ExchangeRecord, QueueRecord
from warren.wire.table import Value

# A value that JSON can represent.

Json = object

# RabbitMQ's name for the broker itself as the user who performed an operation.
INTERNAL_USER = "rmq-internal"
# Who configures the node, as the user of shovels and upstreams in its configuration and in definitions that
# it loads when it starts: they may do everything at this node. No user has this name (see `parameter_user`).
OPERATOR = ""


def parameter_user(name: str) -> str:
    """The user of a parameter that the user `name` sets, which is never the operator."""
    return name or INTERNAL_USER


class Outcome(Enum):
    """The outcome of a command."""

    DONE = "done"
    # The object existed before, perhaps with other properties: the caller compares them.
    EXISTING = "existing"
    MISSING = "missing"
    # The command has done as much as it may at once, and there is more to do.
    PARTLY = "partly"
    REFUSED = "refused"
    # The proposal was applied before, or its run has ended: nothing was done.
    SKIPPED = "skipped"


class Reply(Struct, frozen=True):
    """The reply to a command; `text` gives the reason of a refusal."""

    outcome: Outcome = Outcome.DONE
    text: str = ""


DONE = Reply()
EXISTING = Reply(Outcome.EXISTING)
MISSING = Reply(Outcome.MISSING)
PARTLY = Reply(Outcome.PARTLY)
SKIPPED = Reply(Outcome.SKIPPED)


class CommandContext(Struct, frozen=True, kw_only=True):
    """The context of a command: its index in the log, and the time at which it was proposed."""

    index: int
    now: int
    # The user who requested it.
    user: str = INTERNAL_USER
    # The run of the node that proposed it, with which transient objects end.
    incarnation: Incarnation = FIRST_INCARNATION
    # Its number among the proposals of that run; 0 if it was not proposed but applied at the start.
    serial: int = 0
    # True if it passed `Metadata.accepted` before it was written to the log. It is not examined again, so
    # that a later version with other rules gets the same state from the same log.
    is_accepted: bool = False


class MetadataCommand(Struct, frozen=True):
    """A change of the metadata, the same on every node."""


class VhostCommand(MetadataCommand, frozen=True):
    """A change inside a vhost, which must exist."""

    vhost: str


class PermissionCommand(VhostCommand, frozen=True):
    """A change of a user's permissions in a vhost; both must exist."""

    user: str


class PutVhost(MetadataCommand, frozen=True, kw_only=True):
    """Create a vhost with its default exchanges, or replace the description of an existing one."""

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: str | None = None
    tracing: bool = False
    # True: RemoveVhost is refused.
    protected_from_deletion: bool = False


class RemoveVhost(MetadataCommand, frozen=True, kw_only=True):
    """Remove a vhost with all its objects."""

    name: str


class SetVhostLimits(VhostCommand, frozen=True, kw_only=True):
    """Replace the limits of a vhost; an empty mapping clears them."""

    vhost: str
    limits: Mapping[str, Json]


class PutUser(MetadataCommand, frozen=True, kw_only=True):
    """Create or replace a user; limits None keeps the existing limits."""

    name: str
    password_hash: bytes
    hashing_algorithm: str
    tags: tuple[str, ...] = ()
    limits: Mapping[str, Json] | None = None


class RemoveUser(MetadataCommand, frozen=True, kw_only=True):
    """Remove a user with all permissions."""

    name: str


class SetUserTags(MetadataCommand, frozen=True, kw_only=True):
    """Replace the tags of a user."""

    name: str
    tags: tuple[str, ...]


class SetUserLimits(MetadataCommand, frozen=True, kw_only=True):
    """Replace the limits of a user; an empty mapping clears them."""

    name: str
    limits: Mapping[str, Json]


class SetPermissions(PermissionCommand, frozen=True, kw_only=True):
    """Set the permissions of a user in a vhost: patterns of the names to configure, write and read."""

    user: str
    vhost: str
    configure: str
    write: str
    read: str


class ClearPermissions(PermissionCommand, frozen=True, kw_only=True):
    """Remove a user's permissions in a vhost."""

    user: str
    vhost: str


class SetTopicPermissions(PermissionCommand, frozen=True, kw_only=True):
    """Restrict a user of a topic exchange to the routing keys that two patterns match."""

    user: str
    vhost: str
    exchange: str
    write: str
    read: str


class ClearTopicPermissions(PermissionCommand, frozen=True, kw_only=True):
    """Remove the topic permissions on one exchange, or, if `exchange` is None, on all of a vhost."""

    user: str
    vhost: str
    exchange: str | None = None


class SetPolicy(VhostCommand, frozen=True, kw_only=True):
    """Create or replace a policy, or an operator policy."""

    vhost: str
    name: str
    pattern: Json
    definition: Json
    priority: Json = 0
    apply_to: Json = "all"
    is_operator: bool = False


class ClearPolicy(VhostCommand, frozen=True, kw_only=True):
    """Remove a policy, or an operator policy."""

    vhost: str
    name: str
    is_operator: bool = False


class SetParameter(VhostCommand, frozen=True, kw_only=True):
    """Set a parameter of a vhost: the configuration of shovels, federation and plugins."""

    vhost: str
    component: str
    name: str
    value: Json
    # The user who sets it, with whose rights a shovel or a link runs; OPERATOR may do everything.
    user: str = INTERNAL_USER

    def __repr__(self) -> str:
        """Show no value, since it may contain passwords, and a repr can end up in a traceback."""
        return f"SetParameter(vhost={self.vhost!r}, component={self.component!r}, name={self.name!r})"


class ClearParameter(VhostCommand, frozen=True, kw_only=True):
    """Remove a parameter of a vhost."""

    vhost: str
    component: str
    name: str


class SetGlobalParameter(MetadataCommand, frozen=True, kw_only=True):
    """Set a parameter of the broker."""

    name: str
    value: Json


class ClearGlobalParameter(MetadataCommand, frozen=True, kw_only=True):
    """Remove a parameter of the broker."""

    name: str


class DeclareExchange(VhostCommand, frozen=True, kw_only=True):
    """Create an exchange unless one with the name exists."""

    vhost: str
    name: str
    type: str
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Mapping[str, Value] = field(default_factory=dict)
    user: str = ""


class DeleteExchange(VhostCommand, frozen=True, kw_only=True):
    """Delete an exchange and its bindings; with `if_unused`, only one without bindings from it."""

    vhost: str
    name: str
    if_unused: bool = False


class DeclareQueue(VhostCommand, frozen=True, kw_only=True):
    """Create a queue unless one with the name exists; `owner` is the connection it is exclusive to.

    `home` is the member that is to have it: the proposing node if it is 0, or if that member is not up.
    `members`, of a quorum queue, are those that are to have a replica, in front the one that leads first;
    `home` counts only if none of them is up then. `queue_members` says which of them get one.
    """

    vhost: str
    name: str
    durable: bool = False
    auto_delete: bool = False
    owner: str | None = None
    arguments: Mapping[str, Value] = field(default_factory=dict)
    user: str = ""
    home: int = 0
    members: tuple[int, ...] = ()


class ChangeQueueMembers(VhostCommand, frozen=True, kw_only=True):
    """Change which nodes have a replica of a quorum queue: all that is said, or nothing.

    MISSING if the queue does not exist any more, or has another number; REFUSED, with the reason, if one of
    the nodes cannot be added or removed, or if none of those would stay that have a replica now. The new
    replicas get the next numbers, in the order of `added`.
    """

    vhost: str
    queue: str
    number: int
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()


class LeadQueue(VhostCommand, frozen=True, kw_only=True):
    """Note that the member `node` leads a quorum queue, whose group has begun: its home is that node.

    MISSING if the queue does not exist any more, has another number, has no member on that node, or never
    begins, because half of its first members were removed before.
    """

    vhost: str
    queue: str
    number: int
    node: int


class PauseQueue(VhostCommand, frozen=True, kw_only=True):
    """Pause the deliveries of a queue, or resume them if `is_paused` is false."""

    vhost: str
    name: str
    is_paused: bool = True


class GrantLease(VhostCommand, frozen=True, kw_only=True):
    """Grant a lease: exclusive use of the messages at some places of a queue."""

    vhost: str
    lease: LeaseRecord


class RenewLease(VhostCommand, frozen=True, kw_only=True):
    """Change the time when a lease expires."""

    vhost: str
    id: str
    expires_at: int


class EndLease(VhostCommand, frozen=True, kw_only=True):
    """End a lease; `state` determines what happens to its messages."""

    vhost: str
    id: str
    state: LeaseState


class DeleteQueue(VhostCommand, frozen=True, kw_only=True):
    """Delete a queue and the bindings to it."""

    vhost: str
    name: str


class DeleteExclusiveQueues(VhostCommand, frozen=True, kw_only=True):
    """Delete the queues that are exclusive to the connection `owner`, which was closed.

    The outcome is PARTLY after `count_max` queues and bindings.
    """

    vhost: str
    owner: str
    count_max: int


class Bind(VhostCommand, frozen=True, kw_only=True):
    """Bind a queue, or an exchange, to an exchange unless the binding exists."""

    vhost: str
    source: str
    destination: str
    is_to_queue: bool = True
    routing_key: str = ""
    arguments: Mapping[str, Value] = field(default_factory=dict)


class Unbind(VhostCommand, frozen=True, kw_only=True):
    """Remove one binding."""

    vhost: str
    source: str
    destination: str
    is_to_queue: bool = True
    routing_key: str = ""
    arguments: Mapping[str, Value] = field(default_factory=dict)


class RestoreTopology(VhostCommand, frozen=True, kw_only=True):
    """Restore the objects of a snapshot, queues with their numbers; existing objects are kept."""

    vhost: str
    exchanges: tuple[ExchangeRecord, ...] = ()
    queues: tuple[QueueRecord, ...] = ()
    bindings: tuple[BindingRecord, ...] = ()


class RememberRemoved(MetadataCommand, frozen=True, kw_only=True):
    """Record vhosts that do not exist as removed by a command: their files may still exist."""

    names: tuple[str, ...]


class DoubtNumbers(MetadataCommand, frozen=True, kw_only=True):
    """Mark all numbers up to `until` as in doubt after a loss of the log; none of them is used again."""

    until: int


class SettleNumbers(MetadataCommand, frozen=True, kw_only=True):
    """Record that numbers in doubt belong to no queue: their files may be deleted."""

    numbers: tuple[int, ...]


class DeleteEphemeral(MetadataCommand, frozen=True, kw_only=True):
    """Delete what ended with the runs of `node` before its incarnation `incarnation`: exclusive and transient
    queues, and transient exchanges.

    An exchange has no home, and every node uses it: if another member is up, it ends with that one instead.
    At most `count_max` objects and bindings at once.
    """

    node: int
    incarnation: int
    count_max: int


class RemoveReplicas(MetadataCommand, frozen=True, kw_only=True):
    """Remove the node `node` from the members of all quorum queues that have another one.

    The outcome is PARTLY after `count_max` queues. A queue whose last member it is stays there.
    """

    node: int
    count_max: int
