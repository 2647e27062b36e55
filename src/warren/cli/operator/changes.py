"""Commands that change one thing with one request."""

import click

from warren.cli.operator.command_types import OperatorCommand, RequestCommand
from warren.cli.operator.parameters import (
    ARGUMENTS,
    EXCHANGE,
    FORCE,
    PERMISSIONS,
    QUEUE,
    USER,
    VHOST,
    fields,
    flag,
    json_of,
    named,
    not_empty,
    object_of,
    option,
    pairs_of,
)
from warren.cli.operator.session import Arguments

_NAME = named("name")
_DURABLE = click.Option(
    ["--durable/--transient", "durable"], default=True, help="survive a restart of the broker, or not"
)
_AUTO_DELETE = flag("--auto-delete", text="delete it after its last consumer or binding is removed")
_IF_UNUSED = flag("-u", "--if-unused", text="only if it has no consumers or bindings")
_POLICY = (
    _NAME,
    named("pattern"),
    named("definition"),
    option(
        "--priority",
        "of several matching policies, the one with the highest priority applies",
        type=int,
        default=0,
        show_default=True,
    ),
    option(
        "--apply-to",
        "what it applies to",
        default="all",
        show_default=True,
        type=click.Choice(("all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges")),
    ),
)


def _policy(arguments: Arguments) -> object:
    body = fields("pattern", "priority", **{"apply-to": "apply_to"})(arguments)
    return body | {"definition": object_of(arguments["definition"], "the definition")}


def _queue(arguments: Arguments) -> object:
    kind = {"x-queue-type": arguments["type"]} if arguments["type"] else {}
    body = fields("durable", "auto_delete")(arguments)
    return body | {"arguments": kind | pairs_of(arguments["arguments"], "--argument")}


def _exchange(arguments: Arguments) -> object:
    body = fields("type", "durable", "auto_delete", "internal")(arguments)
    return body | {"arguments": pairs_of(arguments["arguments"], "--argument")}


def _binding(arguments: Arguments) -> object:
    return {
        "routing_key": arguments["routing_key"],
        "arguments": pairs_of(arguments["arguments"], "--argument"),
    }


def _value(arguments: Arguments) -> object:
    return {"value": json_of(arguments["value"], "the value")}


def _component_value(arguments: Arguments) -> object:
    return fields("component", "name", "vhost")(arguments) | {
        "value": object_of(arguments["value"], "the value")
    }


def _vhost(arguments: Arguments) -> object:
    names = ("description", "tags", "default_queue_type")
    given = {name: arguments[name] for name in names if arguments[name] is not None}
    if arguments.get("short_description") is not None:
        given["description"] = arguments["short_description"]
    return given | ({"tracing": True} if arguments["tracing"] else {})


def _policies(group: str, singular: str) -> tuple[OperatorCommand, ...]:
    article = "an" if singular[0] in "aeiou" else "a"
    known = singular.replace(" ", "_")
    path = f"/{group}/{{vhost}}/{{name}}"
    existing = named("name", f"/{group}/{{vhost}}")
    return (
        RequestCommand(
            group=group,
            name="set",
            known_as=f"set_{known}",
            text=f"Set {article} {singular}; DEFINITION is a JSON object.",
            method="PUT",
            path=path,
            takes=_POLICY,
            body=_policy,
            says=f"{singular} {{name}}: set",
        ),
        RequestCommand(
            group=group,
            name="clear",
            known_as=f"clear_{known}",
            text=f"Remove {article} {singular}.",
            method="DELETE",
            path=path,
            takes=(existing,),
            says=f"{singular} {{name}}: removed",
        ),
    )


def _letter(context: click.Context, parameter: click.Parameter, kind: str) -> str:
    """Return the letter of the kind in a path: q for a queue, e for an exchange."""
    return kind[0]


_BINDING = (
    named("source", "/exchanges/{vhost}"),
    named("destination"),
    click.Option(
        ["--to", "kind"],
        type=click.Choice(("queue", "exchange")),
        default="queue",
        show_default=True,
        help="type of the destination",
        callback=_letter,
    ),
)


def _check(name: str, path: str, text: str, says: str, *takes: click.Parameter) -> OperatorCommand:
    return RequestCommand(
        group="health",
        name=name,
        text=text,
        method="GET",
        path=path,
        takes=takes,
        says=says,
    )


