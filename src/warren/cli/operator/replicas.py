"""Commands for the replicas of quorum queues: where they are, their state, and who leads."""

from collections import Counter
from urllib.parse import quote

import click

from warren.cli.operator.command_types import CustomCommand, OperatorCommand, RequestCommand
from warren.cli.operator.failures import Failure
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.parameters import QUEUE, flag, named, option
from warren.cli.operator.session import Arguments, Session

_CHANGED = ("vhost", "name", "size", "result")
_LEADERS = ("node", "quorum queues")
_EVERYTHING = ".*"
# Columns of the status, under their names in the API.
_STATUS = {
    "node": "Node Name",
    "state": "Raft State",
    "membership": "Membership",
    "last index": "Last Log Index",
    "written": "Last Written",
    "committed": "Commit Index",
    "applied": "Last Applied",
    "snapshot": "Snapshot Index",
    "term": "Term",
}


def _show_status(session: Session, arguments: Arguments) -> None:
    rows: list[Row] = session.api.get(filled("/queues/quorum/{vhost}/{queue}/status", arguments))
    if session.is_json:
        session.print_json(rows)
    else:
        session.print_rows(tuple(_STATUS), [[row[name] for name in _STATUS.values()] for row in rows])


def _grow(session: Session, arguments: Arguments) -> None:
    body = {"strategy": arguments["strategy"], **_patterns(arguments)}
    _print_changes(session, arguments, session.api.send("POST", _path(arguments, "grow"), body))


def _shrink(session: Session, arguments: Arguments) -> None:
    body = _patterns(arguments)
    _print_changes(session, arguments, session.api.send("DELETE", _path(arguments, "shrink"), body))


def _path(arguments: Arguments, action: str) -> str:
    return f"/queues/quorum/replicas/on/{quote(arguments['node'], safe='')}/{action}"


def _patterns(arguments: Arguments) -> dict[str, str]:
    return {name: arguments[name] for name in ("vhost_pattern", "queue_pattern")}


def _print_changes(session: Session, arguments: Arguments, changed: list[Row]) -> None:
    """Print what became of each queue. Raises Failure if one was not changed."""
    failed = [row for row in changed if row["result"] != "ok"]
    shown = failed if arguments["errors_only"] else changed
    session.print_rows(_CHANGED, [[row[name] for name in _CHANGED] for row in shown])
    if failed:
        raise Failure(f"{len(failed)} of {len(changed)} queues were not changed")


def _rebalance(session: Session, arguments: Arguments) -> None:
    if arguments["type"] in ("all", "quorum"):
        session.api.send("POST", "/rebalance/queues", _patterns(arguments))
    else:
        session.note("only quorum queues have leaders that can move")
    columns = {"columns": "leader,type"}
    queues = [
        row for row in session.api.rows("/queues", columns, session.progress) if row["type"] == "quorum"
    ]
    led = Counter(row.get("leader") or "none" for row in queues)
    session.print_rows(_LEADERS, sorted(led.items()))


_MEMBER = named("node", "/nodes")
_KINDS = click.Choice(("all", "classic", "quorum", "stream"))
_VHOST_PATTERN = option(
    "--vhost-pattern", "regular expression for virtual hosts", default=_EVERYTHING, show_default=True
)
_QUEUE_PATTERN = option(
    "--queue-pattern", "regular expression for queues", default=_EVERYTHING, show_default=True
)
_ERRORS_ONLY = flag("--errors-only", text="print only what was not changed")
_MEMBERSHIP = option(
    "--membership",
    "no effect: a replica votes when it has all messages",
    type=click.Choice(("promotable", "voter")),
)

REPLICAS: tuple[OperatorCommand, ...] = (
    CustomCommand(
        group="queues",
        name="quorum-status",
        known_as="quorum_status",
        is_in_vhost=True,
        takes=(QUEUE,),
        does=_show_status,
        text="Show the replicas of a quorum queue: who leads, and how far each is.",
    ),
    RequestCommand(
        group="queues",
        name="add-member",
        known_as="add_member",
        text="Give a quorum queue a replica on NODE.",
        method="POST",
        path="/queues/quorum/{vhost}/{queue}/replicas/add",
        takes=(QUEUE, _MEMBER),
        body=lambda arguments: {"node": arguments["node"]},
        takes_known_as=(_MEMBERSHIP,),
        says="queue {queue}: has a replica on {node}, which votes when it has all messages",
    ),
    RequestCommand(
        group="queues",
        name="delete-member",
        known_as="delete_member",
        text="Delete the replica of a quorum queue on NODE.",
        method="DELETE",
        path="/queues/quorum/{vhost}/{queue}/replicas/delete",
        takes=(QUEUE, _MEMBER),
        body=lambda arguments: {"node": arguments["node"]},
        says="queue {queue}: has no replica on {node}",
    ),
    CustomCommand(
        group="queues",
        name="grow",
        known_as="grow",
        text="Give quorum queues a replica on NODE: all, or those with an even number of replicas.",
        takes=(
            _MEMBER,
            click.Argument(["strategy"], type=click.Choice(("all", "even")), metavar="all|even"),
            _VHOST_PATTERN,
            _QUEUE_PATTERN,
            _ERRORS_ONLY,
        ),
        takes_known_as=(_MEMBERSHIP,),
        does=_grow,
    ),
    CustomCommand(
        group="queues",
        name="shrink",
        known_as="shrink",
        text="Delete the replicas of quorum queues on NODE, except of those that have no other one.",
        takes=(_MEMBER, _VHOST_PATTERN, _QUEUE_PATTERN, _ERRORS_ONLY),
        does=_shrink,
    ),
    CustomCommand(
        group="queues",
        name="rebalance",
        known_as="rebalance",
        text="Spread the leaders of quorum queues over their nodes, and show how many each node leads.",
        takes=(
            click.Argument(["type"], type=_KINDS, metavar="[all|classic|quorum|stream]", default="all"),
            _VHOST_PATTERN,
            _QUEUE_PATTERN,
        ),
        takes_instead=(click.Argument(["type"], type=_KINDS), _VHOST_PATTERN, _QUEUE_PATTERN),
        does=_rebalance,
    ),
    RequestCommand(
        group="health",
        name="quorum-critical",
        known_as="check_if_node_is_quorum_critical",
        text="Check that quorum queues have a majority without this node.",
        method="GET",
        path="/health/checks/node-is-quorum-critical",
        says="all quorum queues have a majority without this node",
    ),
)
