"""Writes with Spark Connect, and prints the results.

connected_writing.py OPTIONS FOLDER

Batches are written by a process of the server. It is killed once for each pipeline at the worst moment: when
the batch is written, and Spark has not recorded it.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from pyspark.sql import SparkSession

from pyspark_warren.pipelines.archive import ArchiveProgress, archive
from pyspark_warren.pipelines.decode import DecodeProgress, schema_of, start
from warren.cli.main import main as program
from warren.spark import register

SCHEMA = "id bigint not null"


class Killer:
    """A listener that ends the process in which a batch was written, the first time."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __call__(self, reported: ArchiveProgress | DecodeProgress) -> None:
        is_done = isinstance(reported, DecodeProgress) or reported.stage == "committed"
        if is_done and not self._mark.exists():
            self._mark.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)


def killed(query: Any, mark: Path) -> bool:
    """Whether the query failed because a process other than this one ended."""
    try:
        query.awaitTermination()
    except Exception:
        return mark.exists() and int(mark.read_text()) != os.getpid()
    return False


def command(options: dict[str, str], *arguments: str) -> dict[str, Any]:
    """The output and the status of `warren spark` with this session."""
    variables = {"WARREN_AMQP_URI": options["uri"], "WARREN_URI": options["managementUri"]}
    done = CliRunner().invoke(program, ["spark", *arguments, "--remote", "local[1]"], env=variables)
    return {"status": done.exit_code, "out": done.stdout, "err": done.stderr}


def main() -> None:
    """Archive, replay and decode, each interrupted or repeated."""
    options, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.remote("local[1]").getOrCreate()
    register(spark)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    found: dict[str, Any] = {"kind": type(spark).__module__}

    lake, mark = folder / "lake", folder / "archived"
    query = archive(
        spark, lake, queue="connect.events", uri=options["uri"], management_uri=options["managementUri"],
        once=True, progress=Killer(mark),
    )  # fmt: skip
    found["archive killed"] = killed(query, mark)
    archiving = (
        "archive",
        "--queue",
        "connect.events",
        "--to",
        str(lake),
        "--available-now",
        "--consume",
        "--json",
    )
    found["archive"] = command(options, *archiving)

    what = ("--from", str(lake), "--exchange", "", "--routing-key", "connect.again", "--json")
    for run in ("replay", "replay again"):
        found[run] = command(options, "replay", "--name", "all", *what)

    mark = folder / "decoded"
    query = start(
        spark, source=options | {"queue": "connect.json"}, schema=schema_of(spark, SCHEMA),
        to=str(folder / "json"), dead_letters=options | {"queue": "connect.bad"}, once=True,
        progress=Killer(mark),
    )  # fmt: skip
    found["decode killed"] = killed(query, mark)
    decoding = (
        "--queue",
        "connect.json",
        "--schema",
        SCHEMA,
        "--to",
        str(folder / "json"),
        "--available-now",
    )
    found["decode"] = command(options, "decode", *decoding, "--consume", "--dead-letter-queue", "connect.bad")
    found["left"] = [str(one) for one in folder.rglob("told*")]
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
