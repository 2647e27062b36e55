"""The kinds of commands in the log, and the fields of each, by number.

The number of a kind and the place of a field never change and are never used again: a log names a command by
the number of its kind, and a field by its place. Every field is written, also one that has the default of
today, so that another default of a later version does not change what an older log says.

- A new command gets a new number.
- A new field of a command gets the next place, and an entry in `ABSENT`: its value in older logs, in which
  it does not exist.
- A field that is no longer used keeps its place, with the name None.
- A field whose meaning or type changes becomes a new field; a command whose rules change, a new kind.
"""

from collections.abc import Mapping

from msgspec import Struct

from warren.journal.raft_entry import EmptyEntry, MembersChange
from warren.metadata import commands, member_commands
from warren.metadata.commands import MetadataCommand
from warren.metadata.incarnation import NODE_ALONE
from warren.metadata.leases import LeaseRecord
from warren.metadata.records import (
    BindingRecord,
    ExchangeRecord,
    MemberRecord,
    QueueMember,
    QueueRecord,
    RemovedMember,
)


class CommandKind(Struct, frozen=True):
    """A kind of command: its number, its class, and the names of its fields in the order of their places."""

    number: int
    command: type[MetadataCommand | EmptyEntry | MembersChange]
    fields: tuple[str | None, ...]


KINDS = (
    CommandKind(
        1,
        commands.PutVhost,
        ("name", "description", "tags", "default_queue_type", "tracing", "protected_from_deletion"),
    ),
    CommandKind(2, commands.RemoveVhost, ("name",)),
    CommandKind(3, commands.SetVhostLimits, ("vhost", "limits")),
    CommandKind(4, commands.PutUser, ("name", "password_hash", "hashing_algorithm", "tags", "limits")),
    CommandKind(5, commands.RemoveUser, ("name",)),
    CommandKind(6, commands.SetUserTags, ("name", "tags")),
    CommandKind(7, commands.SetUserLimits, ("name", "limits")),
    CommandKind(8, commands.SetPermissions, ("user", "vhost", "configure", "write", "read")),
    CommandKind(9, commands.ClearPermissions, ("user", "vhost")),
    CommandKind(10, commands.SetTopicPermissions, ("user", "vhost", "exchange", "write", "read")),
    CommandKind(11, commands.ClearTopicPermissions, ("user", "vhost", "exchange")),
    CommandKind(
        12,
        commands.SetPolicy,
        ("vhost", "name", "pattern", "definition", "priority", "apply_to", "is_operator"),
    ),
    CommandKind(13, commands.ClearPolicy, ("vhost", "name", "is_operator")),
    CommandKind(14, commands.SetParameter, ("vhost", "component", "name", "value", "user")),
    CommandKind(15, commands.ClearParameter, ("vhost", "component", "name")),
    CommandKind(16, commands.SetGlobalParameter, ("name", "value")),
    CommandKind(17, commands.ClearGlobalParameter, ("name",)),
    CommandKind(
        18,
        commands.DeclareExchange,
        ("vhost", "name", "type", "durable", "auto_delete", "internal", "arguments", "user"),
    ),
    CommandKind(19, commands.DeleteExchange, ("vhost", "name", "if_unused")),
    CommandKind(
        20,
        commands.DeclareQueue,
        ("vhost", "name", "durable", "auto_delete", "owner", "arguments", "user", "home", "members"),
    ),
    CommandKind(21, commands.PauseQueue, ("vhost", "name", "is_paused")),
    CommandKind(22, commands.DeleteQueue, ("vhost", "name")),
    CommandKind(23, commands.DeleteExclusiveQueues, ("vhost", "owner", "count_max")),
    CommandKind(
        24, commands.Bind, ("vhost", "source", "destination", "is_to_queue", "routing_key", "arguments")
    ),
    CommandKind(
        25,
        commands.Unbind,
        ("vhost", "source", "destination", "is_to_queue", "routing_key", "arguments"),
    ),
    CommandKind(26, commands.GrantLease, ("vhost", "lease")),
    CommandKind(27, commands.RenewLease, ("vhost", "id", "expires_at")),
    CommandKind(28, commands.EndLease, ("vhost", "id", "state")),
    CommandKind(29, commands.RestoreTopology, ("vhost", "exchanges", "queues", "bindings")),
    CommandKind(30, commands.RememberRemoved, ("names",)),
    CommandKind(31, commands.DoubtNumbers, ("until",)),
    CommandKind(32, commands.SettleNumbers, ("numbers",)),
    CommandKind(33, commands.DeleteEphemeral, ("node", "incarnation", "count_max")),
    CommandKind(
        36,
        member_commands.FormCluster,
        (
            "cluster_id", "name", "host", "cluster_port", "incarnation", "feature_level", "amqp_host",
            "amqp_port",
        ),
    ),
    CommandKind(
        37,
        member_commands.AdmitMember,
        ("name", "host", "cluster_port", "incarnation", "feature_level"),
    ),
    CommandKind(38, member_commands.RemoveMember, ("id", "is_forgotten")),
    CommandKind(
        39,
        member_commands.MemberUp,
        ("id", "incarnation", "host", "cluster_port", "feature_level", "amqp_host", "amqp_port"),
    ),
    CommandKind(40, member_commands.MemberDown, ("id", "incarnation")),
    CommandKind(41, member_commands.SetMemberDraining, ("id", "is_draining")),
    CommandKind(42, member_commands.RaiseFeatureLevel, ("level",)),
    CommandKind(
        43,
        member_commands.RestoreMembers,
        ("cluster_id", "feature_level", "next_id", "members", "removed"),
    ),
    CommandKind(44, member_commands.RestoreAppliedProposals, ("node", "incarnation", "serial")),
    CommandKind(45, commands.ChangeQueueMembers, ("vhost", "queue", "number", "added", "removed")),
    CommandKind(46, commands.RemoveReplicas, ("node", "count_max")),
    CommandKind(47, commands.LeadQueue, ("vhost", "queue", "number", "node")),
)  # fmt: skip

