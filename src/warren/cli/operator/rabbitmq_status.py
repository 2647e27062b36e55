"""The commands of RabbitMQ's tools that describe a node or its cluster, with RabbitMQ's text and JSON."""

from collections.abc import Callable

import click

from warren.cli.operator.command_types import CustomCommand, OperatorCommand, Run
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.rabbitmq_facts import (
    alarm_sentence,
    alarms_of,
    cluster_facts,
    memory_shares,
    own_listeners,
    settings_of,
    status_facts,
    this_node,
)
from warren.cli.operator.session import Arguments, Session

# Bytes of the units that the tools know.
_UNITS = {
    "bytes": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "pb": 10**15,
    "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "pi": 2**50,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "pib": 2**50,
}  # fmt: skip
_ATTEMPTS = ("protocol", "auth_attempts", "auth_attempts_failed", "auth_attempts_succeeded")
UNIT = click.Option(
    ["--unit"],
    type=click.Choice(tuple(_UNITS), case_sensitive=False),
    default="gb",
    show_default=True,
    help="unit of the sizes",
)


def _status(session: Session, arguments: Arguments) -> None:
    facts = status_facts(session)
    node = this_node(session)
    session.begin(f"Status of node {node} ...")
    if session.is_json:
        session.print_json_line(facts)
        return
    size = _in_unit(arguments["unit"])
    ((kind, value),) = facts["vm_memory_high_watermark_setting"].items()
    limit = size(facts["vm_memory_high_watermark_limit"])
    mark = f"{value} of available memory, computed to: {limit}" if kind == "relative" else limit
    files = facts["file_descriptors"]
    _print_sections(
        {
            "Runtime": [
                f"OS PID: {facts['pid']}",
                f"OS: {facts['os']}",
                f"Uptime (seconds): {facts['uptime']}",
                f"Is under maintenance?: {str(facts['is_under_maintenance']).lower()}",
                f"RabbitMQ version: {facts['rabbitmq_version']}",
                f"Node name: {node}",
            ],
            "Plugins": ["Enabled plugins:", "", *_points(facts["active_plugins"])],
            "Data directory": [f"Node data directory: {facts['data_directory']}"],
            "Config files": _points(facts["config_files"]),
            "Log file(s)": _points(facts["log_files"]),
            "Alarms": [alarm_sentence(alarm) for alarm in facts["alarms"]],
            "Memory": [
                f"Total memory used: {size(facts['memory']['total']['rss'])}",
                f"Calculation strategy: {facts['vm_memory_calculation_strategy']}",
                f"Memory high watermark setting: {mark}",
                "",
                *_shares(facts["memory"], arguments["unit"]),
            ],
            "File Descriptors": [
                f"Total: {files['total_used']}, limit: {files['total_limit']}",
                f"Sockets: {files['sockets_used']}, limit: {files['sockets_limit']}",
            ],
            "Free Disk Space": [
                f"Low free disk space watermark: {size(facts['disk_free_limit'])}",
                f"Free disk space: {size(facts['disk_free'])}",
            ],
            "Totals": [
                f"{words} count: {facts['totals'][name]}"
                for words, name in (
                    ("Connection", "connection_count"),
                    ("Queue", "queue_count"),
                    ("Virtual host", "virtual_host_count"),
                )
            ],
            "Listeners": [_listener(each) for each in facts["listeners"]],
        }
    )


def _cluster_status(session: Session, arguments: Arguments) -> None:
    facts = cluster_facts(session)
    session.begin(f"Cluster status of node {this_node(session)} ...")
    if session.is_json:
        session.print_json_line(facts)
        return
    _print_sections(
        {
            "Basics": [f"Cluster name: {facts['cluster_name']}"],
            "Disk Nodes": facts["disk_nodes"],
            "Running Nodes": facts["running_nodes"],
            "Versions": [
                f"{name}: RabbitMQ {version['rabbitmq_version']}"
                for name, version in facts["versions"].items()
            ],
            "Maintenance status": [
                f"Node: {name}, status: {status}" for name, status in facts["maintenance_status"].items()
            ],
            "Alarms": [alarm_sentence(alarm) for alarm in facts["alarms"]],
            "Network Partitions": [
                f"Node {name} cannot communicate with {', '.join(others)}"
                for name, others in facts["partitions"].items()
            ],
            "Listeners": [
                f"Node: {name}, {_listener(each)[0].lower()}{_listener(each)[1:]}"
                for name, listeners in facts["listeners"].items()
                for each in listeners
            ],
            "Feature flags": [
                f"Flag: {each['name']}, state: {each['state']}" for each in facts["feature_flags"]
            ],
        }
    )


def _alarms(session: Session, arguments: Arguments) -> None:
    node = this_node(session)
    session.begin(f"Asking node {node} to report any known resource alarms ...")
    found = alarms_of(session.api.get("/nodes"))
    if not session.is_json:
        session.print_lines(
            [alarm_sentence(alarm) for alarm in found]
            or [f"Node {node} reported no alarms, local or clusterwide"]
        )
    elif found:
        session.print_json_line(alarm_document(node, found) | {"result": "ok"})
    else:
        session.print_json_line({"alarms": [], "node": node, "result": "ok"})


