"""A Prometheus server from Debian, configured as the guide describes."""

import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pika
import pytest
from tests.integration.broker_process import BrokerProcess
from tests.patience import patient
from tests.warren_process import free_port

PROMETHEUS = shutil.which("prometheus")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "prometheus.md"
CONFIGURATION = re.compile(r"^In `prometheus\.yml`:\n\n```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
START_S = patient(30)
INTERVAL = "global: {scrape_interval: 1s}\n"

pytestmark = pytest.mark.skipif(PROMETHEUS is None, reason="Debian's prometheus is not installed")


@pytest.fixture(scope="module")
def server(node: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server."""
    folder = tmp_path_factory.mktemp("prometheus")
    found = CONFIGURATION.search(PAGE.read_text())
    assert found is not None
    page = found[1].replace("localhost:15692", f"127.0.0.1:{node.ports['http/prometheus']}")
    (folder / "prometheus.yml").write_text(INTERVAL + page)
    address = f"127.0.0.1:{free_port()}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(PROMETHEUS),
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://{address}"
    finally:
        process.kill()
        process.wait()


def asked(server: str, expression: str) -> list[Any]:
    """The result of a query as soon as there is one."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with suppress(OSError):
            with urllib.request.urlopen(f"{server}/api/v1/query?query={quote(expression)}") as response:
                results: list[Any] = json.load(response)["data"]["result"]
            if results:
                return results
        time.sleep(0.2)
    raise AssertionError(f"nothing for {expression!r} in {START_S} s")


def test_it_scrapes_the_queues_and_the_start_time_of_the_node(node: BrokerProcess, server: str) -> None:
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        for _ in range(3):
            channel.basic_publish("", "orders", b"one")
        assert asked(server, 'up{job="warren"} == 1')
        assert asked(server, "rabbitmq_queue_messages_ready == 3")
        assert asked(server, "time() - process_start_time_seconds < 600")


def test_the_join_of_the_dashboards_finds_the_name_of_the_cluster(server: str) -> None:
    joined = asked(
        server,
        "rabbitmq_connections * on(instance) group_left(rabbitmq_cluster, rabbitmq_node)"
        " rabbitmq_identity_info",
    )
    assert joined[0]["metric"]["rabbitmq_node"].startswith("warren@")
