"""`warren spark init`: a project of Spark's declarative pipelines that reads a queue or a stream."""

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from warren.cli.operator.failures import USAGE, Failure

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_SPECIFICATION = """\
# Run by `spark-pipelines run`, of Spark {since} or newer. `storage` has where each query stands: without it,
# the pipeline begins again. Tables are in Spark's catalog, as a rule the folder spark-warehouse.
name: "{name}"
storage: "{storage}"
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.shuffle.partitions: "4"
  spark.sql.session.timeZone: UTC
"""
_MESSAGES = '''\
"""What Warren has, as a table that grows: each message once."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

# The password stays in the environment, and out of this project.
OPTIONS = {{
    "uri": os.environ.get("WARREN_AMQP_URI", "amqp://guest:guest@127.0.0.1:5672/%2f"),
    {where},
}}
for option, variable in {{
    "managementUri": "WARREN_URI", "tls.caFile": "WARREN_CACERT", "tls.certFile": "WARREN_CERT",
    "tls.keyFile": "WARREN_KEY", "tls.keyPassword": "WARREN_KEY_PASSWORD",
}}.items():
    if variable in os.environ:
        OPTIONS[option] = os.environ[variable]


@dp.table(comment="Messages as they came, and when the broker took them in.")
def {name}_messages() -> DataFrame:
    spark = SparkSession.active()
    rows = spark.readStream.format("warren").options(**OPTIONS).load()
    return rows.selectExpr(
        "queue", "offset", "exchange", "routing_key", "message_id", "headers", "broker_timestamp",
        "make_valid_utf8(cast(body as string)) as body",
    )
'''
_BY_MINUTE = """\
-- How many messages came in each minute, and how large they were.
CREATE MATERIALIZED VIEW {name}_by_minute AS
SELECT
  date_trunc('minute', broker_timestamp) AS minute,
  routing_key,
  count(*) AS messages,
  avg(octet_length(body)) AS octets
FROM {name}_messages
GROUP BY ALL
"""
_README = """\
# {name}

A declarative pipeline of Spark over the {kind} `{source}` of Warren. It needs Spark {since} or newer, as
`pip install 'pyspark[pipelines]'` brings it, and Warren in the same environment.

    export WARREN_AMQP_URI=amqp://USER:PASSWORD@HOST:5672/%2f
    spark-pipelines dry-run   # whether it could run
    spark-pipelines run       # take what there is, and bring the views up to date

`transformations/` has a table or a view in each function of Python and each statement of SQL. {taken}
"""
_TAKEN = {
    "queue": "Messages are taken\nout of the queue once the table has them.",
    "stream": "The stream keeps\nits messages.",
}
# Since when Spark has pipelines, and since when a query takes messages out of a queue.
_SINCE = {"stream": (4, 1), "queue": (4, 2)}


def init(folder: str, queue: str | None, stream: str | None) -> None:
    """Write a project for Spark's declarative pipelines that reads a queue or a stream into FOLDER.

    It has a table of messages and a view by minute, to begin with. Nothing is run, and no broker is asked.
    """
    if bool(queue) == bool(stream):
        raise Failure("say what it reads by one of --queue and --stream", USAGE)
    _check_spark("queue" if queue else "stream")
    root = Path(folder).absolute()
    name = re.sub(r"\W+", "_", root.name.lower()).strip("_")
    if not _NAME.fullmatch(name):
        raise Failure(f"tables are named by the folder: letters, digits and _, not {root.name!r}", USAGE)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise Failure(f"{folder} is there already, and not empty", USAGE)
    for place, text in _files(root, name, queue, stream).items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text, encoding="utf-8")
    (root / "storage").mkdir()
    click.echo(f"{folder}: written; next: cd {folder} && spark-pipelines dry-run")


def _check_spark(kind: str) -> None:
    """Failure if the Spark that is here could not run it; without one, another machine will."""
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return
    if tuple(map(int, re.findall(r"\d+", found)[:2])) < _SINCE[kind]:
        raise Failure(f"a pipeline over a {kind} needs Spark {_since(kind)} or newer; here is {found}")


def _since(kind: str) -> str:
    return ".".join(map(str, _SINCE[kind]))


def _files(root: Path, name: str, queue: str | None, stream: str | None) -> dict[str, str]:
    """What is written, by its place."""
    kind, source = ("queue", queue) if queue else ("stream", stream)
    where = f'"queue": {source!r}' + ("" if queue else ',\n    "mode": "stream"')
    return {
        "spark-pipeline.yml": _SPECIFICATION.format(
            name=name, storage=(root / "storage").as_uri(), since=_since(kind)
        ),
        "README.md": _README.format(
            name=name, kind=kind, source=source, taken=_TAKEN[kind], since=_since(kind)
        ),
        "transformations/messages.py": _MESSAGES.format(name=name, where=where),
        "transformations/by_minute.sql": _BY_MINUTE.format(name=name),
    }


command: click.Command = click.Command(
    "init",
    params=[
        click.Argument(["folder"]),
        click.Option(["--queue"], metavar="NAME", help="the queue that it reads, whose messages are taken"),
        click.Option(["--stream"], metavar="NAME", help="the stream that it reads"),
    ],
    callback=init,
    help=init.__doc__,
)
