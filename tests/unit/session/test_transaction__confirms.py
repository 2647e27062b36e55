"""A commit is answered when every queue has answered for what the transaction has published."""

import random

import pytest
from tests.sim.durable_broker import DurableBroker
from tests.unit.session.client import Broker, Client, call, publication
from tests.unit.session.late_queue import LateQueue

from warren.metadata.commands import DeleteQueue
from warren.session import vhost_services
from warren.wire import methods

FULL = {"x-max-length": 1, "x-overflow": "reject-publish"}
PARTIAL = (406, "PRECONDITION_FAILED - partial tx completion", 90, 20)


def closed(client: Client) -> tuple[int, str, int, int]:
    """Why the broker has closed the channel, which is all that the client has heard."""
    [one] = client.hear()
    assert isinstance(one.method, methods.ChannelClose)
    close = one.method
    return close.reply_code, close.reply_text, close.failed_class_id, close.failed_method_id


def persistent(*keys: str) -> bytes:
    """A persistent message to each queue of `keys`."""
    return b"".join(publication(key, b"x", delivery_mode=2) for key in keys)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> tuple[Broker, Client, LateQueue, LateQueue]:
    """A transactional channel, and two queues that answer late for what is published."""
    monkeypatch.setattr(vhost_services, "ClassicQueue", LateQueue)
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"), methods.QueueDeclare(queue="r"), methods.TxSelect())
    queues = broker.services.vhost.queues
    q, r = queues["q"], queues["r"]
    assert isinstance(q, LateQueue)
    assert isinstance(r, LateQueue)
    q.is_late = r.is_late = True
    return broker, client, q, r


def test_commit_ok_follows_the_last_answer_and_the_frames_behind_it_wait(
    late: tuple[Broker, Client, LateQueue, LateQueue],
) -> None:
    _, client, q, r = late
    client.send(persistent("q", "r", "q"), call(methods.TxCommit()), call(methods.BasicCancel("none")))
    q.confirm(1)
    assert client.names() == []
    r.confirm(1)
    assert client.names() == []
    q.confirm(1)
    assert client.names() == ["tx.commit-ok", "basic.cancel-ok"]


def test_a_late_refusal_closes_the_channel_after_the_last_answer(
    late: tuple[Broker, Client, LateQueue, LateQueue],
) -> None:
    _, client, q, r = late
    client.send(persistent("q", "r"), call(methods.TxCommit()), call(methods.BasicCancel("none")))
    q.refuse()
    assert client.names() == []
    r.confirm(1)
    assert closed(client) == PARTIAL


def test_each_commit_has_answers_of_its_own(late: tuple[Broker, Client, LateQueue, LateQueue]) -> None:
    _, client, q, _ = late
    for _ in range(2):
        client.send(persistent("q"), call(methods.TxCommit()))
        assert client.names() == []
        q.confirm(1)
        assert client.names() == ["tx.commit-ok"]


@pytest.mark.parametrize("is_refused", [False, True], ids=["confirmed", "refused"])
def test_answers_for_a_connection_that_is_gone_are_ignored(
    late: tuple[Broker, Client, LateQueue, LateQueue], is_refused: bool
) -> None:
    broker, client, q, r = late
    client.send(persistent("q", "r"), call(methods.TxCommit()))
    client.connection.lost()
    if is_refused:
        q.refuse()
    q.confirm(3)
    r.confirm(1)
    assert (client.names(), broker.reports) == ([], [])


def test_a_queue_that_is_deleted_before_its_answer_does_not_fail_the_commit(
    late: tuple[Broker, Client, LateQueue, LateQueue],
) -> None:
    broker, client, q, _ = late
    client.send(persistent("q"), call(methods.TxCommit()))
    q.later = broker.turns.append
    broker.proposals.apply(DeleteQueue(vhost="/", name="q"))
    assert client.names() == []
    broker.turn()
    assert client.names() == ["tx.commit-ok"]


@pytest.mark.parametrize("keys", [("full",), ("full", "q"), ("q", "full")], ids=str)
def test_a_full_queue_that_rejects_publishes_fails_the_commit(keys: tuple[str, ...]) -> None:
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="full", arguments=FULL), methods.QueueDeclare(queue="q"))
    client.send(persistent("full", "q"))
    client.ask(methods.TxSelect(), methods.BasicGet(queue="q"))
    client.send(persistent(*keys), call(methods.BasicAck(1)), call(methods.TxCommit()))
    assert closed(client) == PARTIAL
    queues = broker.services.vhost.queues
    assert queues["full"].message_count == 1
    # What was not refused stays, and the settlements have taken effect.
    assert (queues["q"].message_count, queues["q"].acknowledged_count) == (keys.count("q"), 1)


def test_commit_ok_follows_the_sync_of_what_was_published() -> None:
    broker = DurableBroker(random.Random(1))
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q", durable=True), methods.TxSelect())
    client.send(persistent("q", "q"), call(methods.TxCommit()))
    assert client.names() == []
    broker.sync()
    assert client.names() == ["tx.commit-ok"]
    broker.crash(is_power_lost=True)
    assert broker.services.vhost.queues["q"].message_count == 2


def test_commit_ok_follows_the_sync_of_what_was_acknowledged() -> None:
    broker = DurableBroker(random.Random(1))
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q", durable=True))
    client.send(persistent("q"))
    broker.sync()
    client.ask(methods.TxSelect(), methods.BasicGet(queue="q"))
    client.send(call(methods.BasicAck(1)), call(methods.TxCommit()))
    assert client.names() == []
    broker.sync()
    assert client.names() == ["tx.commit-ok"]
    broker.crash(is_power_lost=True)
    assert broker.services.vhost.queues["q"].message_count == 0
