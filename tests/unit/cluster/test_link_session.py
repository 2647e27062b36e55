"""A session: what is numbered, kept, sent again, given up."""

import itertools
import struct
from collections.abc import Iterator

import pytest

from warren.cluster.link_frames import LAST_PART, LinkFrame, LinkFrameError, LinkFrameKind, LinkFrameReader
from warren.cluster.link_session import LinkFullError, LinkSession, LinkSessionListener
from warren.limits_cluster import (
    CLUSTER_BEGINS_MAX,
    CLUSTER_KEPT_SIZE_MAX,
    CLUSTER_PART_OVERHEAD,
    CLUSTER_PART_SIZE_MAX,
    CLUSTER_PAYLOAD_SIZE_MAX,
    CLUSTER_UNTOLD_SIZE_MAX,
    CLUSTER_WINDOW_SIZE,
)

ALL = 1 << 40
WINDOW = CLUSTER_WINDOW_SIZE
BEGIN, PART, OBEYED = struct.Struct(">QQQI"), struct.Struct(">QB"), struct.Struct(">QQ")


class End(LinkSessionListener):
    """One end of a session, and what it was told."""

    def __init__(self, name: str, numbers: Iterator[int]) -> None:
        self.name = name
        self.told: list[object] = []
        self.session = LinkSession(self, lambda size: next(numbers).to_bytes(size, "big"))

    def delivered(self, kind: int, body: bytes) -> None:
        self.told.append((kind, body))

    def lost(self) -> None:
        self.told.append("lost")

    def writable(self) -> None:
        self.told.append("writable")

    def output(self) -> list[LinkFrame]:
        reader = LinkFrameReader()
        reader.proved()
        return list(reader.cut(b"".join(self.session.take_output(ALL))))

    def receive(self, *frames: LinkFrame) -> None:
        for frame in frames:
            self.session.receive(frame)


class Pair:
    """Two ends, and a connection between them that loses what was not received."""

    def __init__(self) -> None:
        numbers = itertools.count(1)
        self.one, self.two = End("one", numbers), End("two", numbers)
        self.connect()

    def connect(self) -> None:
        for end in (self.one, self.two):
            end.session.connected()

    def cut(self) -> None:
        for end in (self.one, self.two):
            end.session.disconnected()

    def exchange(self) -> None:
        """Exchange all that there is to send, and then what a ping has with it."""
        self.send()
        for end in (self.one, self.two):
            end.session.tell_obeyed()
        self.send()

    def send(self) -> None:
        while self.one.session.has_output or self.two.session.has_output:
            to_two, to_one = self.one.output(), self.two.output()
            self.two.receive(*to_two)
            self.one.receive(*to_one)


@pytest.fixture
def pair() -> Pair:
    return Pair()


def begin(session: int, known: int = 0, obeyed: int = 0, window: int = WINDOW) -> LinkFrame:
    return LinkFrame(LinkFrameKind.BEGIN, BEGIN.pack(session, known, obeyed, window))


def part(number: int, kind: int = 1, data: bytes = b"", *, is_last: bool = True) -> LinkFrame:
    return LinkFrame(LinkFrameKind.PART, data, LAST_PART if is_last else 0, PART.pack(number, kind))


def opened() -> End:
    end = End("one", itertools.count(7))
    end.session.connected()
    end.output()
    end.receive(begin(99))
    return end


def test_payloads_arrive_in_both_directions_and_in_order(pair: Pair) -> None:
    pair.one.session.send(1, b"a")
    pair.one.session.send(2, b"")
    pair.two.session.send(255, b"c")
    pair.exchange()
    assert pair.two.told == [(1, b"a"), (2, b"")]
    assert pair.one.told == [(255, b"c")]
    assert pair.one.session.kept_size == pair.two.session.kept_size == 0


def test_the_first_frame_is_a_begin_and_nothing_else_before_that_of_the_peer(pair: Pair) -> None:
    pair.one.session.send(1, b"a")
    assert pair.one.output() == [begin(1)]
    assert not pair.one.session.has_output
    pair.one.receive(*pair.two.output())
    assert pair.one.output() == [part(1, 1, b"a")]


