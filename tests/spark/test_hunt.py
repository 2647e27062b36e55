"""A random test of a query into a stream that is disturbed and restarted with other options: each row
arrives once.

`HUNT_SEEDS=20` runs more seeds.
"""

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamWriter
from pyspark.sql.types import StructType
from tests.patience import patient
from tests.spark.brokers import STREAM, BrokerUnderTest, rows_of
from tests.spark.killing import counted, kill_broker, restarted_broker
from tests.spark.relay import Relay, relayed

import pyspark_warren
from pyspark_warren.options import WriteOptions, write_options
from pyspark_warren.sink import ArrowStreamWriter

SEEDS = int(os.environ.get("HUNT_SEEDS", "1"))
ROUNDS = 4
RUN_S_MAX = patient(200)
# How long after the start of a run the disturbance happens: usually during a batch.
LATEST_S = 3.0
DISTURBANCES = ("nothing", "cut", "kill", "before", "after")


class Lost(Exception):
    """The driver ends here, as if it were killed."""


def hunted_source(folder: Path) -> type[pyspark_warren.DefaultSource]:
    """The connector, whose driver ends before or after a commit when `folder` has a file of that name."""

    def reached(window: str) -> None:
        if (folder / window).exists():
            (folder / window).unlink()
            raise Lost(window)

    class WindowedWriter(ArrowStreamWriter):
        """A writer that reaches the windows of the commit."""

        def __init__(self, options: WriteOptions) -> None:
            super().__init__(options)

        def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
            reached("before")
            super().commit(messages, batchId)
            reached("after")

        def abort(self, messages: Any, batchId: int) -> None:  # noqa: N803
            """Do nothing: a killed driver does not abort."""

    class Hunted(pyspark_warren.DefaultSource):
        """Replaces the connector under another name."""

        @classmethod
        def name(cls) -> str:
            return "hunted"

        def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
            return WindowedWriter(write_options(self.options.copy()))

    return Hunted


class Hunt:
    """One query, and its disturbances."""

    def __init__(
        self, spark: SparkSession, folder: Path, place: BrokerUnderTest, chance: random.Random
    ) -> None:
        self.relays: list[Relay] = []
        self._spark = spark
        self._folder = folder
        self._place = place
        self._chance = chance

    def run(self, disturbance: str) -> None:
        """Run the query until everything is read, or a disturbance ends it."""
        amqp, http = self.relays
        options = {
            "uri": f"amqp://guest:guest@127.0.0.1:{amqp.port}/%2f",
            "managementUri": f"http://127.0.0.1:{http.port}",
            "retries": "8",
        }
        reader = self._spark.readStream.format("warren").options(**options)
        reader = reader.option("minPartitions", self._chance.choice([1, 2, 5]))
        rows = reader.option("maxOffsetsPerTrigger", self._chance.choice([90, 300, 1_000])).load("events")
        # With all columns each row differs; with the body alone, rows are sent together.
        rows = rows.select("body", "message_id") if self._chance.random() < 0.5 else rows.select("body")
        if self._chance.random() < 0.3:
            rows = rows.repartition(3)
        writer = rows.writeStream.format("hunted").options(**options).option("exchange", "sent")
        writer = writer.option("txn", "staged").option("checkpointLocation", str(self._folder / "checkpoint"))
        with self._disturbed(disturbance):
            query = writer.trigger(availableNow=True).start()
            try:
                assert query.awaitTermination(RUN_S_MAX), f"it does not end: {disturbance}"
            except StreamingQueryException:
                # A run without a disturbance must complete.
                if disturbance == "nothing":
                    raise

    def _cut(self) -> None:
        for relay in self.relays:
            relay.cut()

    @contextmanager
    def _disturbed(self, disturbance: str) -> Iterator[None]:
        if disturbance in ("before", "after"):
            (self._folder / disturbance).touch()
        doing: dict[str, Callable[[], None]] = {
            "cut": self._cut,
            "kill": lambda: kill_broker(self._folder),
        }
        timer = threading.Timer(self._chance.uniform(0, LATEST_S), doing.get(disturbance, lambda: None))
        timer.start()
        try:
            yield
        finally:
            timer.join()
            for name in ("before", "after"):
                (self._folder / name).unlink(missing_ok=True)


def test_a_query_without_its_checkpoint_is_new_unless_its_transaction_has_a_name(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("begun", STREAM)
    warren.publish("begun", [b"%d" % number for number in range(400)])
    for name, copies in ((None, 2), ("named", 1)):
        warren.declare("anew", STREAM)
        for folder in ("first", "second"):
            reader = spark.readStream.format("warren").options(**warren.options)
            rows = reader.option("maxOffsetsPerTrigger", 150).load("begun").select("body")
            options = {"queue": "anew", "txn": "staged"} | ({"txnId": name} if name else {})
            writer = rows.writeStream.format("warren").options(**warren.options, **options)
            checkpoint = str(tmp_path / f"{name} {folder}")
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            assert query.awaitTermination(RUN_S_MAX)
        found = [row["body"] for row in rows_of(warren, "anew")]
        assert counted(found) == (400 * copies, 400)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", ["stream", "lease"])
def test_each_row_is_in_a_stream_once_whatever_disturbs_its_query(
    spark: SparkSession, tmp_path: Path, kind: str, seed: int
) -> None:
    chance = random.Random(f"{kind} {seed}")
    spark.dataSource.register(hunted_source(tmp_path))
    with restarted_broker(tmp_path, tmp_path) as place, ExitStack() as stack:
        place.declare("events", STREAM if kind == "stream" else {})
        streams = ("out-1", "out-2")
        place.fan_out("sent", dict.fromkeys(streams, STREAM))
        hunt = Hunt(spark, tmp_path, place, chance)
        hunt.relays = [stack.enter_context(relayed(port)) for port in (place.port, place.management)]
        sent: list[bytes] = []
        done = []
        for _ in range(ROUNDS):
            more = [b"%d" % number for number in range(len(sent), len(sent) + chance.randrange(700))]
            place.publish("events", more)
            sent += more
            done.append(chance.choice(DISTURBANCES))
            hunt.run(done[-1])
        hunt.run("nothing")
        for name in streams:
            found = [row["body"] for row in rows_of(place, name)]
            assert counted(found) == (len(sent), len(sent)), f"rows of {name}, and those that differ: {done}"
            assert set(found) == set(sent)
        if kind == "lease":
            assert place.count("events") == 0
