"""Queues are listed by name, whenever they come and go."""

from tests.unit.session.client import Broker

from warren.management.orders import QueueOrder
from warren.wire import methods


def test_queues_are_in_order_whatever_came_and_went() -> None:
    broker = Broker()
    client, metadata = broker.client(), broker.domain.metadata
    order = QueueOrder(metadata)
    vhost = metadata.vhosts.by_name["/"]

    def names() -> list[str]:
        found = order.of(vhost)
        assert all(named == ("/", vhost.topology.queues[named[1].name]) for named in found)
        return [named[1].name for named in found]

    assert names() == []
    client.ask(*(methods.QueueDeclare(queue=name) for name in "dbe"))
    assert names() == ["b", "d", "e"]
    client.ask(methods.QueueDelete(queue="d"), *(methods.QueueDeclare(queue=name) for name in "ca"))
    assert names() == ["a", "b", "c", "e"]
    client.ask(methods.QueueDelete(queue="a"), methods.QueueDeclare(queue="a", durable=True))
    assert names() == ["a", "b", "c", "e"]
    assert order.of(vhost) is order.of(vhost)