_CHECKS = (
    _check(
        "alarms",
        "/health/checks/alarms",
        "Check that there are no alarms.",
        "no alarms",
    ),
    _check(
        "local-alarms",
        "/health/checks/local-alarms",
        "Check that this node has no alarms.",
        "no alarms",
    ),
    _check(
        "virtual-hosts",
        "/health/checks/virtual-hosts",
        "Check that all virtual hosts are running.",
        "all virtual hosts are running",
    ),
    _check(
        "quorum-queues",
        "/health/checks/quorum-queues-without-elected-leaders/all-vhosts",
        "Check that every quorum queue has a leader.",
        "all quorum queues have a leader",
    ),
    _check(
        "losses",
        "/health/checks/losses",
        "Check that all losses of messages are acknowledged.",
        "no unacknowledged losses of messages",
    ),
    _check(
        "quarantine",
        "/health/checks/quarantine",
        "Check that the quarantine is empty or acknowledged.",
        "no unacknowledged data in the quarantine",
    ),
    RequestCommand(
        group="health",
        name="acknowledge-losses",
        text="Acknowledge losses of messages: the health check passes until there are more.",
        method="POST",
        path="/warren/losses/acknowledge",
        says="losses: acknowledged",
    ),
    _check(
        "port",
        "/health/checks/port-listener/{port}",
        "Check that the broker listens on a port.",
        "port {port}: the broker listens",
        click.Argument(["port"], type=click.IntRange(0, 65_535)),
    ),
    _check(
        "protocol",
        "/health/checks/protocol-listener/{protocol}",
        "Check that the broker listens for a protocol.",
        "protocol {protocol}: the broker listens",
        named("protocol"),
    ),
    _check(
        "certificates",
        "/health/checks/certificate-expiration/{within}/{unit}",
        "Check that no certificate expires soon.",
        "no certificate expires within {within} {unit}",
        option("--within", "number of time units", type=click.IntRange(1), default=1, show_default=True),
        option(
            "--unit",
            "time unit",
            type=click.Choice(("days", "weeks", "months", "years")),
            default="months",
            show_default=True,
        ),
    ),
    _check(
        "running",
        "/healthchecks/node",
        "Check that the node is running.",
        "the node is running",
    ),
    _check(
        "alive",
        "/aliveness-test/{vhost}",
        "Check that a virtual host passes on messages.",
        "vhost {vhost}: alive",
    ),
)

