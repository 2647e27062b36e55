"""Three processes in one cluster answer as the recorded scenarios of RabbitMQ 3.10.8 say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.scenario_differences import SectionChange, changed, read_differences
from tests.cluster.warren_cluster import WarrenCluster
from tests.long_params import long_params
from tests.oracle.cluster.cluster_brokers import CommandResult
from tests.oracle.cluster.performance import Performance
from tests.oracle.cluster.scenario import Scenario

CASES = Path(__file__).parent.with_name("oracle") / "cluster" / "cases"
DIFFERENCES = Path(__file__).with_name("differences")
NAMES = sorted(path.stem for path in CASES.glob("*.txt"))
# Those that wait for silences and minorities, or repeat commands.
SLOW = ("alarms_and_health", "home_suspended", "minority_paused", "partition_ignored")
# As RabbitMQ's when the scenarios were recorded.
CLUSTER_NAME = "oracle"


class ComparedCluster(WarrenCluster):
    """A cluster whose answers are compared with those of RabbitMQ."""

    def form(self) -> None:
        super().form()
        first = next(iter(self.nodes))
        assert self.ask(first, "PUT", "/api/cluster-name", {"name": CLUSTER_NAME})[0] == 204

    def ask(self, node: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The answer without `message`, by which Warren adds to an error what people want to know."""
        status, found = super().ask(node, method, path, body)
        if status >= 400 and isinstance(found, dict):
            found.pop("message", None)
        return status, found

    def control(self, node: str, *command: str) -> CommandResult:
        """The answer to a command, in which the member to join is named by where it listens."""
        named = self.nodes.get(command[1].partition("@")[0]) if len(command) > 1 else None
        if named is not None and command[0] == "join_cluster":
            command = command[0], f"127.0.0.1:{named.advertised}"
        elif named is not None and command[0] == "forget_cluster_node" and named.process is None:
            # If it led, another one is elected before it counts as down.
            self.wait(lambda: not self.sees(self.nodes[node], named), f"{named.name} is down")
        return super().control(node, *command)


class FormedCluster:
    """A cluster that is formed when it is asked for, again after one was given up."""

    def __init__(self, new_folder: Callable[[str], Path]) -> None:
        self._new_folder = new_folder
        self._running: ComparedCluster | None = None

    def get(self) -> ComparedCluster:
        """The running cluster."""
        if self._running is None:
            self._running = ComparedCluster(self._new_folder("cluster"))
            self._running.form()
        return self._running

    def give_up(self) -> None:
        """End the cluster."""
        if self._running is not None:
            self._running.close()
        self._running = None


@pytest.fixture(scope="module")
def formed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FormedCluster]:
    running = FormedCluster(tmp_path_factory.mktemp)
    yield running
    running.give_up()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [*(name for name in NAMES if name not in SLOW), *long_params(*SLOW)])
def test_warren_answers_as_the_scenario_says_but_for_the_differences(
    name: str, formed: FormedCluster
) -> None:
    scenario = changed(Scenario.read(CASES / f"{name}.txt"), read_differences(DIFFERENCES / f"{name}.txt"))
    cluster = formed.get()
    performance = Performance(cluster)
    try:
        for section in scenario.sections:
            performance.play(section)
        performance.finish()
        performance.leave()
        cluster.restore()
    except BaseException:
        # Whatever state it is in, the next scenario begins with another one.
        performance.leave()
        formed.give_up()
        raise


@pytest.mark.parametrize("name", NAMES)
def test_each_difference_has_a_reason(name: str) -> None:
    for change in read_differences(DIFFERENCES / f"{name}.txt"):
        assert change.reason.endswith("."), change
        assert change.old != change.new, change


def test_the_differences_of_a_scenario_are_those_of_one_that_exists() -> None:
    assert {path.stem for path in DIFFERENCES.glob("*.txt")} <= {*NAMES}


@pytest.mark.parametrize("old", [["N> kill nobody"], ["S> 1 basic.qos-ok", "N> kill b"]])
def test_a_difference_that_applies_to_nothing_is_an_error(old: list[str]) -> None:
    scenario = Scenario.read(CASES / "home_killed.txt")
    change = SectionChange(scenario.sections[1].title, "Because.", old, ["N> stop b"])
    with pytest.raises(ValueError, match="has 0 places"):
        changed(scenario, [change])
    with pytest.raises(ValueError, match="has no sections"):
        changed(scenario, [SectionChange("Nothing.", "Because.", old)])
