"""Turns of a worker: read what has arrived, write what may be written, post the counts."""

import ctypes
import select
import ssl
import time
from collections.abc import Callable, Sequence

from warren.cli.perf.board import Phase, Seat, Totals
from warren.cli.perf.consumer import Consumer
from warren.cli.perf.load import Load
from warren.cli.perf.paced import PacedProducer
from warren.cli.perf.producer import Outcome, Producer

IDLE_S = 0.02  # how long a worker without anything to do sleeps before it looks at the phase
STARVED_S = 0.0005  # how long a producer waits for consumers to catch up
EVENTS_MAX = 512
_PR_SET_TIMERSLACK = 29

Handler = Callable[[int], None]


class LoadLoop:
    """Drives the producers and consumers of one process."""

    def __init__(self, load: Load, seat: Seat) -> None:
        self._load = load
        self._seat = seat
        self._board = seat.board
        self._poll = select.epoll()
        self._readers: dict[int, Handler] = {}
        self._flushers: dict[int, Callable[[], bool]] = {}
        self._producers: list[Producer] = []
        self._consumers: Sequence[Consumer] = ()
        self._by_socket: dict[int, Producer] = {}
        self._ready: dict[Producer, None] = {}  # an ordered set
        self._is_starved = False

    def run(self, producers: Sequence[Producer], consumers: Sequence[Consumer]) -> None:
        """Go on until the board says that the load has stopped."""
        self._producers, self._consumers = list(producers), consumers
        self._ready = dict.fromkeys(producers)
        for producer in producers:
            self._register(producer)
        for consumer in consumers:
            self._register(consumer)
        if any(isinstance(producer, PacedProducer) for producer in producers):
            _sleep_precisely()
        while (phase := self._board.phase) is not Phase.STOPPED:
            now_ns = self._await_events()
            if phase is Phase.RUNNING:
                self._publish(now_ns)
            self._post()

    def _register(self, participant: Producer | Consumer) -> None:
        link = participant.link
        number = link.socket.fileno()
        reader: Handler = participant.receive
        if isinstance(link.socket, ssl.SSLSocket):
            reader = _until_empty(reader, link.socket.pending)
        self._readers[number] = reader
        self._flushers[number] = participant.flush
        if isinstance(participant, Producer):
            self._by_socket[number] = participant
        self._poll.register(number, select.EPOLLIN)

    def _await_events(self) -> int:
        """Sleep until something is to be done, and read what has arrived; the time after it."""
        wait_s = self._wait_s()
        if wait_s > 0:
            # select() has a finer clock than epoll_wait(), whose unit is a millisecond.
            select.select([self._poll], (), (), wait_s)
        events = self._poll.poll(0, EVENTS_MAX)
        now_ns = time.monotonic_ns()
        for number, event in events:
            if event & select.EPOLLOUT and self._flushers[number]():
                self._poll.modify(number, select.EPOLLIN)
            if event & ~select.EPOLLOUT:
                self._readers[number](now_ns)
                flush = self._flushers[number]
                if number in self._by_socket:
                    self._ready[self._by_socket[number]] = None
                elif not flush():
                    self._poll.modify(number, select.EPOLLIN | select.EPOLLOUT)
            elif number in self._by_socket:
                self._ready[self._by_socket[number]] = None
        return now_ns

    def _wait_s(self) -> float:
        if self._is_starved:
            return STARVED_S
        if self._ready and self._board.phase is Phase.RUNNING:
            return 0
        due = [producer.due_ns for producer in self._producers if isinstance(producer, PacedProducer)]
        if due:
            return min(IDLE_S, max(0, min(due) - time.monotonic_ns()) / 1e9)
        return IDLE_S

    def _publish(self, now_ns: int) -> None:
        """Let every producer that can go on write."""
        for producer in self._producers:
            if isinstance(producer, PacedProducer) and producer.due_ns <= now_ns:
                self._ready[producer] = None
        if not self._ready:
            return
        totals = self._board.totals()
        in_flight = totals.published * self._load.copies - totals.consumed
        room = (self._load.in_flight_limit - in_flight) // self._load.copies
        outcomes = set()
        for producer in list(self._ready):
            outcome = producer.pump(room, now_ns)
            outcomes.add(outcome)
            if outcome is Outcome.BLOCKED:
                self._poll.modify(producer.link.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)
            if outcome in (Outcome.BLOCKED, Outcome.AWAITING):
                del self._ready[producer]
        self._is_starved = outcomes == {Outcome.STARVED}

    def _post(self) -> None:
        published = settled = nacked = consumed = 0
        for producer in self._producers:
            published += producer.published
            settled += producer.settled
            nacked += producer.nacked
        for consumer in self._consumers:
            consumed += consumer.consumed
        self._seat.post(Totals(published, consumed, settled, nacked))


def _until_empty(read: Handler, pending: Callable[[], int]) -> Handler:
    """`read` again while TLS holds octets that the socket no longer shows."""

    def read_all(now_ns: int) -> None:
        read(now_ns)
        while pending():
            read(now_ns)

    return read_all


def _sleep_precisely() -> None:
    """Ask Linux to wake this process within a microsecond of the time it asked for, not fifty."""
    if hasattr(ctypes.CDLL(None), "prctl"):
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
