"""A broker that is killed during a commit into streams, at each call that makes something durable.

    plan ─ synced ─▶ piece in the first stream ─ synced ─▶ in the second ─ synced ─▶ mark ─ synced ─▶ next …
      … ─▶ mark that says committed ─ synced ─▶ plan deleted ─▶ stages deleted ─▶ answer

A window is a file operation: the broker is killed before a sync, during a write, or before a deletion.
"""

import http.client
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from tests.crash.recording import built, why_impossible
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.staging import StagedQuery, bodies, stream
from tests.integration.test_rows import read
from tests.integration.test_serve import connect
from tests.patience import patient

# A broker is started sixteen times and more: half a minute, and longer on a busy machine.
pytestmark = [
    pytest.mark.skipif(bool(why_impossible()), reason=why_impossible()),
    pytest.mark.timeout(600),
]

STREAMS = ("first", "second")
# Each is published in two pieces: rows that differ only in bodies by chunks of a stage, the others singly.
EQUAL, UNLIKE, PIECES = 3_000, 400, 2
DEATH_S_MAX = patient(10)
STREAM, MARK = "*.stream", "*/????????.segment"
WINDOWS = {
    "the plan has its name, which is not synced": "fsync:1:*/staged",
    "the first stream has a part of the first piece": f"pwrite:1:{STREAM}",
    "the first stream has the first piece, which is not synced": f"fdatasync:1:{STREAM}",
    "the first stream has it, and the second a part": f"pwrite:2:{STREAM}",
    "the first stream has it, and the second has not synced it": f"fdatasync:2:{STREAM}",
    "both streams have the first piece, and its mark is torn": f"pwrite:1:{MARK}",
    "both streams have the first piece, and its mark is not synced": f"fdatasync:1:{MARK}",
    "the first stream has a part of the second piece": f"pwrite:3:{STREAM}",
    "the first stream has it, and the second has not synced the second piece": f"fdatasync:4:{STREAM}",
    "both streams have all, and the mark is torn": f"pwrite:2:{MARK}",
    "both streams have all, and the mark is not synced": f"fdatasync:2:{MARK}",
    "all is marked, and the mark that says committed is torn": f"pwrite:3:{MARK}",
    "the mark that says committed is not synced": f"fdatasync:3:{MARK}",
    "it is committed, and the plan is there": "unlink:1:*.plan",
    "it is committed, and the stage is there": "unlink:1:*.stage",
}
# A window is missed occasionally.
BATCHES_MAX = 3 * len(WINDOWS)


def equal(batch: int) -> bytes:
    """Rows that differ only in their bodies."""
    return bodies([b"%d %d" % (batch, row) for row in range(EQUAL)], "")


def unlike(batch: int) -> bytes:
    """Rows that all differ."""
    texts = [b"%d %d" % (batch, row) for row in range(UNLIKE)]
    return stream({"body": pa.array(texts, pa.binary()), "message_id": [text.decode() for text in texts]})


def starting(folder: Path, library: Path, call: str, **environment: str) -> BrokerProcess:
    """A broker that is killed at `call`."""
    data = folder / "data"
    kill = {"WARREN_ROOT": str(data), "LD_PRELOAD": str(library), "WARREN_KILL": call}
    return BrokerProcess(["--data-dir", str(data)], kill | environment)


def declare(folder: Path) -> None:
    """Bind both streams to one exchange."""
    with broker("--data-dir", str(folder / "data")) as node:
        channel = connect(node.port).channel()
        for name in STREAMS:
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
            channel.queue_bind(name, "amq.fanout")


def settle(node: BrokerProcess) -> None:
    """Wait until no commit is in progress: the broker resumes it by itself."""
    client = HttpClient(node)
    while client.get("/warren/staged"):
        pass


def check(node: BrokerProcess, batches: int, count: int, moment: str) -> None:
    """Check that both streams have `count` rows of each batch, in order."""
    wanted = [b"%d %d" % (batch, row) for batch in range(batches) for row in range(count)]
    for name in STREAMS:
        found = read(node, f"/streams/%2F/{name}/rows")[0]["body"].to_pylist()
        assert (len(found), len(set(found))) == (len(wanted), len(wanted)), f"rows of {name}, {moment}"
        assert found == wanted, name


