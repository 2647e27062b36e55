"""The checks of RabbitMQ's tools: a sentence or a JSON object, and the exit status of a failed check."""

import json
import socket

import click

from warren.cli.operator.command_types import CustomCommand, OperatorCommand, Run
from warren.cli.operator.failures import ToolFailure
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.parameters import option
from warren.cli.operator.rabbitmq_facts import (
    alarm_sentence,
    alarms_of,
    node_name,
    own_listeners,
    this_node,
)
from warren.cli.operator.rabbitmq_status import alarm_document
from warren.cli.operator.session import Arguments, Session

# Seconds for which a connection to a listener may take.
_CONNECT_S = 10.0
_ANY_ADDRESS = {"[::]": "::1", "0.0.0.0": "127.0.0.1"}


def _check_ports(session: Session, arguments: Arguments) -> None:
    """Connect to each listener of the node by its address."""
    node, listeners = own_listeners(session)
    session.begin(f"Testing TCP connections to all active listeners on node {node} ...")
    failed = []
    for each in listeners:
        if each["interface"].startswith("/"):
            # The command may run on another machine, or as another user.
            continue
        own = _ANY_ADDRESS.get(each["interface"], each["interface"].strip("[]"))
        address = arguments["address"] or own
        try:
            with socket.create_connection((address, each["port"]), _CONNECT_S):
                pass
        except OSError as error:
            failed.append(f"{each['port']} ({each['protocol']}): {error.strerror or error}")
    if failed:
        raise ToolFailure(f"Connection to ports of node {node} failed: {', '.join(failed)}")
    answer(
        session,
        f"Successfully connected to ports {_ports(listeners)} on node {node}.",
        {"listeners": listeners, "node": node, "result": "ok"},
    )


def _check_node(begins: str, text: str, *, is_told_first: bool = True, **document: object) -> Run:
    def does(session: Session, arguments: Arguments) -> None:
        node = _begun(session, arguments, begins) if is_told_first else this_node(session)
        if not is_told_first:
            session.begin(begins.format(node=node))
        session.api.get("/healthchecks/node")
        sentence = text.format(node=node)
        answer(session, sentence, {"message": sentence} | document)

    return does


def _begun(session: Session, arguments: Arguments, begins: str) -> str:
    """Return the name of the node; `begins` is printed also if it does not answer."""
    node = node_name(arguments["at_node"])
    try:
        node = this_node(session)
    finally:
        session.begin(begins.format(node=node))
    return node


def _ping(session: Session, arguments: Arguments) -> None:
    _begun(session, arguments, "Will ping {node} over its HTTP API ...")
    answer(session, "Ping succeeded", {"message": "Ping succeeded"})


def _check_alarms(*, is_local: bool) -> Run:
    def does(session: Session, arguments: Arguments) -> None:
        node = this_node(session)
        session.begin(f"Asking node {node} to report any {'local ' * is_local}resource alarms ...")
        alarms = alarms_of(session.api.get("/nodes"))
        found = [alarm for alarm in alarms if alarm["node"] == node or not is_local]
        if found:
            document = alarm_document(node, found) | {"result": "error"}
            raise _failed(session, "\n".join(map(alarm_sentence, found)), document)
        where = "no local alarms" if is_local else "no alarms, local or clusterwide"
        answer(session, f"Node {node} reported {where}", {"result": "ok"})

    return does


