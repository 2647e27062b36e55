"""A broker that Spark reads from and writes to, and its queues."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark_warren.amqp import CHANNEL, connect
from pyspark_warren.amqp_publisher import AmqpPublisher
from pyspark_warren.encoding import PublishEncoder
from pyspark_warren.filters import NO_FILTERS
from pyspark_warren.http import HttpApi, path
from pyspark_warren.mode_detection import detect_strategy
from pyspark_warren.options import BrokerOptions, read_options
from pyspark_warren.partitions import BrowsePartition
from pyspark_warren.schema import COLUMNS
from pyspark_warren.stream_source import StreamSource
from warren.blocking.connection import BlockingConnection
from warren.wire.methods import (
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)

STREAM = {"x-queue-type": "stream"}


@dataclass(frozen=True)
class BrokerUnderTest:
    """The addresses of a broker."""

    port: int
    management: int

    @property
    def options(self) -> dict[str, str]:
        """The options of a reader or a writer for it."""
        return {
            "uri": f"amqp://guest:guest@127.0.0.1:{self.port}/%2f",
            "managementUri": f"http://127.0.0.1:{self.management}",
        }

    @property
    def broker(self) -> BrokerOptions:
        """The parsed options."""
        return read_options(self.options | {"queue": "any"}).broker

    @contextmanager
    def link(self) -> Iterator[BlockingConnection]:
        """A connection with a channel."""
        link = connect(self.broker)
        try:
            link.open_channel(CHANNEL)
            yield link
        finally:
            link.close()

    def declare(self, queue: str, arguments: dict[str, object] | None = None) -> None:
        """Declare a durable queue, new and empty."""
        with self.link() as link:
            link.call(CHANNEL, QueueDelete(queue=queue), QueueDeleteOk)
            declare = QueueDeclare(queue=queue, durable=True, arguments=arguments or {})
            link.call(CHANNEL, declare, QueueDeclareOk)

    def fan_out(self, exchange: str, queues: dict[str, dict[str, object]]) -> None:
        """Declare an exchange that routes each message to all `queues`, new and empty, with these
        arguments.
        """
        self.put(path("exchanges", "/", exchange), {"type": "fanout", "durable": True})
        for queue, arguments in queues.items():
            self.declare(queue, arguments)
        self.bind(exchange, *queues)

    def bind(self, exchange: str, *queues: str) -> None:
        """Bind `queues` to an exchange."""
        with self.link() as link:
            for queue in queues:
                link.call(CHANNEL, QueueBind(queue=queue, exchange=exchange), QueueBindOk)

    def put(self, place: str, body: dict[str, Any]) -> None:
        """Create or change an object over the HTTP API."""
        kind = {"Content-Type": "application/json"}
        # A broker that has just begun to listen for AMQP may not listen for HTTP yet.
        HttpApi(self.broker)._ask("PUT", place, json.dumps(body).encode(), kind).read()

    def count(self, queue: str) -> int:
        """The number of ready messages."""
        with self.link() as link:
            return link.call(CHANNEL, QueueDeclare(queue=queue, passive=True), QueueDeclareOk).message_count

    def publish(self, queue: str, bodies: Sequence[bytes]) -> None:
        """Publish messages to a queue, and wait until they are confirmed."""
        import pyarrow as pa

        with AmqpPublisher(self.broker) as publisher:
            encoder = PublishEncoder(
                channel=CHANNEL,
                frame_size_max=publisher.frame_size_max,
                is_mandatory=True,
                is_persistent=True,
            )
            batch = pa.record_batch({"body": pa.array(bodies, pa.binary())})
            publisher.publish(encoder.encode(batch, ("", queue), None))
            publisher.finish()


def rows_of(place: BrokerUnderTest, queue: str) -> list[dict[str, Any]]:
    """All messages of a queue or a stream of Warren, which stay there."""
    options = read_options(place.options | {"queue": queue})
    choice = detect_strategy(options, is_streaming=False)
    is_stream = choice.mode == "stream"
    partitions = StreamSource(options, choice).batch(NO_FILTERS) if is_stream else [BrowsePartition(queue)]
    return [
        row
        for part in partitions
        for batch in part.read(options, tuple(COLUMNS))
        for row in batch.to_pylist()
    ]
