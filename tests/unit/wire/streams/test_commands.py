"""Commands of the stream protocol are decoded as they were encoded, and equal those of RabbitMQ."""

from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.wire.streams import commands, fields
from warren.wire.streams.codes import RESPONSE, CommandKey, MalformedFrame, OffsetType, ResponseCode
from warren.wire.streams.commands import FROM_CLIENTS, StreamCommand, decode, encode_response
from warren.wire.streams.fields import BrokerReference, Offset, Placement, PublishingError, Version

ALL = [
    each
    for each in vars(commands).values()
    if isinstance(each, type) and issubclass(each, StreamCommand) and each is not StreamCommand
]
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


def number(bits):
    return st.integers(0, 2**bits - 1)


OFFSETS = st.one_of(
    st.sampled_from([OffsetType.NONE, OffsetType.FIRST, OffsetType.LAST, OffsetType.NEXT]).map(Offset),
    st.builds(Offset, st.just(OffsetType.OFFSET), number(64)),
    st.builds(Offset, st.just(OffsetType.TIMESTAMP), st.integers(-(2**63), 2**63 - 1)),
)
PAIRS = st.dictionaries(TEXT, TEXT, max_size=4)
BY_KIND = [
    (fields.U8, number(8)),
    (fields.U16, number(16)),
    (fields.U32, number(32)),
    (fields.U64, number(64)),
    (fields.TEXT, TEXT),
    (fields.BYTES, st.binary(max_size=20)),
    (fields.TEXTS, st.lists(TEXT, max_size=4).map(tuple)),
    (fields.SEQUENCES, st.lists(number(64), max_size=4).map(tuple)),
    (fields.PAIRS, PAIRS),
    (fields.OPTIONAL_PAIRS, PAIRS),
    (fields.OFFSET, OFFSETS),
    (fields.OPTIONAL_OFFSET, OFFSETS),
    (fields.VERSIONS, st.lists(st.builds(Version, *[number(16)] * 3), max_size=4).map(tuple)),
    (
        fields.BROKERS,
        st.lists(st.builds(BrokerReference, number(16), TEXT, number(32)), max_size=3).map(tuple),
    ),
    (
        fields.PLACEMENTS,
        st.lists(
            st.builds(
                Placement, TEXT, number(16), st.integers(-1, 2**15 - 1), st.lists(number(16)).map(tuple)
            ),
            max_size=3,
        ).map(tuple),
    ),
    (fields.FAILURES, st.lists(st.builds(PublishingError, number(64), number(16)), max_size=3).map(tuple)),
    (
        fields.COUNTERS,
        st.lists(st.tuples(TEXT, st.integers(-(2**63), 2**63 - 1)), max_size=3).map(tuple),
    ),
]


def values_of(command):
    hints = get_type_hints(command, include_extras=True)
    for name in command.__struct_fields__:
        kind = hints[name].__metadata__[0]
        yield next(strategy for known, strategy in BY_KIND if known is kind)


@pytest.mark.parametrize("command", ALL, ids=lambda command: command.__name__)
@given(st.data())
def test_a_command_is_decoded_as_it_was_encoded(command, data):
    sent = command(*(data.draw(strategy) for strategy in values_of(command)))
    correlation = data.draw(number(32)) if command.is_correlated else 0
    frame = sent.encode(correlation)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert decode(frame[4:], {command.key: command}) == (sent, correlation)


@given(st.sampled_from(sorted(FROM_CLIENTS)), st.binary(max_size=60))
def test_any_bytes_are_a_command_or_malformed(key, data):
    try:
        decode(key.to_bytes(2, "big") + b"\0\1" + data)
    except MalformedFrame:
        return


@pytest.mark.parametrize(
    "frame",
    [b"\0\x63\0\1\0\0\0\1", b"\0\x0f\0\2\0\0\0\1\0\0\0\0", b"\0\x17\0\1\0", b"\0\x02\0\1", b"\0"],
    ids=["unknown key", "unknown version", "too long", "from `publishing`", "cut short"],
)
def test_an_invalid_command_is_malformed(frame):
    with pytest.raises(MalformedFrame):
        decode(frame)


def test_a_transcript_of_rabbitmq_is_decoded():
    """Requests and the responses of RabbitMQ 3.10.8."""
    assert encode_response(CommandKey.CREATE, 6, ResponseCode.OK) == b"\0\0\0\x0a\x80\x0d\0\1\0\0\0\6\0\1"
    placements = (
        Placement("s1", ResponseCode.OK, 0, ()),
        Placement("none", ResponseCode.STREAM_DOES_NOT_EXIST, -1, ()),
    )
    answer = commands.MetadataResponse((BrokerReference(0, "localhost", 0xB389),), placements).encode(0x16)
    assert answer[4:] == (
        b"\x80\x0f\0\1\0\0\0\x16\0\0\0\1\0\0\0\x09localhost\0\0\xb3\x89\0\0\0\2"
        b"\0\2s1\0\1\0\0\0\0\0\0\0\4none\0\2\xff\xff\0\0\0\0"
    )
    assert commands.Tune(1_048_576, 60).encode()[4:] == b"\0\x14\0\1\0\x10\0\0\0\0\0<"
    assert commands.MetadataUpdate(6, "s1").encode()[4:] == b"\0\x10\0\1\0\6\0\2s1"
    assert commands.CreditResponse(4, 0x55).encode()[4:] == b"\x80\x09\0\1\0\4U"
    confirm = b"\0\3\0\1\3\0\0\0\2\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\4"
    assert commands.PublishConfirm(3, (5, 4)).encode()[4:] == confirm
    assert RESPONSE | CommandKey.OPEN == 0x8015
    subscribe = b"\0\7\0\1\0\0\0\x05\1\0\2s1\0\4\0\0\0\0\0\0\3\xe8\0\x0a"
    command, correlation = decode(subscribe)
    assert correlation == 5
    assert command == commands.Subscribe(1, "s1", Offset(OffsetType.OFFSET, 1000), 10, {})
