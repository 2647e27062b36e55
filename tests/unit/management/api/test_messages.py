"""Messages that the HTTP API fetches from a queue whose answers come late."""

import asyncio

import pytest
from tests.unit.session.client import Broker, publication
from tests.unit.session.late_queue import LateQueue

from warren.management.api.messages import _fetched
from warren.management.replies import RequestRefused
from warren.session import vhost_services
from warren.wire import methods


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> LateQueue:
    """The queue q with one message."""
    monkeypatch.setattr(vhost_services, "ClassicQueue", LateQueue)
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"))
    client.send(publication("q", b"x"))
    live = broker.services.vhost.queues["q"]
    assert isinstance(live, LateQueue)
    live.is_late = True
    return live


async def asked(queue: LateQueue) -> "asyncio.Task[object]":
    """A request that waits for a message."""
    request: asyncio.Task[object] = asyncio.ensure_future(_fetched(queue))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    assert not request.done()
    return request


def test_a_message_that_comes_late_is_fetched(queue: LateQueue) -> None:
    async def fetch() -> object:
        request = await asked(queue)
        queue.arrive()
        return await request

    delivery, left = asyncio.run(fetch())  # type: ignore[misc]
    assert (delivery.message.body, left, queue.unacked_count) == (b"x", 0, 1)


def test_a_message_that_comes_after_the_request_was_cancelled_is_put_back(queue: LateQueue) -> None:
    async def fetch() -> None:
        request = await asked(queue)
        request.cancel()
        await asyncio.wait([request])
        queue.arrive()
        await asyncio.sleep(0)

    asyncio.run(fetch())
    assert (queue.message_count, queue.unacked_count) == (1, 0)


def test_a_queue_that_is_deleted_meanwhile_is_not_found(queue: LateQueue) -> None:
    async def fetch() -> None:
        request = await asked(queue)
        queue.delete()
        await request

    with pytest.raises(RequestRefused) as caught:
        asyncio.run(fetch())
    assert caught.value.response.status == 404