def test_what_was_not_obeyed_is_sent_again_on_another_connection(pair: Pair) -> None:
    pair.exchange()
    for body in (b"a", b"b", b"c"):
        pair.one.session.send(1, body)
    frames = pair.one.output()
    pair.two.receive(*frames[:2])
    pair.cut()
    pair.connect()
    pair.exchange()
    assert pair.two.told == [(1, b"a"), (1, b"b"), (1, b"c")]
    assert pair.one.session.resumed_count == pair.two.session.resumed_count == 1
    assert pair.one.session.kept_size == 0


def test_a_session_continues_if_only_one_end_has_received_the_begin(pair: Pair) -> None:
    pair.one.session.send(1, b"a")
    pair.two.session.send(1, b"b")
    pair.two.receive(*pair.one.output())
    pair.two.output()
    pair.cut()
    pair.connect()
    pair.exchange()
    assert (pair.one.told, pair.two.told) == ([(1, b"b")], [(1, b"a")])


def test_a_payload_of_many_parts_continues_in_the_middle(pair: Pair) -> None:
    pair.exchange()
    body = bytes(range(256)) * (4 * CLUSTER_PART_SIZE_MAX // 256) + b"end"
    pair.one.session.send(3, body)
    frames = pair.one.output()
    assert [len(frame.body) for frame in frames] == [CLUSTER_PART_SIZE_MAX] * 4 + [3]
    assert [frame.flags for frame in frames] == [0, 0, 0, 0, LAST_PART]
    pair.two.receive(*frames[:2])
    assert pair.two.session.received_size == 2 * CLUSTER_PART_SIZE_MAX
    pair.cut()
    pair.connect()
    pair.exchange()
    assert pair.two.told == [(3, body)]
    assert pair.two.session.received_size == 0


def test_the_largest_payload_passes_through_the_window(pair: Pair) -> None:
    body = bytes(CLUSTER_PAYLOAD_SIZE_MAX)
    pair.one.session.send(1, body)
    pair.exchange()
    assert pair.two.told == [(1, body)]
    assert pair.one.told == ["writable"]


def test_an_end_that_has_given_up_makes_the_other_give_up_before_anything_new(pair: Pair) -> None:
    pair.exchange()
    pair.one.session.send(1, b"lost")
    pair.two.session.send(1, b"lost as well")
    pair.cut()
    pair.one.session.end()
    pair.one.session.send(1, b"new")
    pair.connect()
    pair.exchange()
    assert pair.one.told == ["lost"]
    assert pair.two.told == ["lost", (1, b"new")]


def test_two_ends_that_have_given_up_begin_anew(pair: Pair) -> None:
    pair.exchange()
    pair.cut()
    for end in (pair.one, pair.two):
        end.session.end()
        end.session.send(1, end.name.encode())
    pair.connect()
    pair.exchange()
    assert pair.one.told == ["lost", (1, b"two")]
    assert pair.two.told == ["lost", (1, b"one")]


def test_two_ends_that_know_sessions_of_others_begin_anew(pair: Pair) -> None:
    pair.exchange()
    stranger = opened()
    stranger.session.disconnected()
    stranger.session.connected()
    pair.cut()
    pair.one.session.connected()
    pair.two = stranger
    pair.exchange()
    pair.one.session.send(1, b"new")
    pair.exchange()
    assert pair.one.told == ["lost"]
    assert pair.two.told == ["lost", (1, b"new")]


def test_what_the_listener_sends_when_it_is_told_of_a_loss_belongs_to_the_next_session(pair: Pair) -> None:
    pair.exchange()
    pair.two.lost = lambda: pair.two.session.send(1, b"again")  # type: ignore[method-assign]
    pair.cut()
    pair.one.session.end()
    pair.connect()
    pair.exchange()
    assert pair.one.told == ["lost", (1, b"again")]


def test_a_session_that_was_not_used_is_not_lost() -> None:
    end = End("one", itertools.count(1))
    end.session.end()
    assert end.told == []
    end.session.send(1, b"")
    end.session.end()
    assert end.told == ["lost"]
    assert end.session.kept_size == 0


def test_an_obeyed_of_a_former_session_frees_nothing() -> None:
    end = opened()
    end.session.send(1, b"a")
    end.output()
    end.receive(LinkFrame(LinkFrameKind.OBEYED, OBEYED.pack(6, 1)))
    assert end.session.kept_size > 0
    end.receive(LinkFrame(LinkFrameKind.OBEYED, OBEYED.pack(7, 1)))
    assert end.session.kept_size == 0


def test_an_obeyed_that_comes_again_changes_nothing() -> None:
    end = opened()
    end.session.send(1, b"a")
    end.session.send(1, b"b")
    end.output()
    for number in (2, 1, 2, 0):
        end.receive(LinkFrame(LinkFrameKind.OBEYED, OBEYED.pack(7, number)))
    assert end.session.kept_size == 0


def test_one_obeyed_is_sent_for_all_that_was_received_and_with_the_next_ping(pair: Pair) -> None:
    pair.exchange()
    pair.one.session.send(1, b"a")
    pair.one.session.send(1, b"b")
    pair.two.receive(*pair.one.output())
    assert not pair.two.session.has_output
    pair.two.session.tell_obeyed()
    assert pair.two.session.has_output
    assert pair.two.output() == [LinkFrame(LinkFrameKind.OBEYED, OBEYED.pack(1, 2))]
    assert pair.two.output() == []


def test_an_obeyed_leaves_with_other_output(pair: Pair) -> None:
    pair.exchange()
    pair.one.session.send(1, b"a")
    pair.two.receive(*pair.one.output())
    pair.two.session.send(1, b"b")
    assert pair.two.output() == [LinkFrame(LinkFrameKind.OBEYED, OBEYED.pack(1, 1)), part(1, 1, b"b")]


def test_an_obeyed_of_a_quarter_of_the_window_waits_for_nothing(pair: Pair) -> None:
    pair.exchange()
    size = CLUSTER_PART_SIZE_MAX + CLUSTER_PART_OVERHEAD
    count = -(-CLUSTER_UNTOLD_SIZE_MAX // size)
    for _ in range(count):
        assert not pair.two.session.has_output
        pair.one.session.send(1, bytes(CLUSTER_PART_SIZE_MAX))
        pair.two.receive(*pair.one.output())
    assert pair.two.output() == [LinkFrame(LinkFrameKind.OBEYED, OBEYED.pack(1, count))]


def test_no_more_is_sent_than_the_window_of_the_peer() -> None:
    end = End("one", itertools.count(7))
    end.session.connected()
    end.output()
    window = CLUSTER_PART_SIZE_MAX + CLUSTER_PART_OVERHEAD
    end.receive(begin(99, window=window))
    for _ in range(3):
        end.session.send(1, bytes(CLUSTER_PART_SIZE_MAX))
    for number in (1, 2, 3):
        assert len(end.output()) == 1
        assert not end.session.has_output
        end.receive(LinkFrame(LinkFrameKind.OBEYED, OBEYED.pack(7, number)))


def test_a_peer_cannot_grant_more_than_the_own_window() -> None:
    end = End("one", itertools.count(7))
    end.session.connected()
    end.output()
    end.receive(begin(99, window=2**32 - 1))
    for _ in range(100):
        end.session.send(1, bytes(WINDOW // 50))
    assert sum(len(frame.head) + len(frame.body) for frame in end.output()) <= WINDOW


def test_a_full_session_is_writable_again_when_half_of_it_was_obeyed() -> None:
    end = opened()
    size = WINDOW // 4 - CLUSTER_PART_OVERHEAD
    sizes = [min(size, CLUSTER_PART_SIZE_MAX)] * 30
    sent = 0
    for sent, one in enumerate(sizes, 1):  # noqa: B007
        if not end.session.is_writable:
            break
        end.session.send(1, bytes(one))
    sent -= 1
    assert WINDOW <= end.session.kept_size < WINDOW + 2 * CLUSTER_PART_SIZE_MAX
    end.output()
    for number in range(1, sent + 1):
        end.receive(LinkFrame(LinkFrameKind.OBEYED, OBEYED.pack(7, number)))
        assert end.session.is_writable == (end.told == ["writable"])
        if end.session.kept_size > WINDOW // 2:
            assert not end.session.is_writable
        end.output()
    assert end.told == ["writable"]


def test_a_caller_that_does_not_ask_is_refused_in_the_end() -> None:
    end = opened()
    size = CLUSTER_PAYLOAD_SIZE_MAX // 2
    for _ in range(CLUSTER_KEPT_SIZE_MAX // (size + 100 * CLUSTER_PART_OVERHEAD)):
        end.session.send(1, bytes(size))
    with pytest.raises(LinkFullError, match="wait to be sent"):
        end.session.send(1, bytes(size))
    assert end.session.kept_size <= CLUSTER_KEPT_SIZE_MAX


def test_empty_payloads_count() -> None:
    end = opened()
    for _ in range(WINDOW // CLUSTER_PART_OVERHEAD):
        end.session.send(1, b"")
    assert not end.session.is_writable


def test_output_comes_in_pieces() -> None:
    end = opened()
    for _ in range(4):
        end.session.send(1, bytes(1000))
    assert [len(end.session.take_output(1500)) for _ in range(3)] == [2, 2, 0]


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (part(2), "part 2 follows part 0"),
        (part(0), "part 0 follows part 0"),
        (LinkFrame(LinkFrameKind.PART, bytes(8)), "PART has a wrong size"),
        (part(1, data=bytes(CLUSTER_PART_SIZE_MAX + 1)), "PART has a wrong size"),
        (LinkFrame(LinkFrameKind.OBEYED, bytes(15)), "OBEYED has a wrong size"),
        (LinkFrame(LinkFrameKind.OBEYED, OBEYED.pack(7, 1)), "part 1 was obeyed, and not sent"),
        (begin(99, 7), "a session that has begun"),
    ],
)
def test_a_frame_that_is_not_valid_in_a_session_is_refused(frame: LinkFrame, reason: str) -> None:
    with pytest.raises(LinkFrameError, match=reason):
        opened().receive(frame)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (part(1), "a PART outside of a session"),
        (LinkFrame(LinkFrameKind.OBEYED, OBEYED.pack(7, 1)), "an? OBEYED outside of a session"),
        (LinkFrame(LinkFrameKind.BEGIN, bytes(27)), "BEGIN has a wrong size"),
        (begin(0), "a BEGIN of session 0"),
        (begin(99, window=1000), "with a window of 1000"),
        (begin(99, 7, 1), "after part 1, which was not sent"),
    ],
)
def test_a_frame_that_is_not_valid_before_a_session_is_refused(frame: LinkFrame, reason: str) -> None:
    end = End("one", itertools.count(7))
    end.session.connected()
    with pytest.raises(LinkFrameError, match=reason):
        end.receive(frame)


def test_a_peer_cannot_begin_for_ever() -> None:
    end = End("one", itertools.count(7))
    end.session.connected()
    for number in range(CLUSTER_BEGINS_MAX):
        end.receive(begin(100 + number, known=55))
    with pytest.raises(LinkFrameError, match="has begun"):
        end.receive(begin(200, known=55))


def test_a_payload_is_bounded_and_of_one_kind() -> None:
    end = opened()
    end.receive(part(1, 1, b"a", is_last=False))
    with pytest.raises(LinkFrameError, match="of the kinds 1 and 2"):
        end.receive(part(2, 2, b"b"))
    end = opened()
    count = CLUSTER_PAYLOAD_SIZE_MAX // CLUSTER_PART_SIZE_MAX
    for number in range(1, count + 1):
        end.receive(part(number, 1, bytes(CLUSTER_PART_SIZE_MAX), is_last=False))
    with pytest.raises(LinkFrameError, match="larger than"):
        end.receive(part(count + 1, 1, b"b"))


def test_the_parts_of_a_payload_do_not_survive_the_session() -> None:
    end = opened()
    end.receive(part(1, 1, b"half of ", is_last=False))
    end.session.disconnected()
    end.session.end()
    end.session.connected()
    end.receive(begin(100))
    end.receive(part(1, 2, b"whole"))
    assert end.told == ["lost", (2, b"whole")]
