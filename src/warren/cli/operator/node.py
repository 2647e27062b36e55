"""Commands for the node: its limits, its log, its settings, and login tests."""

from typing import Any

import click

from warren.cli.operator.command_types import CustomCommand, ListCommand, OperatorCommand, Run
from warren.cli.operator.failures import NOT_AUTHORISED, REFUSED, USAGE, Failure, ToolFailure
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.options import secret
from warren.cli.operator.parameters import USER, named, option
from warren.cli.operator.session import Arguments, Session
from warren.cli.operator.waiting import wait

_LEVELS = ("debug", "info", "warning", "error", "critical", "none")
_ALARMS = {"mem_alarm": "memory", "disk_free_alarm": "disk"}


def _authenticate(session: Session, arguments: Arguments) -> None:
    given = arguments["password"]
    password = secret(f"Password of {arguments['user']}") if given is None else given
    body = {"username": arguments["user"], "password": password}
    try:
        account: Row = session.api.send("POST", "/warren/authenticate", body)
    except Failure as failure:
        if arguments["is_known_as"] and failure.status in (REFUSED, NOT_AUTHORISED):
            user = arguments["user"]
            sentence = f"Error: failed to authenticate user \"{user}\"\nuser '{user}' - invalid credentials"
            raise ToolFailure(sentence, failure.status, tool_status=65, has_heading=True) from None
        raise
    tags = ", ".join(account["tags"]) or "none"
    session.say(f"user {account['name']}: credentials accepted; tags: {tags}")


def _limit(resource: str, words: dict[str, str]) -> Run:
    """Return a command that sets a limit; `words` maps rabbitmqctl's words to kinds of limits."""
    share = next((word for word, kind in words.items() if kind == "relative"), "")

    def does(session: Session, arguments: Arguments) -> None:
        values = list(arguments["limit"])
        word = values.pop(0) if len(values) > 1 else ""
        if len(values) != 1 or word not in words:
            shapes = " or ".join(f"{one} VALUE".strip() for one in words)
            raise Failure(f"the limit must be {shapes}, not {' '.join(arguments['limit'])!r}", USAGE)
        body = {words[word]: _share(values[0]) if word == share else values[0]}
        limits: Row = session.api.send("PUT", f"/warren/limits/{resource}", body)
        session.say(f"{resource}: publishers are blocked {_BOUNDS[resource]} {limits[resource]} bytes")

    return does


