"""Warren and RabbitMQ behave equally in the same steps, as far as a client can observe."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from tests.conformance.client import TranscriptContext
from tests.oracle.differences import is_known
from tests.oracle.player import Player
from tests.oracle.scripts import scripts

SCRIPTS = sorted(Path(__file__).with_name("scripts").glob("*.txt"))
# Messages of two queues to one channel may come in either order: a difference counts if it occurs every time.
ATTEMPTS = 3


@pytest.mark.rabbitmq
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_that_once_differed_does_not_differ_any_more(
    path: Path, brokers: list[TranscriptContext]
) -> None:
    lines = path.read_text().splitlines()
    found = difference([line for line in lines if line.startswith("C")], brokers)
    assert found is None, found


@pytest.mark.rabbitmq
@pytest.mark.timeout(3600)
def test_generated_scripts_do_not_differ(
    brokers: list[TranscriptContext], request: pytest.FixtureRequest
) -> None:
    @settings(
        max_examples=request.config.getoption("--scripts"),
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(scripts())
    def compare(script: list[str]) -> None:
        found = difference(script, brokers)
        if found is not None:
            note("\n".join(script))
        assert found is None, found

    compare()


def difference(script: list[str], brokers: list[TranscriptContext]) -> str | None:
    """The first step after which the brokers differ, and how; None if they agree in one of the attempts."""
    found = None
    for _ in range(ATTEMPTS):
        with ThreadPoolExecutor(len(brokers)) as pool:
            theirs, ours = pool.map(lambda context: Player(context).play(script), brokers)
        found = _compare(script, theirs, ours)
        if found is None:
            return None
    return found


def _compare(script: list[str], theirs: list[list[str]], ours: list[list[str]]) -> str | None:
    for place, (their_view, our_view) in enumerate(zip(theirs, ours, strict=True)):
        if their_view != our_view:
            if is_known(script[: place + 1], their_view, our_view):
                return None
            seen = ["  RabbitMQ:", *_indented(their_view), "  Warren:", *_indented(our_view)]
            return "\n".join([*script[: place + 1], *seen])
    return None


def _indented(view: list[str]) -> list[str]:
    return [f"    {seen}" for seen in view]
