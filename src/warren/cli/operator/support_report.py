"""Prints a report for support: the state of the broker, without messages and secrets."""

import click

from warren.cli.operator.command_types import CustomCommand, ListCommand, OperatorCommand
from warren.cli.operator.lists import LISTS
from warren.cli.operator.management_client import Row
from warren.cli.operator.node import NODE
from warren.cli.operator.rabbitmq_facts import this_node
from warren.cli.operator.rabbitmq_status import RABBITMQ_STATUS, STATUS
from warren.cli.operator.session import Arguments, Session, value_at
from warren.cli.operator.tasks import summary_of

# The lists in the report, by rabbitmqctl's names.
_LISTED = (
    "list_vhosts", "list_users", "list_permissions", "list_policies", "list_operator_policies",
    "list_parameters", "list_connections", "list_channels", "list_consumers", "list_exchanges",
    "list_queues", "list_bindings", "settings",
)  # fmt: skip
_LISTINGS = {
    command.known_as or command.name: command
    for command in (*LISTS, *NODE)
    if isinstance(command, ListCommand)
}
# What rabbitmqctl's report has once, and what it has for each virtual host.
_OF_NODE = (
    STATUS,
    *(command for command in RABBITMQ_STATUS if command.name in ("cluster_status", "environment")),
    *(_LISTINGS[name] for name in ("list_connections", "list_channels", "list_users", "list_vhosts")),
)
_OF_VHOST = tuple(
    _LISTINGS[name]
    for name in (
        "list_queues", "list_exchanges", "list_bindings", "list_permissions", "list_policies",
        "list_global_parameters", "list_parameters",
    )
)  # fmt: skip


def _report(session: Session, arguments: Arguments) -> None:
    if session.is_rabbitmq and not session.is_json:
        _report_as_rabbitmq(session)
        return
    summary = summary_of(session)
    report: dict[str, object] = {"status": summary}
    if not session.is_json:
        session.say("status")
        session.print_facts(summary)
    for name in _LISTED:
        listing = _LISTINGS[name]
        rows = _rows(session, listing)
        report[name.removeprefix("list_")] = rows
        if not session.is_json:
            session.say("")
            session.say(name.removeprefix("list_"))
            session.print_rows(listing.columns, [list(row.values()) for row in rows])
    if session.is_json:
        session.print_json(report)


def _report_as_rabbitmq(session: Session) -> None:
    """Print the report with the headings and the order of rabbitmqctl's, which programs look for."""
    session.begin(f"Reporting server status of node {this_node(session)} ...")
    for command in _OF_NODE:
        _section(session, command, None)
    for row in session.api.get("/vhosts", [("columns", "name")]):
        for command in _OF_VHOST:
            _section(session, command, row["name"])


def _section(session: Session, command: OperatorCommand, vhost: str | None) -> None:
    session.say("")
    context = click.get_current_context()
    given = {item.name: item.get_default(context) for item in command.parameters(is_known_as=True)}
    columns = command.columns if isinstance(command, ListCommand) else ()
    command.run(session, given | {"is_known_as": True, "columns": columns, "vhost": vhost})


def _rows(session: Session, listing: ListCommand) -> list[Row]:
    paths = [listing.renamed.get(name, name) for name in listing.columns]
    rows = session.api.rows(listing.path, {"columns": ",".join(paths)}, session.progress)
    return [
        {
            name: value_at({**row, **listing.fixed}, path)
            for name, path in zip(listing.columns, paths, strict=True)
        }
        for row in rows
    ]


SUPPORT_REPORT: tuple[OperatorCommand, ...] = (
    CustomCommand(
        group="nodes",
        name="report",
        known_as="report",
        text="Print a support report: status, lists and settings, without secrets.",
        does=_report,
    ),
)
