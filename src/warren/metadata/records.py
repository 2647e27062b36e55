"""The declared exchanges, queues and bindings of a vhost, as immutable records."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from warren.metadata.incarnation import Incarnation
from warren.model.arguments import queue_kind
from warren.wire.table import Value, decode_table, encode_table

# Shared by all records without arguments.
NO_ARGUMENTS: Mapping[str, Value] = {}
_SIZE_BYTES = 4


class ExchangeRecord(Struct, frozen=True):
    """An exchange as it was declared."""

    name: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Mapping[str, Value]
    user: str
    # The run of a node with which a transient exchange ends; None if it survives a restart.
    incarnation: Incarnation | None = None


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


def arguments_bytes(arguments: Mapping[str, Value]) -> bytes:
    """The encoded `arguments`, sorted by key, which are part of the identity of a binding."""
    return encode_table(dict(sorted(arguments.items()))) if arguments else b""
