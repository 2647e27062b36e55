"""Commands for single messages, definitions in files, closing connections, and the status of the broker."""

import json
import os
import sys
import time
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from warren.cli.operator.command_types import CustomCommand, OperatorCommand, Run, vhost_option
from warren.cli.operator.failures import (
    NOT_AUTHORISED,
    REFUSED,
    USAGE,
    Failure,
    ObjectNotFound,
    Refused,
    ToolFailure,
    Unanswered,
)
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.parameters import EXCHANGE, QUEUE, USER, VHOST, flag, named, option, pairs_of
from warren.cli.operator.rabbitmq_facts import this_node
from warren.cli.operator.session import Arguments, Session
from warren.limits_http import (
    HTTP_BODY_SIZE_MAX,
    PEEKED_MAX,
)

_GOT = ("exchange", "routing_key", "redelivered", "message_count", "payload")
_PEEKED = ("position", "exchange", "routing_key", "delivery_count", "age_ms", "payload_bytes", "payload")
# Definitions contain password hashes, so only the owner may read the file.
_OWNER_ONLY = 0o600


def _publish(session: Session, arguments: Arguments) -> None:
    payload = arguments["payload"]
    data = _standard_input() if payload is None else os.fsencode(payload)
    properties = pairs_of(arguments["property"], "--property")
    headers = pairs_of(arguments["header"], "--header")
    body = {
        "routing_key": arguments["routing_key"],
        "properties": properties | ({"headers": headers} if headers else {}),
        "payload": b64encode(data).decode("ascii"),
        "payload_encoding": "base64",
    }
    # The default exchange has no name, and a path segment cannot be empty.
    where = arguments | {"exchange": arguments["exchange"] or "amq.default"}
    try:
        answer = session.api.send("POST", filled("/exchanges/{vhost}/{exchange}/publish", where), body)
    except Unanswered as failure:
        raise Failure(f"{failure.message}; it may have been published", failure.status) from None
    if not answer["routed"]:
        raise Failure("not routed: no queue received it; 'warren bindings list' shows the bindings")
    alarms = ", ".join(answer.get("alarms", ()))
    session.say(f"published; an alarm ({alarms}) blocks AMQP publishers" if alarms else "published")


def _get(session: Session, arguments: Arguments) -> None:
    mode = "ack_requeue_true" if arguments["requeue"] else "ack_requeue_false"
    body = {"count": arguments["count"], "ackmode": mode, "encoding": "auto"}
    rows = session.api.send("POST", filled("/queues/{vhost}/{queue}/get", arguments), body)
    _print_messages(session, _GOT, rows)


def _peek(session: Session, arguments: Arguments) -> None:
    if arguments["unacknowledged"] and arguments["quarantined"]:
        raise Failure("give either --unacknowledged or --quarantined", USAGE)
    state = "unacknowledged" if arguments["unacknowledged"] else "ready"
    peek(session, arguments, "quarantined" if arguments["quarantined"] else state, 0)


def peek(session: Session, arguments: Arguments, state: str, first: int) -> None:
    """Print the messages of a queue that are in `state`, from the place `first` on."""
    path = filled("/warren/queues/{vhost}/{queue}/messages", arguments)
    rows: list[Row] = []
    place: int | None = first
    while place is not None and len(rows) < arguments["count"]:
        asked = [
            ("state", state),
            ("from", place),
            ("count", min(arguments["count"] - len(rows), PEEKED_MAX)),
        ]
        answer = session.api.get(path, [*asked, *(("match", text) for text in arguments["match"])])
        rows += answer["messages"]
        place = answer["next"]
        session.progress(len(rows), arguments["count"])
    _print_messages(session, _PEEKED, rows)


def _print_messages(session: Session, names: Sequence[str], rows: list[Row]) -> None:
    if session.is_json:
        session.print_json(rows)
    else:
        session.print_rows(names, [[row[name] for name in names] for row in rows])


def _export(session: Session, arguments: Arguments) -> None:
    answer = session.api.get(_definitions_path(arguments))
    text = json.dumps(answer, indent=2) + "\n"
    if arguments["file"] == "-":
        sys.stdout.write(text)
        return
    path = Path(arguments["file"])
    try:
        written = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
        with os.fdopen(written, "w", encoding="utf-8") as file:
            if path.is_file():
                os.fchmod(written, _OWNER_ONLY)
            file.write(text)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", USAGE) from None
    session.say(f"definitions: written to {path}")


def _import(session: Session, arguments: Arguments) -> None:
    path = _definitions_path(arguments) + ("?skip_invalid=true" if arguments["skip_invalid"] else "")
    answer = session.api.send("POST", path, read_definitions(arguments["file"])) or {}
    for what, kind in (("skipped", "skipped"), ("warnings", "warning")):
        for text in answer.get(what, ()):
            session.note(f"{kind}: {text}")
    session.say("definitions: imported")


