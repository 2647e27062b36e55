"""A cluster of three processes for one test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.warren_cluster import WarrenCluster, warren_cluster


@pytest.fixture
def quiet_clients(caplog: pytest.LogCaptureFixture) -> None:
    """Lost connections are what is tested: pika does not report each."""
    for name in ("pika", "asyncio"):
        caplog.set_level("CRITICAL", name)


@pytest.fixture
def cluster(tmp_path: Path, quiet_clients: None) -> Iterator[WarrenCluster]:
    """Three nodes, formed, and ended in the end."""
    with warren_cluster(tmp_path) as formed:
        yield formed
