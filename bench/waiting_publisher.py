"""A publisher that waits for the confirm of each message before it publishes the next."""

import sys
import threading
import time
from collections.abc import Callable

from brokers import Broker
from warren.blocking.connection import BlockingConnection
from warren.cli.perf.connection import open_connection
from warren.cli.perf.histogram import Histogram
from warren.cli.perf.publish_ring import CHANNEL, Content, encode_publish
from warren.client.raw_frames import decoded
from warren.client.uri import parse_uri
from warren.wire.methods import BasicAck, BasicNack, ConfirmSelect, ConfirmSelectOk

ANSWER_S_MAX = 120.0
HEAD_BYTES = 7
RECEIVE_BYTES = 65_536
SIZE = 1024


class WaitingPublisher:
    """Publishes persistent messages to one queue, in a thread of its own, until `end`."""

    def __init__(self, broker: Broker, queue: str) -> None:
        self._connection = open_connection(parse_uri(broker.uri))
        self._connection.open_channel(CHANNEL)
        self._connection.call(CHANNEL, ConfirmSelect(), ConfirmSelectOk)
        content = Content(
            body=bytes(SIZE), is_persistent=True, frame_size_max=self._connection.frame_size_max
        )
        self._message = encode_publish(("", queue), content)
        self._is_ending = False
        self._error: Exception | None = None
        self._confirmed = threading.Condition()
        self._last_s = 0.0
        self._waits = Histogram()
        self.confirmed_count = 0
        # Messages that the broker has refused, each of which was published again.
        self.refused_count = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def await_confirms_for(self, seconds: float) -> None:
        """Wait until there were confirms for so long, beginning with the next one."""
        with self._confirmed:
            start = self.confirmed_count
            self._await(lambda: self.confirmed_count > start)
            begin_s = self._last_s
            self._await(lambda: self._last_s >= begin_s + seconds)

    def take_waits(self) -> Histogram:
        """Return how long the confirms since the last call have taken, in microseconds."""
        with self._confirmed:
            waits, self._waits = self._waits, Histogram()
        return waits

    def end(self) -> None:
        """Publish no more, and close the connection."""
        self._is_ending = True
        self._thread.join()
        self._connection.close()

    def _await(self, condition: Callable[[], bool]) -> None:
        if not self._confirmed.wait_for(lambda: self._error or condition(), ANSWER_S_MAX):
            sys.exit(f"no confirm within {ANSWER_S_MAX:g} s")
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        connection = self._connection
        connection.socket.settimeout(ANSWER_S_MAX)
        try:
            while not self._is_ending:
                begin_s = time.monotonic()
                connection.socket.sendall(self._message)
                while isinstance(answer := _answer(connection), BasicNack):
                    self.refused_count += 1
                    connection.socket.sendall(self._message)
                if not isinstance(answer, BasicAck):
                    raise ConnectionError(f"the broker answered {answer}")
                with self._confirmed:
                    self._last_s = time.monotonic()
                    self._waits.record(int((self._last_s - begin_s) * 1e6))
                    self.confirmed_count += 1
                    self._confirmed.notify_all()
        except Exception as error:
            with self._confirmed:
                self._error = error
                self._confirmed.notify_all()


def _answer(connection: BlockingConnection) -> object:
    data = connection.take_unread()
    while len(data) < HEAD_BYTES or len(data) < HEAD_BYTES + int.from_bytes(data[3:7]) + 1:
        received = connection.socket.recv(RECEIVE_BYTES)
        if not received:
            raise EOFError("the broker closed the connection")
        data += received
    return decoded(data[HEAD_BYTES:-1])
