"""A truncated, zeroed or exchanged end of the journal is always detected.

The opposite, that no loss is reported without one, is tested after each power cut in
tests/sim/test_journal.py.
"""

import random
import tarfile
from pathlib import Path

import pytest
from tests.sim.disk import File
from tests.sim.test_journal import Proposed, Simulation, described

from warren.journal.file_format import HEAD_SIZE, NAME, JournalError
from warren.journal.high_water_mark import NAME as MARK
from warren.journal.log_reader import RecoveredLog
from warren.journal.recovery import recover
from warren.limits import JOURNAL_MARK_SYNC_MS
from warren.metadata.commands import DeclareQueue, PutVhost
from warren.metadata.machine import Metadata

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").glob("*-metadata-[1-6].tar.gz"))


def declared(simulation: Simulation, *names: str) -> None:
    """Declare queues with these names, each answered before the next."""
    for name in names:
        proposed = Proposed(simulation, DeclareQueue(vhost="v", name=name, durable=True))
        simulation.disk.advance()
        assert proposed.reply is not None


def begun() -> Simulation:
    simulation = Simulation(0)
    Proposed(simulation, PutVhost(name="v"))
    simulation.disk.advance()
    return simulation


def put(simulation: Simulation, data: bytes, name: str = NAME) -> None:
    file = File(0)
    file.current = bytearray(data)
    file.synced = bytearray(data)
    simulation.disk.files[name] = file


def reported(simulation: Simulation) -> RecoveredLog:
    return recover(simulation.disk, Metadata())


def bytes_of(simulation: Simulation, name: str = NAME) -> bytes:
    return bytes(simulation.disk.files[name].current)


@pytest.mark.parametrize("end", ["killed", "closed", "power cut"])
@pytest.mark.parametrize("filling", ["cut off", "zeroed", "torn"])
def test_an_end_lost_at_any_byte_is_detected(end: str, filling: str) -> None:
    simulation = begun()
    declared(simulation, "a", "b")
    simulation.now += JOURNAL_MARK_SYNC_MS
    declared(simulation, "c")
    if end == "killed":
        simulation.disk.die()
    elif end == "closed":
        simulation.journal.close(lambda: None)
        simulation.disk.advance()
    else:
        simulation.disk.lose_power()
    whole = bytes_of(simulation)
    found = reported(simulation)
    assert (found.damage, found.loss) == ([], None)
    noise = random.Random(0)
    for at in range(found.end):
        rest = {
            "cut off": b"",
            "zeroed": bytes(len(whole) - at),
            "torn": noise.randbytes(len(whole) - at),
        }[filling]
        if whole == whole[:at] + rest:
            # The last bytes of the log are zeros.
            continue
        put(simulation, whole[:at] + rest)
        if at < HEAD_SIZE:
            with pytest.raises(JournalError, match="byte 0: "):
                reported(simulation)
            continue
        loss = reported(simulation).loss
        assert loss is not None, at
        assert loss.is_end
        assert f"it had reached byte {found.end} (change" in str(loss)
    put(simulation, whole[: found.end])
    assert reported(simulation).loss is None


def test_writes_torn_behind_the_last_answer_are_no_loss() -> None:
    simulation = begun()
    declared(simulation, "a")
    answered = reported(simulation).end
    Proposed(simulation, DeclareQueue(vhost="v", name="b", durable=True))
    simulation.disk.advance(1)
    simulation.disk.die()
    whole, end = bytes_of(simulation), reported(simulation).end
    assert end > answered
    for at in range(answered, end):
        put(simulation, whole[:at] + bytes(len(whole) - at))
        found = reported(simulation)
        assert (found.damage, found.loss) == ([], None)


def test_a_missing_file_is_detected() -> None:
    simulation = begun()
    del simulation.disk.files[NAME]
    loss = reported(simulation).loss
    assert str(loss).startswith("metadata, byte 0: the file is missing; it had reached byte ")
    assert loss is not None
    assert not loss.is_end


def test_an_older_copy_of_any_file_is_detected() -> None:
    simulation = begun()
    copies = [bytes_of(simulation)]
    for name in "abc":
        declared(simulation, name)
        copies.append(bytes_of(simulation))
    simulation.journal.close(lambda: None)
    simulation.disk.advance()
    simulation.open()
    simulation.journal.begin()
    whole = bytes_of(simulation)
    for copy in copies:
        put(simulation, copy)
        assert "this is an older file, generation 1 of the log" in str(reported(simulation).loss)
    put(simulation, whole)
    assert reported(simulation).loss is None


