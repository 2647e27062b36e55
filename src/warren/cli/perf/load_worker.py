"""A worker process of a load, which runs some of its producers and consumers."""

from collections.abc import Callable
from dataclasses import dataclass, field

from warren.blocking.connection import BlockingConnection
from warren.cli.perf.connection import open_connection
from warren.cli.perf.consumer import CHANNEL, RECEIVE_BYTES, LatencyConsumer, PerfConsumer
from warren.cli.perf.declarations import LoadNames, routes
from warren.cli.perf.histogram import Histogram
from warren.cli.perf.load import Load
from warren.cli.perf.loop import LoadLoop
from warren.cli.perf.paced_producer import Pace, PacedProducer
from warren.cli.perf.producer import Producer
from warren.cli.perf.publish_ring import Content, PublishRing
from warren.cli.perf.shared_counters import WorkerCounters
from warren.wire.method import Method
from warren.wire.methods import (
    BasicConsume,
    BasicConsumeOk,
    BasicQos,
    BasicQosOk,
    ConfirmSelect,
    ConfirmSelectOk,
)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The producers and consumers of a load that a worker runs."""

    producers: tuple[int, ...]
    consumers: tuple[int, ...]


@dataclass(slots=True)
class Latencies:
    """The latencies that a worker measured, in nanoseconds."""

    since_due: Histogram = field(default_factory=Histogram)  # from when a message was due to its delivery
    since_sent: Histogram = field(default_factory=Histogram)  # from when a message was sent to its delivery
    confirm: Histogram = field(default_factory=Histogram)  # from when a message was due to its confirm

    def merge(self, other: "Latencies") -> None:
        """Add the measurements of another worker."""
        self.since_due.merge(other.since_due)
        self.since_sent.merge(other.since_sent)
        self.confirm.merge(other.confirm)


def assignments(load: Load) -> list[Assignment]:
    """Assign producers and consumers to workers; with several processes, no worker has both."""
    processes = load.processes if load.consumers else min(load.processes, load.producers)
    if processes == 1 or not load.consumers:
        return [
            Assignment(
                tuple(range(worker, load.producers, processes)),
                tuple(range(worker, load.consumers, processes)),
            )
            for worker in range(processes)
        ]
    publishing = min(load.producers, max(1, processes // 2))
    consuming = min(load.consumers, processes - publishing)
    return [
        Assignment(tuple(range(worker, load.producers, publishing)), ()) for worker in range(publishing)
    ] + [Assignment((), tuple(range(worker, load.consumers, consuming))) for worker in range(consuming)]


def connect_worker(
    load: Load, names: LoadNames, assignment: Assignment, worker_counters: WorkerCounters
) -> Callable[[], Latencies]:
    """Open the connections of `assignment` in this process, and return the function that runs it."""
    return LoadWorker(load, names, assignment, worker_counters).run


class LoadWorker:
    """The connections of one process."""

    def __init__(
        self, load: Load, names: LoadNames, assignment: Assignment, worker_counters: WorkerCounters
    ) -> None:
        self._load = load
        self._names = names
        self._assignment = assignment
        self._worker_counters = worker_counters
        self._publishing = [self._publishing_link() for _ in assignment.producers]
        # Encoded before the load starts, since 100,000 routes take seconds.
        self._publications = self._encode()
        self._consuming = [self._consuming_link(number) for number in assignment.consumers]

    def run(self) -> Latencies:
        """Run until the load stops, close the connections, and return the measurements."""
        links = self._publishing + self._consuming
        for connection in links:
            connection.socket.setblocking(False)
        producers = self._producers()
        consumers = self._consumers()
        LoadLoop(self._load, self._worker_counters).run(producers, consumers)
        for producer in producers:
            producer.finish()
        for consumer in consumers:
            consumer.finish()
        for connection in links:
            connection.close()
        latencies = Latencies()
        for consumer in consumers:
            if isinstance(consumer, LatencyConsumer):
                latencies.since_due.merge(consumer.since_due)
                latencies.since_sent.merge(consumer.since_sent)
        for producer in producers:
            if isinstance(producer, PacedProducer):
                latencies.confirm.merge(producer.confirm_latency)
        return latencies

    def _publishing_link(self) -> BlockingConnection:
        connection = open_connection(self._load.publish_target or self._load.target)
        connection.open_channel(CHANNEL)
        if self._load.confirm_window:
            connection.call(CHANNEL, ConfirmSelect(), ConfirmSelectOk)
        return connection

    def _consuming_link(self, number: int) -> BlockingConnection:
        connection = open_connection(self._load.consume_target or self._load.target)
        connection.open_channel(CHANNEL)
        if self._load.prefetch:
            connection.call(CHANNEL, BasicQos(prefetch_count=self._load.prefetch), BasicQosOk)
        is_automatic = not self._load.ack_every
        consumes: list[Method] = [
            BasicConsume(queue=self._names.queue(queue), consumer_tag=f"c{queue:07}", no_ack=is_automatic)
            for queue in self._load.consumer_queues(number)
        ]
        connection.call_many(CHANNEL, consumes, BasicConsumeOk)
        return connection

    def _encode(self) -> list[PublishRing]:
        """Return the encoded messages of each producer; producers with equal routes share them."""
        load = self._load
        made: dict[tuple[tuple[str, str], ...], PublishRing] = {}
        publications: list[PublishRing] = []
        for number, connection in zip(self._assignment.producers, self._publishing, strict=True):
            to = tuple(routes(load, self._names, number))
            if to not in made:
                content = Content(
                    body=bytes(load.size),
                    is_persistent=load.is_persistent,
                    frame_size_max=connection.frame_size_max,
                )
                made[to] = PublishRing(to, content)
            publications.append(made[to])
        return publications

    def _producers(self) -> list[Producer]:
        load, shared_counters = self._load, self._worker_counters.shared_counters
        producers: list[Producer] = []
        members = zip(self._assignment.producers, self._publishing, self._publications, strict=True)
        for number, connection, publish_ring in members:
            if load.rate:
                interval_ns = 1e9 * load.producers / load.rate
                pace = Pace(
                    shared_counters.start_ns + int(interval_ns * number / load.producers), interval_ns
                )
                producers.append(
                    PacedProducer(
                        connection, publish_ring, pace, measured_from_ns=shared_counters.measured_from_ns
                    )
                )
            else:
                producers.append(
                    Producer(
                        connection,
                        publish_ring,
                        window=load.confirm_window,
                        messages_per_write=load.messages_per_write,
                    )
                )
        return producers

    def _consumers(self) -> list[PerfConsumer]:
        load = self._load
        buffer = bytearray(RECEIVE_BYTES)
        if not load.rate:
            return [
                PerfConsumer(connection, buffer, ack_every=load.ack_every) for connection in self._consuming
            ]
        return [
            LatencyConsumer(
                connection,
                buffer,
                ack_every=load.ack_every,
                measured_from_ns=self._worker_counters.shared_counters.measured_from_ns,
            )
            for connection in self._consuming
        ]
