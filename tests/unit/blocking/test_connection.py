"""A client connects to a broker that answers as agreed, and refuses any other answer."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from warren.blocking.connection import BlockingConnection, ConnectOptions
from warren.client.errors import BrokerRefused
from warren.client.raw_frames import method_frame, reason
from warren.client.uri import parse_uri
from warren.wire.method import Method
from warren.wire.methods import (
    BasicAck,
    ChannelClose,
    ChannelOpenOk,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionTune,
    QueueDeclare,
    QueueDeclareOk,
)

START = method_frame(
    0, ConnectionStart(version_major=0, version_minor=9, mechanisms="PLAIN", locales="en_US")
)
OPENED = method_frame(0, ConnectionOpenOk())


def tune(frame_max: int = 131_072) -> bytes:
    return method_frame(0, ConnectionTune(channel_max=2047, frame_max=frame_max, heartbeat=60))


HANDSHAKE = START + tune() + OPENED + method_frame(1, ChannelOpenOk())
HEARTBEAT = b"\x08" + bytes(6) + b"\xce"


@contextmanager
def server(
    data: bytes, *, trickle: bytes = b"", answer_s_max: float = 10, path: str = ""
) -> Iterator[BlockingConnection]:
    """A connection to a broker that sends `data`, whatever it is asked; then one byte of `trickle` at a time,
    again and again, or nothing more.
    """
    is_over = threading.Event()

    def serve() -> None:
        link, _ = listener.accept()
        with link, suppress(OSError):
            link.sendall(data)
            at = 0
            while trickle and not is_over.wait(0.001):
                link.sendall(trickle[at : at + 1])
                at = (at + 1) % len(trickle)
            link.shutdown(socket.SHUT_WR)
            while link.recv(65_536):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            target = parse_uri(f"amqp://127.0.0.1:{listener.getsockname()[1]}{path}")
            options = ConnectOptions(product="test", answer_s_max=answer_s_max)
            connection = BlockingConnection(target, options)
            try:
                yield connection
            finally:
                is_over.set()
                connection.close()
        finally:
            is_over.set()
            thread.join()


@pytest.mark.parametrize(("offered", "agreed"), [(0, 131_072), (65_536, 65_536), (2**32 - 1, 134_217_728)])
def test_the_frame_size_is_that_of_the_broker_up_to_a_bound(offered: int, agreed: int) -> None:
    with server(START + tune(offered) + OPENED + method_frame(1, ChannelOpenOk())) as connection:
        assert connection.frame_size_max == agreed
        connection.open_channel()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (START[:-1] + b"\0", "a frame without an end"),
        (struct.pack(">BHI", 1, 0, 2**32 - 1), "a frame of 4294967295 bytes, more than the agreed 131072"),
        (START + struct.pack(">BHI", 1, 0, 3) + b"abc\xce", "unknown_frame"),
        (START + struct.pack(">BHI", 1, 0, 4) + b"abcd\xce", "unknown method 24930.25444"),
        (START + tune(7), "a maximum frame size of 7 bytes, less than 4096"),
    ],
)
def test_bytes_that_are_not_amqp_are_refused_with_the_reason(data: bytes, text: str) -> None:
    with pytest.raises(BrokerRefused, match=text) as caught, server(data):
        pass
    assert caught.value.code == 501


def test_an_unexpected_frame_that_cannot_be_decoded_is_refused() -> None:
    with pytest.raises(BrokerRefused, match="unknown method"):
        reason(struct.pack(">BHI", 1, 0, 4) + b"abcd\xce")


def test_a_broker_that_trickles_frames_does_not_hold_a_call_for_longer_than_it_may_take() -> None:
    with server(HANDSHAKE, trickle=HEARTBEAT, answer_s_max=0.3) as connection:
        connection.open_channel()
        begun = time.monotonic()
        with pytest.raises(BrokerRefused, match=r"the broker has not answered within 0\.3 s") as caught:
            connection.call(1, QueueDeclare(queue="q"), QueueDeclareOk)
        assert time.monotonic() - begun < 5
        assert caught.value.code == 0
        with pytest.raises(BrokerRefused, match="has not answered"):
            connection.call(1, QueueDeclare(queue="q"), QueueDeclareOk)


def test_a_broker_that_trickles_frames_does_not_hold_the_handshake() -> None:
    with (
        pytest.raises(BrokerRefused, match="no connection within 300 ms"),
        server(START, trickle=HEARTBEAT, answer_s_max=0.3),
    ):
        pass


def test_a_close_is_answered_with_its_code_and_text() -> None:
    close = ChannelClose(reply_code=404, reply_text="NOT_FOUND - no queue 'q'")
    with server(HANDSHAKE + method_frame(1, close)) as connection:
        connection.open_channel()
        with pytest.raises(
            BrokerRefused, match=r"^the broker answered 404 NOT_FOUND - no queue 'q'$"
        ) as caught:
            connection.call(1, QueueDeclare(queue="q"), QueueDeclareOk)
        assert caught.value.code == 404


def test_a_virtual_host_without_a_name_is_refused_with_advice() -> None:
    close = ConnectionClose(reply_code=530, reply_text="NOT_ALLOWED - vhost  not found")
    told = r"^the broker answered 530 NOT_ALLOWED .*; a URI that ends with a slash"
    with (
        pytest.raises(BrokerRefused, match=told),
        server(START + tune() + method_frame(0, close), path="/"),
    ):
        pass


def test_a_broker_that_closes_the_socket_is_told_from_one_that_refuses() -> None:
    with server(HANDSHAKE) as connection:
        connection.open_channel()
        with pytest.raises(BrokerRefused, match="the broker closed the connection") as caught:
            connection.call(1, QueueDeclare(queue="q"), QueueDeclareOk)
        assert caught.value.code == 0
        assert isinstance(caught.value.__cause__, EOFError)


def test_many_calls_are_answered_in_order_and_what_follows_is_left() -> None:
    answers = b"".join(method_frame(1, QueueDeclareOk(queue="q", message_count=n)) for n in range(101))
    rest = b"\x01\x00\x01 the start of something"
    with server(HANDSHAKE + answers + rest) as connection:
        connection.open_channel()
        declares: list[Method] = [QueueDeclare(queue=f"q{n}") for n in range(100)]
        connection.call_many(1, declares, QueueDeclareOk)
        assert connection.call(1, QueueDeclare(queue="q"), QueueDeclareOk).message_count == 100
        unread = connection.take_unread()
        while len(unread) < len(rest):
            unread += connection.socket.recv(100)
        assert unread == rest


def test_a_close_waits_for_its_answer_although_others_read_the_socket() -> None:
    confirms = method_frame(1, BasicAck(delivery_tag=1)) * 1000
    with server(HANDSHAKE + confirms + method_frame(0, ConnectionCloseOk())) as connection:
        connection.open_channel()
        connection.take_unread()
        # In the midst of a frame.
        connection.socket.recv(10)
        begun = time.monotonic()
        connection.close()
        assert time.monotonic() - begun < 1
