"""Metrics of the links to the other nodes of the cluster, under the names that RabbitMQ has from Erlang."""

from collections.abc import Iterator

from warren.management.prometheus.exposition import GAUGE, MetricFamily, labels
from warren.management.prometheus.objects import VhostFilter
from warren.management.prometheus.rows import MetricRow, Scrape
from warren.management.prometheus.sources import MetricSource
from warren.management.views.nodes import peers_of

_PENDING, _UP = 1, 3


def _peers(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The state and the traffic of each link."""
    for peer in peers_of(scrape.node):
        yield (
            labels(peer=peer.name),
            (
                _UP if peer.is_up else _PENDING,
                peer.bytes_received,
                peer.frames_received,
                peer.bytes_sent,
                peer.frames_sent,
            ),
        )


PEERS = MetricSource(
    "",
    (
        MetricFamily(
            "erlang_vm_dist_node_state",
            GAUGE,
            "The current state of the link to another node: 3 if it is up, else 1",
        ),
        MetricFamily("erlang_vm_dist_recv_bytes", GAUGE, "Number of bytes received from another node"),
        MetricFamily("erlang_vm_dist_recv_cnt", GAUGE, "Number of frames received from another node"),
        MetricFamily("erlang_vm_dist_send_bytes", GAUGE, "Number of bytes sent to another node"),
        MetricFamily("erlang_vm_dist_send_cnt", GAUGE, "Number of frames sent to another node"),
    ),
    _peers,
)
