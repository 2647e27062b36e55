"""Queues that nobody uses any more: they go, late if the disk fails, and not at all if it ends the store."""

import pytest
from tests.unit.session.client import Broker, Client

from warren.limits import REMOVAL_RETRY_MS
from warren.wire import methods

DECLARED = {
    "auto-delete": methods.QueueDeclare(queue="q", durable=True, auto_delete=True),
    "x-expires": methods.QueueDeclare(queue="q", durable=True, arguments={"x-expires": 1}),
}


def failing(kind: str) -> tuple[Broker, Client]:
    """A broker that could not delete a queue when that was used no longer, and its client."""
    broker = Broker()
    client = broker.client()
    client.ask(DECLARED[kind])
    broker.proposals.is_failing = True
    client.ask(
        methods.BasicConsume(queue="q", consumer_tag="c"),
        methods.BasicCancel(consumer_tag="c"),
    )
    broker.domain.vhost.expire(1)
    return broker, client


@pytest.mark.parametrize("kind", DECLARED)
def test_a_deletion_that_cannot_be_written_is_tried_again_until_it_can(kind: str) -> None:
    broker, _ = failing(kind)
    queues = broker.domain.vhost.queues
    for _ in range(2):
        [(pause_ms, again)] = broker.later
        assert pause_ms == REMOVAL_RETRY_MS
        broker.later.clear()
        again()
        assert "q" in queues
    broker.proposals.is_failing = False
    [(_, again)] = broker.later
    broker.later.clear()
    again()
    assert "q" not in queues
    assert not broker.later


@pytest.mark.parametrize("kind", DECLARED)
def test_a_queue_that_found_a_use_meanwhile_stays(kind: str) -> None:
    broker, client = failing(kind)
    broker.proposals.is_failing = False
    client.ask(methods.BasicConsume(queue="q", consumer_tag="c"))
    [(_, again)] = broker.later
    again()
    assert "q" in broker.domain.vhost.queues


@pytest.mark.parametrize(("is_durable", "is_left"), [(True, True), (False, False)])
def test_when_the_store_has_failed_only_what_is_not_durable_goes_with_its_consumers(
    is_durable: bool, is_left: bool
) -> None:
    broker = Broker()
    client = broker.client()
    client.ask(
        methods.QueueDeclare(queue="q", durable=is_durable, auto_delete=True),
        methods.BasicConsume(queue="q", consumer_tag="c"),
    )
    broker.domain.retire()
    client.ask(methods.BasicCancel(consumer_tag="c"))
    assert ("q" in broker.domain.vhost.queues) is is_left
