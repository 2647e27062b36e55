"""Every command of the metadata, with any content, survives encoding and decoding."""

from collections.abc import Mapping
from decimal import Decimal
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.journal.codec import CodecError, decode_entry, encode_entry
from warren.metadata import commands
from warren.metadata.commands import (
    INTERNAL_USER,
    DeclareQueue,
    Json,
    MetadataCommand,
    PermissionCommand,
    SetParameter,
    SetPolicy,
    VhostCommand,
)
from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.records import BindingRecord, ExchangeRecord, QueueRecord
from warren.wire.table import Float32, Int8, Int16, Int32, Timestamp, UInt8, UInt16, UInt32, UInt64, Value

COMMANDS = sorted(
    (
        command
        for command in vars(commands).values()
        if isinstance(command, type)
        and issubclass(command, MetadataCommand)
        and command not in (MetadataCommand, VhostCommand, PermissionCommand)
    ),
    key=lambda command: command.__name__,
)

# Bytes that are not UTF-8 on the wire are lone surrogates in a string.
data = st.binary(max_size=12)
text = data.map(lambda found: found.decode("utf-8", "surrogateescape"))
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
values = st.recursive(
    st.one_of(
        st.booleans(),
        st.none(),
        text,
        data,
        st.integers(-128, 127).map(Int8),
        st.integers(0, 255).map(UInt8),
        st.integers(-(2**15), 2**15 - 1).map(Int16),
        st.integers(0, 2**16 - 1).map(UInt16),
        st.integers(-(2**31), 2**31 - 1).map(Int32),
        st.integers(0, 2**32 - 1).map(UInt32),
        st.integers(0, 2**64 - 1).map(UInt64),
        st.integers(0, 2**64 - 1).map(Timestamp),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.floats(allow_nan=False, width=32).map(Float32),
        st.integers(-1000, 1000).map(lambda unscaled: Decimal(unscaled) / 10),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
booleans = st.booleans()
arguments: st.SearchStrategy[Mapping[str, Value]] = st.dictionaries(text, values, max_size=3)


def records(record: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(record, max_size=3).map(tuple)


BY_HINT: dict[object, st.SearchStrategy[object]] = {
    str: text,
    str | None: st.none() | text,
    bool: st.booleans(),
    int: st.integers(0),
    bytes: data,
    tuple[str, ...]: st.lists(text, max_size=3).map(tuple),
    tuple[int, ...]: st.lists(st.integers(0), max_size=3).map(tuple),
    Json: json,
    Mapping[str, Json]: st.dictionaries(text, json, max_size=3),
    Mapping[str, Json] | None: st.none() | st.dictionaries(text, json, max_size=3),
    Mapping[str, Value]: arguments,
    tuple[ExchangeRecord, ...]: records(
        st.builds(ExchangeRecord, text, text, booleans, booleans, booleans, arguments, text)
    ),
    tuple[QueueRecord, ...]: records(
        st.builds(QueueRecord, text, booleans, booleans, st.none() | text, arguments, text, st.integers(0))
    ),
    LeaseState: st.sampled_from(LeaseState),
    LeaseRecord: st.builds(
        LeaseRecord,
        id=text,
        queue=text,
        user=text,
        key=text,
        places=st.lists(st.integers(0)).map(tuple),
        messages=st.integers(0),
        byte_count=st.integers(0),
        granted_at=st.integers(0),
        expires_at=st.integers(0),
        state=st.sampled_from(LeaseState),
    ),
    tuple[BindingRecord, ...]: records(st.builds(BindingRecord, text, booleans, text, text, data)),
}


def of(command: type[MetadataCommand]) -> st.SearchStrategy[MetadataCommand]:
    hints = get_type_hints(command)
    fields = {name: BY_HINT[hints[name]] for name in command.__struct_fields__}
    return st.builds(command, **fields)


def typed(value: object) -> object:
    """`value` with the types of all its parts, since 1, 1.0 and True are equal."""
    if isinstance(value, Mapping):
        return [(key, typed(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [typed(item) for item in value]
    return type(value), repr(value)


def fields(command: MetadataCommand) -> object:
    return [typed(getattr(command, name)) for name in command.__struct_fields__]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
@given(data=st.data())
def test_every_command_is_decoded_as_it_was_encoded(
    command: type[MetadataCommand], data: st.DataObject
) -> None:
    given = data.draw(of(command))
    index, found = decode_entry(encode_entry(7, [given, given]))
    assert index == 7
    assert [type(one) for one in found] == [command, command]
    assert fields(found[0]) == fields(found[1]) == fields(given)


def test_fields_with_default_values_are_not_encoded() -> None:
    entry = encode_entry(5, [DeclareQueue(vhost="/", name="q", durable=True)])
    assert entry == b'[5,["DeclareQueue",{"vhost":"/","name":"q","durable":true}]]'
    assert b'"priority":0.0' in encode_entry(
        1, [SetPolicy(vhost="v", name="p", pattern="", definition={}, priority=0.0)]
    )


def test_a_parameter_of_an_older_log_is_of_the_broker_itself() -> None:
    older = b'[5,["SetParameter",{"vhost":"v","component":"shovel","name":"n","value":{}}]]'
    command = SetParameter(vhost="v", component="shovel", name="n", value={})
    assert decode_entry(older) == (5, [command])
    assert command.user == INTERNAL_USER
    assert encode_entry(5, [command]) == older


@pytest.mark.parametrize(
    "wrong",
    [b"", b"{}", b"[1,[]]", b'[1,["Nothing",{}]]', b'[1,["RemoveUser",{"nobody":"x"}]]', b'["x"]', b"\xff"],
)
def test_an_unknown_command_is_refused(wrong: bytes) -> None:
    with pytest.raises(CodecError):
        decode_entry(wrong)
