"""Fixtures: RabbitMQ and Warren, side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests import rabbitmq
from tests.conformance.client import TranscriptContext
from tests.conformance.definitions import VHOSTS, definitions
from tests.oracle.quorum_brokers import QuorumBrokers
from tests.warren_process import running_warren

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rabbitmq` and `--warren` name running brokers; `--scripts` is the number of scripts to
    generate.
    """
    group = parser.getgroup("oracle")
    for name in ("--rabbitmq", "--warren"):
        group.addoption(name, help="an amqp:// URI with the definitions of tests/conformance loaded")
    group.addoption("--record", action="store_true", help="fill in the answers of sections on quorum queues")
    group.addoption("--scripts", type=int, default=100, help="how many scripts to generate")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what RabbitMQ is asked to `make test-long`; the gate compares with recorded answers."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("rabbitmq"):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def brokers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[TranscriptContext]]:
    """RabbitMQ and Warren, with equal users and vhosts."""
    folder = tmp_path_factory.mktemp("oracle")
    document = folder / "definitions.json"
    document.write_text(json.dumps(definitions()))
    theirs, ours = request.config.getoption("--rabbitmq"), request.config.getoption("--warren")
    if not theirs and not rabbitmq.is_installed():
        pytest.skip("rabbitmq-server is not installed: nothing to compare with")
    with ExitStack() as stack:
        if theirs:
            place = urlsplit(theirs)
            their_port = place.port or 5672
        else:
            server = rabbitmq.RabbitMQ(tmp_path_factory.mktemp("rabbitmq"))
            stack.callback(server.remove)
            stack.callback(server.stop)
            server.start()
            server.control("import_definitions", str(document))
            their_port = server.port
        if ours:
            our_port = urlsplit(ours).port or 5672
        else:
            settings = {"load_definitions": str(document)}
            our_port = stack.enter_context(running_warren(folder, settings)).port
        yield [
            TranscriptContext("127.0.0.1", their_port, VHOSTS[-1], is_rabbitmq=True),
            TranscriptContext("127.0.0.1", our_port, VHOSTS[-2]),
        ]


@pytest.fixture(scope="session")
def quorum_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuorumBrokers]:
    """RabbitMQ and Warren with their HTTP APIs, for the tests of quorum queues; started when asked for."""
    with ExitStack() as stack:
        yield QuorumBrokers(stack, tmp_path_factory.mktemp)