def _port(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not value.isdecimal():
        raise click.BadParameter("Argument must be a positive integer")
    return value


def _check_listener(field: str) -> Run:
    def does(session: Session, arguments: Arguments) -> None:
        node, listeners = own_listeners(session)
        wanted = arguments[field]
        which = f"{'on' if field == 'port' else 'for'} {field} {wanted}"
        session.begin(f"Asking node {node} if there's an active listener {which} ...")
        found = [each[field] for each in listeners]
        if wanted not in map(str, found):
            document = {"listeners": listeners, "missing": wanted, f"{field}s": found, "result": "error"}
            others = ", ".join(sorted({str(each) for each in found}))
            heading = "Found listeners that use the following ports"
            if field == "protocol":
                heading = "Found listeners for the following protocols"
            sentence = f"No listener for {field} {wanted} is active on node {node}. {heading}: {others}"
            raise _failed(session, sentence, document, has_heading=field == "protocol")
        document = {"node": node, field: wanted, "result": "ok"}
        answer(session, f"A listener for {field} {wanted} is running on node {node}.", document)

    return does


def check(path: str, begins: str, text: str) -> Run:
    """Return a check that asks a health check of the API; `text` tells that it has passed."""

    def does(session: Session, arguments: Arguments) -> None:
        node = this_node(session)
        session.begin(begins.format(node=node, **arguments))
        session.api.get(filled(path, arguments))
        answer(session, text.format(node=node, **arguments), {"result": "ok"})

    return does


def answer(session: Session, sentence: str, document: Row) -> None:
    """Print what a check has found, as a sentence or as `document` for programs."""
    if session.is_json:
        session.print_json_line(document)
    else:
        session.print_lines([sentence])


def _failed(session: Session, sentence: str, document: Row, *, has_heading: bool = False) -> ToolFailure:
    if session.is_json:
        return ToolFailure(json.dumps(document, separators=(",", ":")))
    return ToolFailure(sentence, has_heading=has_heading)


def _ports(listeners: list[Row]) -> str:
    return ", ".join(map(str, sorted({each["port"] for each in listeners if each["port"]})))


def _command(name: str, text: str, does: Run, *takes: click.Parameter) -> OperatorCommand:
    return CustomCommand(group="", name=name, known_as=name, text=text, does=does, takes=takes)


_RUNNING = "RabbitMQ on node {node} is fully booted and running"
_BOOTED = (
    "RabbitMQ on node {node} is fully booted (check with is_running), stopped or has not started booting yet"
)
RABBITMQ_CHECKS: tuple[OperatorCommand, ...] = (
    _command("ping", "Check that the node answers.", _ping),
    _command(
        "check_port_connectivity", "Connect to all listeners of the node.", _check_ports,
        click.Option(["-a", "--address"], help="address instead of those of the listeners"),
    ),
    _command(
        "check_running", "Check that the node is running.",
        _check_node("Checking if RabbitMQ is running on node {node} ...", _RUNNING),
    ),
    _command(
        "is_running", "Check that the node is running.",
        _check_node("Asking node {node} for its status ...", _RUNNING, result=True),
    ),
    _command(
        "is_booting", "Say whether the node is starting; a node that answers is not.",
        _check_node("Asking node {node} for its boot status ...", _BOOTED, result=False),
    ),
    _command(
        "node_health_check", "Check that the node is running.",
        _check_node("Checking health of node {node} ...", "Health check passed", is_told_first=False),
    ),
    _command("check_alarms", "Check that there are no alarms.", _check_alarms(is_local=False)),
    _command("check_local_alarms", "Check that the node has no alarms.", _check_alarms(is_local=True)),
    _command(
        "check_port_listener", "Check that the node listens on a port.", _check_listener("port"),
        click.Argument(["port"], callback=_port),
    ),
    _command(
        "check_protocol_listener", "Check that the node listens for a protocol.",
        _check_listener("protocol"), click.Argument(["protocol"]),
    ),
    _command(
        "check_virtual_hosts", "Check that all virtual hosts are running.",
        check(
            "/health/checks/virtual-hosts",
            "Checking if all vhosts are running on node {node} ...",
            "Node {node} reported all vhosts as running",
        ),
    ),
    _command(
        "check_certificate_expiration", "Check that no certificate expires soon.",
        check(
            "/health/checks/certificate-expiration/{within}/{unit}",
            "Checking certificate expiration on node {node} ...",
            "No certificates are expiring within {within} {unit}.",
        ),
        option("--within", "number of time units", type=click.IntRange(1), default=4, show_default=True),
        option(
            "--unit", "time unit",
            type=click.Choice(("days", "weeks", "months", "years")), default="weeks", show_default=True,
        ),
    ),
)  # fmt: skip