CHANGES: tuple[OperatorCommand, ...] = (
    RequestCommand(
        group="queues",
        name="declare",
        text="Declare a queue.",
        method="PUT",
        path="/queues/{vhost}/{queue}",
        takes=(
            named("queue"),
            _DURABLE,
            _AUTO_DELETE,
            option("--type", "classic, quorum or stream"),
            ARGUMENTS,
        ),
        body=_queue,
        says="queue {queue}: declared",
    ),
    RequestCommand(
        group="queues",
        name="delete",
        known_as="delete_queue",
        text="Delete a queue and its messages.",
        method="DELETE",
        path="/queues/{vhost}/{queue}",
        query=("if_empty", "if_unused"),
        takes=(
            named("queue", "/queues/{vhost}", callback=not_empty("queue name")),
            flag("-e", "--if-empty", text="only if it is empty"),
            _IF_UNUSED,
        ),
        takes_known_as=(FORCE,),
        says="queue {queue}: deleted",
    ),
    RequestCommand(
        group="queues",
        name="purge",
        known_as="purge_queue",
        text="Purge a queue: delete its ready messages.",
        method="DELETE",
        path="/queues/{vhost}/{queue}/contents",
        takes=(QUEUE,),
        says="queue {queue}: purged",
    ),
    RequestCommand(
        group="exchanges",
        name="declare",
        text="Declare an exchange.",
        method="PUT",
        path="/exchanges/{vhost}/{exchange}",
        takes=(
            named("exchange"),
            option("--type", "direct, fanout, topic, headers, …", default="direct", show_default=True),
            _DURABLE,
            _AUTO_DELETE,
            flag("--internal", text="clients cannot publish to it, only exchanges bound to it"),
            ARGUMENTS,
        ),
        body=_exchange,
        says="exchange {exchange}: declared",
    ),
    RequestCommand(
        group="exchanges",
        name="delete",
        text="Delete an exchange.",
        method="DELETE",
        path="/exchanges/{vhost}/{exchange}",
        takes=(EXCHANGE, _IF_UNUSED),
        query=("if_unused",),
        says="exchange {exchange}: deleted",
    ),
    RequestCommand(
        group="bindings",
        name="add",
        text="Bind a queue, or an exchange, to an exchange.",
        method="POST",
        path="/bindings/{vhost}/e/{source}/{kind}/{destination}",
        takes=(
            *_BINDING,
            option("--routing-key", "routing key of the binding, or pattern", default=""),
            ARGUMENTS,
        ),
        body=_binding,
        says="{destination}: bound to {source}",
    ),
    RequestCommand(
        group="bindings",
        name="delete",
        text="Remove a binding.",
        method="DELETE",
        path="/bindings/{vhost}/e/{source}/{kind}/{destination}/{properties_key}",
        takes=(
            *_BINDING,
            option(
                "--properties-key",
                "properties key of the binding, from 'bindings list'",
                default="~",
                show_default=True,
            ),
        ),
        says="{destination}: unbound from {source}",
    ),
    RequestCommand(
        group="users",
        name="delete",
        known_as="delete_user",
        text="Remove a user.",
        method="DELETE",
        path="/users/{user}",
        takes=(USER,),
        says="user {user}: removed",
    ),
    RequestCommand(
        group="vhosts",
        name="add",
        known_as="add_vhost",
        text="Add a virtual host.",
        method="PUT",
        path="/vhosts/{vhost}",
        takes=(
            named("vhost"),
            option("--description", "what it applies to"),
            option("--tags", "tags, separated by commas"),
            option("--default-queue-type", "classic, quorum or stream: of queues declared without a type"),
            flag("--tracing", text="enable message tracing"),
        ),
        takes_known_as=(click.Option(["-d", "short_description"], help="same as --description"),),
        body=_vhost,
        says="vhost {vhost}: added",
    ),
    RequestCommand(
        group="vhosts",
        name="delete",
        known_as="delete_vhost",
        text="Delete a virtual host and everything in it.",
        method="DELETE",
        path="/vhosts/{vhost}",
        takes=(VHOST,),
        says="vhost {vhost}: deleted",
    ),
    RequestCommand(
        group="permissions",
        name="set",
        known_as="set_permissions",
        text="Set the permissions of a user in a virtual host.",
        method="PUT",
        path="/permissions/{vhost}/{user}",
        takes=(USER, *PERMISSIONS),
        body=fields("configure", "write", "read"),
        says="user {user}: permissions set in vhost {vhost}",
    ),
    RequestCommand(
        group="permissions",
        name="clear",
        known_as="clear_permissions",
        text="Delete the permissions of a user in a virtual host.",
        method="DELETE",
        path="/permissions/{vhost}/{user}",
        is_done_if_absent=True,
        takes=(USER,),
        says="user {user}: permissions deleted in vhost {vhost}",
    ),
    RequestCommand(
        group="topic-permissions",
        name="set",
        known_as="set_topic_permissions",
        text="Set the topic permissions of a user on an exchange.",
        method="PUT",
        path="/topic-permissions/{vhost}/{user}",
        takes=(USER, EXCHANGE, *PERMISSIONS[1:]),
        body=fields("exchange", "write", "read"),
        says="user {user}: topic permissions set on exchange {exchange}",
    ),
    *_policies("policies", "policy"),
    *_policies("operator-policies", "operator policy"),
    RequestCommand(
        group="parameters",
        name="set",
        known_as="set_parameter",
        text="Set a parameter; VALUE is a JSON object.",
        method="PUT",
        path="/parameters/{component}/{vhost}/{name}",
        takes=(named("component"), _NAME, named("value")),
        body=_component_value,
        says="parameter {name}: set",
    ),
    RequestCommand(
        group="parameters",
        name="clear",
        known_as="clear_parameter",
        text="Remove a parameter.",
        method="DELETE",
        path="/parameters/{component}/{vhost}/{name}",
        takes=(named("component"), _NAME),
        says="parameter {name}: removed",
    ),
    RequestCommand(
        group="parameters",
        name="set-global",
        known_as="set_global_parameter",
        text="Set a global parameter; VALUE is JSON.",
        method="PUT",
        path="/global-parameters/{name}",
        takes=(_NAME, named("value")),
        body=_value,
        says="parameter {name}: set",
    ),
    RequestCommand(
        group="parameters",
        name="clear-global",
        known_as="clear_global_parameter",
        text="Delete a global parameter.",
        method="DELETE",
        path="/global-parameters/{name}",
        takes=(_NAME,),
        says="parameter {name}: removed",
    ),
    RequestCommand(
        group="nodes",
        name="set-cluster-name",
        known_as="set_cluster_name",
        text="Set the cluster name.",
        method="PUT",
        path="/cluster-name",
        takes=(_NAME,),
        body=fields("name"),
        says="cluster: named {name}",
    ),
    *_CHECKS,
)
