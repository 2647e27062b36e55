"""Recovery of a store that was torn, damaged, or written by another version."""

import errno
import random

import pytest
from google_crc32c import value
from tests.sim.disk import SimulatedDisk
from tests.sim.recovered import messages_in
from tests.sim.segments import make_small, set_segment_size

from warren.limits import SPARE_SEGMENTS_MAX
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import BODY_END, PERSISTENT, StoredMessage, encode_address
from warren.store.disk import CreateFile, DeleteFile, SyncDirectory, SyncFile, WriteFile
from warren.store.recovery import CATALOG, RecoveredStore, RecoveryDependencies, open_store
from warren.store.segment import HEAD_SIZE, SUFFIX, NewerFormatError, StoreFileError, encode_head
from warren.store.store_port import StorePort
from warren.wire.properties import BasicProperties

FIRST = "00000001.segment"
SEGMENT_SIZE, SMALL = 1_048_576, 65_536


@pytest.fixture(autouse=True)
def segments_that_are_quickly_read(monkeypatch: pytest.MonkeyPatch) -> None:
    set_segment_size(monkeypatch, SEGMENT_SIZE)


class Port(StorePort):
    """Records what the store reports."""

    def __init__(self) -> None:
        self.reported: list[str] = []
        # True when a commit was requested and has not been made.
        self.is_dirty = False

    def commit_due(self) -> None:
        self.reported.append("dirty")
        self.is_dirty = True

    def failed(self, error: OSError, is_full: bool) -> None:
        self.reported.append("full" if is_full else "failed")

    def recovered(self) -> None:
        self.reported.append("recovered")

    def unreadable(self, error: OSError | StoreFileError) -> None:
        self.reported.append(str(error))

    def fell_behind(self) -> None:
        """Nothing to do: the store catches up when the disk advances."""

    def caught_up(self) -> None:
        """Nothing to do: no publisher waits here."""


class Promise(ConfirmListener):
    """One publisher."""

    def __init__(self) -> None:
        self.done_numbers: list[int] = []

    def expect(self, sequence: int) -> None:
        """Nothing to do: the confirm follows."""

    def done(self, first: int, last: int) -> None:
        self.done_numbers += range(first, last + 1)


def published(body: bytes) -> StoredMessage:
    properties = BasicProperties(delivery_mode=2, priority=3).encode_list()
    message = StoredMessage(encode_address("ex", "key"), properties, body + BODY_END, 1_700_000_000_000)
    message.flags, message.priority = PERSISTENT, 3
    return message


def opened(disk: SimulatedDisk, port: Port | None = None, queues: tuple[int, ...] = (1, 2)) -> RecoveredStore:
    dependencies = RecoveryDependencies(
        random_bytes=random.Random(1).randbytes, has_queue=queues.__contains__, progress=lambda *_: None
    )
    return open_store(disk, port or Port(), dependencies)


def written(disk: SimulatedDisk, *bodies: bytes) -> list[StoredMessage]:
    """Each of `bodies` in queue 1, in its own batch."""
    store = opened(disk).store
    messages = []
    for position, body in enumerate(bodies):
        messages.append(published(body))
        store.append(messages[-1], store.cursor(1, 0), position)
        store.commit()
        disk.advance()
    return messages


def bodies(recovered: RecoveredStore, queue: int = 1) -> list[bytes]:
    return [message.body for _, message in messages_in(recovered, queue)]


def last_of(there: SimulatedDisk) -> str:
    return max(name for name in there.names() if name.endswith(SUFFIX))


def disk() -> SimulatedDisk:
    return SimulatedDisk(random.Random(0))


def test_a_message_is_recovered_as_it_was_published() -> None:
    there = disk()
    written(there, b"body", b"")
    [(_, message), (_, empty)] = messages_in(opened(there))
    assert (message.exchange, message.routing_key, message.body) == ("ex", "key", b"body")
    assert (message.published_at, message.flags, message.priority) == (1_700_000_000_000, 1, 3)
    assert (empty.body, empty.properties().delivery_mode) == (b"", 2)
    assert message.content == published(b"body").content


def test_a_message_in_many_queues_is_written_once() -> None:
    there = disk()
    store = opened(there).store
    message = published(bytes(10_000))
    for queue in range(1, 101):
        store.append(message, store.cursor(queue, 0), 0)
    store.commit()
    there.advance()
    recovered = opened(there, queues=tuple(range(1, 101)))
    found = [messages_in(recovered, queue)[0][1] for queue in range(1, 101)]
    assert len({message.location for message in found}) == 1


