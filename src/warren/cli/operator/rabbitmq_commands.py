"""Commands that exist only under their names in RabbitMQ, for its scripts and health checks."""

import socket

from warren.cli.operator.command_types import CustomCommand, OperatorCommand, Run, vhost_option
from warren.cli.operator.failures import UNHEALTHY, Failure
from warren.cli.operator.session import Arguments, Session

# Seconds for which a connection to a listener may take.
_CONNECT_S = 10.0
_ANY_ADDRESS = {"::": "::1", "0.0.0.0": "127.0.0.1"}


def _check_ports(session: Session, arguments: Arguments) -> None:
    """Connect to each listener of the node by its address."""
    found = session.api.get("/overview", [("columns", "node,listeners")])
    node = found["node"]
    ports, failed = [], []
    for each in found["listeners"]:
        if each["node"] != node:
            continue
        address = each["ip_address"]
        try:
            with socket.create_connection((_ANY_ADDRESS.get(address, address), each["port"]), _CONNECT_S):
                ports.append(str(each["port"]))
        except OSError as error:
            failed.append(f"{each['port']} ({each['protocol']}): {error.strerror or error}")
    if failed:
        raise Failure(f"connection to ports of node {node} failed: {', '.join(failed)}", UNHEALTHY)
    session.say(f"Successfully connected to ports {', '.join(ports)} on node {node}.")


def _check_node(text: str) -> Run:
    def does(session: Session, arguments: Arguments) -> None:
        node = session.api.get("/overview", [("columns", "node")])["node"]
        session.api.get("/healthchecks/node")
        session.say(text.format(node=node))

    return does


def _without_mirrors(session: Session, arguments: Arguments) -> None:
    node = session.api.get("/overview", [("columns", "node")])["node"]
    session.say(f"Node {node} has no mirrored queues, the check does not apply")


def _unresponsive(session: Session, arguments: Arguments) -> None:
    # Queues are not processes: one that exists responds if the node does.
    session.api.get("/overview", [("columns", "node")])
    session.begin(f"Listing unresponsive queues for vhost {arguments['vhost']} ...")
    session.print_rows(("name",), [])


def _after_upgrade(session: Session, arguments: Arguments) -> None:
    session.api.send("POST", "/rebalance/queues", {})
    session.say("Leaders of quorum queues are balanced; no other step follows an upgrade")


def _command(name: str, text: str, does: Run, *, is_in_vhost: bool = False) -> OperatorCommand:
    takes = (vhost_option("/"),) if is_in_vhost else ()
    return CustomCommand(group="", name=name, known_as=name, text=text, does=does, takes=takes)


_RUNNING = "RabbitMQ on node {node} is fully booted and running"
RABBITMQ_ONLY: tuple[OperatorCommand, ...] = (
    _command("check_port_connectivity", "Connect to all listeners of the node.", _check_ports),
    _command("node_health_check", "Check that the node is running.", _check_node("Health check passed")),
    _command("is_running", "Check that the node is running.", _check_node(_RUNNING)),
    _command(
        "is_booting",
        "Say whether the node is starting; a node that answers is not.",
        _check_node("RabbitMQ on node {node} is fully booted (check with is_running)"),
    ),
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
        is_in_vhost=True,
    ),
    _command("post_upgrade", "Balance the leaders of quorum queues.", _after_upgrade),
)
