"""How a link to an upstream connects, forwards and reconnects: what exchanges and queues have in common."""

from dataclasses import replace

from warren.client.rabbitmq_uri import parse_target, uri_without_credentials
from warren.client.uri import Target
from warren.federation.link_names import connection_name
from warren.metadata.federation_definition import Upstream
from warren.relay.endpoint import Endpoint
from warren.relay.forwarder import AckMode
from warren.relay.link_run import LinkSettings


def targets_of(upstream: Upstream, vhost: str) -> dict[Target, str]:
    """The addresses of `upstream` for a link of `vhost`, each as its URI has it, without credentials.

    A URI without a path means the vhost of the same name at the upstream (RabbitMQ 3.10.8).
    """
    found: dict[Target, str] = {}
    for uri in upstream.uris:
        shown = uri_without_credentials(uri)
        target = parse_target(uri)
        if "/" not in shown.partition("://")[2]:
            target = replace(target, vhost=vhost)
        found.setdefault(target, shown)
    return found


def link_settings(upstream: Upstream, policy: str, *, vhost: str) -> LinkSettings:
    """The settings of a link of `vhost` that the policy `policy` asks for."""
    name = connection_name(upstream.name, policy)
    targets = targets_of(upstream, vhost)
    here = Target(host="", port=0, user="", password="", vhost=vhost, is_tls=False)
    return LinkSettings(
        source=Endpoint(targets=tuple(targets), uris=tuple(targets.values()), name=name, user=upstream.user),
        destination=Endpoint(targets=(here,), name=name, user=upstream.user),
        ack_mode=AckMode(upstream.ack_mode),
        prefetch_count=upstream.prefetch_count,
        # Unlike a shovel, a link never gives up: without a delay it pauses as long as the back-off says.
        reconnect_delay_ms=upstream.reconnect_delay_s * 1000 or None,
    )
