"""Sorting queues by a column gives the order of the values that their views show."""

from types import SimpleNamespace
from typing import cast

import pytest
from tests.unit.session.client import Broker, publication

from warren.flow.alarms import Alarms
from warren.management.listing import sort_value
from warren.management.managed_node import ManagedNode
from warren.management.queue_index import IndexedQueue, QueueIndex
from warren.management.views.queue_columns import EXACT, FIELDS, queue_columns
from warren.management.views.queues import queue_view
from warren.management.views.stats import SampleRanges
from warren.metadata.commands import CommandContext, SetPolicy
from warren.metrics.node_usage import NodeUsage
from warren.metrics.sampler import Sampler
from warren.wire import methods

TIME = 1_795_208_910_000
# Columns that are numbers here, and absent or empty in a view.
UNLIKE = {"idle_since", "policy", "operator_policy"}


class Node:
    """A broker with queues in every state, sampled once."""

    def __init__(self) -> None:
        self.broker = Broker()
        client = self.broker.client()
        client.ask(
            methods.QueueDeclare(queue="idle"),
            methods.QueueDeclare(queue="durable", durable=True, auto_delete=True),
            methods.QueueDeclare(queue="exclusive", exclusive=True),
            methods.QueueDeclare(queue="single", arguments={"x-single-active-consumer": True}),
            methods.QueueDeclare(queue="long", arguments={"x-max-length": 99, "x-queue-mode": "lazy"}),
            methods.BasicQos(prefetch_count=1),
            methods.BasicConsume(queue="single", consumer_tag="c"),
            methods.BasicConsume(queue="exclusive", consumer_tag="d", exclusive=True),
        )
        for _ in range(3):
            client.send(
                publication("long", b"abc", timestamp=77),
                publication("single", b"d"),
                publication("idle", b"e"),
            )
        client.ask(methods.BasicGet(queue="long"), methods.BasicGet(queue="idle", no_ack=True))
        metadata, server = self.broker.services.metadata, self.broker.server
        vhost = metadata.vhosts.by_name["/"]
        for name, pattern, is_operator, definition in (
            ("p", "^l", False, {"max-length": 9}),
            ("a", "^i", False, {"max-length": 3}),
            ("o", "e", True, {"expires": 500_000}),
        ):
            command = SetPolicy(
                vhost="/", name=name, pattern=pattern, definition=definition, is_operator=is_operator
            )
            metadata.apply(command, CommandContext(index=1, now=0))
        sampler = Sampler(server, metadata, NodeUsage(server, Alarms(server.block)).row)
        for _ in sampler.sample(TIME):
            pass
        self.order = QueueIndex(metadata)
        self.managed = cast(
            ManagedNode,
            SimpleNamespace(
                node_name="warren@here",
                cluster=None,
                metadata=metadata,
                server=server,
                sampler=sampler,
                queue_index=self.order,
            ),
        )
        self.named = self.order.of(vhost)


@pytest.fixture(scope="module")
def node() -> Node:
    return Node()


def in_order(named: list[IndexedQueue], keys: list[object]) -> list[str]:
    places = sorted(range(len(named)), key=keys.__getitem__)  # type: ignore[arg-type]
    return [named[place].record.name for place in places]


@pytest.mark.parametrize(
    "name",
    sorted(
        {
            *queue_columns(Node().managed, ""),
            "arguments",
            "arguments.x-max-length",
            "effective_policy_definition.max-length",
        }
    ),
)
def test_a_column_sorts_as_the_views_do(node: Node, name: str) -> None:
    assert name.partition(".")[0] in FIELDS
    asked = SampleRanges(time=node.managed.sampler.time, now=TIME)
    path = name.split(".")
    views = [queue_view(node.managed, named, asked) for named in node.named]
    keys = list(queue_columns(node.managed, name)[name](node.named))
    assert len(keys) == len(views)
    if name in UNLIKE:
        shown = [view.get(name) or "" for view in views]
        assert in_order(node.named, keys) == in_order(node.named, shown)
    elif path[0] == "message_stats" or name.endswith("_details"):
        # An event that never happened is absent from a view and zero in a column.
        numbers = [sort_value(view, path) for view in views]
        counted = [at for at, (kind, _) in enumerate(numbers) if kind == 0]
        assert [keys[at] for at in counted] == [numbers[at][1] for at in counted]
    else:
        assert in_order(node.named, keys) == in_order(node.named, [sort_value(view, path) for view in views])


@pytest.mark.parametrize("name", sorted(EXACT))
def test_a_direct_column_has_the_value_of_the_view(node: Node, name: str) -> None:
    asked = SampleRanges(time=node.managed.sampler.time, now=TIME)
    shown = [queue_view(node.managed, named, asked)[name] for named in node.named]
    assert list(queue_columns(node.managed, "")[name](node.named)) == shown


def test_queues_of_a_stopped_vhost_have_zero_messages(node: Node) -> None:
    elsewhere = IndexedQueue("gone", node.named[0].record)
    columns = queue_columns(node.managed, "")
    named = [elsewhere, *node.named]
    assert columns["messages"](named)[0] == 0
    assert columns["state"](named)[:2] == ["down", "running"]
    assert columns["messages"]([]) == []


def test_a_policy_set_later_is_taken_into_account(node: Node) -> None:
    before = queue_columns(node.managed, "")["policy"](node.named)
    command = SetPolicy(vhost="/", name="z", pattern="^durable$", definition={"expires": 7}, priority=9)
    node.managed.metadata.apply(command, CommandContext(index=1, now=0))
    after = queue_columns(node.managed, "")["policy"](node.named)
    assert [name for name in after if name not in before] == ["z"]
