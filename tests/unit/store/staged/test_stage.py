"""A stage is complete or absent, and damage in it is reported."""

import random
from array import array
from itertools import accumulate

import pytest
from tests.sim.disk import SimulatedDisk

from warren.limits import STAGED_CHUNK_ROWS_MAX
from warren.model.message import BODY_END, PERSISTENT, Message, encode_address
from warren.store.segment import NewerFormatError, StoreFileError
from warren.store.staged.stage import Stage, StageDescription, StageWriter, open_stage, read_chunk, verify
from warren.store.streams.chunk import MessageRun
from warren.wire.properties import BasicProperties

DESCRIPTION = StageDescription(
    query="q \udcff", batch=7, partition=1, attempt=2, exchange="", user="somebody", created_at=5
)
SALT = b"saltsalt"


def disk() -> SimulatedDisk:
    return SimulatedDisk(random.Random(0))


def row(body: bytes, key: str = "q") -> Message:
    properties = BasicProperties(delivery_mode=2, priority=3)
    return Message.compose(encode_address("", key), properties, body + BODY_END, now=0)


def staged(there: SimulatedDisk, rows: list[Message], number: int = 1) -> Stage:
    writer = StageWriter(there, number, DESCRIPTION, SALT)
    for message in rows:
        writer.add(message)
        writer.flush()
    return writer.finish()


def bodies(there: SimulatedDisk, stage: Stage) -> list[bytes]:
    found, at = [], stage.first
    while at < stage.end:
        chunk = read_chunk(there, stage, at)
        found += [chunk.content(place)[:-1] for place in range(chunk.count)]
        at += chunk.size
    return found


def test_staged_rows_survive_a_power_cut() -> None:
    there = disk()
    texts = [b"%d" % number for number in range(STAGED_CHUNK_ROWS_MAX + 10)]
    made = staged(there, [row(text) for text in texts])
    there.lose_power()
    found = open_stage(there, 1, there.names()["00000001.stage"])
    assert found == made
    assert (found.rows, found.byte_count) == (len(texts), sum(map(len, texts)))
    assert found.description == DESCRIPTION
    assert bodies(there, found) == texts
    message = read_chunk(there, found, found.first).message(0)
    assert (message.routing_key, message.flags, message.priority) == ("q", PERSISTENT, 3)


def test_a_large_row_has_its_own_chunk() -> None:
    there = disk()
    made = staged(there, [row(b"1"), row(bytes(1_000_000)), row(b"2")])
    assert [len(body) for body in bodies(there, made)] == [1, 1_000_000, 1]


def test_a_stage_has_its_final_name_only_when_it_is_finished() -> None:
    there = disk()
    writer = StageWriter(there, 1, DESCRIPTION, SALT)
    writer.add(row(b"body"))
    writer.flush()
    assert list(there.names()) == ["00000001.stage.part"]
    writer.abandon()
    assert not there.names()


def test_verification_reads_the_whole_stage_and_checks_every_address() -> None:
    there = disk()
    made = staged(there, [row(b"1", "a"), row(b"2", "b"), row(b"3", "a")])
    asked: list[bytes] = []
    verify(there, made, asked.append)
    assert sorted(asked) == [encode_address("", "a"), encode_address("", "b")]


@pytest.mark.parametrize("place", [0, 20, -10])
def test_a_stage_with_a_damaged_header_or_end_is_absent(place: int) -> None:
    there = disk()
    made = staged(there, [row(b"body")])
    there.flip_bit(made.name, place % made.size)
    with pytest.raises(StoreFileError):
        open_stage(there, 1, made.size)


def test_damaged_rows_are_found_before_the_commit_is_decided() -> None:
    there = disk()
    made = staged(there, [row(b"body")])
    there.flip_bit(made.name, made.end - 2)
    with pytest.raises(StoreFileError, match="rows are damaged"):
        verify(there, open_stage(there, 1, made.size), lambda _: None)


def test_a_truncated_stage_is_absent() -> None:
    there = disk()
    made = staged(there, [row(b"body")])
    with pytest.raises(StoreFileError, match="the end of the stage is damaged"):
        open_stage(there, 1, made.size - 5)


def test_a_newer_format_is_refused() -> None:
    there = disk()
    made = staged(there, [])
    there.files[made.name].current[6:8] = (99).to_bytes(2, "big")
    with pytest.raises(NewerFormatError, match="format 99 is newer than 1"):
        open_stage(there, 1, made.size)


def test_similar_rows_are_read_as_if_they_were_staged_singly() -> None:
    there = disk()
    texts = [b"%d" % number * (number % 300) for number in range(STAGED_CHUNK_ROWS_MAX + 500)]
    ends = array("I", accumulate(map(len, texts), initial=0))
    writer = StageWriter(there, 1, DESCRIPTION, SALT)
    writer.add(row(b"before"))
    writer.add_run(MessageRun(row(b""), ends, memoryview(b"".join(texts)), place=10, count=len(texts) - 20))
    writer.add(row(b"behind", "other"))
    made = writer.finish()
    wanted = [b"before", *texts[10:-10], b"behind"]
    assert bodies(there, made) == wanted
    assert (made.rows, made.byte_count) == (len(wanted), sum(map(len, wanted)))
    verify(there, made, lambda address: address)
