"""The records of Raft groups in a segment: a fixture of their format, their drawing, and what is refused."""

import random
import re
from pathlib import Path

import pytest
from tests.sim.disk import File, SimulatedDisk
from tests.sim.recovered import messages_in
from tests.unit.store.test_group_log import FIRST, GROUP, REPLICA, append, opened, write
from tests.unit.store.test_recovery import Port
from tests.unit.store.test_recovery import segments_that_are_quickly_read as segments_that_are_quickly_read

from warren.queues.quorum.raft_storage import ALONE, PAYLOAD_VERSIONS, encode_configuration
from warren.store.group_log import GroupLog
from warren.store.group_record import GroupEntry, GroupHardState, GroupSnapshot
from warren.store.record import CUT, ENTRY, HARD, KIND_AT, STATE, VERSION, is_intact
from warren.store.recovery import RecoveryDependencies, open_store
from warren.store.segment import HEAD_SIZE, NewerFormatError, seed_of

ROOT = Path(__file__).parents[3]
FIXTURE = Path(__file__).with_name("fixtures") / f"groups-{VERSION}.hex"
KINDS = {"ENTRY": ENTRY, "HARD": HARD, "STATE": STATE, "CUT": CUT}
CONFIGURATION = encode_configuration(ALONE)
# Of version 2; these have fixtures of their own.
MACHINE = b"\x02" + bytes(10)
COMMANDS = b"\x02\x02" + (1).to_bytes(4, "big") + (9).to_bytes(8, "big")
FIELD = re.compile(r"(\d+) ([a-z ]+) u(8|16|32|64)")
# The fields of the largest record of each kind in the fixture, and of the last one of these.
FIELDS = {
    "ENTRY": {"kind": ENTRY, "group": 1, "index": 2, "term": 3, "commit": 1, "kind of entry": 0,
              "run count": 1, "position": 2, "count": 1},
    "HARD": {"kind": HARD, "group": 1, "replica": 7, "term": 3, "vote": 2, "commit": 0},
    "STATE": {"kind": STATE, "group": 1, "replica": 7, "since": 1, "term": 3, "vote": 2, "commit": 1,
              "index": 1, "term of index": 3, "reason size": 0, "level count": 1, "offset count": 1,
              "configuration size": 14, "machine size": 11, "entry count": 1},
    "CUT": {"kind": CUT, "group": 1, "index": 2, "position": 2, "offset": 1},
}  # fmt: skip


def written() -> tuple[SimulatedDisk, bytes]:
    """A disk with every kind of record, as this version writes them, and the used part of its segment."""
    disk = SimulatedDisk(random.Random(0))
    store = opened(disk).store
    log = GroupLog.create(store, GROUP, REPLICA, CONFIGURATION)
    log.promise(3, 2)
    append(log, b"a", b"b", commands=COMMANDS)
    append(log, b"void")
    write(store, disk)
    log.cut(2)
    entry = GroupEntry(index=2, term=3, commit=1)
    log.append(entry, [])
    log.cut(2)
    append(log, b"c", commands=COMMANDS)
    committed = GroupEntry(index=3, term=3, commit=1)
    log.append(committed, [])
    write(store, disk)
    log.cut(3)
    log.compact(GroupSnapshot(index=1, term=3, configuration=CONFIGURATION, machine=MACHINE))
    write(store, disk)
    return disk, bytes(disk.files[FIRST].current[: store.segments[1].size])


def fixture() -> bytes:
    return bytes.fromhex(FIXTURE.read_text(encoding="ascii"))


def disk_with(data: bytes) -> SimulatedDisk:
    """A disk with `data` in the first segment."""
    disk = SimulatedDisk(random.Random(0))
    file = disk.files[FIRST] = File(len(data))
    file.current[:] = file.synced[:] = data
    return disk


def records(data: bytes) -> list[tuple[str, int, int]]:
    """Of each record of a group in a segment: the name of its kind, where it is, and its size."""
    seed, at, found = seed_of(data[:HEAD_SIZE], 1), HEAD_SIZE, []
    names = {kind: name for name, kind in KINDS.items()}
    while size := is_intact(data, at, seed):
        if data[at + KIND_AT] in names:
            found.append((names[data[at + KIND_AT]], at, size))
        at += size
    return found


def test_this_version_writes_its_format_as_the_fixture_has_it() -> None:
    """Whoever changes a format gives it a version, and keeps the fixture of the version before."""
    assert written()[1] == fixture()


