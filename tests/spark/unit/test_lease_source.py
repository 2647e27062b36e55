"""Leases follow the commits of Spark, and a repeated batch gets its lease again."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.spark.unit.doubles import Answer, Double, RecordedRequest, answering, offsets, stream_of

from pyspark_warren.lease_source import LeaseSource
from pyspark_warren.mode_detection import ReadStrategy
from pyspark_warren.partitions import LeasePartition
from pyspark_warren.streams import DataLoss

CHOICE = ReadStrategy(mode="lease", transport="arrow", queues=("q",))


class Queue:
    """A queue that grants leases."""

    def __init__(self, ready: int) -> None:
        self.ready = ready
        self.leases: dict[str, dict[str, object]] = {}
        self.settled: list[str] = []
        self.is_expired = False

    def answer(self, asked: RecordedRequest) -> Answer:
        match asked.path.split("/")[3:]:
            case ["queues", "", "", "q", "leases"] | ["queues", "/", "q", "leases"]:
                return self._lease(asked.json["key"], asked.json["messages"])
            case ["leases", lease, "settle"]:
                if self.is_expired:
                    return 410, {"error": "gone", "reason": "the lease has expired"}
                self.settled.append(lease)
                return 200, {}
            case ["leases", _, "rows"] if self.is_expired:
                return 410, {"error": "gone", "reason": "the lease is expired"}
            case ["leases", _, "rows"]:
                return 200, stream_of(offsets(int(asked.query["start"]), int(asked.query["end"])))
        return 200, {"messages": self.ready}

    def _lease(self, key: str, count: int) -> Answer:
        if key in self.leases:
            return 200, self.leases[key]
        if not self.ready:
            return 200, {"lease": None, "messages": 0}
        count = min(count, self.ready)
        self.ready -= count
        self.leases[key] = {"lease": f"L{len(self.leases)}", "messages": count, "state": "active"}
        return 201, self.leases[key]


@contextmanager
def source(queue: Queue, **given: str) -> Iterator[tuple[LeaseSource, Double]]:
    with answering(queue.answer) as double:
        found = LeaseSource(double.options(**given), CHOICE)
        yield found, double
        found.stop()


def test_a_lease_is_acknowledged_when_the_next_batch_is_planned() -> None:
    queue = Queue(1_000)
    with source(queue) as (leases, _):
        start = leases.initial_offset()
        first = leases.latest_offset(start, 600, None)
        assert (first["lease"], first["n"], queue.settled) == ("L0", 600, [])
        second = leases.latest_offset(first, 600, None)
        assert (second["lease"], second["n"], queue.settled) == ("L1", 400, ["L0"])
        assert leases.latest_offset(second, 600, None) == second
        assert leases.latest_offset(second, 600, None) == second
        assert queue.settled == ["L0", "L1"]


def test_after_a_crash_the_lease_is_granted_and_read_again() -> None:
    queue = Queue(1_000)
    with source(queue, minPartitions="2") as (leases, double):
        start = leases.initial_offset()
        end = leases.latest_offset(start, 600, None)
        again = LeaseSource(double.options(minPartitions="2"), CHOICE)
        assert again.latest_offset(start, 600, None) == end
        partitions = again.partitions(start, end)
        assert partitions == [LeasePartition("L0", 0, 300, "q"), LeasePartition("L0", 300, 600, "q")]
        rows = [
            row
            for part in partitions
            for batch in part.read(double.options(), ("offset",))
            for row in batch.to_pylist()
        ]
        assert [row["offset"] for row in rows] == list(range(600))
        assert again.partitions(end, end) == []
        again.stop()


def test_a_query_for_available_messages_takes_no_later_ones() -> None:
    queue = Queue(500)
    with source(queue) as (leases, _):
        leases.prepare_available_now()
        queue.ready += 300
        end = leases.latest_offset(leases.initial_offset(), None, None)
        assert end["n"] == 500
        assert leases.latest_offset(end, None, None) == end
        assert (queue.settled, queue.ready) == (["L0"], 300)


def test_an_expired_lease_is_reported_with_a_remedy() -> None:
    queue = Queue(10)
    with source(queue) as (leases, double):
        start = leases.initial_offset()
        end = leases.latest_offset(start, None, None)
        queue.is_expired = True
        partitions = leases.partitions(start, end)
        for doing in (
            lambda: leases.latest_offset(end, None, None),
            lambda: list(partitions[0].read(double.options(), ("offset",))),
        ):
            with pytest.raises(DataLoss, match=r"in the queue again .* failOnDataLoss=false .* leaseSeconds"):
                doing()


def test_with_data_loss_allowed_a_query_continues_after_an_expired_lease() -> None:
    queue = Queue(10)
    with source(queue, failOnDataLoss="false") as (leases, double):
        easy = double.options(failOnDataLoss="false")
        start = leases.initial_offset()
        end = leases.latest_offset(start, 6, None)
        queue.is_expired = True
        # The batch is repeated after a restart, and empty; its messages are in the next one.
        assert [list(part.read(easy, ("offset",))) for part in leases.partitions(start, end)] == [[]]
        assert leases.latest_offset(end, None, None)["n"] == 4
        # And one that no batch has recorded yet.
        for lease in queue.leases.values():
            lease["state"] = "expired"
        queue.ready = 10
        again = LeaseSource(easy, CHOICE)
        assert again.latest_offset(start, None, None)["lease"] == "L2"
        again.stop()
        strict = LeaseSource(double.options(), CHOICE)
        with pytest.raises(DataLoss, match="failOnDataLoss=false"):
            strict.latest_offset(start, None, None)


def test_a_checkpoint_of_an_earlier_query_is_reported() -> None:
    queue = Queue(10)
    with source(queue) as (leases, _):
        start = leases.initial_offset()
        leases.latest_offset(start, None, None)
        for lease in queue.leases.values():
            lease["state"] = "settled"
        with pytest.raises(DataLoss, match="the checkpoint is older than that"):
            leases.latest_offset(start, None, None)


def test_a_lease_is_renewed_during_a_long_batch() -> None:
    queue = Queue(10)
    with source(queue, leaseSeconds="1") as (leases, double):
        leases.latest_offset(leases.initial_offset(), None, None)
        while not any(asked.path.endswith("/renew") for asked in double.asked):
            leases.committed()
