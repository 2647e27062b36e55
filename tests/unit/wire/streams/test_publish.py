"""The Publish command."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.limits import STREAM_BATCH_SIZE_MAX
from warren.wire.streams.codes import MalformedFrame
from warren.wire.streams.publish import Publication, SubEntryBatch, decode_publish, encode_publish

NUMBERS = st.integers(0, 2**64 - 1)


def packed(messages):
    return b"".join(len(message).to_bytes(4, "big") + message for message in messages)


def shown(publication):
    return publication.publisher, [
        (sequence, entry.messages() if isinstance(entry, SubEntryBatch) else entry)
        for sequence, entry in publication.entries
    ]


@given(
    st.integers(0, 255),
    st.lists(
        st.tuples(NUMBERS, st.one_of(st.binary(max_size=50), st.lists(st.binary(max_size=50), max_size=5))),
        max_size=8,
    ),
    st.booleans(),
)
def test_a_publish_is_decoded_as_it_was_encoded(publisher, entries, is_zipped):
    made = []
    for sequence, entry in entries:
        if isinstance(entry, list):
            data = packed(entry)
            sent = gzip.compress(data) if is_zipped else data
            made.append((sequence, SubEntryBatch(int(is_zipped), len(entry), len(data), sent)))
        else:
            made.append((sequence, entry))
    found = decode_publish(encode_publish(Publication(publisher, made)))
    assert shown(found) == (publisher, entries)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_publish_or_malformed(data):
    for version in (b"\0\1", b"\0\2"):
        try:
            shown(decode_publish(b"\0\2" + version + data))
        except MalformedFrame:
            continue


def test_a_transcript_of_rabbitmq_is_decoded():
    frame = b"\0\2\0\1\1\0\0\0\2" + b"\0\0\0\0\0\0\0\5\0\0\0\6\0Su\xa0\1a" + b"\0\0\0\0\0\0\0\6\0\0\0\0"
    assert shown(decode_publish(frame)) == (1, [(5, b"\0Su\xa0\1a"), (6, b"")])


def test_version_2_has_a_filter_value_with_each_message():
    frame = b"\0\2\0\2\1\0\0\0\2" + b"\0\0\0\0\0\0\0\5\0\3abc\0\0\0\1x" + b"\0\0\0\0\0\0\0\6\xff\xff\0\0\0\1y"
    publication = decode_publish(frame)
    assert shown(publication) == (1, [(5, b"x"), (6, b"y")])
    assert publication.filters == ["abc", None]
    with pytest.raises(MalformedFrame, match="filter value cut short"):
        decode_publish(frame[:17] + b"\0\x40" + frame[19:])


def test_a_wrong_number_of_entries_is_malformed():
    with pytest.raises(MalformedFrame, match="number of entries"):
        decode_publish(b"\0\2\0\1\1\0\0\0\2\0\0\0\0\0\0\0\5\0\0\0\0")


def test_a_batch_larger_than_declared_is_not_decompressed_further():
    data = gzip.compress(bytes(50_000_000))
    with pytest.raises(MalformedFrame, match="size of the batch does not match"):
        SubEntryBatch(1, 1, 100, data).messages()


def test_a_batch_that_declares_too_large_a_size_is_not_decompressed():
    with pytest.raises(MalformedFrame, match="bytes"):
        SubEntryBatch(1, 1, STREAM_BATCH_SIZE_MAX + 1, gzip.compress(b"")).messages()


@pytest.mark.parametrize(
    "batch",
    [
        SubEntryBatch(0, 2, 5, packed([b"a"])),
        SubEntryBatch(0, 1, 6, b"\0\0\0\5ab"),
        SubEntryBatch(0, 1, 2, b"\0\0"),
        SubEntryBatch(1, 1, 5, b"no gzip"),
    ],
    ids=["count", "cut short", "no size", "no gzip"],
)
def test_an_invalid_batch_is_malformed(batch):
    with pytest.raises(MalformedFrame):
        batch.messages()


def test_a_batch_with_another_compression_is_not_readable():
    assert [SubEntryBatch(kind, 0, 0, b"").is_readable for kind in range(5)] == [
        True,
        True,
        False,
        False,
        False,
    ]
