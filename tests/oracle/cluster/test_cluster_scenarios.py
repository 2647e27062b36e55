"""A cluster answers as RabbitMQ 3.10.8 did when the scenarios in `cases/` were recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import rabbitmq
from tests.long_params import long_params
from tests.oracle.cluster.cluster_brokers import ClusterBrokers
from tests.oracle.cluster.performance import Performance
from tests.oracle.cluster.rabbitmq_cluster import RabbitMQCluster
from tests.oracle.cluster.scenario import Scenario, agrees

SCENARIOS = {
    path.stem: Scenario.read(path) for path in sorted(Path(__file__).with_name("cases").glob("*.txt"))
}
NAMES = long_params(*SCENARIOS)


class Clusters:
    """A cluster that is formed when it is asked for, again after one was given up."""

    def __init__(self, new_folder: Callable[[str], Path]) -> None:
        self._new_folder = new_folder
        self._running: RabbitMQCluster | None = None

    def get(self) -> ClusterBrokers:
        """The running cluster."""
        if self._running is None:
            self._running = RabbitMQCluster(self._new_folder("cluster"))
        return self._running

    def give_up(self) -> None:
        """End the cluster."""
        if self._running is not None:
            self._running.close()
        self._running = None


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """Three nodes of RabbitMQ, if it is installed."""
    if not rabbitmq.is_installed():
        pytest.skip("rabbitmq-server is not installed")
    running = Clusters(tmp_path_factory.mktemp)
    yield running
    running.give_up()


@pytest.mark.rabbitmq
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_rabbitmq_answers_as_the_scenario_says(
    name: str, clusters: Clusters, request: pytest.FixtureRequest
) -> None:
    scenario = SCENARIOS[name]
    brokers = clusters.get()
    performance = Performance(brokers)
    is_recording = request.config.getoption("--record")
    try:
        for section in scenario.sections:
            (performance.record if is_recording else performance.play)(section)
        performance.finish()
        performance.leave()
        brokers.restore()
    except BaseException:
        # Whatever state it is in, the next scenario begins with another one.
        performance.leave()
        clusters.give_up()
        raise
    finally:
        if is_recording:
            scenario.write()


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_section_has_a_sentence_and_every_answer_is_recorded(name: str) -> None:
    for section in SCENARIOS[name].sections:
        assert section.title.endswith(".")
        answers = [step for step in section.steps if step.who in "SA"]
        assert all(step.text and not step.text.startswith("?") for step in answers), section.title


def test_a_written_scenario_is_the_one_that_was_read(tmp_path: Path) -> None:
    for scenario in SCENARIOS.values():
        text = scenario.path.read_text()
        copy = Scenario(tmp_path / scenario.path.name, scenario.introduction, scenario.sections)
        copy.write()
        assert copy.path.read_text() == text


@pytest.mark.parametrize(
    ("expected", "found", "is_equal"),
    [
        ("down", "down", True),
        ("do*n", "down", True),
        ("down", "running", False),
        ("*", {"any": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1, "...": "*"}, {"a": 1, "b": 2}, True),
        ({"a": 1, "...": "*"}, {"b": 2}, False),
        (["one", "..."], ["one", "two", "three"], True),
        (["one", "..."], ["two"], False),
        (["one"], ["one", "two"], False),
        (True, 1, False),
    ],
)
def test_an_answer_agrees_if_all_that_is_named_is_equal(expected: Any, found: Any, is_equal: bool) -> None:
    assert agrees(expected, found) is is_equal
