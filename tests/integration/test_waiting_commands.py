"""Commands that wait: for a broker that starts later, and no longer than they are told."""

import socket
import time
from collections.abc import Iterator
from threading import Thread

import pytest
from click.testing import CliRunner, Result
from tests.integration.broker_process import broker
from tests.warren_process import free_port

from warren.cli.main import main
from warren.cli.operator.failures import UNREACHABLE
from warren.cli.operator.options import REQUEST_TIMEOUT_S

WAITING = (["nodes", "await"], ["cluster", "await", "2"], ["cluster", "await-quorum"])


def asks(port: int, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--uri", f"http://127.0.0.1:{port}"], prog_name="warren")


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port whose connections are accepted and never answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("command", WAITING, ids=" ".join)
@pytest.mark.parametrize("option", ["--timeout", "--within", "-t"])
def test_a_broker_that_never_answers_is_waited_for_as_long_as_the_option_says(
    command: list[str], option: str, silent_port: int
) -> None:
    began = time.monotonic()
    result = asks(silent_port, *command, option, "1.5")
    assert 1.5 <= time.monotonic() - began < REQUEST_TIMEOUT_S / 4
    assert result.exit_code == UNREACHABLE
    assert result.stderr.startswith("warren: timed out after 1.5 s: ")


def test_the_option_may_be_before_the_command(silent_port: int) -> None:
    began = time.monotonic()
    uri = f"http://127.0.0.1:{silent_port}"
    result = CliRunner().invoke(main, ["-t", "1", "--uri", uri, "await_online_nodes", "2"])
    assert time.monotonic() - began < REQUEST_TIMEOUT_S / 4
    assert "timed out after 1 s: " in result.stderr


def test_a_broker_that_starts_later_is_waited_for() -> None:
    port = free_port()
    found: list[Result] = []
    waiting = Thread(target=lambda: found.append(asks(port, "nodes", "await", "--timeout", "60")))
    waiting.start()
    _after_the_first_attempt(port)
    with broker("--management-port", str(port)):
        waiting.join(60)
    assert [result.exit_code for result in found] == [0], found[0].output
    assert found[0].stdout == "the broker is running\n"


def _after_the_first_attempt(port: int) -> None:
    """Accept the first request on the port, and close its connection without an answer."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.accept()[0].close()