def read_definitions(name: str) -> object:
    """Read the definitions in the file `name`, or from standard input for `-`."""
    try:
        data = _standard_input() if name == "-" else _file_content(Path(name))
        definitions: object = json.loads(data)
    except OSError as error:
        raise Failure(f"{name}: {error.strerror}", USAGE) from None
    except ValueError as error:
        raise Failure(f"{name} is not JSON: {error}", USAGE) from None
    return definitions


def _definitions_path(arguments: Arguments) -> str:
    return "/definitions" if arguments["vhost"] is None else filled("/definitions/{vhost}", arguments)


def _close(path: str) -> Run:
    def does(session: Session, arguments: Arguments) -> None:
        session.api.send("DELETE", filled(path, arguments), headers=_reason_header(arguments["reason"]))
        session.say("closed")

    return does


def _reason_header(reason: str | None) -> dict[str, str]:
    """Return the header with the reason that is sent to the client."""
    if reason and not (reason.isascii() and reason.isprintable()):
        raise Failure("REASON must be one line of printable ASCII: it is sent in a header", USAGE)
    return {"x-reason": reason} if reason else {}


def _close_all(session: Session, arguments: Arguments) -> None:
    is_all = arguments.get("is_global") or arguments["vhost"] is None
    path = "/connections" if is_all else filled("/vhosts/{vhost}/connections", arguments)
    names = [row["name"] for row in session.api.rows(path, {"columns": "name"}, session.progress)]
    # RabbitMQ's limit of 0 is none.
    names = names[: arguments.get("limit") or len(names)]
    for count, name in enumerate(names, 1):
        # A connection that its client has closed meanwhile is no failure.
        with suppress(ObjectNotFound):
            where = filled("/connections/{name}", {"name": name})
            session.api.send("DELETE", where, headers=_reason_header(arguments["reason"]))
        time.sleep(arguments.get("per_connection_delay", 0) / 1_000)
        session.progress(count, len(names))
    session.say(f"connections: {len(names)} closed")


def _restart_vhost(session: Session, arguments: Arguments) -> None:
    node = arguments["node"] or session.api.get("/overview")["node"]
    vhost = arguments.get("vhost") or arguments["in_vhost"] or ("/" if arguments["is_known_as"] else "")
    if not vhost:
        raise Failure("no virtual host given: use warren vhosts restart VHOST", USAGE)
    session.api.send("POST", filled("/vhosts/{vhost}/start/{node}", {"vhost": vhost, "node": node}))
    session.say(f"vhost {vhost}: started")


def _enable_feature_flag(session: Session, arguments: Arguments) -> None:
    name = arguments["name"]
    if name != "all":
        try:
            session.api.send("PUT", filled("/feature-flags/{name}/enable", arguments), {})
        except (Refused, ObjectNotFound):
            if not arguments["is_known_as"]:
                raise
            sentence = f"This feature flag is not supported by node {this_node(session)}"
            raise ToolFailure(sentence, REFUSED, tool_status=64, has_heading=True) from None
        session.say(f"feature flag {name}: enabled")
        return
    flags = list(session.api.rows("/feature-flags", {}, session.progress))
    for row in flags:
        if row["state"] == "disabled":
            session.api.send("PUT", filled("/feature-flags/{name}/enable", row), {})
    absent = [row["name"] for row in flags if row["state"] == "unavailable"]
    if absent:
        session.note(f"not supported: {', '.join(absent)}")
    session.say(f"feature flags: {len(flags) - len(absent)} enabled")


def _set_vhost_tags(session: Session, arguments: Arguments) -> None:
    path, tags = filled("/vhosts/{vhost}", arguments), ",".join(arguments["tags"])
    vhost: Row = session.api.get(path)
    session.api.send("PUT", path, {"description": vhost.get("description", ""), "tags": tags})
    session.say(
        f"vhost {arguments['vhost']}: tags are {tags}" if tags else f"vhost {arguments['vhost']}: has no tags"
    )


def _clear_topics(session: Session, arguments: Arguments) -> None:
    path = "/topic-permissions/{vhost}/{user}" + ("/{exchange}" if arguments["exchange"] else "")
    try:
        session.api.send("DELETE", filled(path, arguments))
    except ObjectNotFound:
        if not arguments["is_known_as"]:
            raise
    session.say(f"user {arguments['user']}: topic permissions deleted")


def _status(session: Session, arguments: Arguments) -> None:
    if session.is_json:
        session.print_json(_status_fields(session.api.get("/overview"), _nodes(session)))
    else:
        session.print_facts(summary_of(session))


def summary_of(session: Session) -> Row:
    """Summarize the state of the broker, one line for each fact."""
    overview: Row = session.api.get("/overview")
    return _summary(overview, _nodes(session))


