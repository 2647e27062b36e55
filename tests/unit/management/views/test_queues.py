"""The views of queues, consumers, channels and connections have the fields of RabbitMQ 3.10.8."""

from types import SimpleNamespace
from typing import cast

import pytest
from tests.unit.session.client import Broker, Client, call, publication

from warren.flow.alarms import Alarms
from warren.management.group_status import HomeGroups
from warren.management.managed_node import ManagedNode
from warren.management.queue_index import IndexedQueue, QueueIndex
from warren.management.views.channels import channel_view
from warren.management.views.connections import connection_view
from warren.management.views.consumers import consumer_view, consumers_of
from warren.management.views.exchanges import exchange_view
from warren.management.views.nodes import memory_view, tables_view
from warren.management.views.queues import declared_queue_view, queue_view, whole_queue_view
from warren.management.views.stats import SampleRanges
from warren.metadata.commands import DeclareQueue, SetPolicy
from warren.metrics.node_usage import NodeUsage
from warren.metrics.sampler import Sampler
from warren.queues.classic import ClassicQueue
from warren.queues.replication_status import ReplicationStatus
from warren.wire import methods
from warren.wire.table import Table

ASKED = SampleRanges(time=0, now=1_795_208_910_000)
QUEUE = (
    "arguments auto_delete backing_queue_status consumer_capacity consumer_utilisation consumers durable "
    "effective_policy_definition exclusive exclusive_consumer_tag garbage_collection head_message_timestamp "
    "memory message_bytes message_bytes_paged_out message_bytes_persistent message_bytes_ram "
    "message_bytes_ready message_bytes_unacknowledged message_stats messages messages_details "
    "messages_paged_out messages_persistent messages_ram messages_ready messages_ready_details "
    "messages_ready_ram messages_unacknowledged messages_unacknowledged_details messages_unacknowledged_ram "
    "name node oldest_ready_at operator_policy policy recoverable_slaves reductions reductions_details "
    "single_active_consumer_tag state type vhost"
)
CHANNEL = (
    "acks_uncommitted confirm connection_details consumer_count garbage_collection global_prefetch_count "
    "idle_since message_stats messages_unacknowledged messages_uncommitted messages_unconfirmed name node "
    "number pending_raft_commands prefetch_count reductions reductions_details state transactional user "
    "user_who_performed_action vhost"
)
CONNECTION = (
    "auth_mechanism channel_max channels client_properties connected_at frame_max garbage_collection host "
    "name node peer_cert_issuer peer_cert_subject peer_cert_validity peer_host peer_port port protocol "
    "recv_cnt recv_oct recv_oct_details reductions reductions_details send_cnt send_oct send_oct_details "
    "send_pend ssl ssl_cipher ssl_hash ssl_key_exchange ssl_protocol state timeout type user "
    "user_who_performed_action vhost"
)