def alarm_document(node: str, alarms: list[Row]) -> Row:
    """Return what the tools tell programs of alarms, seen from `node`."""
    return {
        "global": [alarm_sentence(alarm) for alarm in alarms if alarm["node"] != node],
        "local": [alarm_sentence(alarm) for alarm in alarms if alarm["node"] == node],
        "message": f"Node {node} reported alarms",
    }


def _listeners(session: Session, arguments: Arguments) -> None:
    node, listeners = own_listeners(session)
    session.begin(f"Asking node {node} to report its protocol listeners ...")
    if session.is_json:
        session.print_json_line({"listeners": listeners, "node": node, "result": "ok"})
    else:
        session.print_lines([_listener(each) for each in listeners])


def _memory(session: Session, arguments: Arguments) -> None:
    node = this_node(session)
    session.begin(f"Reporting memory breakdown on node {node}...")
    memory: Row = session.api.get(filled("/nodes/{node}/memory", {"node": node}))["memory"]
    if session.is_json:
        session.print_json_line(memory_shares(memory))
    else:
        session.print_lines(_shares(memory, arguments["unit"]))


def _environment(session: Session, arguments: Arguments) -> None:
    settings = settings_of(session)
    session.begin(f"Application environment of node {this_node(session)} ...")
    if session.is_json and session.is_rabbitmq:
        session.print_json_line({"rabbit": settings})
        return
    rows = session.api.get("/warren/config")
    names = ("key", "value", "origin")
    session.print_rows(names, [[row[name] for name in names] for row in rows])


def _server_version(session: Session, arguments: Arguments) -> None:
    found: Row = session.api.get("/overview", [("columns", "node,rabbitmq_version")])
    session.begin(f"Asking node {found['node']} for its RabbitMQ version...")
    if session.is_json:
        session.print_json_line({"result": "ok", "value": found["rabbitmq_version"]})
    else:
        session.print_lines([found["rabbitmq_version"]])


def _log_location(session: Session, arguments: Arguments) -> None:
    node = this_node(session)
    session.begin(f"Log file location(s) on node {node} ...")
    files: list[str] = session.api.get(filled("/nodes/{node}", {"node": node}))["log_files"]
    if session.is_json:
        session.print_json_line({"node_name": node, "paths": files, "result": "ok"})
    else:
        session.print_lines(files)


def _attempts(session: Session, arguments: Arguments) -> None:
    node = this_node(session)
    session.begin(f'Listing authentication attempts for node "{node}" ...')
    path = "/auth/attempts/{node}/source" if arguments["by_source"] else "/auth/attempts/{node}"
    rows: list[Row] = session.api.get(filled(path, {"node": node}))
    if session.is_json:
        session.print_json_line({"attempts": rows, "node": node, "result": "ok"})
        return
    sources = ("remote_address", "username") if arguments["by_source"] else ()
    names = (*sources, *_ATTEMPTS)
    session.print_rows(names, [[row.get(name) for name in names] for row in rows])


def _print_sections(sections: dict[str, list[str]]) -> None:
    for title, lines in sections.items():
        click.echo("\n".join([title, "", *(lines or ["(none)"]), ""]))


def _points(names: list[str]) -> list[str]:
    return [f" * {name}" for name in names]


def _listener(each: Row) -> str:
    return (
        f"Interface: {each['interface']}, port: {each['port']}, "
        f"protocol: {each['protocol']}, purpose: {each['purpose']}"
    )


def _shares(memory: Row, unit: str) -> list[str]:
    size = _in_unit(unit)
    return [
        f"{name}: {size(part['bytes'])} ({part['percentage']}%)"
        for name, part in memory_shares(memory).items()
    ]


def _in_unit(unit: str) -> Callable[[int], str]:
    """Return a function that formats a number of bytes in `unit`."""
    return lambda byte_count: f"{round(byte_count / _UNITS[unit], 4)} {unit}"


def _command(name: str, text: str, does: Run, *takes: click.Parameter) -> OperatorCommand:
    return CustomCommand(group="", name=name, known_as=name, text=text, does=does, takes=takes)


# The one whose name is that of a command of Warren, which has another output.
STATUS = _command("status", "Show the status of the node.", _status, UNIT)
RABBITMQ_STATUS: tuple[OperatorCommand, ...] = (
    _command("cluster_status", "Show the nodes of the cluster.", _cluster_status),
    _command("alarms", "List the resource alarms in effect.", _alarms),
    _command("listeners", "List the listeners of the node.", _listeners),
    _command("memory_breakdown", "Show memory use by category.", _memory, UNIT),
    _command("environment", "List the settings of the node.", _environment),
    _command("server_version", "Show the version of the server.", _server_version),
    _command(
        "log_location", "Show where the log is written.", _log_location,
        click.Option(["-a", "--all"], is_flag=True, hidden=True, help="all files, which are always shown"),
    ),
    _command(
        "list_node_auth_attempt_stats", "Show the number of authentication attempts.", _attempts,
        click.Option(["--by-source"], is_flag=True, help="by address and user, which are not counted"),
    ),
)  # fmt: skip
