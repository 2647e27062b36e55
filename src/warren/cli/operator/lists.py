"""Commands that list objects, or show one."""

from collections.abc import Mapping
from dataclasses import dataclass

import click

from warren.cli.operator.command_types import ListCommand, OperatorCommand, ShowCommand
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.parameters import EXCHANGE, QUEUE, USER, VHOST, named, option
from warren.cli.operator.session import Arguments, Session

_PERMISSIONS = ("configure", "write", "read")
_POLICY = ("vhost", "name", "pattern", "apply-to", "definition", "priority")
_TOPIC = ("exchange", "write", "read")
_CHANNEL = {
    "pid": "name",
    "connection": "connection_details.name",
    "messages_uncommitted": "messages_uncommitted",
}
# Columns of RabbitMQ's mirrored queues.
_OF_MIRRORS = ("slave_pids", "synchronised_slave_pids", "recoverable_slaves")
_WHERE = (
    click.Option(["--online", "is_online"], is_flag=True, hidden=True, help="queues that are available"),
    click.Option(
        ["--offline", "is_offline"], is_flag=True, hidden=True, help="queues that are not available"
    ),
    click.Option(
        ["--local", "is_local"], is_flag=True, hidden=True, help="queues whose leader is on this node"
    ),
)
_GLOBAL = click.Option(["--global", "is_global"], is_flag=True, hidden=True, help="all limits")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueList(ListCommand):
    """Lists queues, with the options of rabbitmqctl for some of them."""

    def _rows(
        self, session: Session, path: str, query: Mapping[str, object], arguments: Arguments
    ) -> list[Row]:
        is_online, is_offline, is_local = (
            arguments[name] for name in ("is_online", "is_offline", "is_local")
        )
        if not (is_online or is_offline or is_local):
            return ListCommand._rows(self, session, path, query, arguments)
        columns = f"{query['columns']},state,node" if query else ""
        rows = ListCommand._rows(self, session, path, {"columns": columns} if columns else {}, arguments)
        node = session.api.get("/overview", [("columns", "node")])["node"] if is_local else None
        return [
            row
            for row in rows
            if not (is_online or is_offline) or (row.get("state") == "down") == is_offline
            if not is_local or row.get("node") == node
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitList(ListCommand):
    """Lists limits: as rabbitmqctl does, those of one virtual host or user are one JSON object."""

    def run(self, session: Session, arguments: Arguments) -> None:
        if not session.is_rabbitmq:
            ListCommand.run(self, session, arguments)
            return
        kind, chosen = self.chosen_by, arguments[self.chosen_by]
        is_all = arguments["is_global"] or chosen is None
        whose = f"all {kind}s" if is_all else f'{kind} "{chosen}"'
        session.begin(f"Listing limits for {whose} ...")
        if not is_all:
            # Raises ObjectNotFound.
            session.api.get(filled(f"/{kind}s/{{{kind}}}", arguments), {"columns": "name"})
        found = session.api.rows(self.path, {}, session.progress)
        rows = [row for row in found if is_all or row[kind] == chosen]
        if is_all:
            session.print_rows((kind, "limits"), [[row[kind], row["value"]] for row in rows])
        else:
            session.print_json_line(rows[0]["value"] if rows else {})


LISTS: tuple[OperatorCommand, ...] = (
    QueueList(
        group="queues",
        name="list",
        takes=_WHERE,
        known_as="list_queues",
        is_empty_if_absent=True,
        says="Timeout: 60.0 seconds ...\nListing queues for vhost {vhost} ...",
        text="List queues.",
        path="/queues",
        within="/queues/{vhost}",
        columns=(
            "vhost",
            "name",
            "type",
            "state",
            "messages",
            "messages_ready",
            "messages_unacknowledged",
            "consumers",
        ),
        known_columns=("name", "messages"),
        renamed={"pid": "node", "owner_pid": "owner_pid_details.name", "leader": "node"},
        fixed={
            **dict.fromkeys(_OF_MIRRORS, ""),
            **dict.fromkeys(("disk_reads", "disk_writes"), 0),
            "exclusive_consumer_pid": "",
        },
    ),
    ShowCommand(
        group="queues",
        name="show",
        text="Show all fields of a queue.",
        path="/queues/{vhost}/{queue}",
        takes=(QUEUE,),
    ),
    ListCommand(
        group="exchanges",
        name="list",
        known_as="list_exchanges",
        is_empty_if_absent=True,
        says="Listing exchanges for vhost {vhost} ...",
        text="List exchanges.",
        path="/exchanges",
        within="/exchanges/{vhost}",
        columns=("vhost", "name", "type", "durable", "auto_delete", "internal", "policy"),
        known_columns=("name", "type"),
    ),
    ShowCommand(
        group="exchanges",
        name="show",
        text="Show all fields of an exchange.",
        path="/exchanges/{vhost}/{exchange}",
        takes=(EXCHANGE,),
    ),
    ListCommand(
        group="bindings",
        name="list",
        known_as="list_bindings",
        is_empty_if_absent=True,
        says="Listing bindings for vhost {vhost}...",
        text="List bindings.",
        path="/bindings",
        within="/bindings/{vhost}",
        columns=(
            "vhost",
            "source",
            "destination",
            "destination_type",
            "routing_key",
            "arguments",
            "properties_key",
        ),
        known_columns=(
            "source_name",
            "source_kind",
            "destination_name",
            "destination_kind",
            "routing_key",
            "arguments",
        ),
        renamed={
            "source_name": "source",
            "destination_name": "destination",
            "destination_kind": "destination_type",
        },
        fixed={"source_kind": "exchange"},
    ),
    ListCommand(
        group="users",
        name="list",
        known_as="list_users",
        has_columns=False,
        says="Listing users ...",
        text="List users.",
        path="/users",
        columns=("name", "tags"),
        known_columns=("user", "tags"),
        renamed={"user": "name"},
    ),
    ShowCommand(group="users", name="show", text="Show a user.", path="/users/{user}", takes=(USER,)),
    ListCommand(
        group="users",
        name="permissions",
        known_as="list_user_permissions",
        has_columns=False,
        says='Listing permissions for user "{user}" ...',
        text="List the permissions of a user.",
        path="/users/{user}/permissions",
        takes=(USER,),
        columns=("vhost", *_PERMISSIONS),
    ),
    ListCommand(
        group="users",
        name="topic-permissions",
        known_as="list_user_topic_permissions",
        has_columns=False,
        says='Listing topic permissions for user "{user}" ...',
        text="List the topic permissions of a user.",
        path="/users/{user}/topic-permissions",
        takes=(USER,),
        columns=("vhost", *_TOPIC),
    ),
    ListCommand(
        group="vhosts",
        name="list",
        known_as="list_vhosts",
        says="Listing vhosts ...",
        text="List virtual hosts.",
        path="/vhosts",
        columns=("name", "description", "tags", "messages"),
        known_columns=("name",),
    ),
    ShowCommand(
        group="vhosts", name="show", text="Show a virtual host.", path="/vhosts/{vhost}", takes=(VHOST,)
    ),
    ListCommand(
        group="permissions",
        name="list",
        known_as="list_permissions",
        has_columns=False,
        says='Listing permissions for vhost "{vhost}" ...',
        text="List permissions.",
        path="/permissions",
        within="/vhosts/{vhost}/permissions",
        columns=("vhost", "user", *_PERMISSIONS),
        known_columns=("user", *_PERMISSIONS),
    ),
    ListCommand(
        group="topic-permissions",
        name="list",
        known_as="list_topic_permissions",
        has_columns=False,
        says='Listing topic permissions for vhost "{vhost}" ...',
        text="List topic permissions.",
        path="/topic-permissions",
        within="/vhosts/{vhost}/topic-permissions",
        columns=("vhost", "user", *_TOPIC),
        known_columns=("user", *_TOPIC),
    ),
    ListCommand(
        group="policies",
        name="list",
        known_as="list_policies",
        has_columns=False,
        says='Listing policies for vhost "{vhost}" ...',
        text="List policies.",
        path="/policies",
        within="/policies/{vhost}",
        columns=_POLICY,
    ),
    ShowCommand(
        group="policies",
        name="show",
        text="Show a policy.",
        path="/policies/{vhost}/{name}",
        takes=(named("name", "/policies/{vhost}"),),
    ),
    ListCommand(
        group="operator-policies",
        name="list",
        known_as="list_operator_policies",
        has_columns=False,
        says='Listing operator policy overrides for vhost "{vhost}" ...',
        text="List operator policies.",
        path="/operator-policies",
        within="/operator-policies/{vhost}",
        columns=_POLICY,
    ),
    ShowCommand(
        group="operator-policies",
        name="show",
        text="Show an operator policy.",
        path="/operator-policies/{vhost}/{name}",
        takes=(named("name", "/operator-policies/{vhost}"),),
    ),
    ListCommand(
        group="parameters",
        name="list",
        known_as="list_parameters",
        has_columns=False,
        says='Listing runtime parameters for vhost "{vhost}" ...',
        text="List parameters of all components.",
        is_filtered=True,
        known_columns=("component", "name", "value"),
        path="/parameters",
        columns=("vhost", "component", "name", "value"),
    ),
    ShowCommand(
        group="parameters",
        name="show",
        text="Show a parameter.",
        path="/parameters/{component}/{vhost}/{name}",
        takes=(named("component"), named("name")),
    ),
    ListCommand(
        group="parameters",
        name="list-global",
        known_as="list_global_parameters",
        has_columns=False,
        says="Listing global runtime parameters ...",
        text="List global parameters.",
        path="/global-parameters",
        columns=("name", "value"),
    ),
    LimitList(
        group="limits",
        name="list",
        known_as="list_vhost_limits",
        has_columns=False,
        text="List the limits of virtual hosts.",
        takes=(_GLOBAL,),
        path="/vhost-limits",
        within="/vhost-limits/{vhost}",
        columns=("vhost", "value"),
    ),
    LimitList(
        group="limits",
        name="list-users",
        known_as="list_user_limits",
        has_columns=False,
        text="List the limits of users.",
        path="/user-limits",
        within="/user-limits/{user}",
        chosen_by="user",
        takes=(option("--user", "only this user"), _GLOBAL),
        columns=("user", "value"),
    ),
    ListCommand(
        group="connections",
        name="list",
        known_as="list_connections",
        says="Listing connections ...",
        text="List connections.",
        path="/connections",
        within="/vhosts/{vhost}/connections",
        columns=("name", "user_provided_name", "user", "vhost", "state", "protocol", "channels", "ssl"),
        known_columns=("user", "peer_host", "peer_port", "state"),
        renamed={"pid": "name"},
    ),
    ShowCommand(
        group="connections",
        name="show",
        text="Show all fields of a connection.",
        path="/connections/{name}",
        takes=(named("name", "/connections"),),
    ),
    ListCommand(
        group="channels",
        name="list",
        known_as="list_channels",
        says="Listing channels ...",
        text="List channels.",
        path="/channels",
        within="/vhosts/{vhost}/channels",
        columns=(
            "name",
            "user",
            "vhost",
            "state",
            "consumer_count",
            "messages_unacknowledged",
            "prefetch_count",
        ),
        known_columns=("pid", "user", "consumer_count", "messages_unacknowledged"),
        renamed=_CHANNEL,
    ),
    ShowCommand(
        group="channels",
        name="show",
        text="Show all fields of a channel.",
        path="/channels/{name}",
        takes=(named("name", "/channels"),),
    ),
    ListCommand(
        group="consumers",
        name="list",
        known_as="list_consumers",
        is_empty_if_absent=True,
        says="Listing consumers in vhost {vhost} ...",
        text="List consumers.",
        path="/consumers",
        within="/consumers/{vhost}",
        columns=("vhost", "queue", "consumer_tag", "channel", "ack_required", "prefetch_count", "active"),
        known_columns=(
            "queue_name",
            "channel_pid",
            "consumer_tag",
            "ack_required",
            "prefetch_count",
            "active",
            "arguments",
        ),
        renamed={
            "vhost": "queue.vhost",
            "queue": "queue.name",
            "queue_name": "queue.name",
            "channel": "channel_details.name",
            "channel_pid": "channel_details.name",
        },
    ),
    ListCommand(
        group="feature-flags",
        name="list",
        known_as="list_feature_flags",
        says="Listing feature flags ...",
        text="List feature flags.",
        path="/feature-flags",
        columns=("name", "state", "stability", "provided_by"),
        known_columns=("name", "state"),
    ),
    ListCommand(
        group="nodes",
        name="list",
        text="List the nodes.",
        path="/nodes",
        columns=(
            "name",
            "running",
            "mem_used",
            "mem_limit",
            "mem_alarm",
            "disk_free",
            "disk_free_alarm",
            "fd_used",
            "uptime",
        ),
    ),
    ShowCommand(
        group="nodes",
        name="show",
        text="Show all fields of a node.",
        path="/nodes/{node}",
        takes=(named("node", "/nodes"),),
    ),
    ShowCommand(group="", name="overview", text="Show totals and rates of the broker.", path="/overview"),
    ShowCommand(group="", name="whoami", text="Show the authenticated user and its tags.", path="/whoami"),
)