# Bytes of the units that rabbitmq-diagnostics knows.
_UNITS = {"bytes": 1, "KB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000, "TB": 1_000_000_000_000}
_BOUNDS = {"memory": "above", "disk": "below"}


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Failure(f"the fraction must be a number such as 0.4, not {text!r}", USAGE) from None


def _limits(session: Session, arguments: Arguments) -> None:
    session.print_facts(session.api.get("/warren/limits"))


def _log(session: Session, arguments: Arguments) -> None:
    found: Row = session.api.get("/warren/log")
    if session.is_json:
        session.print_json(found)
        return
    places = [found["file"]] if found["file"] else []
    places += ["<standard error>"] if found["console"] else []
    places += ["<exchange amq.rabbitmq.log>"] if found["exchange"] else []
    levels = ", ".join(f"{name} {level}" for name, level in found["levels"].items())
    session.print_rows(("location", "levels"), [(place, levels) for place in places])


def _level(session: Session, arguments: Arguments) -> None:
    level, category = arguments["level"], arguments["category"]
    body = {"level": level} | ({"category": category} if category else {})
    session.api.send("PUT", "/warren/log/level", body)
    session.say(f"log: level of {category or 'all categories'} set to {level}")


def _rotate(session: Session, arguments: Arguments) -> None:
    session.say(f"log: {session.api.send('POST', '/warren/log/rotate')['file']} rotated")


def _await(session: Session, arguments: Arguments) -> None:
    def missing() -> str:
        session.api.get("/overview", [("columns", "node")])
        return ""

    wait(session, arguments["timeout"], missing)
    session.say("the broker is running")


def _answering(session: Session, arguments: Arguments) -> None:
    session.api.check_answering()
    session.say("the HTTP API responds")


def _node(session: Session) -> Row:
    found: Row = session.api.get("/overview", [("columns", "node")])
    return found


def _memory(session: Session, arguments: Arguments) -> None:
    memory: dict[str, Any] = session.api.get(filled("/nodes/{node}/memory", _node(session)))["memory"]
    total: Any = memory.pop("total")
    if session.is_json:
        session.print_json(memory | {"total": total})
        return
    unit = _UNITS[arguments["unit"]]
    facts = memory | {"total": total["rss"]}
    if unit > 1:
        facts = {
            name: f"{size / unit:.4f} {arguments['unit']}" if isinstance(size, int) else size
            for name, size in facts.items()
        }
    session.print_facts(facts)


def _attempts(session: Session, arguments: Arguments) -> None:
    names = ("protocol", "auth_attempts", "auth_attempts_failed", "auth_attempts_succeeded")
    rows: list[Row] = session.api.get(filled("/auth/attempts/{node}", _node(session)))
    session.print_rows(names, [[row[name] for name in names] for row in rows])


def _forget_attempts(session: Session, arguments: Arguments) -> None:
    session.api.send("DELETE", filled("/auth/attempts/{node}", _node(session)))
    session.say("authentication attempts: reset")


def _listeners(session: Session, arguments: Arguments) -> None:
    names = ("node", "protocol", "ip_address", "port")
    rows: list[Row] = session.api.get("/overview", [("columns", "listeners")])["listeners"]
    session.print_rows(names, [[row[name] for name in names] for row in rows])


def _version(session: Session, arguments: Arguments) -> None:
    session.print_facts(
        session.api.get("/overview", [("columns", "product_name,product_version,rabbitmq_version")])
    )


def _alarms(session: Session, arguments: Arguments) -> None:
    rows = [
        (node["name"], resource)
        for node in session.api.get("/nodes", [("columns", ",".join(("name", *_ALARMS)))])
        for name, resource in _ALARMS.items()
        if node.get(name)
    ]
    if not rows and not session.is_json:
        session.say("no alarms")
        return
    session.print_rows(("node", "alarm"), rows)


_LIMIT = click.Argument(["limit"], nargs=-1, required=True, metavar="LIMIT...")

NODE: tuple[OperatorCommand, ...] = (
    CustomCommand(
        group="users",
        name="authenticate",
        known_as="authenticate_user",
        text="Check a user name and password.",
        takes=(USER, named("password", required=False)),
        does=_authenticate,
    ),
    CustomCommand(
        group="nodes",
        name="limit-memory",
        known_as="set_vm_memory_high_watermark",
        text="Set the memory alarm threshold: a fraction such as 0.4, or `absolute 2GB`.",
        takes=(_LIMIT,),
        does=_limit("memory", {"": "relative", "absolute": "absolute"}),
    ),
    CustomCommand(
        group="nodes",
        name="limit-disk",
        known_as="set_disk_free_limit",
        text="Set the disk alarm threshold: 2GB, or `mem_relative 1.0` (a fraction of memory).",
        takes=(_LIMIT,),
        does=_limit("disk", {"": "absolute", "mem_relative": "relative"}),
    ),
    CustomCommand(
        group="nodes", name="limits", text="Show the thresholds of the memory and disk alarms.", does=_limits
    ),
    CustomCommand(
        group="nodes",
        name="memory",
        text="Show memory use by category.",
        takes=(
            click.Option(
                ["--unit"],
                type=click.Choice(tuple(_UNITS), case_sensitive=False),
                default="bytes",
                show_default=True,
                help="unit of the sizes",
            ),
        ),
        does=_memory,
    ),
    CustomCommand(
        group="nodes",
        name="listeners",
        text="List listeners.",
        does=_listeners,
    ),
    CustomCommand(
        group="nodes",
        name="version",
        text="Show the version of the broker.",
        does=_version,
    ),
    CustomCommand(group="nodes", name="alarms", text="List active alarms.", does=_alarms),
    CustomCommand(
        group="nodes",
        name="await",
        known_as="await_startup",
        text="Wait until the broker has started.",
        is_waiting=True,
        does=_await,
    ),
    CustomCommand(
        group="health",
        name="answering",
        text="Check that the HTTP API responds, without credentials: for containers.",
        does=_answering,
    ),
    CustomCommand(
        group="nodes",
        name="auth-attempts",
        text="Show the number of authentication attempts.",
        does=_attempts,
    ),
    CustomCommand(
        group="nodes",
        name="reset-auth-attempts",
        known_as="reset_node_auth_attempt_metrics",
        text="Reset the number of authentication attempts.",
        does=_forget_attempts,
    ),
    ListCommand(
        group="nodes",
        name="settings",
        text="List the settings of the running broker with their origin.",
        path="/warren/config",
        columns=("key", "value", "origin"),
    ),
    CustomCommand(
        group="log",
        name="show",
        text="Show log outputs and levels.",
        does=_log,
    ),
    CustomCommand(
        group="log",
        name="set-level",
        known_as="set_log_level",
        text="Set the minimum log level until the broker stops.",
        takes=(
            click.Argument(["level"], type=click.Choice(_LEVELS), metavar="LEVEL"),
            option("--category", "only this category: connection, audit …"),
        ),
        does=_level,
    ),
    CustomCommand(
        group="log", name="rotate", known_as="rotate_logs", text="Rotate the log file.", does=_rotate
    ),
)
