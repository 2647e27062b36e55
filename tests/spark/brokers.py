"""A broker that Spark reads, and what is in it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark_warren.amqp import CHANNEL, connect
from pyspark_warren.choosing import choose
from pyspark_warren.encoding import Encoder
from pyspark_warren.filters import EVERYTHING
from pyspark_warren.http import Management, path
from pyspark_warren.options import Broker, read_options
from pyspark_warren.partitions import BrowsePart
from pyspark_warren.publishing import Publisher
from pyspark_warren.schema import COLUMNS
from pyspark_warren.stream_source import StreamSource
from warren.client.link import Link
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
class Place:
    """Where a broker is."""

    port: int
    management: int

    @property
    def options(self) -> dict[str, str]:
        """What a reader or a writer must know of it."""
        return {
            "uri": f"amqp://guest:guest@127.0.0.1:{self.port}/%2f",
            "managementUri": f"http://127.0.0.1:{self.management}",
        }

    @property
    def broker(self) -> Broker:
        """The same, read."""
        return read_options(self.options | {"queue": "any"}).broker

    @contextmanager
    def link(self) -> Iterator[Link]:
        """A connection with a channel."""
        link = connect(self.broker)
        try:
            link.open_channel(CHANNEL)
            yield link
        finally:
            link.close()

    def declare(self, queue: str, arguments: dict[str, object] | None = None) -> None:
        """A durable queue, new and empty."""
        with self.link() as link:
            link.call(CHANNEL, QueueDelete(queue=queue), QueueDeleteOk)
            declare = QueueDeclare(queue=queue, durable=True, arguments=arguments or {})
            link.call(CHANNEL, declare, QueueDeclareOk)

    def fan_out(self, exchange: str, queues: dict[str, dict[str, object]]) -> None:
        """An exchange of which each message goes to all `queues`, new and empty, with these arguments."""
        self.put(path("exchanges", "/", exchange), {"type": "fanout", "durable": True})
        for queue, arguments in queues.items():
            self.declare(queue, arguments)
            with self.link() as link:
                link.call(CHANNEL, QueueBind(queue=queue, exchange=exchange), QueueBindOk)

    def put(self, place: str, body: dict[str, Any]) -> None:
        """Make or change something over the HTTP API."""
        kind = {"Content-Type": "application/json"}
        # A broker that has just begun to listen for AMQP may not do so for HTTP yet.
        Management(self.broker)._ask("PUT", place, json.dumps(body).encode(), kind).read()

    def count(self, queue: str) -> int:
        """How many messages are ready."""
        with self.link() as link:
            return link.call(CHANNEL, QueueDeclare(queue=queue, passive=True), QueueDeclareOk).message_count

    def publish(self, queue: str, bodies: Sequence[bytes]) -> None:
        """Put messages into a queue; returns when they are confirmed."""
        import pyarrow as pa

        with Publisher(self.broker) as publisher:
            encoder = Encoder(
                channel=CHANNEL,
                frame_size_max=publisher.frame_size_max,
                is_mandatory=True,
                is_persistent=True,
            )
            batch = pa.record_batch({"body": pa.array(bodies, pa.binary())})
            publisher.publish(encoder.encode(batch, ("", queue), None))
            publisher.finish()


def rows_of(place: Place, queue: str) -> list[dict[str, Any]]:
    """All that is in a queue or a stream of a Warren, which stays there."""
    options = read_options(place.options | {"queue": queue})
    choice = choose(options, is_streaming=False)
    is_stream = choice.mode == "stream"
    parts = StreamSource(options, choice).batch(EVERYTHING) if is_stream else [BrowsePart(queue)]
    return [
        row for part in parts for batch in part.read(options, tuple(COLUMNS)) for row in batch.to_pylist()
    ]
