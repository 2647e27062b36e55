"""Dead letters made by clients, and jobs of the HTTP API that are awaited."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
from tests.integration.api import HttpClient, quoted
from tests.integration.broker_process import BrokerProcess
from tests.patience import patient

Channel = pika.adapters.blocking_connection.BlockingChannel

PERSISTENT = 2
ENDED = ("done", "failed", "stopped")
JOB_S_MAX = patient(60)


@contextmanager
def channel_of(node: BrokerProcess, **more: Any) -> Iterator[Channel]:
    """A channel with publisher confirms."""
    parameters = pika.ConnectionParameters("127.0.0.1", node.port, **more)
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel


def publish(channel: Channel, key: str, bodies: list[str], exchange: str = "", **more: Any) -> None:
    """Publish persistent messages."""
    properties = pika.BasicProperties(delivery_mode=PERSISTENT, **more)
    for body in bodies:
        channel.basic_publish(exchange, key, body, properties)


def take(channel: Channel, queue: str) -> list[tuple[Any, Any, str]]:
    """Consume all ready messages: method, properties and body of each."""
    found = []
    while True:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return found
        found.append((method, properties, body.decode()))


def bodies(channel: Channel, queue: str) -> list[str]:
    """The bodies of all ready messages."""
    return [body for _, _, body in take(channel, queue)]


def reject(channel: Channel, queue: str, to: str = "dead") -> None:
    """Reject all ready messages, which dead-letters them, and wait until `to` has them."""
    due = _count(channel, to)
    while True:
        method, _, _ = channel.basic_get(queue)
        if method is None:
            break
        channel.basic_reject(method.delivery_tag, requeue=False)
        due += 1
    deadline = time.monotonic() + patient(10)
    while _count(channel, to) < due:
        assert time.monotonic() < deadline


def _count(channel: Channel, queue: str) -> int:
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def path_of(queue: str, what: str) -> str:
    """The API path of `what` of `queue`."""
    return f"/warren/queues/%2F/{quoted(queue)}/{what}"


def start(client: HttpClient, source: str, what: str, **order: Any) -> dict[str, Any]:
    """Start a job with the source `queue`; returns it."""
    answer = client.ask(f"POST {path_of(source, what)}", order)
    assert answer.status == 201, answer
    return answer.value


def ended(client: HttpClient, job: dict[str, Any]) -> dict[str, Any]:
    """`job` when it has ended."""
    deadline = time.monotonic() + JOB_S_MAX
    while time.monotonic() < deadline:
        job = client.get(f"/warren/jobs/{job['id']}")
        if job["state"] in ENDED:
            return job
        time.sleep(0.02)
    raise AssertionError(json.dumps(job))


def done(client: HttpClient, source: str, what: str, **order: Any) -> dict[str, Any]:
    """The result of a job with the source `queue`."""
    return ended(client, start(client, source, what, **order))
