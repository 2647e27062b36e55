"""Encodes commands as bytes without loss: the name of the class, and the fields that are not the default.

    entry │ JSON: [index, [name, {field: value, …}], …] │

Bytes and field tables are encoded in base64, a table in its wire format, so that its values keep their types.
Restored objects are encoded as rows, which are read five times as fast as a command for each object.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, get_type_hints

import msgspec
from msgspec import Struct

from warren.journal.parameter_cipher import Cipher, decrypted_command, encrypted_command
from warren.metadata import commands
from warren.metadata.commands import Json, MetadataCommand, PermissionCommand, VhostCommand
from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.records import NO_ARGUMENTS, BindingRecord, ExchangeRecord, QueueRecord
from warren.wire.table import Value, decode_table, encode_table

_SIZE_BYTES = 4

# The place of the arguments in the row of an exchange and of a queue.
_EXCHANGE_ARGUMENTS_AT = 5
_QUEUE_ARGUMENTS_AT = 4

_to_json = json.JSONEncoder(separators=(",", ":")).encode
_from_json = json.JSONDecoder().decode

R = TypeVar("R")
Encode = Callable[[Any], Json]
Decode = Callable[[Any], object]


class CodecError(Exception):
    """The bytes do not represent a command that this version knows."""


def encode_entry(index: int, made: Iterable[MetadataCommand], cipher: Cipher | None = None) -> bytes:
    """Encode `made`, the commands at `index` of the log, with secrets encrypted by `cipher`."""
    entry = [index, *(_encoded(encrypted_command(command, cipher)) for command in made)]
    return _to_json(entry).encode("ascii")


def decode_entry(data: bytes, cipher: Cipher | None = None) -> tuple[int, list[MetadataCommand]]:
    """The index and the commands that `encode_entry` was given.

    CodecError if `data` is not such an entry.
    """
    try:
        index, *made = _from_json(data.decode("ascii"))
        return int(index), [decrypted_command(_decoded(name, fields), cipher) for name, fields in made]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CodecError(f"unknown command: {error}") from error


def _encoded(command: MetadataCommand) -> Json:
    fields = {}
    for field in _LAYOUTS[type(command).__name__].fields:
        value = getattr(command, field.name)
        default = field.default
        # The types are compared as well, since 0, 0.0 and False are equal.
        if type(value) is not type(default) or value != default:
            fields[field.name] = field.encode(value)
    return [type(command).__name__, fields]


def _decoded(name: str, fields: Mapping[str, Json]) -> MetadataCommand:
    layout = _LAYOUTS[name]
    return layout.make(**{key: layout.decoders[key](value) for key, value in fields.items()})


class _Field(Struct, frozen=True):
    name: str
    default: object
    encode: Encode


class _Layout(Struct, frozen=True):
    make: Callable[..., MetadataCommand]
    fields: tuple[_Field, ...]
    decoders: Mapping[str, Decode]


def _same(value: Json) -> Json:
    return value


def _encode_bytes(value: bytes) -> Json:
    return b64encode(value).decode("ascii")


def _encode_table(value: Mapping[str, Value]) -> Json:
    return _encode_bytes(encode_table(dict(value)))


def _decode_table(value: str) -> Mapping[str, Value]:
    data = b64decode(value)
    return decode_table(data, _SIZE_BYTES, len(data))


def _encode_exchanges(exchanges: Iterable[ExchangeRecord]) -> Json:
    return [
        [
            exchange.name, exchange.type, exchange.durable, exchange.auto_delete, exchange.internal,
            _encode_arguments(exchange.arguments), exchange.user,
        ]
        for exchange in exchanges
    ]  # fmt: skip


def _encode_queues(queues: Iterable[QueueRecord]) -> Json:
    return [
        [
            queue.name, queue.durable, queue.auto_delete, queue.owner,
            _encode_arguments(queue.arguments), queue.user, queue.number,
        ]
        for queue in queues
    ]  # fmt: skip


def _encode_bindings(bindings: Iterable[BindingRecord]) -> Json:
    return [[*binding[:-1], _encode_bytes(binding.arguments_bytes)] for binding in bindings]


def _decode_exchanges(rows: list[list[Any]]) -> tuple[ExchangeRecord, ...]:
    return _with_arguments(ExchangeRecord, rows, _EXCHANGE_ARGUMENTS_AT)


def _decode_queues(rows: list[list[Any]]) -> tuple[QueueRecord, ...]:
    return _with_arguments(QueueRecord, rows, _QUEUE_ARGUMENTS_AT)


def _decode_bindings(rows: list[list[Any]]) -> tuple[BindingRecord, ...]:
    for row in rows:
        row[-1] = b64decode(row[-1]) if row[-1] else b""
    return tuple([BindingRecord(*row) for row in rows])


def _encode_arguments(arguments: Mapping[str, Value]) -> Json:
    return _encode_table(arguments) if arguments else ""


def _with_arguments(make: Callable[..., R], rows: list[list[Any]], at: int) -> tuple[R, ...]:
    """A record of each row, made by `make`, with the arguments at `at`; equal arguments are decoded once."""
    tables = {"": NO_ARGUMENTS}
    for row in rows:
        text = row[at]
        if text not in tables:
            tables[text] = _decode_table(text)
        row[at] = tables[text]
    return tuple([make(*row) for row in rows])


def _encode_lease(lease: LeaseRecord) -> Json:
    return [
        lease.id, lease.queue, lease.user, lease.key, lease.places, lease.messages, lease.byte_count,
        lease.granted_at, lease.expires_at, lease.state.value,
    ]  # fmt: skip


def _decode_lease(row: list[Any]) -> LeaseRecord:
    id, queue, user, key, places, messages, byte_count, granted_at, expires_at, state = row
    return LeaseRecord(
        id=id,
        queue=queue,
        user=user,
        key=key,
        places=tuple(places),
        messages=messages,
        byte_count=byte_count,
        granted_at=granted_at,
        expires_at=expires_at,
        state=LeaseState(state),
    )


def _encode_state(state: LeaseState) -> Json:
    return state.value


# The codecs of types that JSON does not have.
_CODECS: dict[object, tuple[Encode, Decode]] = {
    bytes: (_encode_bytes, b64decode),
    tuple[str, ...]: (list, tuple),
    tuple[int, ...]: (list, tuple),
    Mapping[str, Value]: (_encode_table, _decode_table),
    tuple[ExchangeRecord, ...]: (_encode_exchanges, _decode_exchanges),
    tuple[QueueRecord, ...]: (_encode_queues, _decode_queues),
    tuple[BindingRecord, ...]: (_encode_bindings, _decode_bindings),
    LeaseRecord: (_encode_lease, _decode_lease),
    LeaseState: (_encode_state, LeaseState),
}
_AS_IT_IS: tuple[Encode, Decode] = (_same, _same)


def _layout(command: type[MetadataCommand]) -> _Layout:
    hints = get_type_hints(command)
    codecs = {name: _CODECS.get(hint, _AS_IT_IS) for name, hint in hints.items()}
    fields = []
    for field in msgspec.structs.fields(command):
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        fields.append(_Field(field.name, default, codecs[field.name][0]))
    return _Layout(command, tuple(fields), {name: codec[1] for name, codec in codecs.items()})


_LAYOUTS: Mapping[str, _Layout] = {
    name: _layout(command)
    for name, command in vars(commands).items()
    if isinstance(command, type)
    and issubclass(command, MetadataCommand)
    and command not in (MetadataCommand, VhostCommand, PermissionCommand)
}
