"""RabbitMQ's tools, when something is wrong: Warren's end as RabbitMQ's do, and print what scripts look for.

The files in `tools` have what RabbitMQ 3.10.8 and 4.3.6 answer. To ask one of them, and to keep its answers:

    python -m pytest tests/oracle/test_tools.py -k rabbitmq --record
"""

from __future__ import annotations

import itertools
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests import rabbitmq
from tests.integration.broker_process import broker
from tests.oracle.tool_cases import WARREN, Case, normalised, read, words_of
from tests.oracle.tool_programs import ABSENT_NODE, asked_of_warren
from tests.oracle.tool_recording import asked, record_with, running_rabbitmq

FILES = sorted(Path(__file__).with_name("tools").glob("*.txt"))


@dataclass(frozen=True)
class Warren:
    """The address of the API of a running broker, and the name of its node."""

    uri: str
    node: str


@pytest.fixture(scope="module")
def warren() -> Iterator[Warren]:
    with broker() as started:
        uri = f"http://guest:guest@127.0.0.1:{started.ports['http']}"
        plain = urllib.request.Request(f"http://127.0.0.1:{started.ports['http']}/api/overview")
        plain.add_header("authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")
        with urllib.request.urlopen(plain) as answer:
            yield Warren(uri, json.load(answer)["node"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_command_fails_as_that_of_rabbitmq(path: Path, warren: Warren) -> None:
    _, cases = read(path)
    found = [text for case in cases for text in differences(case, warren)]
    assert not found, "\n\n".join(found)


def differences(case: Case, warren: Warren) -> list[str]:
    """What Warren answers instead of what RabbitMQ or, with its reason, the file says."""
    for line in case.before:
        ask(line, warren)
    answer = normalised(*ask(case.command, warren, "".join(f"{line}\n" for line in case.typed)), warren.node)
    for line in case.after:
        ask(line, warren)
    theirs, own = set(case.theirs.values()), case.answers.get(WARREN)
    if own is not None and answer in theirs:
        return [f"{case.title}: differs no longer"]
    if answer in theirs or answer == own:
        return []
    told = "\n".join((f"warren> {answer.status}", *answer.lines))
    return [f"{case.text()}{told}"]


def ask(line: str, warren: Warren, typed: str = "") -> tuple[int, str, str]:
    words = [word.replace("NODE", warren.node) for word in words_of(line)]
    return asked_of_warren(warren.uri, words, typed)


def test_cases_have_the_answers_of_both_versions() -> None:
    cases = list(itertools.chain.from_iterable(read(path)[1] for path in FILES))
    assert len(cases) > 350
    assert [case.title for case in cases if len(case.theirs) != 2] == []
    assert any(ABSENT_NODE in case.command for case in cases)


@pytest.mark.rabbitmq
@pytest.mark.timeout(3000)
def test_rabbitmq_answers_as_recorded(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if not rabbitmq.is_installed():
        pytest.skip("rabbitmq-server is not installed")
    with running_rabbitmq(tmp_path) as server:
        if request.config.getoption("--record"):
            record_with(server, tmp_path, FILES)
            return
        version = ".".join(map(str, server.version()))
        cases = list(itertools.chain.from_iterable(read(path)[1] for path in FILES))
        answers = asked(server, tmp_path, cases)
    found = [
        (case.title, case.theirs[version], answer)
        for case, answer in zip(cases, answers, strict=True)
        if case.theirs[version] != answer
    ]
    assert found == []
