"""The tutorials' programs with pika's blocking connection: `python with_pika.py URI PROGRAM ARGUMENT…`."""

import functools
import sys
import time
import uuid
from collections.abc import Callable

import pika
from pika.adapters.blocking_connection import BlockingChannel

PERSISTENT = pika.BasicProperties(delivery_mode=2)


def send(channel: BlockingChannel, queue: str, *bodies: str) -> None:
    """Hello world: each body to a queue, by way of the default exchange."""
    channel.queue_declare(queue)
    for body in bodies:
        channel.basic_publish("", queue, body.encode())
    print("sent", len(bodies), flush=True)


def receive(channel: BlockingChannel, queue: str) -> None:
    """Hello world: print whatever arrives, acknowledged as it is sent."""
    channel.queue_declare(queue)
    channel.basic_consume(
        queue, lambda _c, _m, _p, body: print("got", body.decode(), flush=True), auto_ack=True
    )
    wait(channel)


def assign(channel: BlockingChannel, queue: str, *bodies: str) -> None:
    """Work queues: tasks that survive a restart."""
    channel.queue_declare(queue, durable=True)
    for body in bodies:
        channel.basic_publish("", queue, body.encode(), PERSISTENT)
    print("assigned", len(bodies), flush=True)


def work(channel: BlockingChannel, queue: str) -> None:
    """Work queues: one task at a time, a tenth of a second for each dot, acknowledged when done."""
    channel.queue_declare(queue, durable=True)
    channel.basic_qos(prefetch_count=1)

    def do(_channel: BlockingChannel, method: object, _properties: object, body: bytes) -> None:
        print("began", body.decode(), flush=True)
        time.sleep(body.count(b".") / 10)
        print("done", body.decode(), flush=True)
        channel.basic_ack(method.delivery_tag)  # type: ignore[attr-defined]

    channel.basic_consume(queue, do)
    wait(channel)


def emit(channel: BlockingChannel, exchange: str, kind: str, *keys: str) -> None:
    """Publish/subscribe, routing, topics: a message about each key to an exchange."""
    channel.exchange_declare(exchange, kind)
    for key in keys:
        channel.basic_publish(exchange, key, f"about {key}".encode())
    print("emitted", len(keys), flush=True)


def listen(channel: BlockingChannel, exchange: str, kind: str, *keys: str) -> None:
    """Publish/subscribe, routing, topics: print what a queue of one's own gets from an exchange."""
    channel.exchange_declare(exchange, kind)
    queue = channel.queue_declare("", exclusive=True).method.queue
    for key in keys:
        channel.queue_bind(queue, exchange, key)
    channel.basic_consume(
        queue,
        lambda _c, method, _p, body: print("got", method.routing_key, body.decode(), flush=True),
        auto_ack=True,
    )
    wait(channel)


def serve(channel: BlockingChannel, queue: str) -> None:
    """RPC: answer Fibonacci numbers."""
    channel.queue_declare(queue)
    channel.basic_qos(prefetch_count=1)

    def answer(
        _channel: BlockingChannel, method: object, properties: pika.BasicProperties, body: bytes
    ) -> None:
        reply = pika.BasicProperties(correlation_id=properties.correlation_id)
        channel.basic_publish("", properties.reply_to or "", str(fibonacci(int(body))).encode(), reply)
        channel.basic_ack(method.delivery_tag)  # type: ignore[attr-defined]

    channel.basic_consume(queue, answer)
    wait(channel)


def call(channel: BlockingChannel, queue: str, *numbers: str) -> None:
    """RPC: send a request, and wait on an own queue for the reply with its correlation id."""
    replies = channel.queue_declare("", exclusive=True).method.queue
    answers: dict[str, str] = {}

    def keep(_channel: object, _method: object, properties: pika.BasicProperties, body: bytes) -> None:
        answers[properties.correlation_id or ""] = body.decode()

    channel.basic_consume(replies, keep, auto_ack=True)
    for number in numbers:
        identity = str(uuid.uuid4())
        question = pika.BasicProperties(reply_to=replies, correlation_id=identity)
        channel.basic_publish("", queue, number.encode(), question)
        while identity not in answers:
            channel.connection.process_data_events(time_limit=None)
        print("answer", number, answers[identity], flush=True)


def confirm(channel: BlockingChannel, queue: str, count: str) -> None:
    """Publisher confirms: wait for each message, and for the return of an unroutable message."""
    channel.queue_declare(queue)
    channel.confirm_delivery()
    for number in range(int(count)):
        channel.basic_publish("", queue, str(number).encode(), mandatory=True)
    print("confirmed", channel.queue_declare(queue, passive=True).method.message_count, flush=True)
    try:
        channel.basic_publish("", queue + ".nobody", b"lost", mandatory=True)
    except pika.exceptions.UnroutableError as error:
        print("returned", error.messages[0].method.reply_text, flush=True)


@functools.cache
def fibonacci(number: int) -> int:
    """Return the Fibonacci number with that index."""
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def wait(channel: BlockingChannel) -> None:
    """Print that everything is declared, then handle deliveries until the process is ended."""
    print("ready", flush=True)
    channel.start_consuming()


PROGRAMS: dict[str, Callable[..., None]] = {
    program.__name__: program for program in (send, receive, assign, work, emit, listen, serve, call, confirm)
}

if __name__ == "__main__":
    uri, name, *arguments = sys.argv[1:]
    with pika.BlockingConnection(pika.URLParameters(uri)) as opened:
        PROGRAMS[name](opened.channel(), *arguments)
