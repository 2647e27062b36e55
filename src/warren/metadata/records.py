"""The declared exchanges, queues and bindings of a vhost, and the members of the cluster, as records."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from warren.metadata.incarnation import NODE_ALONE, Incarnation
from warren.model.arguments import QUORUM, queue_kind
from warren.wire.table import Value, decode_table, encode_table

# Shared by all records without arguments.
NO_ARGUMENTS: Mapping[str, Value] = {}
_SIZE_BYTES = 4
# The number of the replica of a queue that is on one node.
FIRST_REPLICA = 1


class ExchangeRecord(Struct, frozen=True):
    """An exchange as it was declared."""

    name: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Mapping[str, Value]
    user: str
    # The run of a node with which a transient exchange ends, unless another member is up; None if it survives
    # a restart.
    incarnation: Incarnation | None = None


class QueueMember(NamedTuple):
    """A node that has a replica of a quorum queue.

    The number of the replica is never used again for that queue, not even on the same node.
    """

    node: int
    replica: int


class QueueRecord(Struct, frozen=True):
    """A queue as it was declared; `owner` is the connection it is exclusive to.

    `number` identifies it; that of a queue which survives a restart is never used again, and the stores have
    it too. Queues that do not survive one have numbers of their own, from TRANSIENT_NUMBERS_FROM.
    """

    name: str
    durable: bool
    auto_delete: bool
    owner: str | None
    arguments: Mapping[str, Value]
    user: str
    number: int = 0
    # The run of a node with which the queue ends; None if it survives a restart.
    incarnation: Incarnation | None = None
    # The node that has it; of a quorum queue with several replicas, the node that leads it as far as it has
    # told, and at the beginning the node that is to lead first.
    home: int = NODE_ALONE
    # The nodes that have a replica of a quorum queue, `home` first. Empty if only `home` has one, with the
    # number FIRST_REPLICA: a quorum queue that was never on several nodes, and every other queue.
    members: tuple[QueueMember, ...] = ()
    # The number of the next replica; 0 as long as `members` is empty.
    next_replica: int = 0
    # The replicas with which its group begins have the numbers up to this; 0 when it has begun, so that a
    # replica without data has lost them.
    initial_replicas: int = 0

    @property
    def survives_restart(self) -> bool:
        """True if it exists again after a restart."""
        return self.durable and self.owner is None

    @property
    def stored_number(self) -> int:
        """Its number in the stores; 0 if nothing of it survives a restart."""
        return self.number if self.survives_restart else 0

    @property
    def kind(self) -> str:
        """The type of queue: classic, quorum or stream."""
        return queue_kind(self.arguments)

    @property
    def is_quorum(self) -> bool:
        """True if it is a quorum queue."""
        return queue_kind(self.arguments) == QUORUM

    @property
    def replicas(self) -> tuple[QueueMember, ...]:
        """The nodes that have a replica, also if that is only its home."""
        return self.members or (QueueMember(self.home, FIRST_REPLICA),)

    @property
    def never_begins(self) -> bool:
        """True if its group has not begun and never will, since half of its first replicas were removed.

        It has accepted nothing.
        """
        return 2 * len(self.replicas) <= self.initial_replicas

    def replica_on(self, node: int) -> int:
        """The number of the replica that `node` has; 0 if it has none."""
        return next((replica for member, replica in self.replicas if member == node), 0)


class BindingRecord(NamedTuple):
    """A binding; its arguments are part of its identity with their types, but not their order."""

    source: str
    is_to_queue: bool
    destination: str
    routing_key: str
    # The encoded field table, sorted by key; empty without arguments.
    arguments_bytes: bytes

    @property
    def arguments(self) -> Mapping[str, Value]:
        """The arguments, decoded."""
        data = self.arguments_bytes
        return decode_table(data, _SIZE_BYTES, len(data)) if data else NO_ARGUMENTS

    @property
    def destination_kind(self) -> str:
        """`queue` or `exchange`."""
        return "queue" if self.is_to_queue else "exchange"


class MemberRecord(Struct, frozen=True, kw_only=True):
    """A member of the cluster: one of its nodes, and what is known of its present run, or of its last one."""

    # Given once in the life of the cluster.
    id: int
    name: str
    # Where the other members reach it.
    host: str
    cluster_port: int
    incarnation: int
    is_up: bool
    is_draining: bool
    # The commands, records and messages that it knows.
    feature_level: int
    # Where clients reach it, if that is advertised.
    amqp_host: str | None = None
    amqp_port: int | None = None

    @property
    def takes_queues(self) -> bool:
        """True if new queues may be placed on it by choice."""
        return self.is_up and not self.is_draining


class RemovedMember(Struct, frozen=True, kw_only=True):
    """A former member: queues that are still on it are named by its name."""

    id: int
    name: str
    is_forgotten: bool


def arguments_bytes(arguments: Mapping[str, Value]) -> bytes:
    """The encoded `arguments`, sorted by key, which are part of the identity of a binding."""
    return encode_table(dict(sorted(arguments.items()))) if arguments else b""
