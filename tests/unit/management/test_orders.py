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
        for named in found:
            assert (named.vhost, named.record) == ("/", vhost.topology.queues[named.record.name])
        return [named.record.name for named in found]

    assert names() == []
    client.ask(*(methods.QueueDeclare(queue=name) for name in "dbe"))
    assert names() == ["b", "d", "e"]
    client.ask(methods.QueueDelete(queue="d"), *(methods.QueueDeclare(queue=name) for name in "ca"))
    assert names() == ["a", "b", "c", "e"]
    client.ask(methods.QueueDelete(queue="a"), methods.QueueDeclare(queue="a", durable=True))
    assert names() == ["a", "b", "c", "e"]
    assert order.of(vhost) is order.of(vhost)


def test_what_is_handed_out_stays_as_it_is() -> None:
    broker = Broker()
    client, metadata = broker.client(), broker.domain.metadata
    order = QueueOrder(metadata)
    client.ask(methods.QueueDeclare(queue="a"))
    before = order.of(metadata.vhosts.by_name["/"])
    client.ask(methods.QueueDeclare(queue="b"), methods.QueueDelete(queue="a"))
    assert [named.record.name for named in before] == ["a"]


def test_queues_that_were_there_before_are_in_order_too() -> None:
    broker = Broker()
    client, metadata = broker.client(), broker.domain.metadata
    client.ask(*(methods.QueueDeclare(queue=name) for name in "cab"))
    names = [named.record.name for named in QueueOrder(metadata).of(metadata.vhosts.by_name["/"])]
    assert names == ["a", "b", "c"]


def test_many_come_and_go_across_blocks() -> None:
    broker = Broker()
    client, metadata = broker.client(), broker.domain.metadata
    order = QueueOrder(metadata)
    vhost = metadata.vhosts.by_name["/"]
    names = [f"q{at * 7919 % 2_500:04}" for at in range(2_500)]
    client.ask(*(methods.QueueDeclare(queue=name) for name in names))
    assert [named.record.name for named in order.of(vhost)] == sorted(names)
    gone = {*names[::3], *(f"q{at:04}" for at in range(700))}
    client.ask(*(methods.QueueDelete(queue=name) for name in gone))
    assert [named.record.name for named in order.of(vhost)] == sorted(set(names) - gone)


def test_the_live_queue_is_found_also_after_a_restart() -> None:
    broker = Broker()
    client, metadata = broker.client(), broker.domain.metadata
    client.ask(methods.QueueDeclare(queue="a"))
    (named,) = QueueOrder(metadata).of(metadata.vhosts.by_name["/"])
    queues = broker.domain.vhost.queues
    assert named.live({}) is None
    assert named.live(queues) is queues["a"]
    assert named.live({}) is None
    assert named.live(dict(queues)) is queues["a"]
