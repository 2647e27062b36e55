"""The broker answers as in every transcript, and every transcript cites its source."""

from __future__ import annotations

import re
from concurrent.futures import Future
from pathlib import Path

import pytest
from tests.conformance.client import MissingResource
from tests.conformance.transcript import TRANSCRIPTS, Transcript

PATHS = sorted(TRANSCRIPTS.glob("*/*.txt"))
NAMES = [f"{path.parent.name}/{path.stem}" for path in PATHS]


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_the_broker_answers_as_the_transcript_says(
    path: Path, results: dict[Path, Future[None]], request: pytest.FixtureRequest
) -> None:
    transcript = Transcript.read(path)
    is_rabbitmq = not request.config.getoption("--broker").startswith("warren")
    if not transcript.applies(is_rabbitmq):
        pytest.skip(f"differs: {transcript.marks['differs-from-rabbitmq']}")
    if not is_rabbitmq and "xfail" in transcript.marks:
        request.applymarker(pytest.mark.xfail(reason=transcript.marks["xfail"], strict=True))
    try:
        results[path].result()
    except MissingResource as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_the_transcript_cites_its_source(path: Path) -> None:
    transcript = Transcript.read(path)
    assert re.match(r"[A-Za-z].+\.$", transcript.title), "the first line is the sentence it proves"
    assert re.search(r"0-9-1 §\d|RabbitMQ 3\.10\.8, measured", transcript.citation)
    theirs = any(step.who == "R" for block in transcript.blocks for step in block)
    assert not theirs or "differs-from-rabbitmq" in transcript.marks, "R> lines need their reason"
