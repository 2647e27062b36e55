"""A client connects to a broker that answers as agreed, and refuses any other answer."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from warren.blocking.connection import BlockingConnection, ConnectOptions, method_frame, reason
from warren.client.errors import BrokerRefused
from warren.client.uri import parse_uri
from warren.wire.methods import ChannelOpenOk, ConnectionOpenOk, ConnectionStart, ConnectionTune

START = method_frame(
    0, ConnectionStart(version_major=0, version_minor=9, mechanisms="PLAIN", locales="en_US")
)
OPENED = method_frame(0, ConnectionOpenOk())


def tune(frame_max: int = 131_072) -> bytes:
    return method_frame(0, ConnectionTune(channel_max=2047, frame_max=frame_max, heartbeat=60))


@contextmanager
def server(data: bytes) -> Iterator[BlockingConnection]:
    """A connection to a broker that sends `data`, whatever it is asked, and then nothing more."""

    def serve() -> None:
        link, _ = listener.accept()
        with link, suppress(OSError):
            link.sendall(data)
            link.shutdown(socket.SHUT_WR)
            while link.recv(65_536):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            target = parse_uri(f"amqp://127.0.0.1:{listener.getsockname()[1]}")
            connection = BlockingConnection(target, ConnectOptions(product="test", answer_s_max=10))
            try:
                yield connection
            finally:
                connection.close()
        finally:
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
