"""Health checks of a node whose cluster has alarms, with the answers of RabbitMQ 3.10.8."""

import json
from types import SimpleNamespace
from typing import cast

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from warren.flow.alarms import Alarms, Resource, ResourceLevel
from warren.management.api import health
from warren.management.managed_node import ManagedNode
from warren.management.views.overview import cluster_alarms_of

REQUEST = make_mocked_request("GET", "/")


def answer(response: web.Response) -> tuple[int, object]:
    assert isinstance(response.body, bytes)
    facts = json.loads(response.body)
    return response.status, facts.get("alarms", facts)


def test_the_check_of_the_cluster_names_alarms_of_all_nodes_and_the_local_one_those_of_this_node() -> None:
    alarms = Alarms(lambda _: None)
    node = cast(ManagedNode, SimpleNamespace(node_name="a@here", alarms=alarms))
    passed = (200, {"status": "ok"})
    assert answer(health.alarms(REQUEST, node)) == passed
    alarms.tell("b@here", (Resource.MEMORY,))
    of_b = {"node": "b@here", "resource": "memory"}
    assert answer(health.alarms(REQUEST, node)) == (503, [of_b])
    assert answer(health.local_alarms(REQUEST, node)) == passed
    alarms.update(ResourceLevel(Resource.DISK, 1, 2))
    of_a = {"node": "a@here", "resource": "disk space"}
    assert answer(health.local_alarms(REQUEST, node)) == (503, [of_a])
    assert answer(health.alarms(REQUEST, node)) == (503, [of_a, of_b])
    assert cluster_alarms_of(node) == [of_a, of_b]