class Node:
    """A broker with a queue and two consumers, one of which has an unacknowledged message."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.client: Client = self.broker.client()
        self.client.ask(
            methods.QueueDeclare(queue="q", arguments={"x-single-active-consumer": True}),
            methods.BasicQos(prefetch_count=1),
            methods.BasicConsume(queue="q", consumer_tag="c", arguments={"x-priority": 2}),
            methods.BasicConsume(queue="q", consumer_tag="d"),
        )
        self.client.send(publication("q", b"abc"), publication("q", b"de", timestamp=77))
        metadata, server = self.broker.services.metadata, self.broker.server
        alarms = Alarms(server.block)
        sampler = Sampler(server, metadata, NodeUsage(server, alarms).row)
        self.managed = cast(
            ManagedNode,
            SimpleNamespace(
                node_name="warren@here",
                cluster=None,
                is_own=lambda home: True,
                is_up=lambda home: True,
                home_of=lambda record: record.home,
                name_of=lambda home: "warren@here",
                groups=HomeGroups(metadata.members, server.vhost_services, lambda home: True),
                metadata=metadata,
                server=server,
                alarms=alarms,
                sampler=sampler,
                queue_index=QueueIndex(metadata),
            ),
        )
        self.named = IndexedQueue("/", metadata.vhosts.by_name["/"].topology.queues["q"])
        (self.connection,) = server.connections
        self.opened = self.connection, self.connection.channels[1]


@pytest.fixture
def node() -> Node:
    return Node()


def test_a_queue_has_the_fields_of_rabbitmq(node: Node) -> None:
    facts = queue_view(node.managed, node.named, ASKED)
    assert sorted(facts) == QUEUE.split()
    assert (facts["messages"], facts["messages_ready"], facts["message_bytes"]) == (2, 1, 5)
    assert (facts["head_message_timestamp"], facts["single_active_consumer_tag"]) == (77, "c")
    assert facts["arguments"] == {"x-single-active-consumer": True}


def test_a_quorum_queue_has_the_fields_of_rabbitmq_and_its_replicas(node: Node) -> None:
    arguments = {"x-queue-type": "quorum", "x-single-active-consumer": True}
    node.broker.proposals.apply(DeclareQueue(vhost="/", name="r", durable=True, arguments=arguments))
    queues = node.broker.services.vhost.queues
    queues["r"] = ReplicatedQueue("r", "/", node.broker.services.vhost, queues["r"].settings)
    named = IndexedQueue("/", node.managed.metadata.vhosts.by_name["/"].topology.queues["r"])
    facts = queue_view(node.managed, named, ASKED)
    here = "warren@here"
    of_rabbitmq = (
        "leader members message_bytes_dlx messages_dlx online open_files single_active_consumer_ctag"
    )
    of_warren = "commit_index delivery_limit messages_delayed messages_quarantined replicas term"
    of_quorum_queues = set(f"{of_rabbitmq} {of_warren}".split())
    assert facts.keys() - set(QUEUE.split()) == of_quorum_queues
    assert not facts.keys() & {"messages_by_priority", "oldest_ready_at"}
    assert (facts["type"], facts["leader"], facts["members"], facts["online"]) == (
        "quorum", here, [here], [here]
    )  # fmt: skip
    assert (facts["messages_dlx"], facts["message_bytes_dlx"], facts["open_files"]) == (2, 30, {here: 0})
    assert (facts["term"], facts["commit_index"], facts["messages_quarantined"]) == (3, 8, 1)
    assert (facts["delivery_limit"], facts["single_active_consumer_ctag"]) == (20, None)
    assert facts["replicas"] == [
        {"node": here, "role": "leader", "match": 10, "durable": 9, "state": "untrusted", "reason": "damage"}
    ]


class ReplicatedQueue(ClassicQueue):
    """A queue that says what a replicated queue would."""

    def replication_status(self) -> ReplicationStatus:
        return ReplicationStatus(
            role="leader",
            is_voter=True,
            term=3,
            last_index=10,
            written_index=9,
            commit_index=8,
            applied_index=7,
            snapshot_index=2,
            untrusted="damage",
            quarantined_count=1,
            dead_letter_count=2,
            dead_letter_bytes=30,
        )


def test_a_quorum_queue_has_the_tag_of_its_active_consumer_under_the_names_of_all_versions(
    node: Node,
) -> None:
    arguments: Table = {"x-queue-type": "quorum", "x-single-active-consumer": True}
    node.client.send(
        call(methods.QueueDeclare(queue="r", durable=True, arguments=arguments)),
        call(methods.BasicConsume(queue="r", consumer_tag="first")),
        call(methods.BasicConsume(queue="r", consumer_tag="second")),
    )
    topology = node.managed.metadata.vhosts.by_name["/"].topology
    facts = queue_view(node.managed, IndexedQueue("/", topology.queues["r"]), ASKED)
    assert facts["single_active_consumer_tag"] == facts["single_active_consumer_ctag"] == "first"


def test_the_view_of_one_queue_contains_its_consumers(node: Node) -> None:
    facts = whole_queue_view(node.managed, node.named, ASKED, consumers_of(node.opened))
    more = {"consumer_details", "deliveries", "incoming", "oldest_unacknowledged_at"}
    assert facts.keys() - set(QUEUE.split()) == more


def test_without_statistics_a_queue_has_its_declared_properties(node: Node) -> None:
    facts = declared_queue_view(node.managed, node.named)
    assert " ".join(sorted(facts)) == "arguments auto_delete durable exclusive name node state type vhost"
    assert facts["state"] == "live"
    with_totals = declared_queue_view(node.managed, node.named, has_totals=True)
    assert with_totals["state"] == "running"
    assert with_totals["messages"] == 2


def test_a_queue_shows_its_policies_and_their_combined_definition(node: Node) -> None:
    vhost = node.managed.metadata.vhosts.by_name["/"]
    for name, is_operator, definition in (("p", False, {"max-length": 9}), ("o", True, {"expires": 5})):
        vhost.set_policy(
            SetPolicy(
                vhost="/",
                name=name,
                pattern="q",
                definition=definition,
                priority=0,
                apply_to="queues",
                is_operator=is_operator,
            )
        )
    facts = queue_view(node.managed, node.named, ASKED)
    assert (facts["policy"], facts["operator_policy"]) == ("p", "o")
    assert facts["effective_policy_definition"] == {"expires": 5, "max-length": 9}


def test_a_consumer_shows_whether_it_is_active(node: Node) -> None:
    active, waiting = (consumer_view(node.managed, one) for one in consumers_of(node.opened))
    assert (active["activity_status"], active["active"]) == ("single_active", True)
    assert (waiting["activity_status"], waiting["active"]) == ("waiting", False)
    assert (active["arguments"], active["prefetch_count"]) == ({"x-priority": 2}, 1)


def test_channels_and_connections_have_the_fields_of_rabbitmq(node: Node) -> None:
    facts = channel_view(node.managed, node.opened, ASKED, is_alone=False)
    facts.setdefault("idle_since", "")
    assert sorted(facts) == CHANNEL.split()
    assert (facts["messages_unacknowledged"], facts["consumer_count"], facts["prefetch_count"]) == (1, 2, 1)
    shown = connection_view(node.managed, node.connection, ASKED, is_alone=False)
    assert sorted(shown) == CONNECTION.split()
    assert shown["ssl_cipher"] is None
    assert connection_view(node.managed, node.connection, ASKED, is_alone=True)["ssl_cipher"] == ""


def test_an_exchange_has_counters_after_its_first_message(node: Node) -> None:
    exchanges = node.managed.metadata.vhosts.by_name["/"].topology.exchanges
    used = exchange_view(node.managed, ("/", exchanges[""]), ASKED, is_alone=True)
    assert used["message_stats"]["publish_in"] == 2  # type: ignore[index]
    assert "message_stats" not in exchange_view(
        node.managed, ("/", exchanges["amq.topic"]), ASKED, is_alone=False
    )


def test_the_parts_of_memory_add_up_to_the_total(node: Node) -> None:
    facts = memory_view(node.managed, is_relative=False)
    parts = sum(part for part in facts.values() if isinstance(part, int))
    assert facts["total"] == {"erlang": parts, "rss": parts, "allocated": parts}
    assert tables_view(node.managed, "no such", is_relative=False) == "no_tables"
    tables = tables_view(node.managed, "rabbit_", is_relative=False)
    assert isinstance(tables, dict)
    assert tables["total"] == sum(size for name, size in tables.items() if name != "total")
