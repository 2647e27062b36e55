"""What the tests of shovels share: definitions, waiting for a state, and queues at both ends."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.api import HttpClient
from tests.patience import patient

WAIT_S_MAX = patient(60)


def uri(port: int, user: str = "guest:guest") -> str:
    """The address of a broker on this machine."""
    return f"amqp://{user}@127.0.0.1:{port}/%2f"


def put_shovel(client: HttpClient, name: str, **definition: object) -> None:
    """Set the parameter of a shovel in the virtual host `/`."""
    value = {key.replace("_", "-"): item for key, item in definition.items()}
    answer = client.ask(f"PUT /parameters/shovel/%2F/{name}", {"value": value})
    assert answer.status in (201, 204), answer


def shovels(client: HttpClient) -> dict[str, Any]:
    """The statuses of all shovels by name."""
    return {one["name"]: one for one in client.get("/shovels")}


def await_state(client: HttpClient, name: str, state: str | None) -> dict[str, Any]:
    """Wait until a shovel has `state`; None: until it is gone."""

    def has_state() -> bool:
        return (shovels(client).get(name) or {"state": None})["state"] == state

    wait_until(has_state, lambda: str(shovels(client)))
    return shovels(client).get(name, {})


def wait_until(condition: Callable[[], bool], shown: Callable[[], str] = str) -> None:
    """Wait until `condition`; fails with what `shown` returns."""
    end = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < end, shown()
        time.sleep(0.05)


@contextmanager
def confirming(port: int) -> Iterator[BlockingChannel]:
    """A channel with publisher confirms."""
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    if connection.is_open:
        connection.close()


def ready(channel: BlockingChannel, queue: str) -> int:
    """The number of messages that are ready."""
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def take(channel: BlockingChannel, queue: str) -> list[tuple[bytes, pika.BasicProperties]]:
    """Take all messages of a queue, with their properties."""
    taken = []
    while True:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return taken
        taken.append((body, properties))