def test_messages_are_recovered_by_position_and_of_duplicates_the_later_counts() -> None:
    there = disk()
    store = opened(there).store
    cursor = store.cursor(1, 0)
    for position, body in ((2, b"two"), (0, b"zero"), (1, b"one"), (0, b"zero anew")):
        store.append(published(body), cursor, position)
        store.commit()
        there.advance()
    assert [(position, message.body) for position, message in messages_in(opened(there))] == [
        (0, b"zero anew"), (1, b"one"), (2, b"two"),
    ]  # fmt: skip


def test_a_message_released_before_it_is_written_is_not_written() -> None:
    there = disk()
    store = opened(there).store
    promise = Promise()
    message = published(bytes(1000))
    cursor = store.cursor(1, 0)
    store.append(message, cursor, 0)
    store.confirm(promise, 1)
    store.release(message, cursor, 0)
    before = len(there.files[FIRST].unsynced)
    store.commit()
    there.advance()
    assert promise.done_numbers == [1]
    assert before == 0
    assert all(bytes(1000) not in bytes(file.synced[:900]) for file in there.files.values())
    assert bodies(opened(there)) == []


def test_a_torn_end_is_not_damage_and_is_not_overwritten() -> None:
    there = disk()
    written(there, b"first", b"second")
    at = there.files[FIRST].current.find(b"second")
    there.flip_bit(FIRST, at)
    there.forget_synced()
    recovered = opened(there)
    assert (bodies(recovered), recovered.damage) == ([b"first"], [])
    assert "00000002.segment" in there.files


@pytest.mark.parametrize("has_catalog", [True, False])
@pytest.mark.parametrize("before", [0, 20, 45])
def test_damage_before_a_later_batch_is_reported_with_its_place_and_costs_one_record(
    before: int, has_catalog: bool
) -> None:
    there = disk()
    written(there, b"first", b"second", b"third")
    at = there.files[FIRST].current.find(b"second")
    there.flip_bit(FIRST, at - before)
    if not has_catalog:
        del there.files[CATALOG]
    recovered = opened(there)
    assert bodies(recovered) == [b"first", b"third"]
    [damage] = recovered.damage
    assert damage.name == FIRST
    assert at - 100 < damage.at < at
    assert "record is damaged" in str(damage)


@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_damaged_segment_is_never_reused(is_sealed: bool) -> None:
    there = disk()
    written(there, b"first", b"second", b"third")
    if is_sealed:
        opened(there)
    there.flip_bit(FIRST, there.files[FIRST].current.find(b"second"))
    recovered = opened(there)
    store = recovered.store
    for position, message in messages_in(recovered):
        store.release(message, store.cursor(1, 0), position)
    store.commit()
    there.advance()
    assert FIRST in there.files


def test_a_newer_format_is_refused() -> None:
    there = disk()
    written(there, b"first")
    head = there.files[FIRST].current
    head[6:8] = (99).to_bytes(2, "big")
    head[20:24] = value(bytes(head[:20])).to_bytes(4, "big")
    with pytest.raises(NewerFormatError, match=r"00000001.segment, byte 6: format 99 is newer than 4"):
        opened(there)


def test_a_damaged_header_costs_its_segment_and_is_reported() -> None:
    there = disk()
    written(there, b"first")
    opened(there)
    there.flip_bit(FIRST, 3)
    recovered = opened(there)
    assert [str(error) for error in recovered.damage] == [
        f"{FIRST}, byte 0: not a segment of a message store"
    ]


def test_a_damaged_header_of_the_last_segment_is_reported_and_the_file_left_in_place() -> None:
    there = disk()
    written(there, b"first")
    opened(there)
    last = last_of(there)
    there.flip_bit(last, 14)
    before = there.read(last, 0, 1000)
    recovered = opened(there)
    [damage] = recovered.damage
    assert (damage.name, damage.at) == (last, 0)
    assert bodies(recovered) == [b"first"]
    store = recovered.store
    store.append(published(b"second"), store.cursor(1, 0), 1)
    store.commit()
    there.advance()
    assert there.read(last, 0, 1000) == before
    assert bodies(opened(there)) == [b"first", b"second"]


