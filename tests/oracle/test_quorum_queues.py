"""Quorum queues answer as RabbitMQ 3.10.8 did when the scripts in `quorum_queues/` were recorded.

RabbitMQ 4 answers as in `quorum_queues/4.3`, recorded with 4.3.6, where a section is there as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Queue

import pytest
from tests import rabbitmq
from tests.conformance.peer import Mismatch
from tests.conformance.transcript import Transcript
from tests.oracle import recorded
from tests.oracle.quorum_brokers import BROKERS, VHOSTS, QuorumBroker, QuorumBrokers
from tests.oracle.quorum_differences import AFTER_COMMIT, DIFFERENCES

RECORDED = Path(__file__).with_name("quorum_queues")


def sections_in(folder: Path) -> dict[str, Transcript]:
    """The sections of all files of a folder, by file and title."""
    return {
        f"{section.path.stem}: {section.title}": section
        for path in sorted(folder.glob("*.txt"))
        for section in recorded.sections(path)
    }


SECTIONS = sections_in(RECORDED)
OF_RABBITMQ_4 = sections_in(RECORDED / "4.3")
# More sections at a time would make the answers late, not the test faster.
AT_ONCE = 6
# How long the counts of a section that differs are repeated.
DIFFERING_COUNTS_S = 1.0
Results = dict[tuple[str, str], Future[str]]


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, quorum_brokers: QuorumBrokers) -> Iterator[Results]:
    """All selected sections, played concurrently, each in a vhost that no other one uses at that time."""
    chosen = [
        (item.callspec.params["name"], item.callspec.params["title"])
        for item in request.session.items
        if "results" in item.fixturenames
        and not (item.callspec.params["name"] == "rabbitmq" and not rabbitmq.is_installed())
    ]
    brokers = {name: quorum_brokers[name] for name in sorted({name for name, _ in chosen})}
    vhosts: Queue[str] = Queue()
    for vhost in VHOSTS[:AT_ONCE]:
        vhosts.put(vhost)

    is_recording = request.config.getoption("--record")

    def play(broker: QuorumBroker, title: str) -> str:
        script = SECTIONS[title]
        vhost = vhosts.get()
        try:
            if broker.is_rabbitmq_4:
                script = recorded.of_rabbitmq_4(script)
                if is_recording:
                    return recorded.difference(script, broker.context(vhost))
                script = OF_RABBITMQ_4.get(title, script)
            if is_recording and broker.name == "rabbitmq":
                return recorded.record(script, broker.context(vhost))
            differs = broker.name == "warren" and title in DIFFERENCES
            counts_s = DIFFERING_COUNTS_S if differs else recorded.COUNTS_S
            recorded.play(script, broker.context(vhost), counts_s)
            return ""
        finally:
            vhosts.put(vhost)

    # Those that wait longest begin first.
    chosen.sort(key=lambda pair: not any("sleep" in line for line in SECTIONS[pair[1]].lines))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            (name, title): pool.submit(play, brokers[name], title)
            for name, title in chosen
            if brokers[name].accepts_quorum_queues
        }


@pytest.mark.timeout(300)
@pytest.mark.parametrize("title", SECTIONS, ids=str)
@pytest.mark.parametrize("name", BROKERS)
def test_the_broker_answers_as_the_section_says(
    name: str,
    title: str,
    results: Results,
    request: pytest.FixtureRequest,
    quorum_brokers: QuorumBrokers,
) -> None:
    if (name, title) not in results:
        pytest.skip(f"{name} does not accept quorum queues")
    if name == "warren" and title in AFTER_COMMIT:
        with suppress(Mismatch):
            results[name, title].result()
        return
    if name == "warren" and title in DIFFERENCES:
        with pytest.raises(Mismatch):
            results[name, title].result()
        return
    text = results[name, title].result()
    if request.config.getoption("--record") and name == "rabbitmq":
        path = SECTIONS[title].path
        if quorum_brokers[name].is_rabbitmq_4:
            recorded.keep(RECORDED / "4.3" / path.name, SECTIONS[title].title, text)
            return
        path.write_text(path.read_text().replace("\n".join(SECTIONS[title].lines), text.rstrip("\n")))


def test_every_section_of_a_newer_rabbitmq_is_one_of_all() -> None:
    assert OF_RABBITMQ_4.keys() <= SECTIONS.keys()


def test_every_section_that_may_differ_exists() -> None:
    assert SECTIONS.keys() >= {*DIFFERENCES, *AFTER_COMMIT}


@pytest.mark.parametrize("title", SECTIONS, ids=str)
def test_the_title_is_a_sentence_and_every_answer_is_recorded(title: str) -> None:
    section = SECTIONS[title]
    assert section.title.endswith(".")
    steps = [step for block in section.blocks for step in block]
    assert any(step.who == "S" for step in steps)
    assert all(step.text for step in steps)
