"""The commands of RabbitMQ about its application on a node, as scripts that form clusters use them.

RabbitMQ's application can be stopped while the node runs, which then joins a cluster or is reset. Warren's
nodes do both without being stopped: they are in maintenance mode instead, without clients.
"""

from warren.cli.operator.cluster import await_restart, cluster_of
from warren.cli.operator.command_types import CustomCommand, OperatorCommand
from warren.cli.operator.failures import USAGE, ToolFailure
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.rabbitmq_facts import this_node
from warren.cli.operator.session import Arguments, Session

_EX_USAGE = 64
_RUNS = (
    "Error: this command requires the 'rabbit' app to be stopped on the target node. Stop it with "
    "'rabbitmqctl stop_app'."
)


def _stop(session: Session, arguments: Arguments) -> None:
    node = this_node(session)
    session.begin(f"Stopping rabbit application on node {node} ...")
    session.api.send("PUT", _path("maintenance", node))


def _start(session: Session, arguments: Arguments) -> None:
    node = this_node(session)
    session.begin(f"Starting node {node} ...")
    session.api.send("DELETE", _path("maintenance", node))


def _reset(session: Session, arguments: Arguments) -> None:
    found = cluster_of(session)
    node: str = found["node"]
    if not _is_stopped(found):
        raise ToolFailure(_RUNS, USAGE, tool_status=_EX_USAGE)
    session.begin(f"Resetting node {node} ...")
    session.api.send("POST", _path("reset", node) + "?accept-loss=true")
    await_restart(session, lambda found: len(found["members"]) == 1 and not _is_stopped(found))


def _is_stopped(cluster: Row) -> bool:
    """True if the node that says this of its cluster is in maintenance mode."""
    return any(one["is_draining"] for one in cluster["members"] if one["name"] == cluster["node"])


def _path(what: str, node: str) -> str:
    return filled(f"/warren/nodes/{{node}}/{what}", {"node": node})


RABBITMQ_APPLICATION: tuple[OperatorCommand, ...] = (
    CustomCommand(
        group="",
        name="stop_app",
        known_as="stop_app",
        text="Put the node into maintenance mode, without clients.",
        does=_stop,
    ),
    CustomCommand(
        group="", name="start_app", known_as="start_app", text="End the maintenance mode.", does=_start
    ),
    CustomCommand(
        group="",
        name="reset",
        known_as="reset",
        text="Leave the cluster and give up everything, in maintenance mode.",
        does=_reset,
    ),
)
