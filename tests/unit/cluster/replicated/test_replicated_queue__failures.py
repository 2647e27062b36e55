"""A message of another node that breaks the replica of a quorum queue ends that queue, on this node alone."""

from tests.unit.cluster.replicated.test_replicated_queue import QUEUE, QUORUM, client_of, names, publish
from tests.unit.cluster.two_nodes import TwoNodes
from tests.unit.session.client import publication

from warren.cluster.groups.quorum_replica import QuorumReplica
from warren.queues.failed_queue import FailedQueue
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.replication.raft.raft_messages import Entry, MessageKind, RaftMessage
from warren.wire import methods

OTHER = "b.other"


def test_a_message_that_breaks_a_replica_ends_its_queue_and_no_other(cluster: TwoNodes) -> None:
    noted: list[str] = []
    store_failures: list[Exception] = []
    cluster.b.services.contain_failures(lambda text, error: noted.append(text), store_failures.append)
    client = client_of(cluster)
    cluster.ask(client, methods.QueueDeclare(queue=OTHER, durable=True, arguments=QUORUM))
    assert publish(cluster, client, b"one") == ["basic.ack"]
    leader = cluster.b.queue(QUEUE)
    assert isinstance(leader, QuorumQueue)
    group = leader.group
    assert group is not None
    assert cluster.b.stores is not None
    raft = group.driver.replica
    last = raft.log.last_index()
    broken = RaftMessage(
        MessageKind.APPEND, raft.id, 2, raft.hard_state.term + 1, index=last, log_term=raft.log.term(last),
        entries=(Entry(raft.hard_state.term + 1, last + 1, payload=object(), size=1),),
    )  # fmt: skip
    QuorumReplica(group, cluster.b.stores.persistent).step(broken)
    cluster.run()
    vhost = cluster.b.services.vhost
    assert isinstance(vhost.queues[QUEUE], FailedQueue)
    assert noted == [f"queue '{QUEUE}' in vhost '/' has failed and is down"]
    assert vhost.failure_count == 1
    assert not store_failures
    client.send(publication(OTHER, b"two"))
    cluster.run()
    assert names(client) == ["basic.ack"]
