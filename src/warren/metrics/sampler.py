"""Samples counters at fixed intervals into time series, from which the management API computes rates.

Queues and connections register their activity, so idle ones cost nothing; exchanges are few, and are polled.
The series of an object is its attribute, and is freed with it. A pass over all active objects is divided over
turns of the loop.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import add
from typing import Protocol

from warren import limits
from warren.limits import SAMPLE_INTERVAL_MS, SAMPLED_PER_TURN
from warren.metadata.events import Event, QueueDeclared, QueueDeleted
from warren.metadata.machine import Metadata
from warren.metrics.time_series import CoarseTimeSeries, SampleRow, TimeSeries
from warren.model.counters import Counters
from warren.model.samples import Samples
from warren.queues.vhost_queue import VhostQueue
from warren.relay.link import Link
from warren.relay.status import LinkStatus
from warren.routing.exchange import Exchange
from warren.session.any_connection import AnyConnection
from warren.session.channel import Channel
from warren.session.server import Server
from warren.vhost.vhost import VirtualHost

# The columns of rows, under RabbitMQ's names.
PUBLISHED = ("publish", "confirm", "return_unroutable", "drop_unroutable")
DELIVERED = (
    "deliver", "deliver_no_ack", "deliver_get", "get", "get_no_ack", "get_empty", "redeliver", "ack",
)  # fmt: skip
LENGTHS = ("messages", "messages_ready", "messages_unacknowledged")
BYTES = ("recv_oct", "send_oct")
DISK = ("disk_reads", "disk_writes")
CHURN = (
    "connection_created", "connection_closed", "channel_created", "channel_closed", "queue_declared",
    "queue_created", "queue_deleted",
)  # fmt: skip
QUEUE_COLUMNS = (*LENGTHS, "publish", *DELIVERED)
CHANNEL_COLUMNS = (*PUBLISHED, *DELIVERED)
VHOST_COLUMNS = (*LENGTHS, *PUBLISHED, *DELIVERED, *BYTES, *DISK)
EXCHANGE_COLUMNS = ("publish_in", "publish_out")
CONNECTION_COLUMNS = BYTES
LINK_COUNTERS = ("forwarded", "confirmed", "rejected", "dropped", "redelivered")
# How far a link is behind: messages ready at its source, and the age (ms) of the last one it forwarded;
# UNKNOWN if that is not known.
LINK_LAGS = ("lag_messages", "lag_ms")
LINK_COLUMNS = (*LINK_COUNTERS, *LINK_LAGS)
UNKNOWN = -1
_UNSAMPLED_LINK = (0,) * len(LINK_COUNTERS) + (UNKNOWN,) * len(LINK_LAGS)
_LONG_WIDTH = len(VHOST_COLUMNS)
# A timer may be early by the difference of two clocks.
_EARLY_MS_MAX = 100
# Up to this number of non-empty queues, lengths are added up when they are requested.
_ADDED_UP_MAX = 1_000


class Sampled(Protocol):
    """An object with a time series."""

    history: Samples | None


class Sampler:
    """Samples all objects of a node."""

    def __init__(
        self,
        server: Server,
        metadata: Metadata,
        node_usage: Callable[[], SampleRow],
        links: Iterable[Link] = (),
    ) -> None:
        """`node_usage` returns the figures of the node itself, `links` its shovels and federation links."""
        self._server = server
        self._links = links
        # Returns the present figures of the node, in the order of FIGURES.
        self.node_usage = node_usage
        # The time of the last complete pass (ms).
        self.time = 0
        self.total = _long(_LONG_WIDTH)
        self.churn = _long(len(CHURN))
        self.node = _long(len(node_usage()))
        # Series with rows, the one with the oldest last row first; and the number of rows of all.
        self._kept: dict[TimeSeries, None] = {}
        self._rows = 0
        # The queues that were not empty when they were last sampled.
        self._holding: dict[VirtualHost, dict[VhostQueue, None]] = {}
        # The numbers of messages in all of them, by LENGTHS.
        self._lengths: dict[VirtualHost, SampleRow] = {}
        self._queues_created = 0
        self._queues_deleted = 0
        metadata.listen(self._on_event, (QueueDeclared, QueueDeleted))

    @property
    def row_count(self) -> int:
        """The number of rows of all objects."""
        return self._rows

    def due_in(self, now: int) -> int:
        """Return the time until the next pass (ms), at a multiple of the interval as in RabbitMQ."""
        return SAMPLE_INTERVAL_MS - now % SAMPLE_INTERVAL_MS

    def sample(self, now: int) -> Iterator[None]:
        """Sample active objects; each step of the iterator does the work of one turn."""
        time = now + _EARLY_MS_MAX
        time -= time % SAMPLE_INTERVAL_MS
        self._expire(time)
        yield from self._connections(time)
        rows: list[SampleRow] = []
        for services in list(self._server.vhost_services.values()):
            yield from self._queues(services.vhost, time)
            yield from self._exchanges(services.vhost, time)
            row = self.vhost_row(services.vhost)
            rows.append(row)
            _series_of(services.vhost, row, is_long=True)
            self._add_moved(services.vhost, time, row)
        yield from self._sample_links(time)
        alive = {services.vhost for services in self._server.vhost_services.values()}
        for vhost in [vhost for vhost in self._holding if vhost not in alive]:
            del self._holding[vhost], self._lengths[vhost]
        self._add(self.total, time, _sum(rows))
        self._add(self.churn, time, self.churn_row())
        self._add(self.node, time, self.node_usage())
        self.time = time

    def vhost_row(self, vhost: VirtualHost) -> SampleRow:
        """Return the figures of a virtual host, by VHOST_COLUMNS; lengths of many queues are sampled ones."""
        stores = vhost.stores
        return (
            *self._lengths_of(vhost),
            *counters_row(vhost, vhost),
            vhost.bytes_received,
            vhost.bytes_sent,
            0 if stores is None else stores.read_count,
            0 if stores is None else stores.write_count,
        )

    def total_row(self) -> SampleRow:
        """Return the figures of all virtual hosts together, by VHOST_COLUMNS."""
        return _sum([self.vhost_row(services.vhost) for services in self._server.vhost_services.values()])

    def churn_row(self) -> SampleRow:
        """Return the numbers of created and deleted objects since the start, by CHURN."""
        server = self._server
        return (
            server.connections_opened_count,
            server.connections_closed_count,
            server.channels_opened_count,
            server.channels_closed_count,
            sum(services.queue_service.declared_count for services in server.vhost_services.values()),
            self._queues_created,
            self._queues_deleted,
        )

    # --- private -------------------------------------------------------------------------------

    def _lengths_of(self, vhost: VirtualHost) -> SampleRow:
        """Return the numbers of messages in the queues of `vhost`, by LENGTHS."""
        holding = self._holding.get(vhost, {})
        if len(holding) + len(vhost.dirty) > _ADDED_UP_MAX:
            return self._lengths.get(vhost, (0,) * len(LENGTHS))
        dirty: dict[VhostQueue, None] = vhost.dirty  # type: ignore[assignment]
        return _lengths(holding | dirty)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, QueueDeclared):
            self._queues_created += 1
        elif isinstance(event, QueueDeleted):
            self._queues_deleted += 1

    def _connections(self, time: int) -> Iterator[None]:
        done = 0
        for connection in self._server.take_dirty():
            connection.is_dirty = False
            self._server.count_bytes(connection)
            row = connection_row(connection)
            self._add(_series_of(connection, row), time, row)
            for channel in list(connection.channels.values()):
                self._add_moved(channel, time, channel_row(channel))
                done += 1
                if done % SAMPLED_PER_TURN == 0:
                    yield
            done += 1
            if done % SAMPLED_PER_TURN == 0:
                yield

    def _queues(self, vhost: VirtualHost, time: int) -> Iterator[None]:
        holding = self._holding.setdefault(vhost, {})
        for done, dirty in enumerate(vhost.take_dirty(), 1):
            queue: VhostQueue = dirty  # type: ignore[assignment]
            queue.is_dirty = False
            if not queue.is_deleted:
                row = queue_row(queue)
                self._add(_series_of(queue, row), time, row)
                if row[0]:
                    holding[queue] = None
                else:
                    holding.pop(queue, None)
            if done % SAMPLED_PER_TURN == 0:
                yield
        lengths: SampleRow = (0,) * len(LENGTHS)
        held = list(holding)
        for at in range(0, len(held), _ADDED_UP_MAX):
            piece = held[at : at + _ADDED_UP_MAX]
            lengths = tuple(map(add, lengths, _lengths(piece)))
            for queue in piece:
                if queue.is_deleted:
                    del holding[queue]
            yield
        self._lengths[vhost] = lengths

    def _exchanges(self, vhost: VirtualHost, time: int) -> Iterator[None]:
        for done, exchange in enumerate(list(vhost.router.exchanges.values()), 1):
            if exchange.published_in:
                self._add_moved(exchange, time, exchange_row(exchange))
            if done % SAMPLED_PER_TURN == 0:
                yield

    def _sample_links(self, time: int) -> Iterator[None]:
        for done, link in enumerate(self._links, 1):
            if link.history is None:
                link.history = TimeSeries(_UNSAMPLED_LINK)
            self._add_moved(link, time, link_row(link.status()))
            if done % SAMPLED_PER_TURN == 0:
                yield

    def _add_moved(self, owner: Sampled, time: int, row: SampleRow) -> None:
        """Add a row for `owner`, unless its figures have not changed."""
        series = _series_of(owner, row)
        if tuple(series.last) != tuple(row):
            self._add(series, time, row)

    def _add(self, series: TimeSeries, time: int, row: SampleRow) -> None:
        before = len(series)
        series.add(time, row, self._rows_max())
        self._rows += len(series) - before
        self._kept.pop(series, None)
        self._kept[series] = None

    def _rows_max(self) -> int:
        """The maximum number of rows of each series, so that all together stay within their limit."""
        return max(limits.SAMPLES_OF_ONE_MIN, limits.SAMPLES_MAX // max(1, len(self._kept)))

    def _expire(self, time: int) -> None:
        """Drop the rows of inactive objects that are too old."""
        while self._kept:
            series = next(iter(self._kept))
            if series.last_time > time - limits.SAMPLE_RETENTION_MS and self._rows <= limits.SAMPLES_MAX:
                return
            del self._kept[series]
            self._rows -= len(series)
            series.forget()


def queue_row(queue: VhostQueue) -> SampleRow:
    """Return the figures of a queue, by QUEUE_COLUMNS."""
    delivered, delivered_no_ack = queue.delivered_count, queue.delivered_no_ack_count
    got, got_no_ack = queue.got_count, queue.got_no_ack_count
    return (
        queue.total_count,
        queue.message_count,
        queue.unacked_count,
        queue.published_count - queue.broker_published_count,
        delivered,
        delivered_no_ack,
        delivered + delivered_no_ack + got + got_no_ack,
        got,
        got_no_ack,
        queue.got_empty_count,
        queue.redelivered_count,
        queue.acknowledged_count,
    )


def channel_row(channel: Channel) -> SampleRow:
    """Return the figures of a channel, by CHANNEL_COLUMNS."""
    return counters_row(channel.publisher_counters, channel.subscriber)


def counters_row(publisher: Counters, counters: Counters) -> SampleRow:
    """Return the figures of a publisher and a consumer together, by CHANNEL_COLUMNS."""
    delivered, delivered_no_ack = counters.delivered, counters.delivered_no_ack
    got, got_no_ack = counters.got, counters.got_no_ack
    return (
        publisher.published,
        publisher.confirmed,
        publisher.returned,
        publisher.dropped,
        delivered,
        delivered_no_ack,
        delivered + delivered_no_ack + got + got_no_ack,
        got,
        got_no_ack,
        counters.got_empty,
        counters.redelivered,
        counters.acknowledged,
    )


def exchange_row(exchange: Exchange) -> SampleRow:
    """Return the figures of an exchange, by EXCHANGE_COLUMNS."""
    return exchange.published_in, exchange.published_out


def connection_row(connection: AnyConnection) -> SampleRow:
    """Return the figures of a connection, by CONNECTION_COLUMNS."""
    return connection.bytes_received, connection.outbox.total


def link_row(status: LinkStatus) -> SampleRow:
    """Return the figures of a shovel or federation link, by LINK_COLUMNS."""
    counters = status.counters
    age_ms = status.age_ms
    return (
        counters.forwarded,
        counters.confirmed,
        counters.rejected,
        counters.dropped,
        counters.redelivered,
        status.source_ready,
        UNKNOWN if age_ms is None else age_ms,
    )


def series_of(owner: Sampled) -> TimeSeries | None:
    """Return the series of `owner`; None if it was not sampled yet."""
    history = owner.history
    return history if isinstance(history, TimeSeries) else None


def _series_of(owner: Sampled, row: SampleRow, *, is_long: bool = False) -> TimeSeries:
    """Return the series of `owner`, created if necessary."""
    series = series_of(owner)
    if series is None:
        series = _long(len(row)) if is_long else TimeSeries((0,) * len(row))
        owner.history = series
    return series


def _lengths(queues: Iterable[VhostQueue]) -> SampleRow:
    total = ready = unacked = 0
    for queue in queues:
        total += queue.total_count
        ready += queue.message_count
        unacked += queue.unacked_count
    return total, ready, unacked


def _long(width: int) -> TimeSeries:
    zeros = (0,) * width
    return TimeSeries(zeros, CoarseTimeSeries(zeros, limits.SAMPLE_COARSE_STEP_MS, limits.SAMPLES_COARSE_MAX))


def _sum(rows: list[SampleRow]) -> SampleRow:
    return tuple(map(sum, zip(*rows, strict=True))) if rows else (0,) * _LONG_WIDTH
