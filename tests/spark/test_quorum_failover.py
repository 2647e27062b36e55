"""A query from a quorum queue into others, whose leaders are killed: each row arrives once."""

import random
import threading
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.cluster.warren_cluster import WarrenCluster, warren_cluster
from tests.spark.brokers import BrokerUnderTest, rows_of
from tests.spark.killing import counted

QUORUM: dict[str, object] = {"x-queue-type": "quorum"}
ROUNDS = 4
RUN_S_MAX = 200
# How long after the start of a run the leader is killed: usually during a batch.
LATEST_S = 4.0
# Spark is connected to this node, which is not killed.
CLIENTS = "c"
# The node that leads each queue at first.
LEADERS = {"events": "a", "out-1": "b", "out-2": "a"}


def place(cluster: WarrenCluster, node: str) -> BrokerUnderTest:
    """A node as a broker."""
    return BrokerUnderTest(cluster.nodes[node].amqp, cluster.nodes[node].http)


def run(spark: SparkSession, broker: BrokerUnderTest, checkpoint: Path, *, may_fail: bool) -> None:
    """Run the query until everything is read, or until it fails."""
    rows = spark.readStream.format("warren").options(**broker.options, retries="8")
    rows = rows.option("maxOffsetsPerTrigger", 150).load("events").select("body")
    writer = rows.writeStream.format("warren").options(**broker.options, retries="8")
    writer = writer.option("exchange", "sent").option("txn", "staged")
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(RUN_S_MAX), "it does not end"
    except StreamingQueryException:
        if not may_fail:
            raise


@pytest.mark.long
def test_each_row_of_a_quorum_queue_is_in_the_others_once_although_leaders_are_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(1)
    with warren_cluster(tmp_path) as cluster:
        broker = place(cluster, CLIENTS)
        for queue, leader in LEADERS.items():
            place(cluster, leader).declare(queue, QUORUM)
        broker.fan_out("sent", {})
        broker.bind("sent", "out-1", "out-2")
        sent: list[bytes] = []
        for _ in range(ROUNDS):
            more = [b"%d" % number for number in range(len(sent), len(sent) + 600)]
            broker.publish("events", more)
            sent += more
            killed = chance.choice(list(LEADERS))
            killing = threading.Timer(chance.uniform(0, LATEST_S), cluster.replace_leader, (killed, CLIENTS))
            killing.start()
            run(spark, broker, tmp_path / "checkpoint", may_fail=True)
            killing.join()
        run(spark, broker, tmp_path / "checkpoint", may_fail=False)
        for queue in ("out-1", "out-2"):
            found = [row["body"] for row in rows_of(broker, queue)]
            assert counted(found) == (len(sent), len(sent)), f"rows of {queue}, and those that differ"
            assert set(found) == set(sent)
        assert broker.count("events") == 0
