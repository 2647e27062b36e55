"""SQL over queues, streams and lakes; nothing is consumed.

A query names tables as `queue.orders` and `stream.events`; other names than identifiers are quoted, as in
queue.`orders.new` and lake.`./lake/orders`. Each table becomes a temporary view of its messages, with `body`
as text, and with the body as binary in `data`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_warren.pipelines.table_reader import TableIdentifier, read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The first words of statements that only read.
READ_STATEMENTS = ("select", "with", "from", "values", "describe", "desc", "explain", "show")
# Matches table names, and also strings, quoted names and comments, which are skipped.
_TOKENS = re.compile(
    r"""
    (?P<other> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | --[^\n]* | /\*.*?\*/ | `(?:[^`]|``)*` )
  | (?<![\w.`]) (?P<kind>queue|stream|lake) \s* \. \s* (?: `(?P<quoted>(?:[^`]|``)+)` | (?P<plain>\w+) )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlQuery:
    """A query with its tables replaced by views, and the table of each view."""

    text: str
    views: Mapping[str, TableIdentifier]


def parse(query: str, tables: Mapping[str, TableIdentifier]) -> SqlQuery:
    """Replace table names in `query` by names of views; `tables` are additional names chosen by the user.

    Raises ValueError if the statement does not only read.
    """
    bare = _COMMENTS.sub("", query).strip().strip("(").split(None, 1)
    if not bare or bare[0].lower() not in READ_STATEMENTS:
        said = bare[0] if bare else "nothing"
        raise ValueError(
            f"a query must begin with {', '.join(READ_STATEMENTS).upper()}, not {said!r}: it only reads"
        )
    names: dict[TableIdentifier, str] = {}
    taken = set(tables)

    def name_of(found: re.Match[str]) -> str:
        if found["kind"] is None:
            return found[0]
        name = found["plain"] or found["quoted"].replace("``", "`")
        place = TableIdentifier(kind=found["kind"].lower(), name=name)
        if place not in names:
            names[place] = _free(place, taken)
            taken.add(names[place])
        return f"`{names[place]}`"

    text = _TOKENS.sub(name_of, query)
    return SqlQuery(text=text, views=dict(tables) | {view: place for place, view in names.items()})


def prepare(
    spark: "SparkSession",
    query: SqlQuery,
    broker: Mapping[str, str],
    storage: Mapping[str, str] | None = None,
) -> None:
    """Create the temporary views; `storage` are options of the object stores of lakes."""
    for view, place in query.views.items():
        messages = read(spark, place, broker, storage=storage)
        messages.selectExpr(*_shown(messages)).createOrReplaceTempView(view)


def run(spark: "SparkSession", query: SqlQuery) -> "DataFrame":
    """Run the query; each run reads its tables again."""
    return spark.sql(query.text)


def _shown(messages: "DataFrame") -> Iterator[str]:
    """Yield the columns of a view, with the body as text and as binary."""
    kinds = dict(messages.dtypes)
    is_binary = kinds.get("body") == "binary" and "octets" not in kinds
    for name in messages.columns:
        quoted = f"`{name.replace('`', '``')}`"
        # Spark Connect cannot send text that is not valid UTF-8.
        yield "make_valid_utf8(cast(body as string)) as body" if name == "body" and is_binary else quoted
    if is_binary:
        yield "body as octets"


def _free(place: TableIdentifier, taken: set[str]) -> str:
    """Return a unique name for the view of a table."""
    name = plain = f"{place.kind}_{re.sub(r'[^A-Za-z0-9]+', '_', place.name).strip('_') or 'it'}"
    number = 1
    while name in taken:
        number += 1
        name = f"{plain}_{number}"
    return name


_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
