"""A queue that is declared again while its deletion is being agreed on is another one afterwards."""

import pytest
from tests.unit.cluster.two_nodes import TwoNodes
from tests.unit.session.client import Client

from warren.wire import methods
from warren.wire.method import Method

QUEUE = "b.queue"
DECLARE = methods.QueueDeclare(queue=QUEUE, auto_delete=True)
BIND = methods.QueueBind(queue=QUEUE, exchange="amq.fanout")
PASSIVE = methods.QueueDeclare(queue=QUEUE, passive=True)
CONSUME = methods.BasicConsume(queue=QUEUE, consumer_tag="t")
CANCEL = methods.BasicCancel(consumer_tag="t")


def asked(cluster: TwoNodes, client: Client, *calls: Method) -> list[str]:
    """The names of the answers."""
    return [one.method.name for one in cluster.ask(client, *calls)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("node", ["a", "b"])
@pytest.mark.parametrize("is_prompt", [True, False])
def test_a_queue_without_its_last_consumer_is_declared_anew(node: str, *, is_prompt: bool) -> None:
    cluster = TwoNodes()
    client = cluster.client(cluster.a if node == "a" else cluster.b)
    asked(cluster, client, DECLARE, BIND, CONSUME)
    cluster.is_holding, cluster.is_prompt = True, is_prompt
    assert asked(cluster, client, CANCEL, DECLARE, BIND) == ["basic.cancel-ok"]
    cluster.release()
    assert client.names() == ["queue.declare-ok", "queue.bind-ok"]
    for each in cluster.nodes:
        cluster.catch_up(each)
    assert asked(cluster, client, PASSIVE) == ["queue.declare-ok"]


def test_a_connection_is_closed_by_an_error_when_its_exclusive_queues_are_deleted() -> None:
    cluster = TwoNodes()
    client = cluster.client(cluster.a)
    exclusive = methods.QueueDeclare(queue="a.queue", exclusive=True)
    assert asked(cluster, client, exclusive) == ["queue.declare-ok"]
    cluster.is_holding = True
    assert asked(cluster, client, methods.BasicQos(prefetch_size=1)) == []
    cluster.release()
    assert client.names() == ["connection.close"]
    assert asked(cluster, cluster.client(cluster.b), exclusive) == ["queue.declare-ok"]


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_queue_that_could_not_be_deleted_is_still_there(node: str) -> None:
    cluster = TwoNodes()
    client = cluster.client(cluster.a if node == "a" else cluster.b)
    asked(cluster, client, DECLARE, CONSUME)
    cluster.is_holding = True
    assert asked(cluster, client, CANCEL, DECLARE) == ["basic.cancel-ok"]
    cluster.has_majority = False
    cluster.release()
    assert client.names() == ["queue.declare-ok"]
