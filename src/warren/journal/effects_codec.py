"""Reads the entries of logs of formats 1 to 6, which contain effects on durable objects as JSON.

    entry │ JSON: [index, [name of the command, {field: value, …}], …] │

Fields with their default were not written. Bytes and field tables are in base64, a table in its wire format.
"""

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_type_hints

from warren.journal.codec import CodecError
from warren.journal.parameter_cipher import Cipher, decrypted_command
from warren.metadata import commands
from warren.metadata.commands import INTERNAL_USER, Json, MetadataCommand
from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.records import NO_ARGUMENTS, BindingRecord, ExchangeRecord, QueueRecord
from warren.wire.table import Value, decode_table

_SIZE_BYTES = 4

# The place of the arguments in the row of an exchange and of a queue.
_EXCHANGE_ARGUMENTS_AT = 5
_QUEUE_ARGUMENTS_AT = 4

_from_json = json.JSONDecoder().decode

R = TypeVar("R")
Decode = Callable[[Any], object]

# What a field that is not there meant when these formats were written, whatever its default is today.
_ABSENT: Mapping[str, Mapping[str, object]] = {
    "PutVhost": {
        "description": "", "tags": (), "default_queue_type": None, "tracing": False,
        "protected_from_deletion": False,
    },
    "PutUser": {"tags": (), "limits": None},
    "ClearTopicPermissions": {"exchange": None},
    "SetPolicy": {"priority": 0, "apply_to": "all", "is_operator": False},
    "ClearPolicy": {"is_operator": False},
    "SetParameter": {"user": INTERNAL_USER},
    "DeclareExchange": {
        "durable": False, "auto_delete": False, "internal": False, "arguments": NO_ARGUMENTS, "user": "",
    },
    "DeleteExchange": {"if_unused": False},
    "DeclareQueue": {
        "durable": False, "auto_delete": False, "owner": None, "arguments": NO_ARGUMENTS, "user": "",
        "home": 0, "members": (),
    },
    "PauseQueue": {"is_paused": True},
    "Bind": {"is_to_queue": True, "routing_key": "", "arguments": NO_ARGUMENTS},
    "Unbind": {"is_to_queue": True, "routing_key": "", "arguments": NO_ARGUMENTS},
    "RestoreTopology": {"exchanges": (), "queues": (), "bindings": ()},
}  # fmt: skip
# The commands that these formats had.
_COMMANDS: tuple[type[MetadataCommand], ...] = (
    commands.PutVhost, commands.RemoveVhost, commands.SetVhostLimits, commands.PutUser, commands.RemoveUser,
    commands.SetUserTags, commands.SetUserLimits, commands.SetPermissions, commands.ClearPermissions,
    commands.SetTopicPermissions, commands.ClearTopicPermissions, commands.SetPolicy, commands.ClearPolicy,
    commands.SetParameter, commands.ClearParameter, commands.SetGlobalParameter,
    commands.ClearGlobalParameter, commands.DeclareExchange, commands.DeleteExchange, commands.DeclareQueue,
    commands.PauseQueue, commands.GrantLease, commands.RenewLease, commands.EndLease, commands.DeleteQueue,
    commands.DeleteExclusiveQueues, commands.Bind, commands.Unbind, commands.RestoreTopology,
    commands.RememberRemoved, commands.DoubtNumbers, commands.SettleNumbers,
)  # fmt: skip


def decode_effects(data: bytes, cipher: Cipher | None = None) -> tuple[int, list[MetadataCommand]]:
    """The index and the commands of an entry; CodecError if `data` is not such an entry."""
    try:
        index, *made = _from_json(data.decode("ascii"))
        return int(index), [decrypted_command(_decoded(name, fields), cipher) for name, fields in made]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CodecError(f"unknown command: {error}") from error


def _decoded(name: str, fields: Mapping[str, Json]) -> MetadataCommand:
    make, decoders = _DECODERS[name]
    given = {key: decoders[key](value) for key, value in fields.items()}
    return make(**{**_ABSENT.get(name, {}), **given})


def _same(value: Json) -> Json:
    return value


def _decode_table(value: str) -> Mapping[str, Value]:
    data = b64decode(value)
    return decode_table(data, _SIZE_BYTES, len(data))


def _decode_exchanges(rows: list[list[Any]]) -> tuple[ExchangeRecord, ...]:
    return _with_arguments(ExchangeRecord, rows, _EXCHANGE_ARGUMENTS_AT)


def _decode_queues(rows: list[list[Any]]) -> tuple[QueueRecord, ...]:
    return _with_arguments(QueueRecord, rows, _QUEUE_ARGUMENTS_AT)


def _decode_bindings(rows: list[list[Any]]) -> tuple[BindingRecord, ...]:
    for row in rows:
        row[-1] = b64decode(row[-1]) if row[-1] else b""
    return tuple([BindingRecord(*row) for row in rows])


def _with_arguments(make: Callable[..., R], rows: list[list[Any]], at: int) -> tuple[R, ...]:
    """A record of each row, made by `make`, with the arguments at `at`; equal arguments are decoded once."""
    tables = {"": NO_ARGUMENTS}
    for row in rows:
        text = row[at]
        if text not in tables:
            tables[text] = _decode_table(text)
        row[at] = tables[text]
    return tuple([make(*row) for row in rows])


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


_CODECS: dict[object, Decode] = {
    bytes: b64decode,
    tuple[str, ...]: tuple,
    tuple[int, ...]: tuple,
    Mapping[str, Value]: _decode_table,
    tuple[ExchangeRecord, ...]: _decode_exchanges,
    tuple[QueueRecord, ...]: _decode_queues,
    tuple[BindingRecord, ...]: _decode_bindings,
    LeaseRecord: _decode_lease,
    LeaseState: LeaseState,
}


def _decoders(command: type[MetadataCommand]) -> tuple[Callable[..., MetadataCommand], Mapping[str, Decode]]:
    hints = get_type_hints(command)
    return command, {name: _CODECS.get(hint, _same) for name, hint in hints.items()}


_DECODERS = {command.__name__: _decoders(command) for command in _COMMANDS}
