"""Every command of the metadata, with any content and any stamps, survives encoding and decoding."""

from collections.abc import Mapping
from decimal import Decimal
from typing import get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.journal import codec
from warren.journal.codec import (
    CodecError,
    LogPosition,
    StateEnd,
    VoteState,
    decode_command,
    decode_entry,
    decode_hard_state,
    decode_state_end,
    encode_command,
    encode_entry,
    encode_hard_state,
    encode_state_end,
)
from warren.journal.effects_codec import decode_effects
from warren.journal.log_schema import CommandKind
from warren.journal.raft_entry import EmptyEntry, MembersChange
from warren.metadata import commands, member_commands
from warren.metadata.commands import (
    INTERNAL_USER,
    CommandContext,
    DeclareQueue,
    Json,
    MetadataCommand,
    PermissionCommand,
    SetParameter,
    SetPolicy,
    VhostCommand,
)
from warren.metadata.incarnation import NODE_ALONE, Incarnation
from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.records import (
    BindingRecord,
    ExchangeRecord,
    MemberRecord,
    QueueMember,
    QueueRecord,
    RemovedMember,
)
from warren.wire.table import Float32, Int8, Int16, Int32, Timestamp, UInt8, UInt16, UInt32, UInt64, Value

COMMANDS = sorted(
    (
        command
        for command in (vars(commands) | vars(member_commands)).values()
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
naturals = st.integers(0, 2**63)
arguments: st.SearchStrategy[Mapping[str, Value]] = st.dictionaries(text, values, max_size=3)


def records(record: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(record, max_size=3).map(tuple)


incarnations = st.none() | st.builds(Incarnation, naturals, naturals)
BY_HINT: dict[object, st.SearchStrategy[object]] = {
    str: text,
    str | None: st.none() | text,
    bool: st.booleans(),
    int: naturals,
    bytes: data,
    tuple[str, ...]: st.lists(text, max_size=3).map(tuple),
    tuple[int, ...]: st.lists(naturals, max_size=3).map(tuple),
    Json: json,
    Mapping[str, Json]: st.dictionaries(text, json, max_size=3),
    Mapping[str, Json] | None: st.none() | st.dictionaries(text, json, max_size=3),
    Mapping[str, Value]: arguments,
    tuple[ExchangeRecord, ...]: records(
        st.builds(ExchangeRecord, text, text, booleans, booleans, booleans, arguments, text, incarnations)
    ),
    tuple[QueueRecord, ...]: records(
        st.builds(
            QueueRecord,
            text,
            booleans,
            booleans,
            st.none() | text,
            arguments,
            text,
            naturals,
            incarnations,
            naturals,
            records(st.builds(QueueMember, naturals, naturals)),
            naturals,
        )
    ),
    LeaseState: st.sampled_from(LeaseState),
    LeaseRecord: st.builds(
        LeaseRecord,
        id=text,
        queue=text,
        user=text,
        key=text,
        places=st.lists(naturals).map(tuple),
        messages=naturals,
        byte_count=naturals,
        granted_at=naturals,
        expires_at=naturals,
        state=st.sampled_from(LeaseState),
    ),
    tuple[BindingRecord, ...]: records(st.builds(BindingRecord, text, booleans, text, text, data)),
    int | None: st.none() | naturals,
    tuple[MemberRecord, ...]: records(
        st.builds(
            MemberRecord,
            id=naturals,
            name=text,
            host=text,
            cluster_port=naturals,
            incarnation=naturals,
            is_up=booleans,
            is_draining=booleans,
            feature_level=naturals,
            amqp_host=st.none() | text,
            amqp_port=st.none() | naturals,
        )
    ),
    tuple[RemovedMember, ...]: records(
        st.builds(RemovedMember, id=naturals, name=text, is_forgotten=booleans)
    ),
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


contexts = st.builds(
    CommandContext,
    index=naturals,
    now=naturals,
    user=text,
    incarnation=st.builds(Incarnation, naturals, naturals),
    serial=naturals,
    is_accepted=st.just(True),
)
positions = st.builds(LogPosition, term=naturals, commit=naturals, number=naturals)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
@given(data=st.data())
def test_every_command_is_decoded_as_it_was_encoded(
    command: type[MetadataCommand], data: st.DataObject
) -> None:
    given, context, position = data.draw(of(command)), data.draw(contexts), data.draw(positions)
    found = decode_entry(encode_entry(given, context, position))
    assert (found.context, found.position) == (context, position)
    for one in (found.command, decode_command(encode_command(given))):
        assert type(one) is command
        assert fields(one) == fields(given)


def entry(command: MetadataCommand) -> bytes:
    return encode_entry(command, CommandContext(index=5, now=6, serial=7), LogPosition(1, 4, 3))


def test_fields_with_default_values_are_encoded() -> None:
    found = msgspec.msgpack.decode(entry(DeclareQueue(vhost="/", name="q", durable=True)))
    stamps = [5, 1, 4, 3, 1, 1, 7, 6, INTERNAL_USER]
    assert found == [*stamps, 20, ["/", "q", True, False, None, b"", "", 0, []]]


def test_a_queue_of_a_log_from_before_version_9_is_on_the_node_that_was_alone() -> None:
    stamps = [5, 1, 4, 3, 1, 1, 7, 6, INTERNAL_USER]
    older = [*stamps, 20, ["/", "q", True, False, None, b"", ""]]
    command = decode_entry(msgspec.msgpack.encode(older)).command
    assert command == DeclareQueue(vhost="/", name="q", durable=True)
    row = ["q", True, False, None, b"", "", 7, None]
    restored = decode_command(msgspec.msgpack.encode([29, ["/", [], [row], []]]))
    assert isinstance(restored, commands.RestoreTopology)
    assert restored.queues == (QueueRecord("q", True, False, None, {}, "", 7, None, NODE_ALONE),)


def test_a_quorum_queue_of_a_log_from_before_version_10_has_one_replica() -> None:
    stamps = [5, 1, 4, 3, 1, 1, 7, 6, INTERNAL_USER]
    older = [*stamps, 20, ["/", "q", True, False, None, b"", "", 2]]
    command = decode_entry(msgspec.msgpack.encode(older)).command
    assert command == DeclareQueue(vhost="/", name="q", durable=True, home=2)
    row = ["q", True, False, None, b"", "", 7, None, 2]
    restored = decode_command(msgspec.msgpack.encode([29, ["/", [], [row], []]]))
    assert isinstance(restored, commands.RestoreTopology)
    assert restored.queues == (QueueRecord("q", True, False, None, {}, "", 7, None, 2, (), 0),)
    assert restored.queues[0].replicas == (QueueMember(2, 1),)


def test_a_virtual_host_of_a_log_from_before_version_11_is_not_protected() -> None:
    stamps = [5, 1, 4, 3, 1, 1, 7, 6, INTERNAL_USER]
    older = [*stamps, 1, ["v", "described", ["a"], None, False]]
    command = decode_entry(msgspec.msgpack.encode(older)).command
    assert command == commands.PutVhost(name="v", description="described", tags=("a",))


def test_a_number_keeps_its_type() -> None:
    command = SetPolicy(vhost="v", name="p", pattern="", definition={}, priority=0.0)
    found = decode_entry(entry(command)).command
    assert isinstance(found, SetPolicy)
    assert type(found.priority) is float


@pytest.mark.parametrize("given", [EmptyEntry(), MembersChange(b"\x01\x00"), MembersChange(b"")])
def test_what_is_for_the_group_is_an_entry_and_no_part_of_a_snapshot(
    given: EmptyEntry | MembersChange,
) -> None:
    context, position = CommandContext(index=5, now=6, is_accepted=True), LogPosition(3, 4, 1)
    found = decode_entry(encode_entry(given, context, position))
    assert (found.command, found.context, found.position) == (given, context, position)
    kind, row = msgspec.msgpack.decode(encode_entry(given, context, position))[-2:]
    with pytest.raises(CodecError, match=f"kind {kind} in a snapshot"):
        decode_command(msgspec.msgpack.encode([kind, row]))


def test_a_snapshot_of_version_7_has_voters_only() -> None:
    row = msgspec.msgpack.encode([1, 2, 3, 4, 2**33, [1]])
    end = decode_state_end(row)
    assert (end.members, end.outgoing, end.learners) == ((1,), (), ())


def test_the_end_of_a_snapshot_and_a_hard_state_are_decoded_as_they_were_encoded() -> None:
    end = StateEnd(index=1, term=2, now=3, next_number=4, next_transient_number=2**33, members=(1, 2, 3))
    assert decode_state_end(encode_state_end(end)) == end
    assert decode_hard_state(encode_hard_state(VoteState(7, 2))) == VoteState(7, 2)
    for decode in (decode_state_end, decode_hard_state):
        with pytest.raises(CodecError, match="unknown "):
            decode(b"\xc0")


def test_a_field_that_did_not_exist_has_the_value_of_that_time(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = CommandKind(13, commands.ClearPolicy, ("vhost", None, "name", "is_operator"))
    monkeypatch.setattr(codec, "ABSENT", {(commands.ClearPolicy, "is_operator"): True})
    monkeypatch.setitem(codec._LAYOUTS_BY_NUMBER, 13, codec._layout(kind))
    # The second field is not used any more, and the last one is new.
    fields = msgspec.msgpack.encode([13, ["v", "gone", "n"]])
    assert decode_command(fields) == commands.ClearPolicy(vhost="v", name="n", is_operator=True)
    assert codec._layout(kind).encode(decode_command(fields)) == ["v", None, "n", True]
    monkeypatch.undo()
    with pytest.raises(CodecError, match="2 fields of ClearPolicy"):
        decode_command(msgspec.msgpack.encode([13, ["v", "n"]]))


def test_a_parameter_of_an_older_log_is_of_the_broker_itself() -> None:
    older = b'[5,["SetParameter",{"vhost":"v","component":"shovel","name":"n","value":{}}]]'
    assert decode_effects(older) == (5, [SetParameter(vhost="v", component="shovel", name="n", value={})])


@pytest.mark.parametrize(
    "wrong",
    [b"", b"{}", b"[1,[]]", b'[1,["Nothing",{}]]', b'[1,["RemoveUser",{"nobody":"x"}]]', b'["x"]', b"\xff"],
)
def test_an_unknown_effect_is_refused(wrong: bytes) -> None:
    with pytest.raises(CodecError):
        decode_effects(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {},
        5,
        [1, 1, 0, 1, 1, 1, 1, 0, "u", 99, []],
        [1, 1, 0, 1, 1, 1, 1, 0, "u", 5, []],
        [1, 1, 0, 1, 1, 1, 1, 0, "u", 5, ["a", "b"]],
        [1, 1, 0, 1, 1, 1, 1, 0, "u", 28, ["v", "id", "no state"]],
        [1, 1, 0, 1, 1, 1, 1, 0, "u", 5, [msgspec.msgpack.Ext(2, b"")]],
    ],
)
def test_an_unknown_command_is_refused(wrong: object) -> None:
    with pytest.raises(CodecError):
        decode_entry(msgspec.msgpack.encode(wrong))
    with pytest.raises(CodecError):
        decode_command(msgspec.msgpack.encode(wrong))


def test_bytes_that_are_no_messagepack_are_refused() -> None:
    for decode in (decode_entry, decode_command):
        with pytest.raises(CodecError):
            decode(b"\xc1")
