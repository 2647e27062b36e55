"""SQL over queues, streams and lakes together; nothing is consumed.

Tables are named where a query uses them: `queue.orders`, `stream.events`, and in backticks whatever is no
plain word, as in queue.`orders.new` and lake.`./lake/orders`. Each becomes a view of its messages with `body`
as text, and as it was sent in `octets`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_warren.pipelines.table_reader import TableIdentifier, read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What a query may begin with: what changes nothing.
READ_STATEMENTS = ("select", "with", "from", "values", "describe", "desc", "explain", "show")
# What names a table, and what only looks as if: text, quoted names and comments are passed over.
_TOKENS = re.compile(
    r"""
    (?P<other> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | --[^\n]* | /\*.*?\*/ | `(?:[^`]|``)*` )
  | (?<![\w.`]) (?P<kind>queue|stream|lake) \s* \. \s* (?: `(?P<quoted>(?:[^`]|``)+)` | (?P<plain>\w+) )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlQuery:
    """A query whose tables are views, and what each view is of."""

    text: str
    views: Mapping[str, TableIdentifier]


def parse(query: str, tables: Mapping[str, TableIdentifier]) -> SqlQuery:
    """The query with views in place of what it reads; `tables` are further names, as the user chose them.

    ValueError if it is no query that only reads.
    """
    bare = _COMMENTS.sub("", query).strip().strip("(").split(None, 1)
    if not bare or bare[0].lower() not in READ_STATEMENTS:
        said = bare[0] if bare else "nothing"
        raise ValueError(
            f"a query begins with {', '.join(READ_STATEMENTS).upper()}, not {said!r}: it only reads"
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
    """Make the views; `storage` are options of the object stores that lakes are in."""
    for view, place in query.views.items():
        messages = read(spark, place, broker, storage=storage)
        messages.selectExpr(*_shown(messages)).createOrReplaceTempView(view)


def run(spark: "SparkSession", query: SqlQuery) -> "DataFrame":
    """What it finds now; run again, it looks again."""
    return spark.sql(query.text)


def _shown(messages: "DataFrame") -> Iterator[str]:
    """The columns, with the body as text."""
    kinds = dict(messages.dtypes)
    has_octets = kinds.get("body") == "binary" and "octets" not in kinds
    for name in messages.columns:
        quoted = f"`{name.replace('`', '``')}`"
        # Spark Connect cannot send text that is no UTF-8.
        yield "make_valid_utf8(cast(body as string)) as body" if name == "body" and has_octets else quoted
    if has_octets:
        yield "body as octets"


def _free(place: TableIdentifier, taken: set[str]) -> str:
    """A name for a view that says what it is of, and that no other has."""
    name = plain = f"{place.kind}_{re.sub(r'[^A-Za-z0-9]+', '_', place.name).strip('_') or 'it'}"
    number = 1
    while name in taken:
        number += 1
        name = f"{plain}_{number}"
    return name


_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
