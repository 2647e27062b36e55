"""Commands that RabbitMQ's tools have since 3.11, for scripts that are written for 4.0 to 4.3."""

import re

import click

from warren.cli.operator.command_types import CustomCommand, OperatorCommand, Run, vhost_option
from warren.cli.operator.failures import USAGE, Failure, ToolFailure
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.options import secret
from warren.cli.operator.parameters import VHOST, flag, named, option
from warren.cli.operator.rabbitmq_checks import answer, check
from warren.cli.operator.rabbitmq_facts import this_node
from warren.cli.operator.session import Arguments, Session

# Keys of policies for mirrored queues.
_MIRRORING = "ha-"
_DEPRECATED = ("name", "deprecation_phase", "state", "provided_by", "desc")
_POLICY = ("vhost", "name", "pattern", "apply-to", "definition", "priority")


def _check_leaders(session: Session, arguments: Arguments) -> None:
    node = this_node(session)
    try:
        pattern = re.compile(arguments["pattern"])
    except re.error as error:
        raise Failure(f"PATTERN must be a regular expression: {error}", USAGE) from None
    path = "/queues" if arguments["across_all_vhosts"] else filled("/queues/{vhost}", arguments)
    rows = session.api.rows(path, {"columns": "name,vhost,type,leader"}, session.progress)
    failed = [
        {"name": row["name"], "vhost": row["vhost"], "type": "quorum"}
        for row in rows
        if row["type"] == "quorum" and not row.get("leader") and pattern.search(row["name"])
    ]
    if failed:
        names = ", ".join(f"{row['name']} in vhost {row['vhost']}" for row in failed)
        raise ToolFailure(f"Quorum queues without a leader: {names}")
    answer(session, f"Node {node} reported that all quorum queues have a leader", {"result": "ok"})


def _check_replicas(session: Session, arguments: Arguments) -> None:
    node = this_node(session)
    queues = session.api.rows("/queues", {"columns": "name,vhost,type"}, session.progress)
    behind = []
    for queue in queues:
        if queue["type"] == "quorum":
            path = "/queues/quorum/{vhost}/{name}/status"
            members: list[Row] = session.api.get(filled(path, queue))
            if any(row["node"] == node and row["membership"] not in ("voter", "") for row in members):
                behind.append(queue["name"])
    if behind:
        raise ToolFailure(f"Queues whose replica on node {node} does not vote yet: {', '.join(behind)}")
    answer(session, f"Node {node} reported no queues with promotable replicas", {"result": "ok"})


def _check_deprecated(session: Session, arguments: Arguments) -> None:
    this_node(session)
    answer(session, "Cluster reported no deprecated features in use", {"result": "ok"})


def _list_deprecated(session: Session, arguments: Arguments) -> None:
    # Nothing that clients of RabbitMQ use is deprecated.
    this_node(session)
    session.begin("Listing deprecated features ...")
    session.print_rows(arguments["columns"] or _DEPRECATED, [])


def _list_interceptors(session: Session, arguments: Arguments) -> None:
    this_node(session)
    session.begin("Listing channel interceptors ...")
    session.print_rows(("name", "priority"), [])


def _mirroring(session: Session, path: str) -> list[Row]:
    """Return the policies with keys for mirrored queues, which have no effect."""
    policies: list[Row] = session.api.get(path)
    return [row for row in policies if any(key.startswith(_MIRRORING) for key in row["definition"])]


def _check_mirroring(session: Session, arguments: Arguments) -> None:
    if _mirroring(session, "/policies") or _mirroring(session, "/operator-policies"):
        raise ToolFailure("Some policies have keys for mirrored queues, which have no effect")
    sentence = "No policy enables mirroring of classic queues"
    answer(session, sentence, {"result": "ok", "message": sentence})


def _list_mirroring(path: str) -> Run:
    def does(session: Session, arguments: Arguments) -> None:
        session.begin("Listing policies with keys for mirrored queues ...")
        session.print_rows(_POLICY, [[row[name] for name in _POLICY] for row in _mirroring(session, path)])

    return does


def _hash_password(session: Session, arguments: Arguments) -> None:
    password = arguments["password"]
    body = {"password": secret("Password") if password is None else password}
    hashed: str = session.api.send("POST", "/auth/hash_password", body)["ok"]
    if session.is_json:
        session.print_json_line({"hash": hashed})
    else:
        session.print_lines([hashed])


_METADATA_OPTIONS = ("description", "tags", "default_queue_type", "protected_from_deletion")


def _update_vhost(session: Session, arguments: Arguments) -> None:
    if all(arguments[name] is None for name in _METADATA_OPTIONS):
        raise click.MissingParameter(ctx=click.get_current_context())
    path = filled("/vhosts/{vhost}", arguments)
    session.begin(f'Updating metadata of vhost "{arguments["vhost"]}" ...')
    present: Row = session.api.get(path)
    body = {
        "description": present.get("description", ""),
        "tags": ",".join(present.get("tags", ())),
        "default_queue_type": present.get("default_queue_type"),
    } | {
        name: arguments[name]
        for name in ("description", "tags", "default_queue_type")
        if arguments[name] is not None
    }
    if body["default_queue_type"] in (None, "undefined"):
        del body["default_queue_type"]
    session.api.send("PUT", path, body)
    if arguments["protected_from_deletion"] is not None:
        method = "POST" if arguments["protected_from_deletion"] == "true" else "DELETE"
        session.api.send(method, path + "/deletion/protection")


