"""The names of what a link declares, as a RabbitMQ 3.10.8 of the cluster `c` gave them."""

import pytest

from warren.federation.link_names import connection_name, internal_exchange_name, upstream_queue_name


@pytest.mark.parametrize(
    ("upstream", "downstream", "name"),
    [
        (("/", "x"), ("/", "x"), "federation: x -> c"),
        (("/", "x"), ("/", "y"), "federation: x -> c:y"),
        (("v", "x"), ("/", "x"), "federation: x -> c:/:x"),
        (("v", "x"), ("w", "y"), "federation: x -> c:w:y"),
    ],
)
def test_the_queue_names_of_the_downstream_what_differs_from_the_upstream(
    upstream: tuple[str, str], downstream: tuple[str, str], name: str
) -> None:
    assert upstream_queue_name(upstream, downstream, "c") == name


def test_the_exchange_has_the_name_of_the_queue_and_a_suffix() -> None:
    assert internal_exchange_name("federation: x -> c", "B") == "federation: x -> c B"


def test_a_connection_names_the_upstream_and_the_policy() -> None:
    assert connection_name("u", "p") == "Federation link (upstream: u, policy: p)"
