"""`shovel_status` and `federation_status`: the fields that rabbitmqctl 3.10.8 prints (measured).

Both list all virtual hosts unless -p names one, and `shovel_status` the static shovels, which are in none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click

from warren.cli.operator.command_types import CustomCommand, ListCommand, vhost_option
from warren.cli.operator.failures import USAGE, Failure
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.session import Arguments, Session

# rabbitmqctl's names of what every shovel has, and of what a running one has, with the names in the API.
_ALWAYS = {
    "name": "name",
    "vhost": "vhost",
    "type": "type",
    "state": "state",
    "source": "src_uri",
    "destination": "dest_uri",
    "termination_reason": "reason",
    "last_changed": "timestamp",
}
_RUNNING = {
    "source_protocol": "src_protocol",
    "destination_protocol": "dest_protocol",
    "source_queue": "src_queue",
    "source_exchange": "src_exchange",
    "source_exchange_key": "src_exchange_key",
    "destination_queue": "dest_queue",
    "destination_exchange": "dest_exchange",
    "destination_exchange_key": "dest_exchange_key",
}
SHOVEL_FIELDS = _ALWAYS | _RUNNING
_LINK_FIELDS = (
    "error", "exchange", "id", "last_changed", "local_connection", "queue", "status", "type", "upstream",
    "upstream_exchange", "upstream_queue", "uri", "vhost",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ShovelList(ListCommand):
    """Lists shovels; under rabbitmqctl's name with its fields."""

    def parameters(self, *, is_known_as: bool) -> list[click.Parameter]:
        return [vhost_option(None), click.Argument(["columns"], nargs=-1, metavar="[COLUMN]...")]

    def run(self, session: Session, arguments: Arguments) -> None:
        if not arguments["is_known_as"]:
            ListCommand.run(self, session, arguments)
            return
        unknown = [name for name in arguments["columns"] if name not in SHOVEL_FIELDS]
        if unknown:
            raise Failure(
                f"unknown column {unknown[0]!r}; columns: {', '.join(sorted(SHOVEL_FIELDS))}", USAGE
            )
        where = self.path if arguments["vhost"] is None else self.within
        rows = session.api.rows(filled(where, arguments), {}, session.progress)
        _print(session, [_shovel(row) for row in rows], arguments["columns"], _ALWAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkList(CustomCommand):
    """Lists federation links; under rabbitmqctl's name with its fields."""

    def run(self, session: Session, arguments: Arguments) -> None:
        if arguments["is_known_as"]:
            rows = federation_links(session, arguments)
            _print(session, [_link(row) for row in rows], (), _LINK_FIELDS)
        else:
            CustomCommand.run(self, session, arguments)


def federation_links(session: Session, arguments: Arguments) -> list[Row]:
    """The links of all virtual hosts or of one, or those of them that are down."""
    path = "/federation-links" + ("" if arguments["vhost"] is None else "/{vhost}")
    path += "/state/down" if arguments["only_down"] else ""
    return [dict(row) for row in session.api.rows(filled(path, arguments), {}, session.progress)]


def _shovel(row: Row) -> Row:
    names = SHOVEL_FIELDS if row["state"] == "running" else _ALWAYS
    shown = {name: row[where] for name, where in names.items() if where in row}
    return {"source": "", "destination": "", "termination_reason": ""} | shown


def _link(row: Row) -> Row:
    shown: Row = dict.fromkeys(_LINK_FIELDS, "")
    shown |= {name: row[name] for name in (*_LINK_FIELDS, "consumer_tag") if name in row}
    return shown | {"last_changed": row["timestamp"]}


def _print(session: Session, rows: Sequence[Row], asked: Sequence[str], usual: Iterable[str]) -> None:
    """Print `rows` with the columns `asked`; by default with all they have, sorted as rabbitmqctl sorts.

    Without rows, with those that every row has.
    """
    columns = tuple(asked) or sorted({name for row in rows for name in row} or usual)
    if session.is_json:
        session.print_json([{name: row[name] for name in columns if name in row} for row in rows])
    else:
        session.print_rows(columns, [[row.get(name, "") for name in columns] for row in rows])
