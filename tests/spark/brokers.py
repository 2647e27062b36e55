"""A broker that Spark reads, and what is in it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark_warren.amqp import CHANNEL, connect
from pyspark_warren.encoding import Encoder
from pyspark_warren.options import Broker, read_options
from pyspark_warren.publishing import Publisher
from warren.client.link import Link
from warren.wire.methods import QueueDeclare, QueueDeclareOk, QueueDelete, QueueDeleteOk

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
