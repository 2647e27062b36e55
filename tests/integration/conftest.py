"""What many tests share: a broker with a data directory, guest who asks it over HTTP, a disk that fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.api import Client
from tests.integration.faults import Faults, NoCompiler
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


@pytest.fixture
def faults(tmp_path: Path) -> Faults:
    """The disk's, in brokers that are started with its environment."""
    try:
        return Faults(tmp_path)
    except NoCompiler as missing:
        pytest.skip(str(missing))
