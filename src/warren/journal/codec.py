"""Encodes commands as MessagePack, with the numbers and places of `log_schema`.

    command │ [ kind, [ field, … ] ]
    entry   │ [ index, term, commit, number, node, incarnation, serial, now, user, kind, [ field, … ] ]
    state   │ [ index, term, now, next number, next number of a transient queue, [ voter, … ],
            │   [ voter of the outgoing majority, … ], [ learner, … ], [ voter that becomes a learner, … ],
            │   whether a joint configuration is left by itself ]
    hard    │ [ term, vote ]

`commit` is the index of the last command that was applied when the entry was appended, and `number` the
next number of a durable queue at that time. Field tables are in their wire format, and values of JSON are
JSON, so that all keep their types. A string that is not UTF-8 is an extension of type 1, in which a lone
surrogate is encoded as if it were a character.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

from warren.journal.log_schema import ABSENT, KINDS, RAFT_KINDS, ROWS, CommandKind
from warren.journal.parameter_cipher import Cipher, decrypted_command, encrypted_command
from warren.journal.raft_entry import EmptyEntry, MembersChange
from warren.metadata.commands import CommandContext, Json, MetadataCommand, SetParameter
from warren.metadata.incarnation import Incarnation
from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.records import (
    NO_ARGUMENTS,
    BindingRecord,
    ExchangeRecord,
    MemberRecord,
    QueueMember,
    QueueRecord,
    RemovedMember,
)
from warren.replication.raft.raft_messages import NOBODY
from warren.wire.table import Value, decode_table, encode_table

_SIZE_BYTES = 4
_NOT_UTF_8 = 1

_to_json = json.JSONEncoder(separators=(",", ":")).encode
_from_json = json.JSONDecoder().decode

Encode = Callable[[Any], object]
Decode = Callable[[Any], object]


class CodecError(Exception):
    """The bytes do not represent a command that this version knows."""


# What an entry is for.
Logged = MetadataCommand | EmptyEntry | MembersChange


class LogPosition(Struct, frozen=True):
    """What the log knows when it appends an entry."""

    term: int
    commit: int
    # The next number of a durable queue after the command at `commit`.
    number: int


class LoggedCommand(Struct, frozen=True):
    """A command as it was proposed, and what the log knew when it was appended."""

    command: Logged
    context: CommandContext
    position: LogPosition


class StateEnd(Struct, frozen=True, kw_only=True, array_like=True):
    """What a snapshot says beside the objects: the last command in it, and who agreed on that."""

    index: int
    term: int
    now: int
    next_number: int
    next_transient_number: int
    # The voters; the rest of the configuration is missing before version 8, in which it is this.
    members: tuple[int, ...]
    outgoing: tuple[int, ...] = ()
    learners: tuple[int, ...] = ()
    learners_next: tuple[int, ...] = ()
    auto_leave: bool = False


class VoteState(Struct, frozen=True, array_like=True):
    """The term that the node knows, and the member for which it has voted in that term."""

    term: int
    vote: int


# Of a node that was never in a group.
NO_VOTE = VoteState(0, NOBODY)


def encode_entry(
    command: Logged, context: CommandContext, position: LogPosition, cipher: Cipher | None = None
) -> bytes:
    """Encode `command` as an entry of the log, with secrets encrypted by `cipher`."""
    layout = _LAYOUTS[type(command)]
    fields = layout.encode(_as_written(command, cipher))
    node, incarnation = context.incarnation
    return _packed(
        [
            context.index, position.term, position.commit, position.number, node, incarnation, context.serial,
            context.now, context.user, layout.number, fields,
        ]
    )  # fmt: skip


def decode_entry(data: bytes, cipher: Cipher | None = None) -> LoggedCommand:
    """What `encode_entry` was given; CodecError if `data` is not such an entry."""
    try:
        found = _DECODER.decode(data)
        index, term, commit, number, node, incarnation, serial, now, user, kind, fields = found
        context = CommandContext(
            index=index, now=now, user=user, incarnation=Incarnation(node, incarnation), serial=serial,
            is_accepted=True,
        )  # fmt: skip
        position = LogPosition(term, commit, number)
        return LoggedCommand(_decoded(kind, fields, cipher), context, position)
    except _WRONG as error:
        raise CodecError(f"unknown command: {error}") from error


def encode_command(command: MetadataCommand, cipher: Cipher | None = None) -> bytes:
    """Encode `command` as a part of a snapshot, with secrets encrypted by `cipher`."""
    layout = _LAYOUTS[type(command)]
    return _packed([layout.number, layout.encode(_as_written(command, cipher))])


def decode_command(data: bytes, cipher: Cipher | None = None) -> MetadataCommand:
    """The command that `encode_command` was given; CodecError if `data` is not a command."""
    try:
        kind, fields = _DECODER.decode(data)
        command = _decoded(kind, fields, cipher)
        if isinstance(command, MetadataCommand):
            return command
        raise ValueError(f"kind {kind} in a snapshot")
    except _WRONG as error:
        raise CodecError(f"unknown command: {error}") from error


def encode_state_end(end: StateEnd) -> bytes:
    """Encode the end of a snapshot."""
    return _ENCODER.encode(end)


def encode_hard_state(hard: VoteState) -> bytes:
    """Encode a hard state."""
    return _ENCODER.encode(hard)


def decode_state_end(data: bytes) -> StateEnd:
    """The end of a snapshot; CodecError if it is not one."""
    try:
        return msgspec.msgpack.decode(data, type=StateEnd)
    except msgspec.MsgspecError as error:
        raise CodecError(f"unknown end of a snapshot: {error}") from error


def decode_hard_state(data: bytes) -> VoteState:
    """The hard state; CodecError if it is not one."""
    try:
        return msgspec.msgpack.decode(data, type=VoteState)
    except msgspec.MsgspecError as error:
        raise CodecError(f"unknown state of the vote: {error}") from error


def _as_written(command: Logged, cipher: Cipher | None) -> Logged:
    return encrypted_command(command, cipher) if type(command) is SetParameter else command


def _decoded(kind: int, fields: list[Any], cipher: Cipher | None) -> Logged:
    layout = _LAYOUTS_BY_NUMBER[kind]
    command: Logged = layout.decode([fields])[0]
    return decrypted_command(command, cipher) if isinstance(command, MetadataCommand) else command


def _packed(value: list[object]) -> bytes:
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return _ENCODER.encode(_without_surrogates(value))


def _without_surrogates(value: object) -> object:
    """`value` with strings that are not UTF-8 as extensions."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return msgspec.msgpack.Ext(_NOT_UTF_8, value.encode("utf-8", "surrogatepass"))
    elif isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value


