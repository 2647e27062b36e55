"""How a link to an upstream connects and reconnects."""

import pytest

from warren.federation.upstream_settings import link_settings
from warren.metadata.federation_definition import Upstream


@pytest.mark.parametrize(("delay_s", "pause_ms"), [(0, None), (1, 1000), (600_000, 600_000_000)])
def test_a_link_without_a_delay_tries_again_as_the_back_off_says(delay_s: int, pause_ms: int | None) -> None:
    upstream = Upstream(name="up", uris=("amqp://a",), reconnect_delay_s=delay_s)
    assert link_settings(upstream, "p", vhost="/").reconnect_delay_ms == pause_ms
