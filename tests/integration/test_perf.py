"""Every scenario of `warren perf` runs against a started broker, and measures what it should."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.patience import patient
from tests.warren_process import WarrenProcess, running_warren, warren_environment

PROGRAM = "from warren.cli.main import main; main()"
# Few messages in flight, so that even a slow machine delivers them within the measured time.
SHORT = ["--duration", "0.8", "--warmup", "0.1", "--in-flight-max", "50"]
COMMAND_S_MAX = patient(60)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarrenProcess]:
    with running_warren(tmp_path_factory.mktemp("perf")) as started:
        yield started


def measure(broker: WarrenProcess, *arguments: str) -> dict[str, float]:
    """The figures that `warren perf` prints as JSON."""
    command = [sys.executable, "-c", PROGRAM, "perf", *arguments, "--json", "--quiet"]
    command += ["--uri", f"amqp://guest:guest@127.0.0.1:{broker.port}/%2f"]
    command += ["--broker-pid", str(broker.process.pid)]
    result = subprocess.run(
        command, env=warren_environment(), capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False
    )
    assert result.returncode == 0, result.stderr
    (found,) = json.loads(result.stdout)
    figures: dict[str, float] = found["figures"]
    return figures


@pytest.mark.parametrize(
    "arguments",
    [
        ["throughput"],
        ["throughput", "--queue-type", "quorum", "--confirm-window", "100", "--ack-every", "10"],
        ["throughput", "--size", "0"],
        ["throughput", "--size", "300000"],
        ["throughput", "--processes", "1"],
        ["throughput", "--producers", "3", "--consumers", "2", "--queues", "4", "--processes", "3"],
        ["throughput", "--persistent", "--confirm-window", "100", "--ack-every", "10", "--prefetch", "100"],
        ["throughput", "--ack-every", "1", "--prefetch", "100"],
        [
            "throughput",
            "--ack-every",
            "10",
            "--prefetch",
            "100",
            "--waiting",
            "500",
            "--in-flight-max",
            "1000",
        ],
        ["sync", "--producers", "5", "--consumers", "5", "--queues", "5"],
        ["fanout", "--queues", "3", "--consumers", "3"],
        ["topic", "--bindings", "50"],
        ["writes"],
    ],
    ids=" ".join,
)
def test_messages_are_published_and_consumed(broker: WarrenProcess, arguments: list[str]) -> None:
    figures = measure(broker, arguments[0], *SHORT, *arguments[1:])
    assert figures["consumed_per_s"] > 0
    assert figures["broker_cpu_us_per_message"] >= 0


def test_publishing_alone_is_confirmed(broker: WarrenProcess) -> None:
    figures = measure(broker, "throughput", "--consumers", "0", "--confirm-window", "100", *SHORT)
    assert figures["confirmed_per_s"] > 0


def test_latency_percentiles_are_in_order(broker: WarrenProcess) -> None:
    figures = measure(broker, "latency", "--rate", "500", "--confirm-window", "1", *SHORT)
    assert figures["published_per_s"] == pytest.approx(500, rel=0.2)
    for kind in ("delivery", "delivery_since_sent", "confirm"):
        percentiles = [figures[f"{kind}_{name}_us"] for name in ("p50", "p95", "p99", "p99.9", "max")]
        assert percentiles == sorted(percentiles)
        assert percentiles[0] > 0


def test_connections_are_opened_and_closed(broker: WarrenProcess) -> None:
    assert measure(broker, "connections", "--count", "20")["opened_per_s"] > 0
    assert measure(broker, "churn", "--duration", "0.3")["connections_per_s"] > 0


def test_queues_are_declared(broker: WarrenProcess) -> None:
    assert measure(broker, "declares", "--duration", "0.3")["queues_per_s"] > 0
    assert measure(broker, "declares", "--durable", "--duration", "0.3")["queues_per_s"] > 0
    assert measure(broker, "queues", "--count", "50")["declared_per_s"] > 0


def test_a_backlog_is_built_and_consumed(broker: WarrenProcess) -> None:
    assert measure(broker, "backlog", "--count", "2000")["published_per_s"] > 0


def test_an_unreachable_broker_is_one_clear_line() -> None:
    command = [sys.executable, "-c", PROGRAM, "perf", "throughput", "--uri", "amqp://127.0.0.1:1"]
    result = subprocess.run(
        command, env=warren_environment(), capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False
    )
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "refused" in result.stderr.lower()
