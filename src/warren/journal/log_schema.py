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

from warren.metadata import commands
from warren.metadata.commands import MetadataCommand
from warren.metadata.leases import LeaseRecord
from warren.metadata.records import BindingRecord, ExchangeRecord, QueueRecord


class Kind(Struct, frozen=True):
    """A kind of command: its number, its class, and the names of its fields in the order of their places."""

    number: int
    command: type[MetadataCommand]
    fields: tuple[str | None, ...]


KINDS = (
    Kind(1, commands.PutVhost, ("name", "description", "tags", "default_queue_type", "tracing")),
    Kind(2, commands.RemoveVhost, ("name",)),
    Kind(3, commands.SetVhostLimits, ("vhost", "limits")),
    Kind(4, commands.PutUser, ("name", "password_hash", "hashing_algorithm", "tags", "limits")),
    Kind(5, commands.RemoveUser, ("name",)),
    Kind(6, commands.SetUserTags, ("name", "tags")),
    Kind(7, commands.SetUserLimits, ("name", "limits")),
    Kind(8, commands.SetPermissions, ("user", "vhost", "configure", "write", "read")),
    Kind(9, commands.ClearPermissions, ("user", "vhost")),
    Kind(10, commands.SetTopicPermissions, ("user", "vhost", "exchange", "write", "read")),
    Kind(11, commands.ClearTopicPermissions, ("user", "vhost", "exchange")),
    Kind(
        12,
        commands.SetPolicy,
        ("vhost", "name", "pattern", "definition", "priority", "apply_to", "is_operator"),
    ),
    Kind(13, commands.ClearPolicy, ("vhost", "name", "is_operator")),
    Kind(14, commands.SetParameter, ("vhost", "component", "name", "value", "user")),
    Kind(15, commands.ClearParameter, ("vhost", "component", "name")),
    Kind(16, commands.SetGlobalParameter, ("name", "value")),
    Kind(17, commands.ClearGlobalParameter, ("name",)),
    Kind(
        18,
        commands.DeclareExchange,
        ("vhost", "name", "type", "durable", "auto_delete", "internal", "arguments", "user"),
    ),
    Kind(19, commands.DeleteExchange, ("vhost", "name", "if_unused")),
    Kind(
        20,
        commands.DeclareQueue,
        ("vhost", "name", "durable", "auto_delete", "owner", "arguments", "user"),
    ),
    Kind(21, commands.PauseQueue, ("vhost", "name", "is_paused")),
    Kind(22, commands.DeleteQueue, ("vhost", "name")),
    Kind(23, commands.DeleteExclusiveQueues, ("vhost", "owner", "count_max")),
    Kind(24, commands.Bind, ("vhost", "source", "destination", "is_to_queue", "routing_key", "arguments")),
    Kind(
        25,
        commands.Unbind,
        ("vhost", "source", "destination", "is_to_queue", "routing_key", "arguments"),
    ),
    Kind(26, commands.GrantLease, ("vhost", "lease")),
    Kind(27, commands.RenewLease, ("vhost", "id", "expires_at")),
    Kind(28, commands.EndLease, ("vhost", "id", "state")),
    Kind(29, commands.RestoreTopology, ("vhost", "exchanges", "queues", "bindings")),
    Kind(30, commands.RememberRemoved, ("names",)),
    Kind(31, commands.DoubtNumbers, ("until",)),
    Kind(32, commands.SettleNumbers, ("numbers",)),
    Kind(33, commands.DeleteEphemeral, ("node", "incarnation", "count_max")),
)

# The rows of records inside of commands, with the same rules.
ROWS: Mapping[type, tuple[str | None, ...]] = {
    ExchangeRecord: (
        "name", "type", "durable", "auto_delete", "internal", "arguments", "user", "incarnation",
    ),
    QueueRecord: (
        "name", "durable", "auto_delete", "owner", "arguments", "user", "number", "incarnation",
    ),
    BindingRecord: ("source", "is_to_queue", "destination", "routing_key", "arguments_bytes"),
    LeaseRecord: (
        "id", "queue", "user", "key", "places", "messages", "byte_count", "granted_at", "expires_at", "state",
    ),
}  # fmt: skip

# The values of fields in logs from before they existed, by the class and the name of the field.
ABSENT: Mapping[tuple[type, str], object] = {}
