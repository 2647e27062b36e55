"""Resources used by the node, as the kernel reports them."""

import os

from tests.unit.session.client import Broker

from warren.flow.alarms import Alarms, Resource, ResourceLevel
from warren.metrics.node_usage import NODE_COLUMNS, NodeUsage, descriptors_max, descriptors_used


def test_the_figures_are_those_of_this_process() -> None:
    broker = Broker()
    broker.client()
    alarms = Alarms(broker.server.block)
    alarms.update(ResourceLevel(Resource.MEMORY, 1000, 2000))
    node_usage = NodeUsage(broker.server, alarms)
    shown = dict(zip(NODE_COLUMNS, node_usage.row(), strict=True))
    assert (shown["mem_used"], shown["disk_free"], shown["sockets_used"]) == (1000, 0, 1)
    assert shown["proc_used"] >= 1
    assert 0 < shown["fd_used"] <= descriptors_max()


def test_an_open_file_uses_a_descriptor() -> None:
    before = descriptors_used()
    ends = os.pipe()
    assert descriptors_used() >= before + 2
    for end in ends:
        os.close(end)
    assert descriptors_used() == before
