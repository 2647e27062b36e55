"""The tutorials' programs with aio-pika: `python with_aio_pika.py URI PROGRAM ARGUMENT…`."""

import asyncio
import functools
import sys
import uuid
from collections.abc import Awaitable, Callable

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue, DeliveryMode, ExchangeType


async def send(channel: AbstractChannel, queue: str, *bodies: str) -> None:
    """Hello world: each body to a queue, by way of the default exchange."""
    await channel.declare_queue(queue)
    for body in bodies:
        await channel.default_exchange.publish(aio_pika.Message(body.encode()), queue)
    print("sent", len(bodies), flush=True)


async def receive(channel: AbstractChannel, queue: str) -> None:
    """Hello world: print whatever arrives, acknowledged as it is sent."""

    async def got(message: AbstractIncomingMessage) -> None:
        print("got", message.body.decode(), flush=True)

    await wait(await channel.declare_queue(queue), got, no_ack=True)


async def assign(channel: AbstractChannel, queue: str, *bodies: str) -> None:
    """Work queues: tasks that survive a restart."""
    await channel.declare_queue(queue, durable=True)
    for body in bodies:
        task = aio_pika.Message(body.encode(), delivery_mode=DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(task, queue)
    print("assigned", len(bodies), flush=True)


async def work(channel: AbstractChannel, queue: str) -> None:
    """Work queues: one task at a time, a tenth of a second for each dot, acknowledged when done."""
    await channel.set_qos(prefetch_count=1)

    async def do(message: AbstractIncomingMessage) -> None:
        async with message.process():
            print("began", message.body.decode(), flush=True)
            await asyncio.sleep(message.body.count(b".") / 10)
            print("done", message.body.decode(), flush=True)

    await wait(await channel.declare_queue(queue, durable=True), do)


async def emit(channel: AbstractChannel, exchange: str, kind: str, *keys: str) -> None:
    """Publish/subscribe, routing, topics: a message about each key to an exchange."""
    declared = await channel.declare_exchange(exchange, ExchangeType(kind))
    for key in keys:
        await declared.publish(aio_pika.Message(f"about {key}".encode()), key, mandatory=False)
    print("emitted", len(keys), flush=True)


async def listen(channel: AbstractChannel, exchange: str, kind: str, *keys: str) -> None:
    """Publish/subscribe, routing, topics: print what a queue of one's own gets from an exchange."""
    declared = await channel.declare_exchange(exchange, ExchangeType(kind))
    queue = await channel.declare_queue(exclusive=True)
    for key in keys:
        await queue.bind(declared, key)

    async def got(message: AbstractIncomingMessage) -> None:
        print("got", message.routing_key, message.body.decode(), flush=True)

    await wait(queue, got, no_ack=True)


async def serve(channel: AbstractChannel, queue: str) -> None:
    """RPC: answer Fibonacci numbers."""
    await channel.set_qos(prefetch_count=1)

    async def answer(message: AbstractIncomingMessage) -> None:
        async with message.process():
            body = str(fibonacci(int(message.body))).encode()
            reply = aio_pika.Message(body, correlation_id=message.correlation_id)
            await channel.default_exchange.publish(reply, message.reply_to or "")

    await wait(await channel.declare_queue(queue), answer)


async def call(channel: AbstractChannel, queue: str, *numbers: str) -> None:
    """RPC: send a request, and wait on an own queue for the reply with its correlation id."""
    replies = await channel.declare_queue(exclusive=True)
    waiting: dict[str | None, asyncio.Future[str]] = {}

    async def keep(message: AbstractIncomingMessage) -> None:
        waiting[message.correlation_id].set_result(message.body.decode())

    await replies.consume(keep, no_ack=True)
    for number in numbers:
        identity = str(uuid.uuid4())
        waiting[identity] = asyncio.get_running_loop().create_future()
        question = aio_pika.Message(number.encode(), reply_to=replies.name, correlation_id=identity)
        await channel.default_exchange.publish(question, queue)
        print("answer", number, await waiting[identity], flush=True)


async def confirm(channel: AbstractChannel, queue: str, count: str) -> None:
    """Publisher confirms: wait for many at once, and for the return of an unroutable message."""
    await channel.declare_queue(queue)
    messages = [aio_pika.Message(str(number).encode()) for number in range(int(count))]
    await asyncio.gather(*(channel.default_exchange.publish(message, queue) for message in messages))
    declared = await channel.declare_queue(queue, passive=True)
    print("confirmed", declared.declaration_result.message_count, flush=True)
    try:
        await channel.default_exchange.publish(aio_pika.Message(b"lost"), queue + ".nobody")
    except aio_pika.exceptions.DeliveryError as error:
        print("returned", error.message.delivery.reply_text, flush=True)  # type: ignore[union-attr]


@functools.cache
def fibonacci(number: int) -> int:
    """Return the Fibonacci number with that index."""
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


async def wait(
    queue: AbstractQueue,
    handle: Callable[[AbstractIncomingMessage], Awaitable[None]],
    *,
    no_ack: bool = False,
) -> None:
    """Print that everything is declared, then handle deliveries until the process is ended."""
    await queue.consume(handle, no_ack=no_ack)
    print("ready", flush=True)
    await asyncio.Future()


PROGRAMS: dict[str, Callable[..., Awaitable[None]]] = {
    program.__name__: program for program in (send, receive, assign, work, emit, listen, serve, call, confirm)
}


async def main(uri: str, name: str, *arguments: str) -> None:
    """Run the program with that name on a channel with confirms and returns."""
    connection = await aio_pika.connect(uri)
    async with connection, connection.channel(publisher_confirms=True, on_return_raises=True) as channel:
        await PROGRAMS[name](channel, *arguments)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
