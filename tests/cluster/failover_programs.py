"""Programs of clients that have the addresses of several nodes, and go to another one when theirs is gone.

Publishers publish numbers, each confirmed before the next, to queues in turn until SIGTERM, and write what
was confirmed as lines `QUEUE NUMBER`. Consumers write what they were given, each line before its
acknowledgement. As programs in production do, they wait and try again whatever the error of the broker.

    python failover_programs.py pika-publish URI,URI,URI QUEUE,QUEUE
"""

import itertools
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import kombu
import pika
from kombu.mixins import ConsumerMixin
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError, ChannelClosed, NackError

PAUSE_S = 0.2
INTERVAL_S = 0.01
# A client whose node is silent gives up and goes to the next one.
HEARTBEAT_S = 4


class Ending:
    """Whether the program is to end, which a signal says."""

    is_set = False

    def __init__(self) -> None:
        signal.signal(signal.SIGTERM, self._set)

    def _set(self, _number: int, _frame: object) -> None:
        self.is_set = True


def main() -> int:
    """Run one program."""
    logging.disable()
    program, uris, queues = sys.argv[1:]
    PROGRAMS[program](uris.split(","), queues.split(","))
    return 0


def numbered(queues: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield queues in turn, each with the next number, until the program is to end."""
    ending = Ending()
    for number, queue in enumerate(itertools.cycle(queues)):
        if ending.is_set:
            return
        yield queue, number
        time.sleep(INTERVAL_S)


def note(queue: str, body: str) -> None:
    """Write one line of the result."""
    print(queue, body, flush=True)


def pika_parameters(uris: Sequence[str]) -> list[pika.URLParameters]:
    """Return the parameters of a connection to the first node that accepts it."""
    return [
        pika.URLParameters(f"{uri}?heartbeat={HEARTBEAT_S}&socket_timeout=5&stack_timeout=8") for uri in uris
    ]


def pika_publish(uris: Sequence[str], queues: Sequence[str]) -> None:
    """Publish with pika."""
    numbers = numbered(queues)
    while True:
        try:
            connection = pika.BlockingConnection(pika_parameters(uris))
            channel = connection.channel()
            channel.confirm_delivery()
            for queue, number in numbers:
                try:
                    channel.basic_publish("", queue, b"%d" % number, pika.BasicProperties(delivery_mode=2))
                except NackError:
                    # The home of the queue is away.
                    continue
                note(queue, str(number))
            connection.close()
            return
        except (AMQPError, OSError):
            time.sleep(PAUSE_S)


def pika_consume(uris: Sequence[str], queues: Sequence[str]) -> None:
    """Consume with pika."""
    (queue,) = queues

    def received(channel: BlockingChannel, method: object, _properties: object, body: bytes) -> None:
        note(queue, body.decode())
        channel.basic_ack(method.delivery_tag)  # type: ignore[attr-defined]

    while True:
        try:
            connection = pika.BlockingConnection(pika_parameters(uris))
            channel = connection.channel()
            channel.queue_declare(queue, durable=True)
            channel.basic_qos(prefetch_count=50)
            channel.basic_consume(queue, received)
            # Returns when the broker has cancelled the consumer.
            channel.start_consuming()
            connection.close()
        except ChannelClosed:
            connection.close()
            time.sleep(PAUSE_S)
        except (AMQPError, OSError):
            time.sleep(PAUSE_S)


def kombu_connection(uris: Sequence[str]) -> kombu.Connection:
    """Return a connection that goes through the nodes in their order."""
    return kombu.Connection(
        ";".join(uris),
        failover_strategy="round-robin",
        heartbeat=HEARTBEAT_S,
        transport_options={"confirm_publish": True, "read_timeout": 8},
    )


def kombu_publish(uris: Sequence[str], queues: Sequence[str]) -> None:
    """Publish with kombu."""
    with kombu_connection(uris) as connection:
        producer = connection.Producer()
        publish = connection.ensure(
            producer, producer.publish, max_retries=2, interval_start=PAUSE_S, interval_step=0
        )
        for queue, number in numbered(queues):
            try:
                publish(
                    str(number),
                    routing_key=queue,
                    delivery_mode=2,
                    content_type="text/plain",
                    content_encoding="utf-8",
                )
            except kombu.exceptions.OperationalError:
                # The home of the queue is away.
                continue
            note(queue, str(number))


class KombuConsumer(ConsumerMixin):
    """Consumes one queue."""

    def __init__(self, connection: kombu.Connection, queue: str) -> None:
        self.connection = connection
        self.queue = queue

    def get_consumers(self, consumer: Callable[..., kombu.Consumer], channel: object) -> list[kombu.Consumer]:
        """Return the consumer, which declares its queue."""
        queue = kombu.Queue(self.queue, kombu.Exchange(""), routing_key=self.queue, durable=True)
        return [consumer([queue], on_message=self.received, prefetch_count=50)]

    def received(self, message: kombu.Message) -> None:
        """Note a message and acknowledge it."""
        body = message.body
        note(self.queue, body if isinstance(body, str) else bytes(body).decode())
        message.ack()


def kombu_consume(uris: Sequence[str], queues: Sequence[str]) -> None:
    """Consume with kombu."""
    (queue,) = queues
    while True:
        with kombu_connection(uris) as connection:
            try:
                KombuConsumer(connection, queue).run()
            except connection.channel_errors:
                time.sleep(PAUSE_S)


PROGRAMS = {
    "pika-publish": pika_publish,
    "pika-consume": pika_consume,
    "kombu-publish": kombu_publish,
    "kombu-consume": kombu_consume,
}

if __name__ == "__main__":
    sys.exit(main())
