"""Where the requests of each route are handled."""

import pytest

from warren.management.placement import Place
from warren.management.routes import ROUTES, HttpRoute

# Requests about one queue, or about the replicas on one node, that every node answers or proposes by itself.
OF_THE_METADATA = {
    "GET /queues/{vhost}/{queue}", "PUT /queues/{vhost}/{queue}", "GET /queues/{vhost}/{queue}/bindings",
    "GET /warren/queues/{vhost}/{queue}/leases", "GET /warren/queues/{vhost}/{queue}/pause",
    "PUT /warren/queues/{vhost}/{queue}/pause", "DELETE /warren/queues/{vhost}/{queue}/pause",
    "GET /warren/federation/{vhost}/queue/{queue}", "POST /queues/quorum/{vhost}/{queue}/replicas/add",
    "DELETE /queues/quorum/{vhost}/{queue}/replicas/delete", "POST /queues/quorum/replicas/on/{node}/grow",
    "DELETE /queues/quorum/replicas/on/{node}/shrink",
}  # fmt: skip
# Requests about one queue of which each node has a part.
OF_ALL_NODES = {"GET /queues/quorum/{vhost}/{queue}/status"}
PLACES = {"{queue}": Place.QUEUE, "{lease}": Place.LEASE, "{node}": Place.NODE}


@pytest.mark.parametrize(("segment", "place"), PLACES.items())
def test_what_only_one_node_has_is_handled_there(segment: str, place: Place) -> None:
    found = [
        (f"{method} {route.path}", route.place_of(method))
        for route, method in methods()
        if segment in route.path
    ]
    assert found
    for line, actual in found:
        expected = Place.HERE if line in OF_THE_METADATA else Place.ALL if line in OF_ALL_NODES else place
        assert actual is expected, line


@pytest.mark.parametrize("segment", ["{connection}", "{channel}", "{job}"])
def test_what_a_node_alone_has_heard_of_is_looked_for_at_all(segment: str) -> None:
    found = [route.place_of(method) for route, method in methods() if segment in route.path]
    assert found
    assert set(found) == {Place.HOLDER}


def methods() -> list[tuple[HttpRoute, str]]:
    return [(route, method) for route in ROUTES for method in route.handlers]