def is_killed_by(node: BrokerProcess, batch: int, data: bytes, *, exchange: str = "amq.fanout") -> bool:
    """Commit `batch`; returns whether `node` was killed, without an answer to the commit."""
    job = StagedQuery(HttpClient(node), "query", exchange)
    assert job.stage(batch, 0, data).status == 200
    with suppress(OSError, http.client.HTTPException):
        assert job.commit(batch, 0).value["state"] == "committed"
        return False
    assert node.process.wait(DEATH_S_MAX) == -signal.SIGKILL
    return True


def end(node: BrokerProcess) -> None:
    """Kill the broker."""
    node.process.kill()
    node.process.communicate()


SHAPES = pytest.mark.parametrize(
    ("rows", "count"), [(equal, EQUAL), (unlike, UNLIKE)], ids=["equal", "unlike"]
)


@pytest.mark.long
@SHAPES
def test_streams_have_each_row_once_wherever_a_broker_is_killed_in_a_commit(
    tmp_path: Path, rows: Callable[[int], bytes], count: int
) -> None:
    library = built(tmp_path)
    declare(tmp_path)
    moment = "at the start"
    batch = 0
    left = [*WINDOWS.items(), ("the end", "")]
    while left:
        window, call = left[0]
        # Calls are counted from the decision of the commit.
        node = starting(tmp_path, library, call, WARREN_SINCE="*.plan")
        try:
            node.wait_ready()
            settle(node)
            check(node, batch, count, moment)
            if batch:
                again = StagedQuery(HttpClient(node), "query", "amq.fanout").commit(batch - 1, 0)
                assert again.value == {"state": "already committed", "rows": count, "unroutable": 0}
            # Two marks may be synced together, so that a call does not happen: it is tried again.
            if not call or is_killed_by(node, batch, rows(batch)):
                left.pop(0)
            batch += 1
            moment = f"after batch {batch}: {window}"
            assert batch <= BATCHES_MAX, moment
        finally:
            end(node)


@pytest.mark.long
@SHAPES
def test_streams_have_each_row_once_however_often_a_broker_is_killed_while_it_resumes(
    tmp_path: Path, rows: Callable[[int], bytes], count: int
) -> None:
    library = built(tmp_path)
    declare(tmp_path)
    deaths = 1
    node = starting(tmp_path, library, f"fdatasync:1:{STREAM}", WARREN_SINCE="*.plan")
    try:
        node.wait_ready()
        assert is_killed_by(node, 0, rows(0))
        while True:
            end(node)
            # Each stream is synced when it is opened. Its rows are skipped: one piece more each time.
            node = starting(tmp_path, library, f"fdatasync:{len(STREAMS) + 1}:{STREAM}")
            with suppress(AssertionError, OSError, http.client.HTTPException):
                node.wait_ready()
                settle(node)
                break
            assert node.process.wait(DEATH_S_MAX) == -signal.SIGKILL
            deaths += 1
        check(node, 1, count, f"after {deaths} deaths")
    finally:
        end(node)
    assert deaths == len(STREAMS) * PIECES


@pytest.mark.long
@SHAPES
@pytest.mark.parametrize("call", [f"pwrite:2:{STREAM}", f"fdatasync:2:{STREAM}", f"pwrite:1:{MARK}"])
def test_a_row_routed_randomly_to_one_stream_is_not_sent_to_another_after_a_kill(
    tmp_path: Path, call: str, rows: Callable[[int], bytes], count: int
) -> None:
    library = built(tmp_path)
    with broker("--data-dir", str(tmp_path / "data")) as node:
        channel = connect(node.port).channel()
        channel.exchange_declare("dice", "x-random", durable=True)
        for name in STREAMS:
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
            channel.queue_bind(name, "dice")
    node = starting(tmp_path, library, call, WARREN_SINCE="*.plan")
    try:
        node.wait_ready()
        assert is_killed_by(node, 0, rows(0), exchange="dice")
        end(node)
        node = starting(tmp_path, library, "")
        node.wait_ready()
        settle(node)
        found = [read(node, f"/streams/%2F/{name}/rows")[0]["body"].to_pylist() for name in STREAMS]
        assert all(len(one) > count / 3 for one in found)
        everything = [text for one in found for text in one]
        assert (len(everything), len(set(everything))) == (count, count)
    finally:
        end(node)
