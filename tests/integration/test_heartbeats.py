"""Heartbeats on real sockets: how many a silent client receives before it is dropped."""

import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.conformance.peer import Peer
from tests.integration.broker_process import BrokerProcess
from tests.integration.stream_client import RawStreamClient
from tests.patience import patient

from warren.framing.heartbeat import HEARTBEAT_FRAME
from warren.wire.streams import commands

INTERVAL_S = 2
WAIT_S = patient(30)


class Silent(Peer):
    """A client that sends nothing after its handshake."""

    def socket(self) -> socket.socket:
        return self._socket


class SilentStream(RawStreamClient):
    """A silent client of the stream protocol."""

    HEARTBEAT_S = INTERVAL_S

    def socket(self) -> socket.socket:
        return self._socket


def amqp(node: BrokerProcess) -> tuple[socket.socket, bytes]:
    peer = Silent("127.0.0.1", node.port)
    peer.handshake("guest", "guest", "/", heartbeat=INTERVAL_S)
    return peer.socket(), HEARTBEAT_FRAME


def stream(node: BrokerProcess) -> tuple[socket.socket, bytes]:
    return SilentStream(node.ports["stream"]).socket(), commands.Heartbeat().encode()


def received(connected: tuple[socket.socket, bytes]) -> tuple[int, float, float]:
    """The number of heartbeats before the end of file, the longest silence, and the total time."""
    connection, frame = connected
    connection.settimeout(WAIT_S)
    before = last = time.monotonic()
    raw, silence = b"", 0.0
    while data := connection.recv(65_536):
        raw += data
        now = time.monotonic()
        silence, last = max(silence, now - last), now
    assert raw.replace(frame, b"") == b""
    return len(raw) // len(frame), silence, last - before


@pytest.mark.parametrize("protocol", [amqp, stream])
def test_a_silent_client_receives_five_heartbeats_and_an_end_of_file(
    node: BrokerProcess, protocol: Callable[[BrokerProcess], tuple[socket.socket, bytes]]
) -> None:
    """One each half interval up to the third interval, so that a client may give up after one interval of
    silence.
    """
    with ThreadPoolExecutor() as pool:
        for count, silence, took in pool.map(received, [protocol(node) for _ in range(10)]):
            # The count is undefined if the machine was suspended for so long.
            assert count == 5 or took > 3.2 * INTERVAL_S
            assert silence < INTERVAL_S
