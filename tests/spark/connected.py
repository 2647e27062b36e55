"""Reads with Spark Connect, whose server is a separate JVM, and prints the results."""

import json
import os
import sys

from pyspark.sql import SparkSession

from pyspark_warren.pipelines import dlx_report, rollup, table_reader
from pyspark_warren.pipelines.sql import parse, prepare, run
from warren.spark import register


def main() -> None:
    """Read the queue and the stream that are named after the options of the reader, in each way."""
    options, dead, measured = json.loads(sys.argv[1]), *sys.argv[2:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.remote("local[1]").getOrCreate()
    register(spark)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    letters = table_reader.read(spark, table_reader.parse_table(f"queue.{dead}"), options, dlx_report.READ)
    messages = table_reader.read(spark, table_reader.parse_table(f"stream.{measured}"), options, rollup.READ)
    query = parse(f"select body, count(*) as n from queue.`{dead}` group by 1 order by 1", {})
    prepare(spark, query, options)
    found = {
        "kind": type(spark).__module__,
        "deaths": [row.asDict() for row in dlx_report.report(letters).collect()],
        "windows": [row.asDict() for row in rollup.rollup(rollup.events(messages), "1 day").collect()],
        "rows": [row.asDict() for row in run(spark, query).collect()],
    }
    print(json.dumps(found, default=str))
    spark.stop()


if __name__ == "__main__":
    main()
