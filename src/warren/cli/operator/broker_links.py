"""Commands for shovels, and for the upstreams, sets and links of federation."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from warren.cli.operator.command_types import (
    CustomCommand,
    OperatorCommand,
    RequestCommand,
    vhost_option,
)
from warren.cli.operator.failures import USAGE, Failure, ObjectNotFound
from warren.cli.operator.link_status import SHOVEL_FIELDS, LinkList, ShovelList, federation_links
from warren.cli.operator.management_client import filled
from warren.cli.operator.parameters import FORCE, flag, json_of, named, object_of, option, pairs_of
from warren.cli.operator.session import Arguments, Session
from warren.client.uri_password import masked_uri

_SHOVEL = "/parameters/shovel/{vhost}/{name}"
_UPSTREAM = "/parameters/federation-upstream/{vhost}/{name}"
_SET = "/parameters/federation-upstream-set/{vhost}/{name}"
_ABSENT = "Not Found"
_STEP = ("state", "end", "action", "name", "uri", "text")
_LINKS = ("vhost", "type", "name", "upstream", "status", "forwarded", "lag_messages", "id", "why")
# The keys of a shovel that have options of their own; others are given with --set.
_KEYS = {
    "src-uri": "address of the source; amqp:// is this broker",
    "src-queue": "queue to consume from",
    "src-exchange": "exchange to consume from, instead of a queue",
    "src-exchange-key": "routing key of the binding to that exchange",
    "dest-uri": "address of the destination; amqp:// is this broker",
    "dest-queue": "queue to publish to",
    "dest-exchange": "exchange to publish to, instead of a queue",
    "dest-exchange-key": "routing key to publish with, instead of that of the message",
    "ack-mode": "on-confirm, on-publish or no-ack",
}
_FILE = option(
    "--file",
    "a file with the definition as a JSON object, - for standard input; options change it",
    metavar="FILE",
)
_DEFINITION = (
    *(option(f"--{key}", text) for key, text in _KEYS.items()),
    click.Option(
        ["--set", "settings"],
        multiple=True,
        metavar="KEY=VALUE",
        help="any other key, such as reconnect-delay=5; can be repeated",
    ),
    _FILE,
)
_EXISTING = named("name", "/shovels/{vhost}")
_UPSTREAM_NAME = named("name", "/parameters/federation-upstream/{vhost}")
_SET_NAME = named("name", "/parameters/federation-upstream-set/{vhost}")
_LINK = named("id")


def _create(session: Session, arguments: Arguments) -> None:
    if _found(session, arguments) is not None:
        raise Failure(f"shovel {arguments['name']} exists: 'warren shovels update' changes it")
    _put(session, arguments, _given(arguments), "created")


def _update(session: Session, arguments: Arguments) -> None:
    old = _found(session, arguments)
    if old is None:
        raise ObjectNotFound(_ABSENT)
    changed = {key: value for key, value in old.items() if key not in arguments["unset"]}
    _put(session, arguments, changed | _given(arguments), "updated")


def _put(session: Session, arguments: Arguments, definition: Mapping[str, Any], done: str) -> None:
    _put_parameter(session, arguments, "shovel", definition)
    session.say(f"shovel {arguments['name']}: {done}")


def _given(arguments: Arguments) -> dict[str, Any]:
    """The definition in the file and the options, of which the options prevail."""
    definition = _in_file(arguments)
    for key in _KEYS:
        if arguments[key.replace("-", "_")] is not None:
            definition[key] = arguments[key.replace("-", "_")]
    return definition | pairs_of(arguments["settings"], "--set")


def _in_file(arguments: Arguments) -> dict[str, Any]:
    """The definition in the file, if one is given."""
    return object_of(_text(arguments["file"]), "the definition") if arguments["file"] else {}


def _text(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise Failure(f"{file} cannot be read: {error}", USAGE) from None


def _found(session: Session, arguments: Arguments) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = session.api.get(filled(_SHOVEL, arguments))["value"]
    except ObjectNotFound:
        return None
    return found


def _static_status(session: Session, arguments: Arguments) -> Mapping[str, Any]:
    # The list has what the user may see; a shovel of the configuration is in no virtual host.
    for row in session.api.rows("/shovels", {}, session.progress):
        if row["name"] == arguments["name"] and "vhost" not in row:
            return row
    raise ObjectNotFound(_ABSENT)


def _check(session: Session, arguments: Arguments) -> None:
    """Print the dry run of an existing shovel with its changes, or of a new one."""
    before = None if arguments["name"] is None else _found(session, arguments)
    if before is None and arguments["name"] is not None:
        raise ObjectNotFound(_ABSENT)
    definition = (before or {}) | _given(arguments)
    path = filled("/warren/shovels/{vhost}/check", arguments)
    _print_steps(
        session, session.api.send("POST", path, {"value": definition, "name": arguments["name"] or ""})
    )


def _explain(session: Session, arguments: Arguments) -> None:
    path = "/warren/federation/{vhost}/" + ("queue" if arguments["queue"] else "exchange") + "/{name}"
    _print_steps(session, session.api.get(filled(path, arguments)))


def _print_steps(session: Session, found: Mapping[str, Any]) -> None:
    if session.is_json:
        session.print_json(found)
    else:
        session.print_rows(_STEP, [[step[column] for column in _STEP] for step in found["steps"]])
    if not found["can_run"]:
        raise Failure("it cannot run: a step is refused")


def _show(session: Session, arguments: Arguments) -> None:
    """Print the definition, with passwords masked, and the status if the shovel runs on this node.

    Of a shovel in the configuration there is no definition to be had, only its status.
    """
    definition = _found(session, arguments)
    if definition is None:
        session.print_facts(_static_status(session, arguments))
        return
    rows = session.api.rows(filled("/shovels/{vhost}", arguments), {}, session.progress)
    status: Mapping[str, Any] = next((row for row in rows if row["name"] == arguments["name"]), {})
    session.print_facts({**status, "definition": _masked(definition)})


def _show_parameter(path: str) -> Any:
    def show(session: Session, arguments: Arguments) -> None:
        row = session.api.get(filled(path, arguments))
        session.print_facts({**row, "value": _masked(row["value"])})

    return show


def _list_parameters(path: str) -> Any:
    def show(session: Session, arguments: Arguments) -> None:
        within = path if arguments["vhost"] is None else filled(f"{path}/{{vhost}}", arguments)
        rows = session.api.rows(within, {}, session.progress)
        found = [[row["vhost"], row["name"], _masked(row["value"])] for row in rows]
        session.print_rows(("vhost", "name", "definition"), found)

    return show


def _set_upstream(session: Session, arguments: Arguments) -> None:
    definition = _in_file(arguments)
    uris = list(arguments["addresses"])
    if uris:
        definition["uri"] = uris[0] if len(uris) == 1 else uris
    definition |= pairs_of(arguments["settings"], "--set")
    _put_parameter(session, arguments, "federation-upstream", definition)
    session.say(f"upstream {arguments['name']}: set")


def _set_set(session: Session, arguments: Arguments) -> None:
    text = arguments["definition"]
    upstreams = json_of(text, "the set") if text.startswith("[") else _upstreams(text)
    _put_parameter(session, arguments, "federation-upstream-set", upstreams)
    session.say(f"upstream set {arguments['name']}: set")


def _put_parameter(session: Session, arguments: Arguments, component: str, value: object) -> None:
    path = filled(f"/parameters/{component}/{{vhost}}/{{name}}", arguments)
    session.api.send("PUT", path, {"value": value, "component": component, **_name(arguments)})


def _upstreams(text: str) -> list[dict[str, str]]:
    return [{"upstream": name} for name in text.split(",")]


def _name(arguments: Arguments) -> dict[str, Any]:
    return {"vhost": arguments["vhost"], "name": arguments["name"]}


def _links(session: Session, arguments: Arguments) -> None:
    rows = federation_links(session, arguments)
    if session.is_json:
        session.print_json(rows)
        return
    for row in rows:
        row["name"] = row.get("exchange", row.get("queue"))
        row["why"] = row.get("why", row.get("error"))
    session.print_rows(_LINKS, [[row.get(column) for column in _LINKS] for row in rows])


def _restart_link(session: Session, arguments: Arguments) -> None:
    """Restart a link by its id; the list says in which virtual host and on which node it is."""
    for row in session.api.rows("/federation-links", {}, session.progress):
        if row["id"] == arguments["id"]:
            path = "/federation-links/vhost/{vhost}/{id}/{node}/restart"
            session.api.send("DELETE", filled(path, row))
            session.say(f"federation link {row['id']}: restarted")
            return
    raise ObjectNotFound(_ABSENT)


def _masked(value: Any) -> Any:
    """`value` with the passwords of the URIs in it replaced by ***."""
    if isinstance(value, str):
        return masked_uri(value)
    if isinstance(value, dict):
        return {key: _masked(item) for key, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list) else value


_SHOVELS: tuple[OperatorCommand, ...] = (
    ShovelList(
        group="shovels",
        name="list",
        known_as="shovel_status",
        text="List shovels, and why those that stand still do so.",
        path="/shovels",
        within="/shovels/{vhost}",
        columns=("vhost", "name", "type", "state", "delivery", "forwarded", "lag_messages", "why"),
        renamed=SHOVEL_FIELDS,
    ),
    CustomCommand(
        group="shovels",
        name="show",
        text="Show the status and the definition of a shovel, with passwords masked.",
        takes=(_EXISTING,),
        is_in_vhost=True,
        does=_show,
    ),
    CustomCommand(
        group="shovels",
        name="create",
        text="Create a shovel, which moves messages from one queue or exchange to another.",
        takes=(named("name"), *_DEFINITION),
        is_in_vhost=True,
        does=_create,
    ),
    CustomCommand(
        group="shovels",
        name="update",
        text="Change the given keys of a shovel; it connects again.",
        takes=(
            _EXISTING,
            *_DEFINITION,
            click.Option(["--unset"], multiple=True, metavar="KEY", help="remove a key; can be repeated"),
        ),
        is_in_vhost=True,
        does=_update,
    ),
    CustomCommand(
        group="shovels",
        name="check",
        text="Say what a shovel would make where, and which rights are missing; nothing is changed.",
        takes=(named("name", "/shovels/{vhost}", required=False), *_DEFINITION),
        is_in_vhost=True,
        does=_check,
    ),
    RequestCommand(
        group="shovels",
        name="delete",
        known_as="delete_shovel",
        takes_known_as=(FORCE,),
        text="Stop a shovel and delete it.",
        method="DELETE",
        path=_SHOVEL,
        takes=(_EXISTING,),
        says="shovel {name}: deleted",
    ),
    RequestCommand(
        group="shovels",
        name="restart",
        known_as="restart_shovel",
        text="Connect a shovel anew, at once.",
        method="DELETE",
        path="/shovels/vhost/{vhost}/{name}/restart",
        takes=(_EXISTING,),
        says="shovel {name}: restarted",
    ),
)
_FEDERATION: tuple[OperatorCommand, ...] = (
    LinkList(
        group="federation",
        name="links",
        known_as="federation_status",
        text="List the links of federated exchanges and queues, and why those that stand still do so.",
        takes=(vhost_option(None), flag("--only-down", text="only links that neither run nor start")),
        does=_links,
    ),
    CustomCommand(
        group="federation",
        name="restart",
        known_as="restart_federation_link",
        text="Connect a link anew, at once; ID is in the list of links.",
        takes=(_LINK,),
        does=_restart_link,
    ),
    CustomCommand(
        group="federation",
        name="explain",
        text="Say which links an exchange has, and what they make where; nothing is changed.",
        takes=(named("name", "/exchanges/{vhost}"), flag("--queue", text="NAME is a queue")),
        is_in_vhost=True,
        does=_explain,
    ),
    CustomCommand(
        group="federation",
        name="upstreams",
        text="List upstreams, with passwords masked.",
        takes=(vhost_option(None),),
        does=_list_parameters("/parameters/federation-upstream"),
    ),
    CustomCommand(
        group="federation",
        name="show-upstream",
        text="Show an upstream, with passwords masked.",
        takes=(_UPSTREAM_NAME,),
        is_in_vhost=True,
        does=_show_parameter(_UPSTREAM),
    ),
    CustomCommand(
        group="federation",
        name="set-upstream",
        text="Set an upstream: a broker whose exchanges and queues can be federated. URIs are tried in turn.",
        takes=(
            named("name"),
            click.Argument(["addresses"], nargs=-1, metavar="[URI...]"),
            click.Option(
                ["--set", "settings"],
                multiple=True,
                metavar="KEY=VALUE",
                help="any other key, such as prefetch-count=500; can be repeated",
            ),
            _FILE,
        ),
        is_in_vhost=True,
        does=_set_upstream,
    ),
    RequestCommand(
        group="federation",
        name="delete-upstream",
        text="Delete an upstream; its links end.",
        method="DELETE",
        path=_UPSTREAM,
        takes=(_UPSTREAM_NAME,),
        says="upstream {name}: deleted",
    ),
    CustomCommand(
        group="federation",
        name="sets",
        text="List sets of upstreams.",
        takes=(vhost_option(None),),
        does=_list_parameters("/parameters/federation-upstream-set"),
    ),
    CustomCommand(
        group="federation",
        name="set-upstream-set",
        text="Set a set of upstreams; UPSTREAMS are names with commas, or a JSON list of objects.",
        takes=(named("name"), named("definition")),
        is_in_vhost=True,
        does=_set_set,
    ),
    RequestCommand(
        group="federation",
        name="delete-upstream-set",
        text="Delete a set of upstreams.",
        method="DELETE",
        path=_SET,
        takes=(_SET_NAME,),
        says="upstream set {name}: deleted",
    ),
)
BROKER_LINKS = (*_SHOVELS, *_FEDERATION)
