"""What passes between the clients of a node and the queue that begins, or ends, to lead on this node."""

from tests.unit.cluster.replicated.test_replicated_queue import (
    QUEUE,
    client_of,
    consume,
    deliveries,
    publish,
    ready,
)
from tests.unit.cluster.two_nodes import TwoNodes
from tests.unit.queues.samples import sent
from tests.unit.session.client import call, publication

from warren.cluster.replicated.numbered_publishes import NumberedPublish
from warren.cluster.replicated.replicated_queue import ReplicatedQueue
from warren.metadata.leases import LeaseState
from warren.model.confirm_listener import ConfirmListener
from warren.model.coroutine_driver import drive
from warren.queues.capabilities import taking_queue
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.vhost.lease_service import LeaseRequest
from warren.wire import methods


def stop_leading(cluster: TwoNodes) -> None:
    """The queue at b leads no more."""
    leader = cluster.b.queue(QUEUE)
    assert isinstance(leader, QuorumQueue)
    assert leader.group is not None
    leader.stopped_leading(leader.group.proposals.end())


def lead_again(cluster: TwoNodes, queue: ReplicatedQueue, number: int = 2) -> QuorumQueue:
    """It leads again, in the next term; `number` is the last one that is committed of what it published."""
    successor = queue.replica
    assert successor is not None
    assert successor.group is not None
    successor.group.proposals.open(number)
    successor.opened()
    cluster.run()
    return successor


def test_messages_of_a_lease_are_kept_from_others_when_another_leader_has_the_queue(
    cluster: TwoNodes,
) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one", b"two")
    lease_service = cluster.b.services.lease_service
    wanted = LeaseRequest(id="1", user="u", key="k", messages=1, byte_count=100, ttl_ms=1 << 40)
    queue = taking_queue(cluster.b.queue(QUEUE))
    assert queue is not None
    drive(lease_service.grant(queue, wanted))
    cluster.run()
    assert [*lease_service.held] == ["1"]
    front = cluster.b.services.vhost.queues[QUEUE]
    assert isinstance(front, ReplicatedQueue)
    stop_leading(cluster)
    assert not lease_service.held
    successor = lead_again(cluster, front)
    assert lease_service.held["1"].queue is successor
    assert consume(cluster, client) == [b"two"]
    drive(lease_service.end("1", LeaseState.REQUEUED, "u"))
    cluster.run()
    assert deliveries(client) == [(b"one", 2, True)]


def test_what_a_leader_on_this_node_had_is_kept_when_it_leads_no_more(cluster: TwoNodes) -> None:
    client_of(cluster)
    client = cluster.client(cluster.b)
    client.ask(methods.ConfirmSelect())
    publish(cluster, client, b"one", b"two")
    assert consume(cluster, client, prefetch=1) == [b"one"]
    client.send(publication(QUEUE, b"three"))
    queue = cluster.b.services.vhost.queues[QUEUE]
    assert isinstance(queue, ReplicatedQueue)
    stop_leading(cluster)
    traffic = queue.traffic
    assert [each.message.body for each in traffic.publishes.numbered()] == [b"three"]
    assert (traffic.publishes.first, traffic.publishes.last) == (3, 3)
    [(place, delivery)] = traffic.unsettled.held.items()
    assert (place, delivery.position, delivery.queue) == (0, 0, queue)
    client.send(call(methods.BasicAck(1)), publication(QUEUE, b"four"))
    assert (traffic.unsettled.held, traffic.unsettled.count) == ({}, 1)
    assert traffic.publishes.last == 4
    assert client.hear() == []
    successor = lead_again(cluster, queue)
    assert successor.group is not None
    assert successor.last_number(successor.group.proposals.enqueuer) == 4
    assert [consumer.tag for consumer in successor.consumers()] == ["t"]
    assert traffic.publishes.count == 0
    received = client.hear()
    assert [one.body for one in received if isinstance(one.method, methods.BasicDeliver)] == [b"two"]
    assert methods.BasicAck(4, True) in [one.method for one in received]


class PublishingAgain(ConfirmListener):
    """Publishes to a queue when it is answered, as dead letters do that have waited."""

    def __init__(self, queue: ReplicatedQueue) -> None:
        self._queue = queue

    def expect(self, sequence: int) -> None:
        """Nothing to do."""

    def done(self, first: int, last: int) -> None:
        self._queue.publish(sent(b"behind"), None, 0)

    def refused(self, sequence: int) -> None:
        raise AssertionError(sequence)


def test_what_is_published_when_a_repeated_publish_is_answered_replaces_nothing(cluster: TwoNodes) -> None:
    client_of(cluster)
    client = cluster.client(cluster.b)
    publish(cluster, client, b"one", b"two")
    queue = cluster.b.services.vhost.queues[QUEUE]
    assert isinstance(queue, ReplicatedQueue)
    stop_leading(cluster)
    # The second one was committed by a leader that has not answered.
    listener = PublishingAgain(queue)
    queue.traffic.publishes.add_placed(2, [NumberedPublish(sent(b"two"), listener, 1)])
    queue.publish(sent(b"three"), None, 0)
    lead_again(cluster, queue)
    assert ready(cluster) == [b"one", b"two", b"three", b"behind"]


def test_a_message_that_dies_when_the_next_leader_begins_replaces_nothing(cluster: TwoNodes) -> None:
    client_of(cluster, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": QUEUE})
    client = cluster.client(cluster.b)
    client.ask(methods.ConfirmSelect())
    publish(cluster, client, b"one")
    assert consume(cluster, client, prefetch=1) == [b"one"]
    queue = cluster.b.services.vhost.queues[QUEUE]
    assert isinstance(queue, ReplicatedQueue)
    stop_leading(cluster)
    client.send(
        call(methods.BasicCancel("t")), call(methods.BasicReject(1, False)), publication(QUEUE, b"two")
    )
    lead_again(cluster, queue, number=1)
    assert sorted(ready(cluster)) == [b"one", b"two"]
