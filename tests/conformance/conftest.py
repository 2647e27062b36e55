"""The broker that transcripts are played against, and the options to choose it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest
from tests.conformance import transcript
from tests.conformance.broker import BrokerAddress, start_broker
from tests.conformance.client import TranscriptContext
from tests.conformance.definitions import VHOSTS
from tests.conformance.transcript import Transcript


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--broker` selects the broker, `--rewrite` records its answers."""
    group = parser.getgroup("conformance")
    group.addoption(
        "--broker",
        default="warren",
        help="warren or rabbitmq, started here; or the URI of a RabbitMQ that runs; or warren=URI",
    )
    group.addoption("--rewrite", action="store_true", help="rewrite the S> lines of the chosen transcripts")


@pytest.fixture(scope="session")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerAddress]:
    """The broker under test, for the session."""
    with start_broker(request.config.getoption("--broker"), tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest, broker: BrokerAddress) -> Iterator[dict[Path, Future[None]]]:
    """All selected transcripts are played concurrently, with a thread for each vhost."""
    chosen = [
        item.callspec.params["path"] for item in request.session.items if "results" in item.fixturenames
    ]
    vhosts: Queue[str] = Queue()
    for vhost in VHOSTS:
        vhosts.put(vhost)
    is_rewriting = request.config.getoption("--rewrite")

    def run(path: Path) -> None:
        vhost = vhosts.get()
        try:
            context = TranscriptContext(broker.host, broker.port, vhost, broker.is_rabbitmq, broker.outside)
            script = Transcript.read(path)
            if is_rewriting:
                path.write_text(transcript.rewrite(script, context))
            else:
                transcript.play(script, context)
        finally:
            vhosts.put(vhost)

    with ThreadPoolExecutor(len(VHOSTS)) as pool:
        # Those that wait longest begin first.
        chosen.sort(key=lambda path: "after" not in path.read_text())
        yield {
            path: pool.submit(run, path)
            for path in chosen
            if Transcript.read(path).applies(broker.is_rabbitmq)
        }
