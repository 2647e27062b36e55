"""Commands that exist only under their names in RabbitMQ, for its scripts and health checks."""

import click

from warren.cli.operator.command_types import CustomCommand, OperatorCommand, Run, vhost_option
from warren.cli.operator.failures import ToolFailure
from warren.cli.operator.local_process import LOCAL_PROCESS
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.parameters import PERMISSIONS, QUEUE, USER, fields, option
from warren.cli.operator.rabbitmq_application import RABBITMQ_APPLICATION
from warren.cli.operator.rabbitmq_checks import RABBITMQ_CHECKS
from warren.cli.operator.rabbitmq_facts import this_node
from warren.cli.operator.rabbitmq_newer_commands import RABBITMQ_NEWER
from warren.cli.operator.rabbitmq_status import RABBITMQ_STATUS
from warren.cli.operator.session import Arguments, Session


def _without_mirrors(session: Session, arguments: Arguments) -> None:
    node = this_node(session)
    session.say(f"Node {node} has no mirrored queues, the check does not apply")


def _unresponsive(session: Session, arguments: Arguments) -> None:
    # Queues are not processes: one that exists responds if the node does.
    session.api.get("/overview", [("columns", "node")])
    session.begin(f"Listing unresponsive queues for vhost {arguments['vhost']} ...")
    session.print_rows(("name",), [])


def _after_upgrade(session: Session, arguments: Arguments) -> None:
    session.api.send("POST", "/rebalance/queues", {})
    session.say("Leaders of quorum queues are balanced; no other step follows an upgrade")


def _peek(session: Session, arguments: Arguments) -> None:
    asked = [("state", "ready"), ("from", arguments["position"] - 1), ("count", 1)]
    path = filled("/warren/queues/{vhost}/{queue}/messages", arguments)
    messages: list[Row] = session.api.get(path, asked)["messages"]
    if not messages:
        raise ToolFailure("Message at the given position was not found", tool_status=65)
    session.print_rows(("keys", "values"), list(messages[0].items()))


def _set_permissions_globally(session: Session, arguments: Arguments) -> None:
    user = arguments["user"]
    session.begin(f'Setting permissions for user "{user}" in all virtual hosts ...')
    body = fields("configure", "write", "read")(arguments)
    for row in session.api.get("/vhosts", [("columns", "name")]):
        session.api.send("PUT", filled("/permissions/{name}/{user}", row | {"user": user}), body)


def _command(
    name: str, text: str, does: Run, *takes: click.Parameter, is_in_vhost: bool = False
) -> OperatorCommand:
    in_vhost = (vhost_option("/"),) if is_in_vhost else ()
    return CustomCommand(group="", name=name, known_as=name, text=text, does=does, takes=(*in_vhost, *takes))


RABBITMQ_ONLY: tuple[OperatorCommand, ...] = (
    *RABBITMQ_STATUS,
    *LOCAL_PROCESS,
    *RABBITMQ_APPLICATION,
    *RABBITMQ_CHECKS,
    *RABBITMQ_NEWER,
    _command(
        "check_if_node_is_mirror_sync_critical",
        "Succeed: there are no mirrored queues.",
        _without_mirrors,
    ),
    _command("await_online_synchronized_mirror", "Succeed: there are no mirrored queues.", _without_mirrors),
    _command(
        "list_unresponsive_queues",
        "List queues that do not respond: none.",
        _unresponsive,
        click.Argument(["columns"], nargs=-1),
        click.Option(["--local"], is_flag=True, hidden=True, help="those of the node"),
        option("--queue-timeout", "no effect: a queue responds if its node does", type=click.IntRange(0)),
        is_in_vhost=True,
    ),
    _command("post_upgrade", "Balance the leaders of quorum queues.", _after_upgrade),
    _command(
        "peek",
        "Show the ready message at POSITION, from 1, of a queue.",
        _peek,
        QUEUE,
        click.Argument(["position"], type=click.IntRange(1)),
        is_in_vhost=True,
    ),
    _command(
        "set_permissions_globally",
        "Set the permissions of a user in all virtual hosts.",
        _set_permissions_globally,
        USER,
        *PERMISSIONS,
    ),
)