def _ping(session: Session, arguments: Arguments) -> None:
    began = time.monotonic()
    node = session.api.get("/overview", [("columns", "node")])["node"]
    session.say(f"{node} responded in {(time.monotonic() - began) * 1000:.0f} ms")


def _nodes(session: Session) -> list[Row]:
    """Return the nodes; none for a user without permission to see them."""
    try:
        nodes: list[Row] = session.api.get("/nodes")
    except ObjectNotFound:
        return []
    except Failure as failure:
        if failure.status != NOT_AUTHORISED:
            raise
        return []
    return nodes


def _summary(overview: Row, nodes: list[Row]) -> Row:
    facts = {
        "compatible with": f"RabbitMQ {overview.get('rabbitmq_version')}",
        "cluster": overview.get("cluster_name"),
    }
    if overview.get("in_memory"):
        facts["data"] = "in memory only: lost when the broker stops"
    for node in nodes:
        alarms = [word for name, word in _ALARMS.items() if node.get(name)]
        facts["node " + str(node.get("name"))] = "running" if node.get("running") else "not running"
        facts["  up for"] = f"{node.get('uptime', 0) // 1000} s"
        facts["  memory"] = f"{_mib(node, 'mem_used')} of {_mib(node, 'mem_limit')}"
        if node.get("db_dir"):
            facts["  data"] = node["db_dir"]
            facts["  disk free"] = f"{_mib(node, 'disk_free')}, alarm below {_mib(node, 'disk_free_limit')}"
        facts["  files"] = f"{node.get('fd_used')} of {node.get('fd_total')}"
        facts["  alarms"] = ", ".join(alarms) or "none"
    facts |= dict(overview.get("object_totals") or {})
    totals = overview.get("queue_totals") or {}
    facts |= {name: totals[name] for name in ("messages_ready", "messages_unacknowledged") if name in totals}
    listeners = overview.get("listeners") or []
    facts["listens"] = [
        f"{item.get('protocol')} {item.get('ip_address')}:{item.get('port')}" for item in listeners
    ]
    return facts


def _status_fields(overview: Row, nodes: list[Row]) -> Row:
    """Summarize the state of the broker for programs, with field names of the HTTP API and numbers."""
    return {
        "rabbitmq_version": overview.get("rabbitmq_version"),
        "cluster_name": overview.get("cluster_name"),
        "in_memory": overview.get("in_memory", False),
        "nodes": [
            {
                **{name: node.get(name) for name in _NODE_FIELDS},
                "alarms": [word for name, word in _ALARMS.items() if node.get(name)],
            }
            for node in nodes
        ],
        "object_totals": overview.get("object_totals") or {},
        "queue_totals": {
            name: count
            for name, count in (overview.get("queue_totals") or {}).items()
            if isinstance(count, int)
        },
        "listeners": [
            {name: item.get(name) for name in ("node", "protocol", "ip_address", "port")}
            for item in overview.get("listeners") or []
        ],
    }


def _mib(node: Row, name: str) -> str:
    size = node.get(name)
    return f"{size / 1_048_576:.0f} MiB" if isinstance(size, int | float) else "unknown"


def _standard_input() -> bytes:
    return _bounded(sys.stdin.buffer.read(HTTP_BODY_SIZE_MAX + 1))


def _file_content(path: Path) -> bytes:
    with path.open("rb") as file:
        return _bounded(file.read(HTTP_BODY_SIZE_MAX + 1))


def _bounded(data: bytes) -> bytes:
    if len(data) > HTTP_BODY_SIZE_MAX:
        raise Failure(f"the input is larger than {HTTP_BODY_SIZE_MAX} bytes, the maximum of a request", USAGE)
    return data


_ALARMS = {"mem_alarm": "memory", "disk_free_alarm": "disk space"}
_NODE_FIELDS = (
    "name", "running", "uptime", "db_dir", "mem_used", "mem_limit", "disk_free", "disk_free_limit", "fd_used",
    "fd_total",
)  # fmt: skip
MATCH = option("--match", "condition on the message; can be repeated", multiple=True, metavar="CONDITION")
COUNT = option("--count", "number of messages", type=click.IntRange(1, 100_000), default=1, show_default=True)
_REASON = named("reason", required=False)
_FILE = named("file", default="-")
_EVERYTHING = vhost_option(None)
_FORMAT = option("--format", "format of the file", type=click.Choice(("json",), case_sensitive=False))


def _pairs(name: str, text: str) -> click.Option:
    return option(f"--{name}", text, multiple=True, metavar="NAME=VALUE")