def test_an_older_copy_of_the_file_in_use_is_detected() -> None:
    simulation = begun()
    copy = bytes_of(simulation)
    declared(simulation, "a")
    put(simulation, copy)
    assert "the log ends here" in str(reported(simulation).loss)


def test_a_file_of_another_journal_is_detected() -> None:
    one, other = begun(), Simulation(1)
    put(one, bytes_of(other))
    loss = reported(one).loss
    assert loss is not None
    assert "the file belongs to another log" in str(loss)
    assert not loss.is_end


@pytest.mark.parametrize("damage", ["missing", "damaged", "cut off"])
def test_without_the_high_water_mark_the_possible_loss_is_reported(damage: str) -> None:
    simulation = begun()
    if damage == "missing":
        del simulation.disk.files[MARK]
    elif damage == "cut off":
        put(simulation, b"", MARK)
    else:
        put(simulation, bytes(8192), MARK)
    assert "it cannot be verified that the log is complete: high-water-mark is" in str(
        reported(simulation).loss
    )


@pytest.mark.parametrize("slot", [0, 4096])
def test_one_damaged_slot_of_the_high_water_mark_is_no_loss(slot: int) -> None:
    simulation = begun()
    declared(simulation, "a", "b")
    data = bytearray(bytes_of(simulation, MARK))
    data[slot + 20] ^= 1
    put(simulation, bytes(data), MARK)
    assert reported(simulation).loss is None


def test_the_first_start_may_be_interrupted_anywhere() -> None:
    steps = 20
    for count in range(steps):
        for seed in range(10):
            simulation = Simulation(seed)
            disk = simulation.disk
            disk.files.clear()
            disk.lose_power()
            disk.files.clear()
            simulation.open()
            done: list[object] = []
            _, snapshot = simulation.journal._take_snapshot()
            disk.submit(simulation.journal._file._replacement(snapshot), done.append)
            disk.advance(count)
            disk.lose_power()
            assert reported(simulation).loss is None
            simulation.open()
            simulation.journal.begin()
            declared_one = Proposed(simulation, PutVhost(name="v"))
            disk.advance()
            assert declared_one.reply is not None


def test_the_high_water_mark_costs_no_sync_per_change() -> None:
    simulation = begun()
    before = simulation.disk.syncs
    declared(simulation, *(f"q{number}" for number in range(100)))
    assert simulation.disk.syncs == before + 100


def test_a_pending_high_water_mark_is_synced_within_a_second() -> None:
    simulation = begun()
    declared(simulation, "a")
    before = simulation.disk.syncs
    simulation.journal.maintain()
    assert not simulation.disk.is_busy
    simulation.now += JOURNAL_MARK_SYNC_MS
    simulation.journal.maintain()
    simulation.disk.advance()
    assert simulation.disk.syncs == before + 1
    simulation.now += JOURNAL_MARK_SYNC_MS
    simulation.journal.maintain()
    assert not simulation.disk.is_busy


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_a_journal_of_an_older_version_is_accepted_and_kept(fixture: Path) -> None:
    simulation = begun()
    del simulation.disk.files[MARK]
    with tarfile.open(fixture) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None and Path(member.name).parent.name == "metadata":
                put(simulation, content.read(), Path(member.name).name)
    older = bytes_of(simulation)
    found = reported(simulation)
    assert (found.version, found.damage, found.loss) == (int(fixture.name.split(".")[0][-1]), [], None)
    simulation.open()
    before = simulation.metadata
    simulation.journal.begin()
    kept = f"{NAME}.{found.version}"
    assert bytes_of(simulation, kept) == older
    simulation.open()
    metadata = simulation.metadata
    assert described(metadata) == described(before)
    numbers = [
        {queue.name: queue.number for queue in vhost.topology.queues.values()}
        for each in (metadata, before)
        for vhost in each.vhosts.by_name.values()
    ]
    assert numbers[: len(numbers) // 2] == numbers[len(numbers) // 2 :]
    # A number was the index of a change.
    assert metadata.next_number == found.index + 1
    simulation.journal.begin()
    assert bytes_of(simulation, kept) == older
    put(simulation, older)
    assert "this is an older file, generation " in str(reported(simulation).loss)