def _extension(code: int, data: memoryview) -> object:
    if code != _NOT_UTF_8:
        raise ValueError(f"extension {code}")
    return bytes(data).decode("utf-8", "surrogatepass")


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ext_hook=_extension)
_WRONG = (ValueError, TypeError, LookupError, AttributeError, msgspec.MsgspecError)


class _Layout:
    """Encodes and decodes objects of one class as rows: their fields in the order of their places."""

    def __init__(self, made: type, names: Sequence[str | None]) -> None:
        hints = get_type_hints(made)
        self.number = 0
        self._names = [name for name in names if name is not None]
        get = attrgetter(*self._names) if len(self._names) > 1 else None
        self._get: Callable[[Any], tuple[Any, ...]] = get or self._get_few
        # The places without a field, and the values that a shorter row from an older log ends with.
        self._holes = [place for place, name in enumerate(names) if name is None]
        self._count = len(names)
        self._absent = [None if name is None else ABSENT.get((made, name), _NO_VALUE) for name in names]
        codecs = [_CODECS.get(hints[name], _AS_IT_IS) for name in self._names]
        self._encoders = [(at, codec[0]) for at, codec in enumerate(codecs) if codec[0] is not None]
        self._decoders = [
            (at, codec[1])
            for at, codec in enumerate(codecs)
            if codec[1] is not None and codec[1] is not _decode_table
        ]
        # Equal tables in many rows are decoded once.
        self._tables = [at for at, codec in enumerate(codecs) if codec[1] is _decode_table]
        self._is_in_order = made in _POSITIONAL and _fields(made) == self._names
        self._made = made

    def encode(self, value: object) -> list[Any]:
        """The row of `value`."""
        row = list(self._get(value))
        for at, encode in self._encoders:
            row[at] = encode(row[at])
        for place in self._holes:
            row.insert(place, None)
        return row

    def decode(self, rows: Iterable[list[Any]]) -> list[Any]:
        """The objects with `rows`; raises one of several errors if a row is not one of this class."""
        rows = list(rows)
        if self._holes or any(len(row) != self._count for row in rows):
            rows = [self._whole(row) for row in rows]
        for at in self._tables:
            tables: dict[bytes, Mapping[str, Value]] = {b"": NO_ARGUMENTS}
            for row in rows:
                data = row[at]
                if data not in tables:
                    tables[data] = _decode_table(data)
                row[at] = tables[data]
        for at, decode in self._decoders:
            if decode in _OPTIONAL:
                for row in rows:
                    if row[at] is not None:
                        row[at] = decode(row[at])
            else:
                for row in rows:
                    row[at] = decode(row[at])
        made, names = self._made, self._names
        if self._is_in_order:
            return [made(*row) for row in rows]
        return [made(**dict(zip(names, row, strict=True))) for row in rows]

    def _whole(self, row: list[Any]) -> list[Any]:
        """`row` with a value for each field that exists."""
        if len(row) != self._count:
            absent = self._absent[len(row) :]
            if not absent or _NO_VALUE in absent:
                raise ValueError(f"{len(row)} fields of {self._made.__name__}")
            row += absent
        if self._holes:
            return [value for place, value in enumerate(row) if place not in self._holes]
        return row

    def _get_few(self, value: object) -> tuple[Any, ...]:
        """`attrgetter` returns a tuple for two names or more only."""
        return tuple(getattr(value, name) for name in self._names)


