"""Federated exchanges of two Warrens and a RabbitMQ 3.10.8 in cycles: how often each message arrives where.

The expected numbers were measured with three virtual hosts of RabbitMQ 3.10.8.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import broker
from tests.integration.federation import channel_at, eventually, managed_rabbitmq, ready_count
from tests.rabbitmq import is_installed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.rabbitmq,
    pytest.mark.skipif(not is_installed(), reason="no rabbitmq-server here"),
]

Counts = list[list[int]]
# Of each link the downstream and the upstream; 1 is RabbitMQ.
RING = [(0, 2), (1, 0), (2, 1)]
BOTH_WAYS = [(0, 1), (1, 0)]
CHAIN = [(0, 1), (1, 0), (1, 2), (2, 1)]
MESH = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
EVERYWHERE_ONCE = [[1, 1, 1], [1, 1, 1], [1, 1, 1]]


class Site(NamedTuple):
    port: int
    client: HttpClient


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Site]]:
    with ExitStack() as stack:
        nodes = [stack.enter_context(broker()) for _ in range(2)]
        server, managed = stack.enter_context(managed_rabbitmq(tmp_path_factory.mktemp("rabbitmq")))
        found = [Site(node.port, HttpClient(node)) for node in nodes]
        found.insert(1, Site(server.port, managed))
        for number, site in enumerate(found):
            site.client.status("PUT /cluster-name", {"name": f"c{number}"})
        yield found
        for site in found:
            site.client.close()


def link_all(sites: list[Site], vhost: str, links: list[tuple[int, int]], max_hops: int) -> None:
    """Make a virtual host everywhere, with an exchange, a queue that is bound to it, and the links."""
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    for site in sites:
        assert site.client.status(f"PUT /vhosts/{vhost}", {}) == 201
        site.client.status(f"PUT /permissions/{vhost}/guest", everything)
        with channel_at(site.port, vhost) as channel:
            channel.exchange_declare("cycle", "fanout", durable=True)
            channel.queue_declare("q", durable=True)
            channel.queue_bind("q", "cycle")
    for downstream, upstream in links:
        uri = f"amqp://guest:guest@127.0.0.1:{sites[upstream].port}/{vhost}"
        value = {"uri": uri, "max-hops": max_hops, "reconnect-delay": 1}
        path = f"PUT /parameters/federation-upstream/{vhost}/from{upstream}"
        assert sites[downstream].client.status(path, {"value": value}) == 201
    definition = {"federation-upstream-set": "all"}
    policy = {"pattern": "^cycle$", "definition": definition, "apply-to": "exchanges"}
    for site in sites:
        assert site.client.status(f"PUT /policies/{vhost}/p", policy) == 201


def bindings(sites: list[Site], vhost: str) -> list[int]:
    """How many bindings each exchange has to internal exchanges of links that are running."""
    return [
        sum(
            binding["destination"].startswith("federation: ")
            for binding in site.client.get(f"/exchanges/{vhost}/cycle/bindings/source")
        )
        for site in sites
    ]


def are_running(sites: list[Site], vhost: str, count: int) -> bool:
    states = [link["status"] for site in sites for link in site.client.get(f"/federation-links/{vhost}")]
    return states == ["running"] * count


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("links", "max_hops", "bound", "expected"),
    [
        (RING, 1, [1, 1, 1], [[1, 1, 0], [0, 1, 1], [1, 0, 1]]),
        (RING, 2, [2, 2, 2], EVERYWHERE_ONCE),
        (RING, 3, [2, 2, 2], EVERYWHERE_ONCE),
        (BOTH_WAYS, 1, [1, 1, 0], [[1, 1, 0], [1, 1, 0], [0, 0, 1]]),
        (BOTH_WAYS, 2, [1, 1, 0], [[1, 1, 0], [1, 1, 0], [0, 0, 1]]),
        (CHAIN, 1, [1, 2, 1], [[1, 1, 0], [1, 1, 1], [0, 1, 1]]),
        (CHAIN, 2, [2, 2, 2], EVERYWHERE_ONCE),
        (MESH, 1, [2, 2, 2], EVERYWHERE_ONCE),
        # Two ways from each to each, as with three RabbitMQs: the reason why max-hops is 1 by default.
        (MESH, 2, [4, 4, 4], [[1, 2, 2], [2, 1, 2], [2, 2, 1]]),
    ],
)
def test_a_message_goes_round_no_cycle(
    sites: list[Site], links: list[tuple[int, int]], max_hops: int, bound: list[int], expected: Counts
) -> None:
    vhost = f"v{len(links)}-{max_hops}"
    link_all(sites, vhost, links, max_hops)
    eventually(lambda: are_running(sites, vhost, len(links)))
    eventually(lambda: bindings(sites, vhost) == bound)
    with ExitStack() as stack:
        channels = [stack.enter_context(channel_at(site.port, vhost)) for site in sites]
        for origin, channel in enumerate(channels):
            for _ in range(10):
                channel.basic_publish("cycle", "", b"%d" % origin)
            sums = [10 * sum(row[site] for row in expected[: origin + 1]) for site in range(3)]
            eventually(lambda sums=sums: [ready_count(one, "q") for one in channels] == sums)
        # What circulates would arrive again and again: more than the links need for the messages above.
        for channel in channels:
            channel.connection.sleep(1)
        assert [ready_count(one, "q") for one in channels] == sums
    for site in sites:
        assert site.client.status(f"DELETE /vhosts/{vhost}") == 204
