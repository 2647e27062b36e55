"""Queues of other nodes, by the home of their records, and the data connections behind them."""

import pytest
from tests.unit.cluster.link_nodes import Network
from tests.unit.session.client import Broker

from warren.cluster.groups.group_traffic import GroupTraffic, GroupTrafficDependencies
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink
from warren.cluster.node_traffic import TrafficDependencies
from warren.cluster.remote_codec import PART, TO_HOME
from warren.cluster.remote_queues import RemoteQueues, Replication
from warren.errors import NotFound
from warren.limits_cluster import CLUSTER_KEPT_SIZE_MAX
from warren.metadata.incarnation import Incarnation
from warren.metadata.proposals import LocalProposals
from warren.metadata.records import QueueRecord
from warren.model.arguments import QueueSettings
from warren.model.coroutine_driver import drive
from warren.queues.quorum.group import GroupMembership
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.queues.vhost_queue import VhostQueue

DATA = LinkPurpose.DATA


def no_replica(incarnation: Incarnation, membership: GroupMembership) -> QuorumQueue:
    """Never called: no queue here is a quorum queue."""
    raise AssertionError(membership)


class Node:
    """A broker, whose queues may be those of others."""

    def __init__(self, node: int) -> None:
        self.links: dict[int, NodeLink] = {}
        self.broker = Broker()
        self.queues = RemoteQueues(
            Incarnation(node, 1),
            self.links,
            TrafficDependencies(
                metadata=self.broker.services.metadata,
                later=self.broker.turns.append,
                after=lambda _ms, _action: None,
                turn=self.broker.clock.turn,
                vhost=lambda name: self.broker.services.vhost,
                report=self.broker.reports.append,
            ),
            Replication(
                traffic=GroupTraffic(
                    GroupTrafficDependencies(
                        node=node,
                        links=self.links,
                        later=self.broker.turns.append,
                        after=lambda _ms, _action: None,
                        report=self.broker.reports.append,
                    )
                ),
                random_bytes=bytes,
                proposals=LocalProposals(self.broker.services.metadata, lambda: 0),
            ),
        )

    def queue(self, home: int) -> VhostQueue | None:
        record = QueueRecord("q", True, False, None, {}, "", number=1, home=home)
        return self.queues.queue(self.broker.services.vhost, record, QueueSettings(), no_replica)

    def run(self) -> None:
        while self.broker.turns:
            self.broker.turn()


@pytest.fixture
def network() -> Network:
    return Network()


def test_a_queue_is_remote_if_its_home_is_another_node() -> None:
    node = Node(2)
    assert node.queue(2) is None
    assert node.queue(1) is not None


def test_a_queue_of_a_node_that_is_no_member_is_down() -> None:
    queue = Node(2).queue(7)
    assert queue is not None
    errors: list[str] = []

    async def inspect() -> None:
        try:
            await queue.inspect()
        except NotFound as error:
            errors.append(str(error))

    drive(inspect())
    assert errors == ["home node 'node 7' of durable queue 'q' in vhost '/' is down or inaccessible"]


def test_a_node_that_lags_behind_loses_its_session_in_a_turn_of_its_own(network: Network) -> None:
    _, _, to_two, _ = network.pair()
    node = Node(1)
    node.links[2] = to_two
    node.queues.session_began(to_two)
    network.is_down = True
    network.silence()
    channel = node.queues._traffic[2]
    for _ in range(CLUSTER_KEPT_SIZE_MAX >> 16):
        channel.send(TO_HOME, bytes(1 << 16))
    channel.send(TO_HOME, bytes(1 << 16))
    channel.send(TO_HOME, bytes(1 << 16))
    assert to_two.lost_count == 0
    node.run()
    assert to_two.session_number(DATA) == 1


def test_a_payload_that_is_larger_than_a_link_keeps_passes_in_parts_and_in_order(network: Network) -> None:
    one, two, to_two, _ = network.pair()
    node = Node(1)
    node.links[2] = to_two
    node.queues.session_began(to_two)
    one.on_writable = node.queues.writable
    channel = node.queues._traffic[2]
    body = b"0123456789abcdef" * (CLUSTER_KEPT_SIZE_MAX // 10)
    channel.send(TO_HOME, body)
    assert not channel.is_writable
    channel.send(TO_HOME, b"behind it")
    assert to_two.kept_size < CLUSTER_KEPT_SIZE_MAX
    network.run()
    node.run()
    assert to_two.session_number(DATA) == 0
    assert channel.is_writable
    kinds, bodies = zip(*[told[1:] for told in two.told if told[0] is DATA], strict=True)  # type: ignore[index]
    assert set(kinds[:-2]) == {PART}
    assert kinds[-2:] == (TO_HOME, TO_HOME)
    assert bodies[-1] == b"behind it"
    assert b"".join(bodies[:-1]) == body