def test_records_around_an_unreadable_sector_are_recovered_and_the_file_left_in_place() -> None:
    there = disk()
    written(there, b"first", bytes(10_000), b"third")
    at = there.files[FIRST].current.find(bytes(10_000))
    there.unreadable[FIRST] = range(at + 5_000, at + 5_001)
    before = there.files[FIRST].current[:]
    recovered = opened(there)
    assert [(error.name, error.at // 4096) for error in recovered.damage] == [
        (FIRST, (at + 5_000) // 4096), (FIRST, 0),
    ]  # fmt: skip
    # Adjacent messages are read without the data behind them.
    assert bodies(recovered) == [b"first", b"third"]
    store = recovered.store
    store.append(published(b"fourth"), store.cursor(1, 0), 3)
    store.commit()
    there.advance()
    assert bodies(opened(there)) == [b"first", b"third", b"fourth"]
    assert there.files[FIRST].current == before


@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_segment_with_an_unreadable_sector_behind_its_records_is_never_reused(is_sealed: bool) -> None:
    there = disk()
    written(there, b"first")
    if is_sealed:
        opened(there)
    there.unreadable[FIRST] = range(SEGMENT_SIZE - 1, SEGMENT_SIZE)
    before = there.files[FIRST].current[:]
    recovered = opened(there)
    assert [error.at for error in recovered.damage] == [SEGMENT_SIZE - 4096]
    [(position, message)] = messages_in(recovered)
    store = recovered.store
    store.release(message, store.cursor(1, 0), position)
    store.commit()
    there.advance()
    assert there.files[FIRST].current == before


@pytest.mark.parametrize("is_last", [True, False])
def test_a_segment_with_an_unreadable_header_is_reported_and_left_in_place(is_last: bool) -> None:
    there = disk()
    written(there, b"first")
    opened(there)
    name = last_of(there) if is_last else FIRST
    there.unreadable[name] = range(1)
    before = there.files[name].current[:]
    recovered = opened(there)
    assert [(error.name, error.at) for error in recovered.damage] == [(name, 0)]
    assert bodies(recovered) == ([b"first"] if is_last else [])
    store = recovered.store
    store.append(published(b"second"), store.cursor(1, 0), 1)
    store.commit()
    there.advance()
    assert there.files[name].current == before
    assert bodies(opened(there))[-1] == b"second"


@pytest.mark.parametrize("step", [WriteFile, SyncFile])
def test_a_last_segment_that_cannot_be_sealed_is_reported_and_never_reused(step: type) -> None:
    there = disk()
    written(there, b"first")
    there.fault, there.fault_name = (step, errno.EIO), FIRST
    recovered = opened(there)
    assert [str(error).partition(": ")[2] for error in recovered.damage] == [
        "the segment cannot be sealed: EIO"
    ]
    [(position, message)] = messages_in(recovered)
    store = recovered.store
    store.release(message, store.cursor(1, 0), position)
    store.append(published(b"second"), store.cursor(1, 0), 1)
    store.commit()
    there.advance()
    assert FIRST in there.files
    assert bodies(opened(there)) == [b"second"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_without_space_or_permission_a_store_is_not_opened(number: int) -> None:
    there = disk()
    written(there, b"first")
    there.fault = (WriteFile, number)
    with pytest.raises(OSError, match=errno.errorcode[number]):
        opened(there)
    assert bodies(opened(there)) == [b"first"]


@pytest.mark.parametrize("head", [bytes(HEAD_SIZE), encode_head(1, bytes(8))])
def test_a_last_segment_that_was_never_used_is_not_damage(head: bytes) -> None:
    there = disk()
    written(there, b"first")
    there.perform([CreateFile("00000009.segment", SEGMENT_SIZE), WriteFile("00000009.segment", 0, [head])])
    there.perform([SyncDirectory(), SyncFile("00000009.segment")])
    recovered = opened(there)
    assert not recovered.damage
    assert bodies(recovered) == [b"first"]


def test_a_segment_without_its_seal_is_damage_when_another_follows() -> None:
    there = disk()
    written(there, b"first")
    opened(there)
    data = there.files[FIRST].current
    there.flip_bit(FIRST, data.find(b"first") + 10)
    assert isinstance(opened(there).damage[0], StoreFileError)


def test_messages_of_a_deleted_queue_are_released() -> None:
    there = disk()
    written(there, b"first")
    recovered = opened(there, queues=())
    assert not recovered.queues
    recovered.store.append(published(b"x"), recovered.store.cursor(2, 0), 0)
    recovered.store.commit()
    there.advance()
    assert FIRST not in there.files


def test_a_message_larger_than_a_segment_has_its_own_segment() -> None:
    there = disk()
    body = bytes(SEGMENT_SIZE + 5)
    written(there, b"small", body, b"behind")
    recovered = opened(there)
    assert [len(found) for found in bodies(recovered)] == [5, len(body), 6]


def test_free_segments_are_reused_and_released_positions_recorded() -> None:
    there = disk()
    store = opened(there).store
    cursor, stuck = store.cursor(1, 0), store.cursor(2, 0)
    kept = published(b"kept")
    store.append(kept, stuck, 0)
    body = bytes(1 << 20)
    for position in range(80):
        message = published(body)
        store.append(message, cursor, position)
        store.commit()
        there.advance()
        store.release(message, cursor, position)
    store.commit()
    there.advance()
    # One contains the live message, one is written to, and one is spare.
    assert sum(name.endswith(".segment") for name in there.files) <= 3
    assert len(there.files) <= 3 + SPARE_SEGMENTS_MAX
    recovered = opened(there)
    assert bodies(recovered, 2) == [b"kept"]
    assert bodies(recovered) == []
    assert recovered.queues[1][0].end == 80


def test_all_appends_during_a_sync_share_the_next_sync() -> None:
    there = disk()
    store = opened(there).store
    promise = Promise()
    cursor = store.cursor(1, 0)
    before = there.syncs
    for number in range(100):
        store.append(published(b"x"), cursor, number)
        store.confirm(promise, number)
        store.commit()
    there.advance()
    assert promise.done_numbers == [0]
    store.commit()
    there.advance()
    assert promise.done_numbers == list(range(100))
    assert there.syncs - before == 2


@pytest.mark.parametrize("step", [WriteFile, SyncFile, CreateFile])
def test_a_full_disk_stops_confirms_until_there_is_space_and_nothing_is_lost(step: type) -> None:
    there, port = disk(), Port()
    store = opened(there, port).store
    promise = Promise()
    cursor = store.cursor(1, 0)
    there.fault = (step, errno.ENOSPC)
    sizes = [10, SEGMENT_SIZE]
    for number, size in enumerate(sizes):
        store.append(published(bytes(size)), cursor, number)
        store.confirm(promise, number)
    store.commit()
    there.advance()
    assert (promise.done_numbers, port.reported[-1]) == ([], "full")
    store.commit()
    assert not there.is_busy
    store.retry()
    there.advance()
    assert (promise.done_numbers, port.reported[-1]) == ([0, 1], "recovered")
    there.lose_power()
    assert [len(found) for found in bodies(opened(there))] == sizes


def test_any_other_write_error_is_reported_and_confirms_nothing() -> None:
    there, port = disk(), Port()
    store = opened(there, port).store
    promise = Promise()
    store.append(published(b"x"), store.cursor(1, 0), 0)
    store.confirm(promise, 0)
    there.fault = (SyncFile, errno.EIO)
    store.commit()
    there.advance()
    assert (promise.done_numbers, port.reported[-1]) == ([], "failed")


def test_closing_writes_pending_messages_first() -> None:
    there = disk()
    store = opened(there).store
    ended: list[bool] = []
    store.append(published(b"x"), store.cursor(1, 0), 0)
    store.close(lambda: ended.append(True))
    assert not ended
    there.advance()
    assert ended == [True]
    assert bodies(opened(there)) == [b"x"]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small segments, of which many can be filled quickly."""
    make_small(monkeypatch, SMALL)


def batch(there: SimulatedDisk, count: int, queue: int = 1, size: int = 100) -> None:
    """`count` messages in one batch, which was synced."""
    store = opened(there).store
    for position in range(count):
        store.append(published(b"%03d" % position + bytes(size)), store.cursor(queue, 0), position)
    store.commit()
    there.advance()


def place(there: SimulatedDisk, name: str, body: bytes) -> int:
    return there.files[name].current.find(body)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("number", range(10))
@pytest.mark.parametrize("before", [0, 4, 37, 50])
def test_one_damaged_record_of_a_batch_costs_itself_and_is_reported(number: int, before: int) -> None:
    there = disk()
    batch(there, 10)
    there.flip_bit(FIRST, place(there, FIRST, b"%03d" % number) - before)
    recovered = opened(there)
    assert bodies(recovered) == [b"%03d" % each + bytes(100) for each in range(10) if each != number]
    [damage] = recovered.damage
    assert (damage.name, damage.messages) == (FIRST, 1)
    assert damage.queues in ((1,), ())
    there.advance()
    # The damage is reported again, and the file is not reused.
    assert [str(error) for error in opened(there).damage] == [str(damage)]


@pytest.mark.usefixtures("small")
def test_data_written_behind_the_synced_end_may_be_torn_anywhere() -> None:
    there = disk()
    store = opened(there).store
    store.append(published(b"kept"), store.cursor(1, 0), 0)
    store.commit()
    there.advance()
    for position in (1, 2, 3):
        store.append(published(b"torn%d" % position), store.cursor(1, 0), position)
    store.commit()
    there.advance(1)
    there.flip_bit(FIRST, place(there, FIRST, b"torn2"))
    there.die()
    recovered = opened(there)
    assert (bodies(recovered), recovered.damage) == ([b"kept", b"torn1"], [])


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("is_zeroed", [True, False])
@pytest.mark.parametrize("left", [0, 10, 24, 33, 200, 700, 1_500])
def test_a_truncated_segment_is_reported_with_its_messages_and_queues(left: int, is_zeroed: bool) -> None:
    there = disk()
    batch(there, 10, queue=2)
    data = there.files[FIRST].current
    data[left:] = bytes(len(data) - left) if is_zeroed else b""
    recovered = opened(there)
    kept = len(bodies(recovered, 2))
    assert sum(error.messages or 0 for error in recovered.damage) == 10 - kept
    assert {(error.name, error.queues) for error in recovered.damage} <= {(FIRST, (2,))}
    assert bool(recovered.damage) == (kept < 10)
    assert kept == max(0, left - 33) // 162
    # New messages are written elsewhere and recovered.
    store = recovered.store
    store.append(published(b"later"), store.cursor(2, 0), 99)
    store.commit()
    there.advance()
    assert bodies(opened(there), 2)[-1] == b"later"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_missing_segment_is_reported_with_its_messages(number: int) -> None:
    there = disk()
    for queue in (1, 2, 3):
        batch(there, 4, queue=queue)
    name = f"{number:08d}{SUFFIX}"
    there.perform([DeleteFile(name), SyncDirectory()])
    recovered = opened(there, queues=(1, 2, 3))
    [damage] = recovered.damage
    assert (damage.name, damage.reason, damage.messages) == (name, "the file is missing", 4)
    assert damage.queues == (number,)
    assert name not in there.names()
    there.lose_power()
    assert [str(error) for error in opened(there).damage] == [str(damage)]


@pytest.mark.usefixtures("small")
def test_a_truncated_sealed_segment_is_reported() -> None:
    there = disk()
    batch(there, 10)
    opened(there).store.commit()
    del there.files[FIRST].current[800:]
    recovered = opened(there)
    [damage] = recovered.damage
    assert damage.messages == 10 - len(bodies(recovered)) == 6


@pytest.mark.usefixtures("small")
def test_restarts_without_writes_create_no_more_files() -> None:
    there = disk()
    batch(there, 3)
    opened(there)
    before = len(there.names())
    for _ in range(6):
        recovered = opened(there)
        assert (recovered.damage, len(bodies(recovered))) == ([], 3)
        there.lose_power()
    assert len(there.names()) == before


@pytest.mark.usefixtures("small")
def test_segments_that_are_free_at_the_start_are_reclaimed_without_writes() -> None:
    there = disk()
    batch(there, 3)
    recovered = opened(there)
    for position, message in messages_in(recovered):
        recovered.store.release(message, recovered.store.cursor(1, 0), position)
    recovered.store.commit()
    there.advance()
    for _ in range(5):
        port = Port()
        recovered = opened(there, port)
        port.is_dirty = False
        recovered.store.maintain()
        if port.is_dirty:
            recovered.store.commit()
            there.advance()
        there.die()
    assert (recovered.damage, bodies(recovered)) == ([], [])
    assert sum(there.names().values()) < 4 * SMALL