TASKS: tuple[OperatorCommand, ...] = (
    CustomCommand(
        group="",
        name="status",
        text="Show a summary of the broker.",
        does=_status,
    ),
    CustomCommand(group="nodes", name="ping", text="Check that the broker responds.", does=_ping),
    CustomCommand(
        group="exchanges",
        name="publish",
        is_in_vhost=True,
        does=_publish,
        text="Publish PAYLOAD, or standard input, as a message. The default exchange is ''.",
        takes=(
            EXCHANGE,
            named("routing_key"),
            named("payload", required=False),
            _pairs("property", "such as content_type=text/plain; can be repeated"),
            _pairs("header", "header of the application; can be repeated"),
        ),
    ),
    CustomCommand(
        group="queues",
        name="get",
        is_in_vhost=True,
        takes=(QUEUE, COUNT, flag("--requeue", text="requeue them, marked as redelivered")),
        does=_get,
        text="Get messages of a queue and remove them.",
    ),
    CustomCommand(
        group="queues",
        name="peek",
        is_in_vhost=True,
        takes=(
            QUEUE,
            COUNT,
            flag("--unacknowledged", text="unacknowledged messages instead of ready ones"),
            flag("--quarantined", text="messages that exceeded the delivery limit of a quorum queue"),
            MATCH,
        ),
        does=_peek,
        text="Show messages of a queue without delivering them.",
    ),
    CustomCommand(
        group="definitions",
        name="export",
        known_as="export_definitions",
        takes=(_EVERYTHING, _FILE),
        takes_instead=(_EVERYTHING, named("file")),
        takes_known_as=(_FORMAT,),
        does=_export,
        text="Export definitions to FILE or standard output.",
    ),
    CustomCommand(
        group="definitions",
        name="import",
        known_as="import_definitions",
        takes=(
            _EVERYTHING,
            _FILE,
            flag("--skip-invalid", text="import the rest if entries cannot be declared, and name these"),
        ),
        takes_known_as=(
            _FORMAT,
            flag("--skip-if-unchanged", text="no effect: an import changes only what differs"),
        ),
        does=_import,
        text="Import definitions from FILE or standard input.",
    ),
    CustomCommand(
        group="connections",
        name="close",
        known_as="close_connection",
        does=_close("/connections/{name}"),
        text="Close a connection; REASON is sent to the client.",
        takes=(named("name", "/connections"), _REASON),
        takes_instead=(named("name", "/connections"), named("reason")),
    ),
    CustomCommand(
        group="connections",
        name="close-user",
        known_as="close_all_user_connections",
        text="Close all connections of a user; REASON is sent to the clients.",
        takes=(USER, _REASON),
        takes_instead=(USER, named("reason")),
        does=_close("/connections/username/{user}"),
    ),
    CustomCommand(
        group="connections",
        name="close-all",
        known_as="close_all_connections",
        text="Close all connections, or those of a virtual host; REASON is sent to the clients.",
        takes=(_EVERYTHING, _REASON),
        takes_instead=(_EVERYTHING, named("reason")),
        takes_known_as=(
            flag("--global", "is_global", text="those of all virtual hosts"),
            option("--limit", "at most this many", type=click.IntRange(0), default=0),
            option("--per-connection-delay", "milliseconds between two", type=click.IntRange(0), default=0),
        ),
        does=_close_all,
    ),
    CustomCommand(
        group="vhosts",
        name="set-tags",
        known_as="set_vhost_tags",
        takes=(VHOST, click.Argument(["tags"], nargs=-1)),
        text="Set the tags of a virtual host, replacing its present ones.",
        does=_set_vhost_tags,
    ),
    CustomCommand(
        group="vhosts",
        name="restart",
        known_as="restart_vhost",
        # rabbitmqctl has an option instead of the argument.
        takes=(
            named("vhost", "/vhosts", required=False),
            click.Option(["-p", "--vhost", "in_vhost"], metavar="VHOST", help="same as the argument VHOST"),
            click.Option(["-n", "--node"], help="name of the node"),
        ),
        takes_instead=(
            click.Option(["-p", "--vhost", "in_vhost"], metavar="VHOST", help="the virtual host"),
            click.Option(["-n", "--node"], help="name of the node"),
        ),
        text="Restart a virtual host that has failed.",
        does=_restart_vhost,
    ),
    CustomCommand(
        group="feature-flags",
        name="enable",
        known_as="enable_feature_flag",
        takes_known_as=(
            flag("-e", "--experimental", text="no effect"),
            flag("-o", "--opt-in", text="no effect"),
        ),
        text="Enable a feature flag, or `all`.",
        takes=(named("name", "/feature-flags"),),
        does=_enable_feature_flag,
    ),
    CustomCommand(
        group="topic-permissions",
        name="clear",
        known_as="clear_topic_permissions",
        is_in_vhost=True,
        text="Delete the topic permissions of a user on EXCHANGE, or on all exchanges of a virtual host.",
        takes=(USER, named("exchange", "/exchanges/{vhost}", required=False)),
        does=_clear_topics,
    ),
)
