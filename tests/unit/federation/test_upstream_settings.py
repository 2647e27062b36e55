"""How a link to an upstream connects and reconnects."""

import pytest

from warren.federation.upstream_settings import link_settings, targets_of
from warren.metadata.federation_definition import Upstream


@pytest.mark.parametrize(("delay_s", "pause_ms"), [(0, None), (1, 1000), (600_000, 600_000_000)])
def test_a_link_without_a_delay_tries_again_as_the_back_off_says(delay_s: int, pause_ms: int | None) -> None:
    upstream = Upstream(name="up", uris=("amqp://a",), reconnect_delay_s=delay_s)
    assert link_settings(upstream, "p", vhost="/").reconnect_delay_ms == pause_ms


@pytest.mark.parametrize(
    ("uri", "vhost"),
    [
        # Measured with RabbitMQ 3.10.8: without a path, the virtual host of the federated object.
        ("amqp://h:5672", "down"),
        ("amqp://guest:guest@h", "down"),
        ("amqp://h?heartbeat=10", "down"),
        ("amqp://", "down"),
        ("amqp:///up", "up"),
        ("amqp://h/up", "up"),
        ("amqp://h/%2f", "/"),
        ("amqps://h:5671", "down"),
        # The one without a name, which hardly anybody has.
        ("amqp://h/", ""),
        ("amqp:///", ""),
    ],
)
def test_the_virtual_host_at_the_upstream_is_that_of_the_address_or_the_same_as_here(
    uri: str, vhost: str
) -> None:
    (target,) = targets_of(Upstream(name="up", uris=(uri,)), "down")
    assert target.vhost == vhost
