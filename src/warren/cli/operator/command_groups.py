"""All operator commands, in their groups and under the names of rabbitmqctl."""

import click
from click.shell_completion import get_completion_class

from warren.cli.operator.accounts import ACCOUNTS
from warren.cli.operator.broker_links import BROKER_LINKS
from warren.cli.operator.changes import CHANGES
from warren.cli.operator.cluster import CLUSTER, recover
from warren.cli.operator.command_types import OperatorCommand, built
from warren.cli.operator.extensions import EXTENSIONS
from warren.cli.operator.lists import LISTS
from warren.cli.operator.move_from.command import MOVE_FROM
from warren.cli.operator.move_jobs import MOVE_JOBS
from warren.cli.operator.node import NODE
from warren.cli.operator.quarantine import QUARANTINE
from warren.cli.operator.rabbitmq_commands import RABBITMQ_ONLY
from warren.cli.operator.replicas import REPLICAS
from warren.cli.operator.streams import STREAMS
from warren.cli.operator.support_report import SUPPORT_REPORT
from warren.cli.operator.tasks import TASKS
from warren.cli.operator.tracing import TRACING
from warren.cli.operator.unsupported_commands import UNSUPPORTED, unsupported_command
from warren.cli.sections import SectionedGroup

COMMANDS: tuple[OperatorCommand, ...] = (
    *LISTS, *CHANGES, *ACCOUNTS, *TASKS, *MOVE_JOBS, *EXTENSIONS, *STREAMS, *TRACING, *NODE,
    *QUARANTINE, *BROKER_LINKS, *SUPPORT_REPORT, *CLUSTER, *REPLICAS, *MOVE_FROM,
)  # fmt: skip
_GROUPS = {
    "queues": "Queues, and the messages in them.",
    "dead-letters": "Dead letters: list and redrive.",
    "jobs": "Jobs that move messages: progress, stop, undo.",
    "streams": "Streams, their clients, and super streams.",
    "leases": "Leases of messages.",
    "exchanges": "Exchanges, and publishing to them.",
    "bindings": "Bindings of queues and exchanges.",
    "users": "Users: passwords, tags, permissions.",
    "vhosts": "Virtual hosts.",
    "permissions": "Permissions to configure, write and read.",
    "topic-permissions": "Topic permissions: permitted routing keys.",
    "policies": "Policies of queues and exchanges.",
    "operator-policies": "Policies that only administrators can change.",
    "parameters": "Parameters of components, and global ones.",
    "limits": "Limits of virtual hosts and users.",
    "shovels": "Shovels: messages moved between brokers.",
    "federation": "Federation: upstreams, sets and links.",
    "definitions": "Export, import and plan definitions.",
    "connections": "Connections: list and close.",
    "channels": "Channels.",
    "consumers": "Consumers.",
    "cluster": "The cluster: join, leave, maintenance.",
    "nodes": "Nodes: their limits, settings and listeners.",
    "quarantine": "Data on disk that is unknown to the metadata.",
    "log": "Log outputs and levels.",
    "trace": "Message tracing (firehose) of a virtual host.",
    "health": "Health checks; exit status 6 if one fails.",
    "feature-flags": "Feature flags.",
}
# The order of commands in the help of groups with many.
SECTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "queues": {
        "Queues": ("list", "show", "declare", "delete"),
        "Messages": ("peek", "get", "purge", "move"),
        "Delivery": ("pause", "resume", "requeue"),
        "Quarantine": ("release", "remove-quarantined"),
        "Replicas": ("quorum-status", "add-member", "delete-member", "grow", "shrink", "rebalance"),
        "Damage": ("recover",),
    },
    "streams": {
        "Streams": ("list", "show", "status", "peek", "clients"),
        "Stream protocol clients": ("connections", "publishers", "consumers"),
        "Super streams": ("add-super-stream", "delete-super-stream"),
    },
    "users": {
        "Users": ("list", "show", "add", "delete", "set-tags"),
        "Passwords": ("change-password", "clear-password", "authenticate"),
        "Permissions": ("permissions", "topic-permissions"),
    },
    "parameters": {
        "In a virtual host": ("list", "show", "set", "clear"),
        "Global": ("list-global", "set-global", "clear-global"),
    },
    "limits": {
        "Virtual hosts": ("list", "set", "clear"),
        "Users": ("list-users", "set-user", "clear-user"),
    },
    "shovels": {
        "Status": ("list", "show", "restart"),
        "Definition": ("check", "create", "update", "delete"),
    },
    "federation": {
        "Links": ("links", "restart", "explain"),
        "Upstreams": ("upstreams", "show-upstream", "set-upstream", "delete-upstream"),
        "Sets of upstreams": ("sets", "set-upstream-set", "delete-upstream-set"),
    },
    "nodes": {
        "State": ("list", "show", "ping", "await", "version", "listeners", "memory", "alarms", "report"),
        "Settings and limits": ("settings", "limits", "limit-memory", "limit-disk", "set-cluster-name"),
        "Logins": ("auth-attempts", "reset-auth-attempts"),
    },
    "cluster": {
        "State": ("status", "await", "await-quorum"),
        "Members": ("join", "leave", "forget", "change-node-type"),
        "Maintenance": ("drain", "revive"),
        "A lost majority": ("recover",),
    },
    "health": {
        "The node": ("running", "alarms", "local-alarms", "certificates"),
        "Listeners": ("answering", "port", "protocol"),
        "Messages": ("virtual-hosts", "alive", "losses", "acknowledge-losses", "quarantine"),
        "Quorum queues": ("quorum-queues", "quorum-critical"),
    },
}


def add_commands(main: click.Group) -> None:
    """Add all commands to `main`."""
    groups = {
        name: SectionedGroup(name, help=text, sections=SECTIONS.get(name)) for name, text in _GROUPS.items()
    }
    for group in groups.values():
        main.add_command(group)
    for command in COMMANDS:
        (groups[command.group] if command.group else main).add_command(built(command))
        if command.known_as:
            main.add_command(built(command, is_known_as=True))
    for command in RABBITMQ_ONLY:
        main.add_command(built(command, is_known_as=True))
    groups["cluster"].add_command(recover)
    for name in UNSUPPORTED:
        main.add_command(unsupported_command(name))
    main.add_command(completion)


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script by which SHELL completes commands and names; as in eval "$(warren completion bash)"."""
    found = get_completion_class(shell)
    assert found is not None
    main = context.find_root().command
    click.echo(found(main, {}, "warren", "_WARREN_COMPLETE").source())
