"""A quorum queue answers as a classic queue does, in the transcripts that are about queues of any type.

Each queue of a transcript is declared as a durable quorum queue, and the header `x-delivery-count` is not
compared. What is in a quorum queue is on disk, so basic.get and a passive declaration are repeated until what
was sent before them is applied.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest
from tests.conformance.broker import BrokerAddress
from tests.conformance.client import Client, TranscriptContext
from tests.conformance.definitions import VHOSTS
from tests.conformance.peer import Mismatch
from tests.conformance.transcript import TRANSCRIPTS, Step, Transcript, expect

FOLDERS = ("confirms", "consuming", "dead_letters", "publishing", "queues", "transactions")
# What only other types of queues have: exclusive, deleted automatically, named by the server, with a maximum
# priority; or a transcript names the type itself.
_OTHER_TYPES = re.compile(
    r"""queue\.declare\ (?!.*passive) (?: .*exclusive=true | .*auto_delete=true | (?!.*queue="[^"]) )
    | x-max-priority | x-queue-type""",
    re.VERBOSE,
)
# About an argument of consumers that quorum queues refuse, and about `durable` itself.
_OF_CLASSIC_QUEUES = (
    "consuming/stream_offset_on_classic",
    "consuming/unknown_argument",
    "queues/inequivalent_durable",
)
PATHS = {
    name: path
    for folder in FOLDERS
    for path in sorted(TRANSCRIPTS.glob(f"{folder}/*.txt"))
    if (name := f"{folder}/{path.stem}") not in _OF_CLASSIC_QUEUES
    and not _OTHER_TYPES.search(path.read_text())
}
APPLIED_S = 8.0
AGAIN_S = 0.02
_IS_ASKED_AGAIN = re.compile(r"basic\.get |queue\.declare .*passive=true")


@pytest.fixture(scope="module")
def played(broker: BrokerAddress, request: pytest.FixtureRequest) -> Iterator[dict[str, Future[None]]]:
    """All selected transcripts, played concurrently with a thread for each vhost."""
    if broker.is_rabbitmq:
        pytest.skip("its quorum queues differ: tests/oracle/quorum_differences.py")
    chosen = [item.callspec.params["name"] for item in request.session.items if "played" in item.fixturenames]
    vhosts: Queue[str] = Queue()
    for vhost in VHOSTS:
        vhosts.put(vhost)

    def run(path: Path) -> None:
        vhost = vhosts.get()
        try:
            _play(Transcript.read(path), TranscriptContext(broker.host, broker.port, vhost, is_quorum=True))
        finally:
            vhosts.put(vhost)

    with ThreadPoolExecutor(len(VHOSTS)) as pool:
        yield {name: pool.submit(run, PATHS[name]) for name in chosen}


@pytest.mark.parametrize("name", PATHS)
def test_a_quorum_queue_answers_as_the_transcript_says(name: str, played: dict[str, Future[None]]) -> None:
    played[name].result()


def _play(transcript: Transcript, context: TranscriptContext) -> None:
    client = Client(context)
    try:
        last = ""
        for step in transcript.spoken(context):
            if step.who == "C":
                client.perform(step.connection, step.text)
                last = step.text
                continue
            try:
                _expect(step, last, client)
            except Mismatch as error:
                raise Mismatch(
                    f"{transcript.path.name}:{step.place + 1}: {step.text}\n    {error}"
                ) from error
        client.finish()
    finally:
        client.clean_up()


def _expect(step: Step, last: str, client: Client) -> None:
    """Expect what `step` says; if it answers `last`, ask again until it is so."""
    deadline = time.monotonic() + APPLIED_S
    is_answer = "basic.get-ok" in step.text or "queue.declare-ok" in step.text
    while True:
        try:
            expect(step.text, client.peers[step.connection], client.context, client.kept)
            return
        except Mismatch:
            if not (is_answer and _IS_ASKED_AGAIN.search(last)) or time.monotonic() > deadline:
                raise
            time.sleep(AGAIN_S)
            client.perform(step.connection, last)
