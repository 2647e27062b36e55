"""A transient queue is declared anew when its absent home is down, and is there when its home returns."""

import pytest
from tests.unit.cluster.two_nodes import VHOST, TwoNodes
from tests.unit.session.client import Client

from warren.limits_cluster import HOME_ABSENCE_MS_MAX
from warren.metadata.commands import INTERNAL_USER, DeleteQueue
from warren.wire import methods
from warren.wire.method import Method

QUEUE = "b.queue"
DECLARE = methods.QueueDeclare(queue=QUEUE)
BIND = methods.QueueBind(queue=QUEUE, exchange="amq.fanout")


def asked(cluster: TwoNodes, client: Client, *calls: Method) -> list[str]:
    """The names of the answers."""
    return [one.method.name for one in cluster.ask(client, *calls)]  # type: ignore[attr-defined]


@pytest.fixture
def cluster() -> TwoNodes:
    return TwoNodes()


@pytest.fixture
def client(cluster: TwoNodes) -> Client:
    """A client of the other node, which has declared the queue."""
    client = cluster.client(cluster.a)
    assert asked(cluster, client, DECLARE) == ["queue.declare-ok"]
    return client


def go_down(cluster: TwoNodes) -> None:
    """Have the members agree that the queue has ended with its home."""
    cluster.apply(DeleteQueue(vhost=VHOST, name=QUEUE), INTERNAL_USER, cluster.a)
    cluster.run()


@pytest.mark.parametrize("is_asked_before", [True, False])
def test_a_declaration_waits_until_the_members_agree_that_the_home_is_down(
    cluster: TwoNodes, client: Client, *, is_asked_before: bool
) -> None:
    if not is_asked_before:
        cluster.lose_at(cluster.a)
    assert client.ask(DECLARE, BIND) == []
    cluster.lose_at(cluster.a)
    cluster.run()
    assert client.names() == []
    go_down(cluster)
    assert client.names() == ["queue.declare-ok", "queue.bind-ok"]
    cluster.wait(HOME_ABSENCE_MS_MAX)
    assert client.names() == []


def test_a_declaration_finds_the_queue_of_a_home_that_returns(cluster: TwoNodes, client: Client) -> None:
    cluster.lose()
    assert asked(cluster, client, DECLARE) == []
    cluster.begin()
    cluster.run()
    assert client.names() == ["queue.declare-ok"]


def test_a_declaration_does_not_wait_for_ever(cluster: TwoNodes, client: Client) -> None:
    cluster.lose()
    assert asked(cluster, client, DECLARE) == []
    cluster.wait(HOME_ABSENCE_MS_MAX)
    assert client.names() == ["channel.close"]


def test_the_channel_of_a_client_that_waits_may_end(cluster: TwoNodes, client: Client) -> None:
    cluster.lose()
    assert asked(cluster, client, DECLARE) == []
    client.connection.lost()
    cluster.run()
    go_down(cluster)
    cluster.wait(HOME_ABSENCE_MS_MAX)
    assert not cluster.a.reports
