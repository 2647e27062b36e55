"""Payloads of any size over a link that takes little at a time."""

import pytest
from tests.unit.cluster.groups.memory_replica import Pair

from warren.cluster.groups import parted_channel
from warren.cluster.groups.group_payloads import GroupPayload
from warren.cluster.groups.parted_channel import PartedChannel
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import PayloadError
from warren.limits_raft import GROUP_PART_SIZE

BIG = bytes(range(256)) * (3 * GROUP_PART_SIZE // 256) + b"end"


def test_a_large_payload_passes_in_parts_as_the_link_takes_them() -> None:
    pair = Pair(LinkPurpose.DATA)
    pair.channel.send(GroupPayload.MESSAGES, BIG)
    assert not pair.channel.is_writable
    assert pair.link.kept_size < 2 * GROUP_PART_SIZE
    found = []
    while not pair.channel.is_writable:
        pair.network.run(500)
        pair.channel.continue_sending()
    other = PartedChannel(LinkPurpose.DATA, lambda: pair.back)
    for kind, body in pair.arrived():
        if (whole := other.received(kind, body)) is not None:
            found.append((kind, whole))
    assert found == [(GroupPayload.MESSAGES, BIG)]


def test_a_payload_behind_the_parts_of_another_one_is_its_last() -> None:
    channel = PartedChannel(LinkPurpose.DATA, lambda: None)
    assert channel.received(GroupPayload.PART, b"a") is None
    assert channel.received(GroupPayload.PART, b"b") is None
    assert channel.received(GroupPayload.MESSAGES, b"c") == b"abc"
    assert channel.received(GroupPayload.MESSAGES, b"d") == b"d"


def test_parts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parted_channel, "GROUP_PARTS_SIZE_MAX", 3)
    channel = PartedChannel(LinkPurpose.DATA, lambda: None)
    channel.received(GroupPayload.PART, b"abc")
    with pytest.raises(PayloadError, match="parts of 4 bytes"):
        channel.received(GroupPayload.MESSAGES, b"d")


def test_the_end_of_a_session_ends_what_was_begun_in_it() -> None:
    pair = Pair(LinkPurpose.DATA)
    pair.channel.send(GroupPayload.MESSAGES, BIG)
    pair.channel.received(GroupPayload.PART, b"a")
    pair.channel.lost()
    assert pair.channel.received(GroupPayload.MESSAGES, b"d") == b"d"
    pair.network.run(1_000)
    assert pair.channel.is_writable


def test_nothing_is_writable_without_a_link() -> None:
    assert not PartedChannel(LinkPurpose.DATA, lambda: None).is_writable
