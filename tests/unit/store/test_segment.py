"""Which bytes are accepted as a segment, and as a record of it."""

import random

import pytest
from tests.sim.disk import SimulatedDisk
from tests.sim.segments import make_small, set_segment_size
from tests.unit.store.test_recovery import FIRST, bodies, opened, published

from warren.store.disk import CreateFile, SyncDirectory, SyncFile, WriteFile
from warren.store.record import BATCH, RELEASE, checksum_seed, encode, encode_run
from warren.store.segment import HEAD_SIZE, StoreFileError, encode_head, seed_of

SMALL = 65_536


@pytest.mark.parametrize("salt", [b"", bytes(8)])
def test_a_published_body_is_not_accepted_as_a_record(salt: bytes) -> None:
    """The body imitates a record in all but the salt, and the bytes before it are lost in a power cut."""
    disk = SimulatedDisk(random.Random(0))
    store = opened(disk).store
    cursor = store.cursor(1, 0)
    seed = checksum_seed(1, salt)
    forged = encode(BATCH, b"", seed) + encode(RELEASE, encode_run(1, 0, 1), seed)
    for position, body in enumerate((b"kept", forged)):
        store.append(published(body), cursor, position)
        store.commit()
        disk.advance()
    data = disk.files[FIRST].current
    disk.flip_bit(FIRST, data.find(forged) - 1)
    disk.forget_synced()
    recovered = opened(disk)
    assert (bodies(recovered), recovered.damage) == ([b"kept"], [])


def test_checksums_depend_on_the_salt_and_the_number() -> None:
    seeds = {
        seed_of(encode_head(number, salt), number) for number in (1, 2) for salt in (bytes(8), b"12345678")
    }
    assert len(seeds) == 4


def test_a_segment_under_another_name_is_refused() -> None:
    with pytest.raises(
        StoreFileError, match=r"00000002.segment, byte 8: the file is segment 1 under another name"
    ):
        seed_of(encode_head(1, bytes(8)), 2)


@pytest.mark.parametrize("size", [1, 8, 15, HEAD_SIZE - 1])
def test_a_header_torn_at_the_creation_of_its_segment_is_not_damage(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    set_segment_size(monkeypatch, SMALL)
    disk = SimulatedDisk(random.Random(0))
    store = opened(disk).store
    store.append(published(b"kept"), store.cursor(1, 0), 0)
    store.commit()
    disk.advance()
    name = "00000002.segment"
    torn = encode_head(2, b"12345678")[:size]
    disk.perform([CreateFile(name, SMALL), WriteFile(name, 0, [torn]), SyncFile(name), SyncDirectory()])
    recovered = opened(disk)
    assert (bodies(recovered), recovered.damage) == ([b"kept"], [])
    disk.forget_synced()
    disk.perform([CreateFile(name, SMALL), WriteFile(name, 0, [torn.ljust(HEAD_SIZE, b"\0"), b"x"])])
    assert [str(error) for error in opened(disk).damage]


@pytest.mark.parametrize("seed", range(5))
def test_messages_recovered_after_a_kill_survive_a_later_power_cut(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of a segment that was sealed and not synced when the process was killed."""
    make_small(monkeypatch, 4_096)
    disk = SimulatedDisk(random.Random(seed))
    store = opened(disk).store
    for position in range(5):
        store.append(published(b"%d" % position * 1_000), store.cursor(1, 0), position)
    store.commit()
    disk.advance(1)
    disk.die()
    found = bodies(opened(disk))
    assert len(found) == 3
    disk.lose_power()
    recovered = opened(disk)
    assert (bodies(recovered), recovered.damage) == (found, [])
