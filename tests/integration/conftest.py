"""A broker with a data directory of its own for all tests of a module, and guest who asks it over HTTP."""

from collections.abc import Iterator

import pytest
from tests.integration.api import Client
from tests.integration.process import Broker, broker


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker("--data-dir", str(tmp_path_factory.mktemp("data"))) as node:
        yield node


@pytest.fixture(scope="module")
def client(node: Broker) -> Iterator[Client]:
    client = Client(node)
    yield client
    client.close()
