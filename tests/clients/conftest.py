"""The broker of these tests: the one named in WARREN_CLIENTS_BROKER, or a Warren started for them."""

import os
from collections.abc import Iterator

import pytest
from tests.clients.harness import brokers


@pytest.fixture(scope="session")
def broker_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URI of a broker's default vhost."""
    named = os.environ.get("WARREN_CLIENTS_BROKER")
    if named:
        yield named
        return
    with brokers.started_warren(tmp_path_factory.mktemp("warren") / "data") as broker:
        yield broker.uri
