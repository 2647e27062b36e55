"""Kills a broker with SIGKILL while a driver commits staged rows, repeatedly on one directory.

Usually it is killed at a chosen system call: during a write, before a sync, or before a rename. After each
restart the broker resumes decided commits by itself; then every row of a batch is in each queue once, or no
row of it is anywhere, and never less than the driver was told. The last line counts the kills.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from http.client import HTTPException
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import pika  # noqa: E402
from pika.adapters.blocking_connection import BlockingChannel  # noqa: E402
from pika.exceptions import AMQPError  # noqa: E402
from tests.crash.recording import built, why_impossible  # noqa: E402
from tests.integration.api import HttpClient  # noqa: E402
from tests.integration.broker_process import BrokerProcess  # noqa: E402
from tests.integration.staging import StagedQuery, bodies  # noqa: E402

KILLS = 20
QUEUES = ("first", "second")
PARTITIONS = 3
ROWS_MAX = 500
# The broker is killed after at most this number of such calls: some tens happen during its start.
CALLS_MAX = {"pwrite": 120, "fdatasync": 70, "fsync": 45, "rename": 40, "unlink": 25}
SECONDS_MAX = 4.0
GOING_ON_S = 20.0
# Rows that stay in a queue, so that old segments are kept and compacted.
BACKLOG = 50

Row = tuple[int, int, int]
# Whether the message is marked as redelivered, and its delivery tag.
Found = tuple[Row, bool, int]


def main() -> int:
    """Kill the broker as often as requested; 0 if every row was there once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="warren-staged-") as folder:
        killing = Killing(Path(folder), random.Random(options.seed))
        try:
            for _ in range(options.kills):
                killing.once()
            killing.last()
        except AssertionError as error:
            print(f"after {killing.kills} kills: {error}")
            print(f"{killing.kills} passed, 1 failed, 0 skipped")
            return 1
    print(
        f"{killing.batches} batches, {killing.rows} rows in each of {len(QUEUES)} queues,"
        f" {killing.resumed} batches published further by the broker itself, killed {dict(killing.points)}"
    )
    print(f"{killing.kills} passed, 0 failed, 0 skipped")
    return 0


