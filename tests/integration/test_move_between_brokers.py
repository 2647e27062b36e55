"""`warren move-from` between two Warrens: each step and its undo, in seconds and without RabbitMQ."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.federation import eventually
from tests.integration.moves import QUEUES, Brokers, declare_queues, once
from tests.patience import patient

from warren.cli.operator.move_from import drain, steps

COUNT = 60
STREAM = "clicks of today"


class RestartingBroker:
    """A Warren with a data directory that can be killed, and started again on the same ports."""

    def __init__(self, directory: Path) -> None:
        self._arguments = ["--data-dir", str(directory)]
        self.node = self._start()
        self._arguments += ["--port", str(self.node.port), "--management-port", str(self.node.ports["http"])]

    def _start(self) -> BrokerProcess:
        node = BrokerProcess(self._arguments, {})
        node.wait_ready()
        return node

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.node.process.kill()
        self.node.process.communicate()

    def start_again(self) -> None:
        """Start it after `kill`."""
        self.node = self._start()


@pytest.fixture
def restarting(tmp_path: Path) -> Iterator[RestartingBroker]:
    started = RestartingBroker(tmp_path / "new")
    yield started
    started.kill()


@pytest.fixture
def both(tmp_path: Path, restarting: RestartingBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Brokers]:
    # A Warren sends and counts at once.
    monkeypatch.setattr(drain, "STREAM_IDLE_S", 0.5)
    monkeypatch.setattr(steps, "STATISTICS_S", 0)
    with broker() as old:
        there = HttpClient(old)
        declare_queues(there)
        yield Brokers(old, there, restarting.node, tmp_path)
        there.close()


def test_each_step_is_shown_taken_and_undone_and_every_message_counted(both: Brokers) -> None:
    operator, before = both.operator, both.here.get("/definitions")
    for name in QUEUES:
        both.publish(both.old.port, name, 0, COUNT)
    assert "next: import" in operator.run("--dry-run")
    assert both.here.get("/definitions") == before
    assert "nothing was changed" in operator.run("import", status=2)
    operator.take("import", "federate")
    worked_off = both.read(both.new.port, "open carts", 10)
    operator.take("drain")
    assert both.messages("failed carts") == both.messages(STREAM) == COUNT
    # Publishers that have not moved: the step is refused, and the one before it taken again.
    both.publish(both.old.port, STREAM, COUNT, COUNT + 5)
    assert "run 'drain' again" in operator.run("disconnect", "--yes", status=1)
    operator.take("drain", "disconnect")
    assert both.here.get("/shovels") == both.here.get("/federation-links") == []
    for step in ("disconnect", "drain", "federate"):
        assert f"step {step}: undone" in operator.run("--undo", "--yes")
    assert both.messages("failed carts") == both.messages("open carts") == 0
    assert "step import: undone" in operator.run("--undo", "--yes")
    assert both.here.get("/definitions") == before
    assert both.read(both.old.port, "failed carts", COUNT) == once(range(COUNT))
    assert worked_off + both.read(both.old.port, "open carts", COUNT - 10) == once(range(COUNT))


def test_a_copy_of_a_stream_continues_where_it_was_when_warren_was_killed(
    both: Brokers, restarting: RestartingBroker
) -> None:
    operator = both.operator
    both.publish(both.old.port, STREAM, 0, COUNT)
    operator.take("import", "federate")
    # It waits for further messages when all are copied, and cannot end before Warren does.
    draining = subprocess.Popen(
        [sys.executable, "-m", "warren.cli.main", *operator.arguments, "drain", "--yes"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    eventually(lambda: both.messages(STREAM) == COUNT)
    restarting.kill()
    printed, _ = draining.communicate(timeout=patient(60))
    assert draining.returncode, printed
    restarting.start_again()
    both.here = HttpClient(restarting.node)
    # Otherwise it begins at the first message, and copies all of them again.
    assert eventually(lambda: "it has a single run" in str(both.here.get("/shovels")))
    both.publish(both.old.port, STREAM, COUNT, COUNT + 5)
    operator.take("drain", "disconnect")
    assert both.messages(STREAM) == COUNT + 5
    assert both.read(both.new.port, STREAM, COUNT + 5) == once(range(COUNT + 5))
