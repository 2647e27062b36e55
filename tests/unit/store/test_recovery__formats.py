"""What a store of an older format says of the deaths of its messages, and what one of this format does."""

import random

import pytest
from google_crc32c import value
from tests.sim.disk import SimulatedDisk
from tests.sim.segments import make_small
from tests.unit.store.test_recovery import FIRST, Port, messages_of, opened

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
    """A disk with so many messages of queue 1, of each kind in turn."""
    disk = SimulatedDisk(random.Random(0))
    store = opened(disk).store
    for position in range(count):
        store.append(published(KINDS[position % len(KINDS)]), store.cursor(1, 0), position)
        store.commit()
        disk.advance()
    return disk


def make_old(disk: SimulatedDisk) -> None:
    """Have every segment of `disk` be of the format before."""
    for name, file in disk.files.items():
        if name.endswith(".segment"):
            head = file.current
            head[6:8] = (2).to_bytes(2, "big")
            head[20:24] = value(bytes(head[:20])).to_bytes(4, "big")


def deaths(disk: SimulatedDisk) -> dict[int, bool]:
    """By position, whether the message there died."""
    return {position: has_died(message) for position, message in messages_of(opened(disk))}


def test_who_wrote_the_deaths_of_a_message_is_known_after_a_restart() -> None:
    assert deaths(written()) == {0: False, 1: False, 2: True}


def test_what_the_headers_of_an_older_format_say_is_believed() -> None:
    disk = written()
    make_old(disk)
    assert deaths(disk) == {0: False, 1: True, 2: True}


@pytest.mark.parametrize("is_old", [False, True])
def test_deaths_move_with_their_message_from_one_segment_to_another(
    is_old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, 2_000)
    disk, port = written(300), Port()
    if is_old:
        make_old(disk)
    recovered = opened(disk, port)
    store = recovered.store
    for position, message in messages_of(recovered):
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
    # What was moved is in segments of this format now.
    expected = {
        position: position % 3 == 2 or (is_old and position % 3 == 1)
        for position in range(300)
        if position % 50 in (1, 2)
    }
    assert deaths(disk) == expected


def test_what_came_by_the_stream_protocol_did_not_die() -> None:
    message = published(HAS_HEADERS | FROM_STREAM | ADDRESSED)
    assert not has_died(message)