def test_every_kind_of_record_is_in_the_fixture_and_read() -> None:
    assert {name for name, _, _ in records(fixture())} == KINDS.keys()
    recovered = opened(disk_with(fixture()))
    log = recovered.groups[GROUP]
    assert (log.replica, log.untrusted, log.hard) == (REPLICA, "", GroupHardState(3, 2, 1))
    assert log.snapshot == GroupSnapshot(index=1, term=3, configuration=CONFIGURATION, machine=MACHINE)
    [entry] = log.entries(2, 2, 0)
    assert (entry.term, entry.commit, entry.commands, log.last) == (3, 1, COMMANDS, 2)
    assert [message.body for _, message in messages_in(recovered, GROUP)] == [b"a", b"b", b"c"]
    assert (log.stored(0, 1), log.stored(0, 2)) == (1, 3)


@pytest.mark.parametrize("name", KINDS)
def test_a_record_of_a_group_is_as_drawn(name: str) -> None:
    text = (ROOT / "docs" / "internals" / "store.md").read_text(encoding="utf-8")
    [line] = re.findall(rf"^ {name} +(0 size u32 .*)$", text, re.MULTILINE)
    size, at = max((size, at) for kind, at, size in records(fixture()) if kind == name)
    record, found, behind = fixture()[at : at + size], {}, 0
    for place, field, bits in FIELD.findall(line):
        assert int(place) == behind, f"{field} is drawn at {place}, and begins at {behind}"
        behind += int(bits) // 8
        found[field] = int.from_bytes(record[int(place) : behind], "big")
    assert found.pop("size") == size - 9
    assert found.pop("checksum") == int.from_bytes(record[4:8], "big")
    assert found == FIELDS[name]


@pytest.mark.parametrize("name", KINDS)
def test_a_bit_that_rots_in_a_record_of_a_group_is_found(name: str) -> None:
    data = fixture()
    seed = seed_of(data[:HEAD_SIZE], 1)
    for found, at, size in records(data):
        for place in range(at, at + size):
            rotten = bytearray(data)
            rotten[place] ^= 1 << place % 8
            assert found != name or is_intact(bytes(rotten), at, seed) != size


@pytest.mark.parametrize("name", KINDS)
def test_a_rotten_record_of_a_group_makes_it_untrusted_with_file_and_offset(name: str) -> None:
    disk, data = written()
    at = next(at for found, at, _ in records(data) if found == name)
    disk.flip_bit(FIRST, at + 12)
    recovered = opened(disk)
    [damage] = recovered.damage
    assert str(damage).startswith(f"{FIRST}, byte {at}: ")
    assert recovered.groups[GROUP].untrusted.startswith(str(damage))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"configuration": b"\x02" + CONFIGURATION[1:]}, "format 2 of the configuration is newer than 1"),
        ({"machine": b"\x09" + MACHINE[1:]}, "format 9 of the machine is newer than 3"),
        ({"commands": b"\x05" + COMMANDS[1:]}, "format 5 of the commands is newer than 4"),
        ({"commands": b"\x05", "machine": MACHINE}, "format 5 of the commands is newer than 4"),
    ],
)
def test_a_newer_format_in_a_record_is_refused_with_its_place_and_nothing_is_changed(
    changed: dict[str, bytes], reason: str
) -> None:
    disk = SimulatedDisk(random.Random(0))
    store = opened(disk).store
    log = GroupLog.create(store, GROUP, REPLICA, changed.get("configuration", CONFIGURATION))
    log.promise(1, 0)
    append(log, b"a", commands=COMMANDS)
    append(log, b"b", commands=changed.get("commands", COMMANDS))
    append(log, commands=b"")
    write(store, disk)
    if "machine" in changed:
        log.append(GroupEntry(index=4, term=1, commit=1), [])
        snapshot = GroupSnapshot(index=1, term=1, configuration=CONFIGURATION, machine=changed["machine"])
        log.compact(snapshot)
        write(store, disk)
    before = {name: bytes(file.current) for name, file in disk.files.items()}
    dependencies = RecoveryDependencies(
        random_bytes=random.Random(1).randbytes, has_queue=GROUP.__eq__, progress=lambda *_: None,
        payload_versions=PAYLOAD_VERSIONS,
    )  # fmt: skip
    with pytest.raises(NewerFormatError, match=re.escape(reason)) as refused:
        open_store(disk, Port(), dependencies)
    assert (refused.value.name, before[FIRST][refused.value.at]) == (FIRST, int(reason.split()[1]))
    assert {name: bytes(file.current) for name, file in disk.files.items()} == before
