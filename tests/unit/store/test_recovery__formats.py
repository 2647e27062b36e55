"""Which death headers count, in a store of the previous format and in one of the present format."""

import random

import pytest
from google_crc32c import value
from tests.sim.disk import SimulatedDisk
from tests.sim.recovered import messages_in
from tests.sim.segments import make_small
from tests.unit.store.test_recovery import FIRST, Port, opened

from warren.model.message import (
    ADDRESSED,
    BODY_END,
    DIED,
    FROM_STREAM,
    HAS_HEADERS,
    PERSISTENT,
    StoredMessage,
    encode_address,
    has_died,
)
from warren.wire.properties import BasicProperties

# Without headers, with those of a client, and with those of the broker.
KINDS = (0, HAS_HEADERS, HAS_HEADERS | DIED)


def published(flags: int) -> StoredMessage:
    headers = {"x-death": []} if flags & HAS_HEADERS else None
    properties = BasicProperties(delivery_mode=2, headers=headers)
    message = StoredMessage(encode_address("", "q"), properties.encode_list(), b"body" + BODY_END, 0)
    message.flags = PERSISTENT | flags
    return message


def written(count: int = len(KINDS)) -> SimulatedDisk:
    """A disk with `count` messages of queue 1, of each kind in turn."""
    disk = SimulatedDisk(random.Random(0))
    store = opened(disk).store
    for position in range(count):
        store.append(published(KINDS[position % len(KINDS)]), store.cursor(1, 0), position)
        store.commit()
        disk.advance()
    return disk


def make_old(disk: SimulatedDisk) -> None:
    """Convert every segment of `disk` to the previous format."""
    for name, file in disk.files.items():
        if name.endswith(".segment"):
            head = file.current
            head[6:8] = (2).to_bytes(2, "big")
            head[20:24] = value(bytes(head[:20])).to_bytes(4, "big")


def deaths(disk: SimulatedDisk) -> dict[int, bool]:
    """Whether each message counts as a dead letter, by position."""
    return {position: has_died(message) for position, message in messages_in(opened(disk))}


def test_the_origin_of_death_headers_is_known_after_a_restart() -> None:
    assert deaths(written()) == {0: False, 1: False, 2: True}


def test_death_headers_of_the_previous_format_are_trusted() -> None:
    disk = written()
    make_old(disk)
    assert deaths(disk) == {0: False, 1: True, 2: True}


@pytest.mark.parametrize("is_old", [False, True])
def test_the_origin_of_death_headers_moves_with_its_message_in_compaction(
    is_old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, 2_000)
    disk, port = written(300), Port()
    if is_old:
        make_old(disk)
    recovered = opened(disk, port)
    store = recovered.store
    for position, message in messages_in(recovered):
        if position % 50 not in (1, 2):
            store.release(message, store.cursor(1, 0), position)
    before: list[str] = []
    while before != (before := sorted(disk.names())):
        store.maintain()
        port.is_dirty = True
        while disk.is_busy or port.is_dirty:
            port.is_dirty = False
            store.commit()
            disk.advance()
    assert FIRST not in before
    # Moved messages are in segments of the present format.
    expected = {
        position: position % 3 == 2 or (is_old and position % 3 == 1)
        for position in range(300)
        if position % 50 in (1, 2)
    }
    assert deaths(disk) == expected


def test_messages_of_the_stream_protocol_are_not_dead_letters() -> None:
    message = published(HAS_HEADERS | FROM_STREAM | ADDRESSED)
    assert not has_died(message)