def _protect(method: str) -> Run:
    def does(session: Session, arguments: Arguments) -> None:
        session.api.send(method, filled("/vhosts/{vhost}/deletion/protection", arguments))

    return does


def _reset_statistics(session: Session, arguments: Arguments) -> None:
    session.begin(f"Resetting statistics database on node {this_node(session)}")
    session.api.send("DELETE", "/reset")


def _list_tracking(session: Session, arguments: Arguments) -> None:
    clients: Row = session.api.get(filled("/warren/streams/{vhost}/{stream}/clients", arguments))
    is_all = arguments["all"] or not (arguments["offset"] or arguments["writer"])
    rows: list[tuple[object, ...]] = []
    if is_all or arguments["offset"]:
        rows += [("offset", one["reference"], one["offset"]) for one in clients["offsets"]]
    if is_all or arguments["writer"]:
        rows += [("writer", one["reference"], one["sequence"]) for one in clients["sequences"]]
    session.print_rows(("type", "name", "tracking_value"), rows)


def _command(
    name: str, text: str, does: Run, *takes: click.Parameter, is_in_vhost: bool = False
) -> OperatorCommand:
    in_vhost = (vhost_option("/"),) if is_in_vhost else ()
    return CustomCommand(group="", name=name, known_as=name, text=text, does=does, takes=(*in_vhost, *takes))


_METADATA = "Checking metadata of node {node} ..."
_INITIALIZED = "Metadata store on node {node} has completed its initialization"
RABBITMQ_NEWER: tuple[OperatorCommand, ...] = (
    _command(
        "check_for_quorum_queues_without_an_elected_leader", "Check that quorum queues have a leader.",
        _check_leaders, named("pattern"), flag("--across-all-vhosts", text="in all virtual hosts"),
        is_in_vhost=True,
    ),
    _command(
        "check_if_new_quorum_queue_replicas_have_finished_initial_sync",
        "Check that all replicas of quorum queues on the node vote.", _check_replicas,
    ),
    _command(
        "check_if_any_deprecated_features_are_used", "Succeed: nothing is deprecated.", _check_deprecated
    ),
    _command(
        "list_deprecated_features", "List deprecated features: none.", _list_deprecated,
        flag("--used", text="those in use"), click.Argument(["columns"], nargs=-1),
    ),
    _command("list_channel_interceptors", "List channel interceptors: none.", _list_interceptors),
    _command(
        "check_if_cluster_has_classic_queue_mirroring_policy",
        "Check that no policy has keys for mirrored queues.", _check_mirroring,
    ),
    _command(
        "list_policies_with_classic_queue_mirroring", "List policies with keys for mirrored queues.",
        _list_mirroring("/policies"),
    ),
    _command(
        "list_operator_policies_with_classic_queue_mirroring",
        "List operator policies with keys for mirrored queues.", _list_mirroring("/operator-policies"),
    ),
    _command(
        "check_if_metadata_store_is_initialized", "Check that the metadata are complete.",
        check("/health/checks/metadata-store/initialized", _METADATA, _INITIALIZED),
    ),
    _command(
        "check_if_metadata_store_is_initialized_with_data", "Check that there are metadata.",
        check(
            "/health/checks/metadata-store/initialized/with-data", _METADATA, _INITIALIZED,
        ),
    ),
    _command(
        "has_reached_target_cluster_size", "Check that the cluster has all its nodes.",
        check(
            "/health/checks/reached-target-cluster-size",
            "Checking if target cluster size has been reached on node {node} ...",
            "Target cluster size has been reached on node {node}",
        ),
    ),
    _command(
        "hash_password", "Hash a password, which is prompted for if it is not given.", _hash_password,
        named("password", required=False),
        option("--hashing-algorithm", "no effect: the algorithm is that of the broker"),
    ),
    _command(
        "update_vhost_metadata", "Change the metadata of a virtual host.", _update_vhost, VHOST,
        click.Option(["-d", "--description"], help="description"),
        option("--tags", "tags, separated by commas"),
        option("--default-queue-type", "classic, quorum or stream"),
        option("--protected-from-deletion", "protection", type=click.Choice(("true", "false"))),
    ),
    _command("enable_vhost_deletion_protection", "Protect a virtual host.", _protect("POST"), VHOST),
    _command(
        "disable_vhost_deletion_protection", "End the protection of a virtual host.", _protect("DELETE"),
        VHOST,
    ),
    _command(
        "reset_stats_db", "Forget the samples of statistics.", _reset_statistics,
        flag("--all", text="no effect: each node resets its own"),
    ),
    _command(
        "list_stream_tracking", "List stored offsets and sequences of writers of a stream.", _list_tracking,
        named("stream"),
        flag("--all", text="both"),
        flag("--offset", text="offsets only"),
        flag("--writer", text="sequences of writers only"),
        click.Option(["--stream", "same_stream"], expose_value=False, hidden=True),
        is_in_vhost=True,
    ),
)  # fmt: skip