def _fields(made: type) -> list[str]:
    """The names of the fields of `made`, in their order."""
    found: tuple[str, ...] = getattr(made, "_fields", None) or made.__struct_fields__  # type: ignore[attr-defined]
    return list(found)


def _encode_table(value: Mapping[str, Value]) -> bytes:
    return encode_table(dict(value)) if value else b""


def _decode_table(data: bytes) -> Mapping[str, Value]:
    return decode_table(data, _SIZE_BYTES, len(data)) if data else NO_ARGUMENTS


def _encode_json(value: Json) -> bytes:
    return _to_json(value).encode("ascii")


def _decode_json(data: bytes) -> Json:
    return _from_json(data.decode("ascii"))


def _encode_optional_json(value: Json) -> bytes | None:
    return None if value is None else _encode_json(value)


def _decode_optional_json(data: bytes | None) -> Json:
    return None if data is None else _decode_json(data)


def _decode_incarnation(pair: list[int] | None) -> Incarnation | None:
    return None if pair is None else Incarnation(*pair)


# Decoders whose result for None is None.
_OPTIONAL: tuple[Decode, ...] = (_decode_optional_json, _decode_incarnation)


def _encode_state(state: LeaseState) -> str:
    return state.value


def _rows(made: type) -> tuple[Encode, Decode]:
    layout = _Layout(made, ROWS[made])
    return lambda records: [layout.encode(record) for record in records], lambda rows: tuple(
        layout.decode(rows)
    )


def _few_rows(made: type[tuple[object, ...]]) -> tuple[None, Decode]:
    """The codec of tuples with records that are tuples, which are mostly empty."""
    _, decode = _rows(made)
    return None, lambda rows: decode(rows) if rows else ()


def _row(made: type) -> tuple[Encode, Decode]:
    layout = _Layout(made, ROWS[made])
    return layout.encode, lambda row: layout.decode([row])[0]


_NO_VALUE: object = object()
# Classes that take their fields in order.
_POSITIONAL = (ExchangeRecord, QueueRecord, QueueMember, BindingRecord)
_AS_IT_IS: tuple[Encode | None, Decode | None] = (None, None)
# The codecs of types that MessagePack does not have.
_CODECS: dict[object, tuple[Encode | None, Decode | None]] = {
    tuple[str, ...]: (None, tuple),
    tuple[int, ...]: (None, tuple),
    object: (_encode_json, _decode_json),
    Mapping[str, Json]: (_encode_json, _decode_json),
    Mapping[str, Json] | None: (_encode_optional_json, _decode_optional_json),
    Mapping[str, Value]: (_encode_table, _decode_table),
    LeaseState: (_encode_state, LeaseState),
    Incarnation | None: (None, _decode_incarnation),
}
_CODECS[LeaseRecord] = _row(LeaseRecord)
# Before the rows of queues, which contain them.
_CODECS[tuple[QueueMember, ...]] = _few_rows(QueueMember)
_CODECS |= {
    tuple[ExchangeRecord, ...]: _rows(ExchangeRecord),
    tuple[QueueRecord, ...]: _rows(QueueRecord),
    tuple[BindingRecord, ...]: _rows(BindingRecord),
    tuple[MemberRecord, ...]: _rows(MemberRecord),
    tuple[RemovedMember, ...]: _rows(RemovedMember),
}


def _layout(kind: CommandKind) -> _Layout:
    layout = _Layout(kind.command, kind.fields)
    layout.number = kind.number
    return layout


_LAYOUTS_BY_NUMBER = {kind.number: _layout(kind) for kind in (*KINDS, *RAFT_KINDS)}
# Of several kinds of one command, the last is written.
_LAYOUTS = {kind.command: _LAYOUTS_BY_NUMBER[kind.number] for kind in (*KINDS, *RAFT_KINDS)}
