"""The commands of an entry, encoded and decoded, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.seeds import SEEDS
from tests.unit.queues.quorum.batches import BatchSource

from warren.queues.quorum.batch_codec import (
    RETREAT_VERSION,
    VERSION,
    Enqueue,
    Enqueuer,
    HeldRun,
    HoldReason,
    QuorumBatch,
    QuorumFormatError,
    Reach,
    ReturnedRun,
    SettledRun,
    SettleReason,
    decode,
    encode,
)
from warren.store.group_record import PositionRun

FIXTURES = Path(__file__).parent / "fixtures"
RUNS = (PositionRun(0, 40, 3), PositionRun(9, 2**55, 1))
BATCH = QuorumBatch(
    runs=RUNS,
    enqueued=(Enqueue(Enqueuer(1, 1_795_000_000), 41, 3), Enqueue(Enqueuer(2**16 - 1, 2**64 - 1), 2**63, 1)),
    reaches=(Reach(0, 128), Reach(9, 2**55 + 64)),
    returned=(ReturnedRun(0, 17, 1000, 2, 3, 1_795_000_000_123), ReturnedRun(9, 5, 1, 0, 2**32 - 1)),
    held=tuple(HeldRun(9, 5 * hold, 2, hold) for hold in HoldReason),
    settled=tuple(
        SettledRun(0, 100 * reason, 50, size=2**40 + reason, reason=reason) for reason in SettleReason
    ),
    forgotten=(Enqueuer(3, 12),),
)


def changed(batch: QuorumBatch, **changes: Any) -> QuorumBatch:
    names = ("runs", "enqueued", "reaches", "returned", "held", "settled", "forgotten", "retreats")
    return QuorumBatch(**dict(zip(names, batch.fields(), strict=True)) | changes)


# As versions without times have it.
UNTIMED = changed(BATCH, returned=tuple(replace(run, ready_at=0) for run in BATCH.returned))


def commands(text: str) -> bytes:
    """The bytes of a drawn format: hexadecimal digits in groups."""
    return bytes.fromhex(text)


def test_a_batch_with_every_command_is_decoded_as_it_was() -> None:
    assert decode(encode(BATCH), RUNS) == BATCH


@pytest.mark.seeds(SEEDS)
def test_random_batches_are_decoded_as_they_were(seed: int) -> None:
    source = BatchSource(seed)
    for _ in range(10):
        batch = source.batch()
        encoded = encode(batch)
        assert decode(encoded, batch.runs) == batch
        assert encode(decode(encoded, batch.runs)) == encoded


def test_a_batch_without_commands_is_no_bytes() -> None:
    assert encode(QuorumBatch()) == b""
    assert decode(b"", ()) == QuorumBatch()


def test_version_3_is_read_and_written_as_it_was() -> None:
    stored = commands((FIXTURES / f"batch-{VERSION}.hex").read_text())
    assert decode(stored, RUNS) == BATCH
    assert encode(BATCH) == stored


def test_commands_with_a_retreat_have_version_4() -> None:
    batch = changed(BATCH, retreats=(Reach(0, 65), Reach(9, 7)))
    encoded = encode(batch)
    assert encoded[0] == RETREAT_VERSION
    assert encoded.endswith(commands("07 00000002 00 00000000000041 09 00000000000007"))
    assert decode(encoded, RUNS) == batch


def test_version_2_is_read() -> None:
    stored = commands((FIXTURES / "batch-2.hex").read_text())
    assert decode(stored, RUNS) == UNTIMED


def test_version_1_is_read() -> None:
    stored = commands((FIXTURES / "batch-1.hex").read_text())
    held = (HeldRun(0, 20, 2, HoldReason.QUARANTINED), HeldRun(9, 5, 1, HoldReason.NONE))
    assert decode(stored, RUNS) == changed(UNTIMED, held=held)


def test_each_place_at_which_commands_can_be_cut_is_refused_or_loses_whole_sections() -> None:
    encoded = encode(BATCH)
    for size in range(1, len(encoded)):
        try:
            batch = decode(encoded[:size], RUNS)
        except QuorumFormatError:
            continue
        assert encode(batch) == encoded[:size]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("05", "byte 0: commands of version 5, where 1 to 4 are known"),
        ("00", "byte 0: commands of version 0, where 1 to 4 are known"),
        ("03 07 00000001 0000000000000001", "byte 1: unknown kind of command 7"),
        ("04 02 00000001 0000000000000001", "byte 0: commands of version 4 without a retreat"),
        ("01", "byte 1: no command"),
        ("01 07 00000001", "byte 1: unknown kind of command 7"),
        ("01 00 00000001", "byte 1: unknown kind of command 0"),
        ("01 06 000000", "byte 1: the commands end within a section"),
        ("01 06 00000000", "byte 1: 0 commands of kind 6 after those of kind 0"),
        ("01 06 00000001 0001 00000000000000", "byte 6: 1 commands of kind 6 do not fit into the entry"),
        (
            "01 06 00000001 0001 0000000000000001 02 00000001 0000000000000001",
            "byte 16: 1 commands of kind 2 after those of kind 6",
        ),
        ("01 03 00000001 0000000000000001 00000000 00000001 00000001", "byte 6: 0 positions from 0x1 on"),
        (
            "01 03 00000001 00ffffffffffffff 00000001 00000001 00000001",
            "byte 6: 1 positions from 0xffffffffffffff on",
        ),
        ("01 04 00000001 0000000000000001 00000001 02", "byte 6: unknown hold 2"),
        ("02 04 00000001 0000000000000001 00000001 05", "byte 6: unknown hold 5"),
        ("01 05 00000001 0000000000000001 00000001 0000000000000000 08", "byte 6: unknown reason 8"),
        ("01 05 00000001 0000000000000001 00000001 0000000000000000 00", "byte 6: unknown reason 0"),
        (
            "01 05 00000002 0000000000000001 00000003 0000000000000000 01"
            "0000000000000003 00000003 0000000000000000 01",
            "byte 27: position 0x3 is settled behind 0x4",
        ),
    ],
)
def test_invalid_commands_are_refused_with_their_place(text: str, message: str) -> None:
    with pytest.raises(QuorumFormatError) as raised:
        decode(commands(text), ())
    assert str(raised.value).startswith(message)
    assert str(raised.value).endswith("; a newer version of Warren may have written this")


def test_an_empty_run_of_numbers_is_refused() -> None:
    with pytest.raises(QuorumFormatError, match="byte 6: an empty run of numbers"):
        decode(commands("01 01 00000001 0001 0000000000000001 0000000000000001 00000000"), ())


@pytest.mark.parametrize("runs", [(), RUNS[:1], (*RUNS, PositionRun(0, 43, 1))])
def test_numbers_for_another_count_of_messages_are_refused(runs: tuple[PositionRun, ...]) -> None:
    with pytest.raises(QuorumFormatError, match="messages, and numbers for another count"):
        decode(encode(BATCH), runs)
    with pytest.raises(QuorumFormatError, match="1 messages, and numbers for another count"):
        decode(b"", RUNS[1:])


def test_positions_that_are_settled_twice_are_not_encoded() -> None:
    runs = tuple(SettledRun(0, first, 2, size=0, reason=SettleReason.ACKNOWLEDGED) for first in (5, 6))
    with pytest.raises(AssertionError):
        encode(QuorumBatch(settled=runs))
    with pytest.raises(AssertionError):
        encode(QuorumBatch(runs=RUNS))
