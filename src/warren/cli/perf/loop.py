"""The event loop of a worker: reads deliveries and confirms, publishes, and stores the counters."""

import ctypes
import heapq
import select
import ssl
import time
from collections.abc import Callable, Sequence

from warren.cli.perf.consumer import PerfConsumer
from warren.cli.perf.load import Load
from warren.cli.perf.paced_producer import PacedProducer
from warren.cli.perf.producer import Producer, ProducerState
from warren.cli.perf.shared_counters import LoadPhase, Totals, WorkerCounters

IDLE_S = 0.02  # maximum sleep of an idle worker before it checks the phase
BEHIND_S = 0.001  # how long producers or consumers wait for the other side to catch up
POST_NS = 500_000  # maximum age of the stored counters while there is work
EVENTS_MAX = 512
_PR_SET_TIMERSLACK = 29

Handler = Callable[[int], None]


class LoadLoop:
    """Runs the producers and consumers of one process."""

    def __init__(self, load: Load, worker_counters: WorkerCounters) -> None:
        self._load = load
        self._worker_counters = worker_counters
        self._shared_counters = worker_counters.shared_counters
        self._poll = select.epoll()
        self._readers: dict[int, Handler] = {}
        self._flushers: dict[int, Callable[[], bool]] = {}
        self._by_socket: dict[int, Producer] = {}
        self._producers: list[Producer] = []
        self._consumers: list[PerfConsumer] = []
        self._ready: dict[Producer, None] = {}  # an ordered set
        self._due: list[tuple[int, int]] = []  # a heap of (time at which a paced producer is due, its socket)
        self._is_waiting = False  # whether producers or consumers wait for the other side
        self._posted_ns = 0
        self._is_posted = False

    def run(self, producers: Sequence[Producer], consumers: Sequence[PerfConsumer]) -> None:
        """Run until the load has stopped."""
        for producer in producers:
            self._add_producer(producer)
        for consumer in consumers:
            self._add(consumer)
            self._consumers.append(consumer)
        if self._due:
            _sleep_precisely()
        while (phase := self._shared_counters.phase) is not LoadPhase.STOPPED:
            now_ns = self._await_events(phase)
            if phase is LoadPhase.RUNNING and (self._ready or self._due):
                self._publish(now_ns)
            if self._load.waiting and self._consumers:
                self._hold(phase)
            if now_ns - self._posted_ns >= POST_NS:
                self._post(now_ns)

    def _add(self, participant: Producer | PerfConsumer) -> int:
        client_socket = participant.connection.socket
        number = client_socket.fileno()
        reader: Handler = participant.receive
        if isinstance(client_socket, ssl.SSLSocket):
            reader = _until_empty(reader, client_socket.pending)
        self._readers[number] = reader
        self._flushers[number] = participant.flush
        self._poll.register(number, select.EPOLLIN)
        return number

    def _add_producer(self, producer: Producer) -> None:
        number = self._add(producer)
        self._by_socket[number] = producer
        self._producers.append(producer)
        if isinstance(producer, PacedProducer):
            heapq.heappush(self._due, (producer.due_ns, number))
        else:
            self._ready[producer] = None

    def _await_events(self, phase: LoadPhase) -> int:
        """Wait for the next event, read what has arrived, and return the time afterwards."""
        wait_s = self._wait_s(phase)
        if self._due and wait_s > 0:
            # select() has a finer timeout than epoll_wait(), whose unit is a millisecond.
            select.select([self._poll], (), (), wait_s)
            wait_s = 0
        events = self._poll.poll(wait_s, EVENTS_MAX)
        now_ns = time.monotonic_ns()
        self._is_posted = self._is_posted and not events
        for number, event in events:
            producer = self._by_socket.get(number)
            if event & select.EPOLLOUT:
                if not self._flushers[number]():
                    continue
                self._poll.modify(number, select.EPOLLIN)
                if producer is not None:
                    self._ready[producer] = None
            if event & ~select.EPOLLOUT:
                self._readers[number](now_ns)
                if producer is None:
                    self._flush(number)
                elif not isinstance(producer, PacedProducer):
                    self._ready[producer] = None
        return now_ns

    def _wait_s(self, phase: LoadPhase) -> float:
        if phase is LoadPhase.RUNNING and self._due:
            due_s = max(0, self._due[0][0] - time.monotonic_ns()) / 1e9
            return 0 if self._ready else min(IDLE_S, due_s)
        if phase is LoadPhase.RUNNING and self._ready and not self._is_waiting:
            return 0
        if self._is_waiting or not self._is_posted:
            return BEHIND_S
        return IDLE_S

    def _publish(self, now_ns: int) -> None:
        """Let every producer that is not blocked publish."""
        while self._due and self._due[0][0] <= now_ns:
            self._ready[self._by_socket[heapq.heappop(self._due)[1]]] = None
        self._is_posted = False
        room = self._room()
        is_starved = bool(self._ready)
        for producer in list(self._ready):
            outcome = producer.pump(room, now_ns)
            is_starved = is_starved and outcome is ProducerState.STARVED
            if outcome is ProducerState.BLOCKED:
                self._poll.modify(producer.connection.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)
            if outcome in (ProducerState.BLOCKED, ProducerState.AWAITING):
                del self._ready[producer]
            if isinstance(producer, PacedProducer) and outcome is ProducerState.AWAITING:
                heapq.heappush(self._due, (producer.due_ns, producer.connection.socket.fileno()))
        self._is_waiting = is_starved

    def _room(self) -> int:
        """Return how many more messages may be in flight."""
        return (self._load.in_flight_limit - self._in_flight()) // self._load.copies

    def _in_flight(self) -> int:
        totals = self._shared_counters.totals()
        return totals.published * self._load.copies - totals.consumed

    def _hold(self, phase: LoadPhase) -> None:
        """Withhold acknowledgements, and so deliveries, while the queues have too few messages."""
        is_held = phase is LoadPhase.RUNNING and self._in_flight() < self._load.waiting
        for consumer in self._consumers:
            consumer.hold(is_held=is_held)
            self._flush(consumer.connection.socket.fileno())
        if not self._producers:
            self._is_waiting = is_held

    def _flush(self, number: int) -> None:
        if not self._flushers[number]():
            self._poll.modify(number, select.EPOLLIN | select.EPOLLOUT)

    def _post(self, now_ns: int) -> None:
        published = settled = nacked = consumed = 0
        for producer in self._producers:
            published += producer.published
            settled += producer.settled
            nacked += producer.nacked
        for consumer in self._consumers:
            consumed += consumer.consumed
        self._worker_counters.post(Totals(published, consumed, settled, nacked))
        self._posted_ns = now_ns
        self._is_posted = True


def _until_empty(read: Handler, pending: Callable[[], int]) -> Handler:
    """Call `read` again while TLS has buffered bytes, which select() does not report."""

    def read_all(now_ns: int) -> None:
        read(now_ns)
        while pending():
            read(now_ns)

    return read_all


def _sleep_precisely() -> None:
    """Set the timer slack of Linux to one microsecond instead of fifty."""
    library = ctypes.CDLL(None)
    if hasattr(library, "prctl"):
        library.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
