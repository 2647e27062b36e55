"""Recorded scripts: what a client sends, and what RabbitMQ answered, in files of several sections.

A section begins with `== ` and the sentence that it proves; its lines are those of a conformance transcript.
A passive declaration is repeated until the counts are those recorded: a quorum queue counts what is applied,
which is a little later than it was sent.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from tests.conformance import transcript
from tests.conformance.client import Client, TranscriptContext
from tests.conformance.peer import Mismatch
from tests.conformance.transcript import Step, Transcript, expect

HEADING = "== "
COUNTS_S = 8.0
COUNT_AGAIN_S = 0.02
# How long a queue is given for its counts when they are recorded.
SETTLE_S = 0.5
_SENT = re.compile(r"C\d*>")
_FIRST_COUNT = re.compile(
    r' headers=\{"x-delivery-count": 0l\}|, "x-delivery-count": 0l|"x-delivery-count": 0l, '
)
_SILENT = re.compile(r"S\d*> silence 0\.4")


def sections(path: Path) -> Iterator[Transcript]:
    """The sections of a file; the text before the first one is a comment."""
    _, *parts = re.split(rf"^{HEADING}", path.read_text(), flags=re.MULTILINE)
    for part in parts:
        yield Transcript.parse(path, part.splitlines())


def play(script: Transcript, context: TranscriptContext, counts_s: float = COUNTS_S) -> None:
    """Perform a section, check that nothing more comes, and delete what it declared.

    Counts are repeated for up to `counts_s`.
    """
    client = Client(context)
    try:
        perform(script, client, counts_s)
        client.finish()
    finally:
        client.clean_up()


def perform(script: Transcript, client: Client, counts_s: float = COUNTS_S) -> None:
    """Send the C lines, and compare the answers with the S lines (or R lines, for RabbitMQ)."""
    last: Step | None = None
    for step in script.spoken(client.context):
        try:
            if step.who == "C":
                client.perform(step.connection, step.text)
                last = step
            else:
                _expect(step, last, client, counts_s)
        except (Mismatch, ValueError, KeyError, OSError) as error:
            raise Mismatch(f"{script.path.name}: {script.title}\n    {step.text}\n    {error}") from error


def record(script: Transcript, context: TranscriptContext) -> str:
    """The section with what the broker answers now; one without answers gets one after each line."""
    if all(step.who == "C" for block in script.blocks for step in block):
        lines = [part for line in script.lines for part in _with_answer(line)]
        script = Transcript.parse(script.path, lines)
        found = transcript.rewrite(script, context).splitlines()
        return "\n".join(line for line in found if not _SILENT.fullmatch(line)) + "\n"
    return transcript.rewrite(script, context)


def of_rabbitmq_4(script: Transcript) -> Transcript:
    """The section without the header `x-delivery-count` of first deliveries, which RabbitMQ 4 lacks."""
    return Transcript.parse(script.path, [_FIRST_COUNT.sub("", line) for line in script.lines])


def difference(script: Transcript, context: TranscriptContext) -> str:
    """The section with what the broker answers now; "" if that is what the section says."""
    text = transcript.rewrite(script, context, SETTLE_S)
    return "" if text.splitlines() == script.lines else text


def keep(path: Path, title: str, text: str) -> None:
    """Write the section `title` of a file, which has its sections by title; without `text` remove it."""
    found = {} if not path.exists() else {part.title: "\n".join(part.lines) for part in sections(path)}
    found.pop(title, None)
    if text:
        found[title] = text
    if not found:
        path.unlink(missing_ok=True)
        return
    head = "What RabbitMQ 4.3.6 answers otherwise than 3.10.8, recorded.\n"
    path.write_text(head + "".join(f"\n{HEADING}{found[name].strip()}\n" for name in sorted(found)))


def _with_answer(line: str) -> list[str]:
    return [line, "S>"] if _SENT.match(line) else [line]


def _expect(step: Step, last: Step | None, client: Client, counts_s: float) -> None:
    deadline = time.monotonic() + counts_s
    while True:
        try:
            expect(step.text, client.peers[step.connection], client.context, client.kept)
            return
        except Mismatch:
            is_count = "queue.declare-ok" in step.text and last is not None and "passive=true" in last.text
            if last is None or not is_count or time.monotonic() > deadline:
                raise
            time.sleep(COUNT_AGAIN_S)
            client.perform(last.connection, last.text)