# Entries that are no commands, with numbers of the same series.
RAFT_KINDS = (
    CommandKind(34, EmptyEntry, ()),
    CommandKind(35, MembersChange, ("change",)),
)

# The rows of records inside of commands, with the same rules.
ROWS: Mapping[type, tuple[str | None, ...]] = {
    ExchangeRecord: (
        "name", "type", "durable", "auto_delete", "internal", "arguments", "user", "incarnation",
    ),
    QueueRecord: (
        "name", "durable", "auto_delete", "owner", "arguments", "user", "number", "incarnation", "home",
        "members", "next_replica", "initial_replicas",
    ),
    QueueMember: ("node", "replica"),
    BindingRecord: ("source", "is_to_queue", "destination", "routing_key", "arguments_bytes"),
    LeaseRecord: (
        "id", "queue", "user", "key", "places", "messages", "byte_count", "granted_at", "expires_at", "state",
    ),
    MemberRecord: (
        "id", "name", "host", "cluster_port", "incarnation", "is_up", "is_draining", "feature_level",
        "amqp_host", "amqp_port",
    ),
    RemovedMember: ("id", "name", "is_forgotten"),
}  # fmt: skip

# The values of fields in logs from before they existed, by the class and the name of the field.
ABSENT: Mapping[tuple[type, str], object] = {
    # Before version 9 a node was alone.
    (commands.DeclareQueue, "home"): 0,
    (QueueRecord, "home"): NODE_ALONE,
    # Before version 10 a quorum queue had one replica.
    (commands.DeclareQueue, "members"): (),
    (QueueRecord, "members"): (),
    (QueueRecord, "next_replica"): 0,
    (QueueRecord, "initial_replicas"): 0,
    # Before version 11 no virtual host was protected.
    (commands.PutVhost, "protected_from_deletion"): False,
}