class Killing:
    """One data directory, and what the driver was told."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.data = folder / "data"
        self._chance = chance
        self._library = None if why_impossible() else built(folder)
        self._batch = 0
        # The rows of the current batch: partition -> rows.
        self._parts: dict[int, int] = {}
        # The expected rows of each queue, and those that were acknowledged.
        self._due: dict[str, set[Row]] = {queue: set() for queue in QUEUES}
        self._taken: dict[str, set[Row]] = {queue: set() for queue in QUEUES}
        self.kills = self.batches = self.rows = self.resumed = 0
        self.points: Counter[str] = Counter()

    def once(self) -> None:
        """Start, check, commit and kill."""
        kind = self._chance.choice(list(CALLS_MAX)) if self._library and self.kills % 5 else ""
        broker = self._started(f"{kind}:{self._chance.randrange(1, CALLS_MAX[kind] + 1)}" if kind else "")
        try:
            self._use(broker)
            is_forced = broker.process.poll() == -9
        finally:
            broker.process.kill()
            broker.process.communicate()
        self.kills += 1
        self.points[f"at {kind}" if is_forced else "at random"] += 1
        print(f"{self.kills} kills, {self.batches} batches so far", flush=True)

    def _use(self, broker: BrokerProcess) -> None:
        try:
            broker.wait_ready()
        except AssertionError:
            assert broker.process.returncode == -9, "".join(broker.lines)
            return
        try:
            self._check(broker)
            self._commit(broker)
        except (AMQPError, OSError, HTTPException):
            # Killed during a request: nothing more is known than before.
            assert broker.process.wait(10) == -9, "".join(broker.lines)

    def last(self) -> None:
        """Check the final contents."""
        broker = self._started("")
        try:
            broker.wait_ready()
            self._check(broker)
        finally:
            broker.process.kill()
            broker.process.communicate()

    def _commit(self, broker: BrokerProcess) -> None:
        """Commit one batch after the other, until the time is over or the broker has ended."""
        job = StagedQuery(HttpClient(broker), "query", "amq.fanout")
        until = time.monotonic() + SECONDS_MAX
        while time.monotonic() < until:
            if not self._parts:
                self._parts = {each: self._chance.randrange(ROWS_MAX) for each in range(PARTITIONS)}
            answer = job.commit(self._batch, *self._parts)
            if answer.status == 409:
                for partition, count in self._parts.items():
                    texts = [b"%d %d %d" % (self._batch, partition, row) for row in range(count)]
                    staged = job.stage(self._batch, partition, bodies(texts, ""))
                    assert (staged.status, staged.value["rows"]) == (200, count), staged
                answer = job.commit(self._batch, *self._parts)
            while answer.status == 202:
                answer = job.commit(self._batch, *self._parts)
            assert answer.status == 200, answer
            assert answer.value["rows"] == sum(self._parts.values()), answer
            self._committed()
            if self._chance.random() < 0.3:
                again = job.commit(self._batch - 1, 0)
                assert again.value["state"] == "already committed", again

    def _under_way(self) -> set[Row]:
        """The rows of the current batch."""
        return {
            (self._batch, partition, row) for partition, count in self._parts.items() for row in range(count)
        }

    def _committed(self) -> None:
        rows = {
            (self._batch, partition, row) for partition, count in self._parts.items() for row in range(count)
        }
        for queue in QUEUES:
            self._due[queue] |= rows
        self.batches += 1
        self.rows += len(rows)
        self._batch += 1
        self._parts = {}

    def _check(self, broker: BrokerProcess) -> None:
        """Check that each expected row exists once, and all rows of the current batch, or none."""
        until = time.monotonic() + GOING_ON_S
        client = HttpClient(broker)
        while any(each["state"] == "committing" for each in client.get("/warren/staged")):
            assert time.monotonic() < until, "the broker does not resume the commit"
            time.sleep(0.02)
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port))
        channels = {queue: connection.channel() for queue in QUEUES}
        found: dict[str, list[Found]] = {}
        for queue, channel in channels.items():
            channel.queue_declare(queue, durable=True)
            channel.queue_bind(queue, "amq.fanout")
            found[queue] = _all_of(channel, queue)
        under_way = self._under_way()
        if any(row in under_way for row, _, _ in found[QUEUES[0]]):
            self.resumed += 1
            self._committed()
        for queue in QUEUES:
            self._check_queue(queue, found[queue])
            for row, _, tag in found[queue][BACKLOG:]:
                self._taken[queue].add(row)
                self._due[queue].discard(row)
                channels[queue].basic_ack(tag)
        connection.close()

    def _started(self, point: str) -> BrokerProcess:
        environment = {"WARREN_ROOT": str(self.data)}
        if point:
            environment |= {"LD_PRELOAD": str(self._library), "WARREN_KILL": point}
        return BrokerProcess(["--data-dir", str(self.data)], environment)

    def _check_queue(self, queue: str, found: list[Found]) -> None:
        counts = Counter(row for row, _, _ in found)
        twice = [row for row, count in counts.items() if count > 1]
        assert not twice, f"{len(twice)} rows are duplicated in '{queue}': {twice[:3]}"
        missing = self._due[queue] - counts.keys()
        assert not missing, f"{len(missing)} rows are missing in '{queue}': {sorted(missing)[:3]}"
        for row, is_redelivered, _ in found:
            # A message acknowledged just before a kill may be redelivered, marked as such.
            is_known = row in self._due[queue] or (row in self._taken[queue] and is_redelivered)
            assert is_known, f"{row} is in '{queue}' and should not be"


def _all_of(channel: BlockingChannel, queue: str) -> list[Found]:
    count = channel.queue_declare(queue, passive=True).method.message_count
    found: list[Found] = []
    if not count:
        return found
    for method, _, body in channel.consume(queue, inactivity_timeout=GOING_ON_S):
        assert method is not None, f"{len(found)} of {count} messages were received from '{queue}'"
        batch, partition, row = map(int, body.split())
        found.append(((batch, partition, row), method.redelivered, method.delivery_tag))
        if len(found) == count:
            return found
    return found


if __name__ == "__main__":
    sys.exit(main())
