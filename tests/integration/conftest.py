"""What many tests share: a broker with a data directory, guest who asks it over HTTP, a disk that fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.faults import Faults, NoCompiler


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker("--data-dir", str(tmp_path_factory.mktemp("data"))) as node:
        yield node


@pytest.fixture(scope="module")
def client(node: BrokerProcess) -> Iterator[HttpClient]:
    client = HttpClient(node)
    yield client
    client.close()


@pytest.fixture
def faults(tmp_path: Path) -> Faults:
    """The disk's, in brokers that are started with its environment."""
    try:
        return Faults(tmp_path)
    except NoCompiler as missing:
        pytest.skip(str(missing))
