"""Marks, and groups of messages that are stored together with a mark or not at all."""

import random

import pytest
from tests.sim.disk import SimulatedDisk
from tests.sim.segments import set_segment_size
from tests.unit.store.test_recovery import Promise, bodies, opened, published

from warren.store.message_store import MessageStore
from warren.store.record import GROUP, HEAD_SIZE, KIND_AT, is_intact
from warren.store.segment import HEAD_SIZE as SEGMENT_HEAD_SIZE

FIRST = "00000001.segment"


def disk() -> SimulatedDisk:
    return SimulatedDisk(random.Random(0))


def group(store: MessageStore, first: int, *contents: bytes, value: bytes = b"1") -> None:
    """`contents` in queue 1, from position `first` on, with the mark `key`."""
    store.begin_group()
    for position, content in enumerate(contents, first):
        store.append(published(content), store.cursor(1, 0), position)
    store.end_group(b"key", value)


def written(store: MessageStore, there: SimulatedDisk) -> None:
    store.commit()
    there.advance()


def last_record(there: SimulatedDisk, store: MessageStore, kind: int) -> int:
    """The offset of the last record of `kind` in the first segment."""
    data, seed = bytes(there.files[FIRST].current), store.segments[1].seed
    at, found = SEGMENT_HEAD_SIZE, 0
    while size := is_intact(data, at, seed):
        if data[at + KIND_AT] == kind:
            found = at
        at += size
    return found


def test_a_mark_is_recovered_with_the_messages_of_its_group() -> None:
    there = disk()
    store = opened(there).store
    group(store, 0, b"a", b"b", value=b"two done")
    written(store, there)
    recovered = opened(there)
    assert bodies(recovered) == [b"a", b"b"]
    marker = recovered.store.markers[b"key"]
    assert (marker.value, marker.segment) == (b"two done", 1)


def test_a_group_without_messages_is_a_mark_alone() -> None:
    there = disk()
    store = opened(there).store
    promise = Promise()
    group(store, 0)
    store.confirm(promise, 1)
    assert not store.is_idle
    written(store, there)
    assert promise.done_numbers == [1]
    assert opened(there).store.markers[b"key"].value == b"1"


def test_a_message_published_beside_a_group_does_not_belong_to_it() -> None:
    there = disk()
    store = opened(there).store
    store.append(published(b"before"), store.cursor(1, 0), 0)
    group(store, 1, b"a")
    store.append(published(b"between"), store.cursor(1, 0), 2)
    group(store, 3, b"b", value=b"2")
    store.append(published(b"behind"), store.cursor(1, 0), 4)
    written(store, there)
    at = last_record(there, store, GROUP)
    # The second group is torn: records before it are complete, those behind it are not recovered.
    data = there.files[FIRST]
    data.current[at + 60] ^= 1
    there.forget_synced()
    recovered = opened(there)
    assert not recovered.damage
    assert bodies(recovered) == [b"before", b"a", b"between"]
    assert recovered.store.markers[b"key"].value == b"1"


@pytest.mark.parametrize("fill", range(340, 440))
def test_a_group_that_just_fits_is_in_one_segment(fill: int, monkeypatch: pytest.MonkeyPatch) -> None:
    set_segment_size(monkeypatch, 600)
    there = disk()
    store = opened(there).store
    store.append(published(bytes(fill)), store.cursor(1, 0), 0)
    written(store, there)
    store.begin_group()
    messages = [published(b"a"), published(b"b")]
    for position, message in enumerate(messages, 1):
        store.append(message, store.cursor(1, 0), position)
    store.end_group(b"key", b"2")
    written(store, there)
    assert {message.location >> 32 for message in messages} == {store.markers[b"key"].segment}


def test_a_message_released_before_it_was_written_is_missing_in_its_group() -> None:
    there = disk()
    store = opened(there).store
    store.begin_group()
    messages = [published(b"a"), published(b"b"), published(b"c")]
    for position, message in enumerate(messages):
        store.append(message, store.cursor(1, 0), position)
    store.end_group(b"key", b"3")
    store.release(messages[1], store.cursor(1, 0), 1)
    written(store, there)
    recovered = opened(there)
    assert bodies(recovered) == [b"a", b"c"]
    assert recovered.store.markers[b"key"].value == b"3"


def test_a_message_of_a_group_is_written_once_for_all_its_queues() -> None:
    there = disk()
    store = opened(there).store
    store.begin_group()
    message = published(b"in both")
    for queue in (1, 2):
        store.append(message, store.cursor(queue, 0), 0)
    store.end_group(b"key", b"1")
    written(store, there)
    recovered = opened(there)
    assert bodies(recovered, 1) == bodies(recovered, 2) == [b"in both"]


def test_a_damaged_group_before_another_batch_counts_as_far_as_it_is_readable() -> None:
    there = disk()
    store = opened(there).store
    group(store, 0, b"a", b"b", b"c")
    written(store, there)
    at = last_record(there, store, GROUP)
    store.append(published(b"later"), store.cursor(1, 0), 3)
    written(store, there)
    data, seed = bytes(there.files[FIRST].current), store.segments[1].seed
    first = at + is_intact(data, at, seed)
    second = first + is_intact(data, first, seed)
    there.flip_bit(FIRST, second + HEAD_SIZE + 3)
    recovered = opened(there)
    assert len(recovered.damage) == 1
    assert recovered.damage[0].at == second
    assert bodies(recovered) == [b"a", b"c", b"later"]
    assert recovered.store.markers[b"key"].value == b"1"


def test_a_group_that_does_not_fit_goes_entirely_into_the_next_segment() -> None:
    there = disk()
    store = opened(there).store
    store.append(published(bytes(10_000_000)), store.cursor(1, 0), 0)
    written(store, there)
    group(store, 1, bytes(4_000_000), bytes(4_000_000), b"small")
    written(store, there)
    recovered = opened(there)
    assert recovered.store.markers[b"key"].segment == 2
    assert [len(body) for body in bodies(recovered)] == [10_000_000, 4_000_000, 4_000_000, 5]
    assert store.segments[1].is_sealed
