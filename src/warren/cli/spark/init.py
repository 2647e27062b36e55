"""`warren spark init`: writes a project for Spark's declarative pipelines that reads a queue or a stream."""

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from warren.cli.operator.failures import USAGE, Failure

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_SPECIFICATION = """\
# Run by `spark-pipelines run` of Spark {since} or newer. `storage` has the checkpoints: without them, the
# pipeline starts from the beginning. Tables are in Spark's catalog, by default the folder spark-warehouse.
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
"""A streaming table of the messages, each once."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

# The address, with its password, is read from the environment.
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


@dp.table(comment="Messages, and when the broker received them.")
def {name}_messages() -> DataFrame:
    spark = SparkSession.active()
    rows = spark.readStream.format("warren").options(**OPTIONS).load()
    return rows.selectExpr(
        "queue", "offset", "exchange", "routing_key", "message_id", "headers", "broker_timestamp",
        "make_valid_utf8(cast(body as string)) as body",
    )
'''
_BY_MINUTE = """\
-- Number and average size of the messages of each minute.
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

A declarative pipeline of Spark over the {kind} `{source}`. It needs Spark {since} or newer, installed with
`pip install 'pyspark[pipelines]'`, and Warren in the same environment.

    export WARREN_AMQP_URI=amqp://USER:PASSWORD@HOST:5672/%2f
    spark-pipelines dry-run   # check the pipeline
    spark-pipelines run       # read the available messages, and update all tables and views

Each Python function and each SQL statement in `transformations/` defines a table or a view. {taken}
"""
_TAKEN = {
    "queue": "Messages are\nacknowledged once they are in the table.",
    "stream": "The stream\nkeeps its messages.",
}
# The first Spark with pipelines, and the first with streaming from queues.
_SINCE = {"stream": (4, 1), "queue": (4, 2)}


def init(folder: str, queue: str | None, stream: str | None) -> None:
    """Write a project for Spark's declarative pipelines that reads a queue or a stream into FOLDER.

    It has a table of messages and a view by minute. Nothing is run, and no broker is contacted.
    """
    if bool(queue) == bool(stream):
        raise Failure("give exactly one of --queue and --stream", USAGE)
    _check_spark("queue" if queue else "stream")
    root = Path(folder).absolute()
    name = re.sub(r"\W+", "_", root.name.lower()).strip("_")
    if not _NAME.fullmatch(name):
        raise Failure(
            f"tables are named after the folder, which may have letters, digits and _: not {root.name!r}",
            USAGE,
        )
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise Failure(f"{folder} exists and is not empty", USAGE)
    for place, text in _files(root, name, queue, stream).items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text, encoding="utf-8")
    (root / "storage").mkdir()
    click.echo(f"{folder}: written; next: cd {folder} && spark-pipelines dry-run")


def _check_spark(kind: str) -> None:
    """Raise Failure if the installed Spark is too old; without Spark, the project is for another machine."""
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return
    if tuple(map(int, re.findall(r"\d+", found)[:2])) < _SINCE[kind]:
        raise Failure(f"a pipeline over a {kind} needs Spark {_since(kind)} or newer; {found} is installed")


def _since(kind: str) -> str:
    return ".".join(map(str, _SINCE[kind]))


def _files(root: Path, name: str, queue: str | None, stream: str | None) -> dict[str, str]:
    """Return the text of each file by its path."""
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
        click.Option(["--queue"], metavar="NAME", help="the queue to read; its messages are consumed"),
        click.Option(["--stream"], metavar="NAME", help="the stream to read"),
    ],
    callback=init,
    help=init.__doc__,
)
