"""Shared fixtures: a broker with a data directory, an HTTP client of guest, and a disk with faults."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.faults import Faults, NoCompiler
from tests.warren_process import free_port

QUEUE_TYPES = ("classic", "quorum")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    # Otherwise a node that joins a cluster listens on a port with a fixed number.
    cluster_port = ("--cluster-port", str(free_port()))
    with broker("--data-dir", str(tmp_path_factory.mktemp("data")), *cluster_port) as node:
        yield node


@pytest.fixture(scope="module")
def client(node: BrokerProcess) -> Iterator[HttpClient]:
    client = HttpClient(node)
    yield client
    client.close()


@pytest.fixture(params=QUEUE_TYPES)
def default_queue_type(request: pytest.FixtureRequest, client: HttpClient) -> Iterator[str]:
    """Each type, as that of the durable queues that the test declares in the vhost / without a type."""
    assert client.status("PUT /vhosts/%2F", {"default_queue_type": request.param}) == 204
    yield request.param
    client.ask("PUT /vhosts/%2F", {"default_queue_type": "classic"})


@pytest.fixture
def faults(tmp_path: Path) -> Faults:
    """Disk faults in brokers that are started with its environment."""
    try:
        return Faults(tmp_path)
    except NoCompiler as missing:
        pytest.skip(str(missing))
