"""The encoding of the records of Raft groups, byte by byte, and their decoding."""

import pytest

from warren.store.group_record import (
    GroupEntry,
    GroupHardState,
    GroupRecord,
    GroupSnapshot,
    PositionOffset,
    PositionRun,
    decode_cut,
    decode_entry,
    decode_hard,
    decode_state,
    encode_cut,
    encode_entry,
    encode_hard,
    encode_state,
    group_of,
    message_count_of,
)

RUNS = (PositionRun(0, 3, 2), PositionRun(9, 0x01020304050607, 1))
ENTRY = GroupEntry(index=5, term=6, commit=4, kind=1, runs=RUNS, commands=b"do it")
ENTRY_BYTES = (
    "00000102 0000000000000005 0000000000000006 0000000000000004 01 0002"
    "0000000000000003 00000002 0901020304050607 00000001" + b"do it".hex()
)
OFFSETS = [PositionOffset(0, 3, 7), PositionOffset(9, 1, 2)]
OFFSETS_BYTES = "0000000000000003 0000000000000007 0900000000000001 0000000000000002"
RECORD = GroupRecord(
    group=258,
    replica=3,
    since=24,
    reason="no ü",
    hard=GroupHardState(6, 2, 4),
    snapshot=GroupSnapshot(index=4, term=5, configuration=b"conf", machine=b"machine"),
    ends={9: 1, 0: 3},
    offsets=OFFSETS,
    entries=[ENTRY],
)
RECORD_BYTES = (
    "00000102 00000003 00000018 0000000000000006 00000002 0000000000000004 0000000000000004"
    "0000000000000005 0005 0002 00000002 00000004 00000007 00000001"
    + "no ü".encode().hex()
    + "0000000000000003 0900000000000001"
    + OFFSETS_BYTES
    + b"confmachine".hex()
    + "0000003c"
    + ENTRY_BYTES
)


def test_an_entry_is_encoded_as_drawn() -> None:
    assert encode_entry(258, ENTRY) == bytes.fromhex(ENTRY_BYTES)
    assert decode_entry(bytes.fromhex(ENTRY_BYTES)) == ENTRY
    assert (ENTRY.size, message_count_of(ENTRY.runs)) == (len(bytes.fromhex(ENTRY_BYTES)), 3)


def test_a_hard_state_is_encoded_as_drawn() -> None:
    encoded = bytes.fromhex("00000102 00000003 0000000000000006 00000002 0000000000000004")
    assert encode_hard(258, 3, GroupHardState(6, 2, 4)) == encoded
    assert decode_hard(encoded) == (3, GroupHardState(6, 2, 4))


def test_a_cut_is_encoded_as_drawn() -> None:
    encoded = bytes.fromhex("00000102 0000000000000005" + OFFSETS_BYTES)
    assert encode_cut(258, 5, OFFSETS) == encoded
    assert decode_cut(encoded) == (5, OFFSETS)


def test_a_state_is_encoded_as_drawn() -> None:
    assert encode_state(RECORD) == bytes.fromhex(RECORD_BYTES)
    assert decode_state(bytes.fromhex(RECORD_BYTES)) == RECORD


@pytest.mark.parametrize("body", [ENTRY_BYTES, RECORD_BYTES])
def test_every_record_begins_with_its_group(body: str) -> None:
    assert group_of(bytes.fromhex(body)) == 258
