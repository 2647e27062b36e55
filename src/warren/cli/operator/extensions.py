"""Commands for what Warren has beyond RabbitMQ: route tests, paused queues, undo of moves, plans."""

from urllib.parse import urlencode

import click
from click.exceptions import Exit

from warren.cli.operator.command_types import CustomCommand, OperatorCommand, RequestCommand, vhost_option
from warren.cli.operator.failures import USAGE, Failure
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.parameters import EXCHANGE, QUEUE, flag, named, option, pairs_of
from warren.cli.operator.session import Arguments, Session
from warren.cli.operator.tasks import read_definitions
from warren.cli.operator.text import cell_text
from warren.limits import TRACED_MISSES_MAX

_REACHED = ("queue", "outcome", "through", "reason")
_MISSED = ("exchange", "destination", "binding_key", "why not")
_PLANNED = ("action", "kind", "vhost", "name", "what")
_MISSES = 10
# Numbers of entries of a plan that would be created, changed and deleted, and of those that cannot be
# applied.
_TOLD = {"blocked": "blocked"}
_QUARANTINED = (
    QUEUE,
    option(
        "--position",
        "position of a message, as 'queues peek --quarantined' shows it; can be repeated",
        type=click.IntRange(0),
        multiple=True,
    ),
    flag("--all", text="all quarantined messages of the queue"),
)
# Exit status as of `terraform plan -detailed-exitcode`: 0 means no change, 1 a failure.
_CHANGES = 2


def _route(session: Session, arguments: Arguments) -> None:
    properties = pairs_of(arguments["property"], "--property")
    headers = pairs_of(arguments["header"], "--header")
    body = {
        "routing_key": arguments["routing_key"],
        "properties": properties | ({"headers": headers} if headers else {}),
        "unmatched": arguments["unmatched"],
    }
    # The default exchange has no name, and a path segment cannot be empty.
    where = arguments | {"exchange": arguments["exchange"] or "amq.default"}
    answer: Row = session.api.send("POST", filled("/warren/exchanges/{vhost}/{exchange}/route", where), body)
    for text in answer["refusals"]:
        session.note(f"would be refused: {text}")
    if session.is_json:
        session.print_json(answer)
        return
    if answer["is_routed"]:
        session.print_rows(_REACHED, [_reached(queue) for queue in answer["queues"]])
        _note_rest(session, "queues", len(answer["queues"]), answer["queues_total"])
    if answer["unmatched"]:
        if answer["is_routed"]:
            session.say("")
        session.print_rows(_MISSED, [_missed(miss) for miss in answer["unmatched"]])
        _note_rest(session, "bindings that do not match", len(answer["unmatched"]), answer["unmatched_total"])
    if not answer["is_routed"]:
        raise Failure("no queue would receive the message")


def _requeue(session: Session, arguments: Arguments) -> None:
    names = ("connection", "channel", "consumer_tag", "older_than_ms")
    body = {name: arguments[name] for name in names if arguments[name] is not None}
    if arguments["delivery_tag"]:
        if arguments["connection"] is None or arguments["channel"] is None or len(body) > 2:
            raise Failure("--delivery-tag requires --connection and --channel", USAGE)
        body = {"deliveries": [body | {"delivery_tag": tag} for tag in arguments["delivery_tag"]]}
    if arguments["all"]:
        body["all"] = True
    answer = session.api.send("POST", filled("/warren/queues/{vhost}/{queue}/requeue", arguments), body)
    if session.is_json:
        session.print_json(answer)
    if answer["missing"]:
        raise Failure(f"{answer['requeued']} requeued, {answer['missing']} no longer unacknowledged")
    session.say(f"queue {arguments['queue']}: {answer['requeued']} requeued")


def _release_quarantined(session: Session, arguments: Arguments) -> None:
    _change_quarantined(session, arguments, "release", "released")


def _remove_quarantined(session: Session, arguments: Arguments) -> None:
    _change_quarantined(session, arguments, "remove", "removed")


def _change_quarantined(session: Session, arguments: Arguments, action: str, done: str) -> None:
    positions = list(arguments["position"])
    if bool(positions) == arguments["all"]:
        raise Failure("give either --position or --all", USAGE)
    body = {"positions": positions} if positions else {"all": True}
    path = filled("/warren/queues/{vhost}/{queue}/quarantine/", arguments) + action
    answer = session.api.send("POST", path, body)
    if session.is_json:
        session.print_json(answer)
    if answer.get("remaining"):
        raise Failure(f"{answer[done]} {done}, {answer['remaining']} remain, since the queue is full")
    if answer["missing"]:
        raise Failure(f"{answer[done]} {done}, {answer['missing']} not in quarantine")
    session.say(f"queue {arguments['queue']}: {answer[done]} {done}")


def _recover(session: Session, arguments: Arguments) -> None:
    path = filled("/warren/queues/{vhost}/{queue}/recovery", arguments)
    answer: Row = session.api.send("GET", path)
    if session.is_json and not arguments["accept_loss"]:
        session.print_json(answer)
    if answer["state"] == "running":
        session.say(f"queue {arguments['queue']}: running, nothing to recover")
        return
    _tell_recoverable(session, answer)
    if not arguments["accept_loss"]:
        raise Failure("the queue does not run: pass --accept-loss to continue with what is here")
    answer = session.api.send("POST", path, {"accept_loss": True})
    if session.is_json:
        session.print_json(answer)
    session.say(f"queue {arguments['queue']}: running with {answer['messages']} messages")


def _tell_recoverable(session: Session, answer: Row) -> None:
    """Say what is readable and what is missing."""
    session.note(f"reason: {answer['reason']}")
    session.note(f"readable: {answer['messages']} messages, {answer['message_bytes']} bytes")
    session.note(f"log: up to entry {answer['last_index']}, {answer['commit_index']} known as committed")
    for loss in answer["losses"]:
        lost = "an unknown number of" if loss["messages"] is None else f"at most {loss['messages']}"
        session.note(f"missing: {loss['file']}, byte {loss['offset']}: {loss['reason']} ({lost} messages)")


def _plan(session: Session, arguments: Arguments) -> None:
    answer = _planned(session, arguments, "plan", read_definitions(arguments["file"]))
    _print_plan(session, answer)
    if arguments["detailed_exitcode"] and _is_change(answer):
        raise Exit(_CHANGES)


def _apply(session: Session, arguments: Arguments) -> None:
    definitions = read_definitions(arguments["file"])
    fingerprint = arguments["fingerprint"]
    if fingerprint is None:
        answer = _planned(session, arguments, "plan", definitions)
        if not session.is_json:
            _print_plan(session, answer)
        if _is_change(answer) and not arguments["yes"]:
            raise Failure("nothing was changed: give the --fingerprint of a plan, or --yes", USAGE)
        fingerprint = answer["fingerprint"]
    answer = _planned(session, arguments, "apply", definitions, fingerprint=fingerprint)
    if session.is_json:
        session.print_json(answer)
    for entry in answer["items"]:
        if entry["outcome"] == "failed":
            session.note(f"{entry['kind']} {entry['name']}: {entry['reason']}")
    if answer["failed"]:
        raise Failure(f"{answer['applied']} applied, {answer['failed']} failed")
    session.say(f"definitions: {answer['applied']} applied")


def _planned(session: Session, arguments: Arguments, what: str, definitions: object, **query: str) -> Row:
    path = "/warren/definitions/" + ("" if arguments["vhost"] is None else "{vhost}/") + what
    if arguments["prune"]:
        query["prune"] = "true"
    asked = "?" + urlencode(query) if query else ""
    answer: Row = session.api.send("POST", filled(path, arguments) + asked, definitions)
    return answer


def _is_change(answer: Row) -> bool:
    return any(answer["totals"][action] for action in ("create", "change", "delete"))


def _print_plan(session: Session, answer: Row) -> None:
    if session.is_json:
        session.print_json(answer)
        return
    items = answer["items"]
    if items:
        session.print_rows(_PLANNED, [_planned_row(entry) for entry in items])
        _note_rest(session, "entries", len(items), answer["items_total"])
    for text in answer["skipped"]:
        session.note(f"skipped: {text}")
    # Warren before this field has none.
    for text in answer.get("warnings", ()):
        session.note(f"warning: {text}")
    totals = (f"{count} {_TOLD.get(action, f'to {action}')}" for action, count in answer["totals"].items())
    session.say(", ".join(totals))
    if answer["losses"]:
        session.say(f"lost with the deleted objects: {_counts(answer['losses'])}")
    session.say(f"fingerprint {answer['fingerprint']}")


def _planned_row(entry: Row) -> list[object]:
    name = entry["name"]
    if "destination" in entry:
        name = f"{name} -> {entry['destination']} {entry['routing_key']}"
    before, after = entry["before"] or {}, entry["after"] or {}
    told = _counts(entry.get("losses", {}))
    if before and after:
        changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        told = "; ".join(
            f"{key}: {cell_text(before.get(key))} -> {cell_text(after.get(key))}" for key in changed
        )
    parts = [part for part in (entry.get("reason"), told) if part]
    return [entry["action"], entry["kind"], entry.get("vhost"), name, "; ".join(parts)]


def _counts(losses: Row) -> str:
    return ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in losses.items())


def _reached(queue: Row) -> list[object]:
    through = queue["matched_bindings"][0]
    more = f" and {queue['bindings'] - 1} more" if queue["bindings"] > 1 else ""
    fate = queue["outcome"] if queue["is_certain"] else f"{queue['outcome']}, perhaps"
    return [
        queue["name"],
        fate,
        (through.get("source") or "(default)") + more,
        queue["reason"] or through["reason"],
    ]


def _missed(miss: Row) -> list[object]:
    return [miss["source"] or "(default)", miss["destination"], miss["binding_key"], miss["reason"]]


def _note_rest(session: Session, what: str, count: int, total: int) -> None:
    if count < total:
        session.note(f"{what}: {count} of {total}")


_PRUNE = flag("--prune", text="delete objects that are not in FILE, of the kinds for which it has a section")

EXTENSIONS: tuple[OperatorCommand, ...] = (
    RequestCommand(
        group="queues",
        name="pause",
        text="Pause delivery from a queue; publishing and acknowledgements continue.",
        method="PUT",
        path="/warren/queues/{vhost}/{queue}/pause",
        takes=(QUEUE,),
        says="queue {queue}: paused",
    ),
    RequestCommand(
        group="queues",
        name="resume",
        text="Resume delivery from a queue.",
        method="DELETE",
        path="/warren/queues/{vhost}/{queue}/pause",
        takes=(QUEUE,),
        says="queue {queue}: resumed",
    ),
    CustomCommand(
        group="queues",
        name="requeue",
        is_in_vhost=True,
        does=_requeue,
        text="Requeue unacknowledged messages of a queue.",
        takes=(
            QUEUE,
            option("--connection", "only deliveries of this connection"),
            option(
                "--channel", "only deliveries of the channel with this number", type=click.IntRange(0, 65_535)
            ),
            option("--consumer-tag", "only deliveries of this consumer"),
            option("--older-than-ms", "only deliveries at least this old", type=click.IntRange(0)),
            option(
                "--delivery-tag",
                "delivery tag in a channel; can be repeated",
                type=click.IntRange(1),
                multiple=True,
            ),
            flag("--all", text="all unacknowledged messages of the queue"),
        ),
    ),
    CustomCommand(
        group="queues",
        name="release",
        is_in_vhost=True,
        does=_release_quarantined,
        text="Release quarantined messages of a quorum queue.",
        takes=_QUARANTINED,
    ),
    CustomCommand(
        group="queues",
        name="remove-quarantined",
        is_in_vhost=True,
        does=_remove_quarantined,
        text="Remove quarantined messages of a quorum queue.",
        takes=_QUARANTINED,
    ),
    CustomCommand(
        group="queues",
        name="recover",
        is_in_vhost=True,
        does=_recover,
        text="Show what is left of a quorum queue that does not run, and continue with it.",
        takes=(QUEUE, flag("--accept-loss", text="give up what is not here, and run the queue again")),
    ),
    CustomCommand(
        group="exchanges",
        name="route",
        is_in_vhost=True,
        does=_route,
        text="Show which queues a message would reach; nothing is published.",
        takes=(
            EXCHANGE,
            named("routing_key"),
            option("--property", "such as priority=5; can be repeated", multiple=True, metavar="NAME=VALUE"),
            option(
                "--header", "header of the application; can be repeated", multiple=True, metavar="NAME=VALUE"
            ),
            option(
                "--unmatched",
                "number of bindings that do not match to print",
                type=click.IntRange(0, TRACED_MISSES_MAX),
                default=_MISSES,
                show_default=True,
            ),
        ),
    ),
    CustomCommand(
        group="definitions",
        name="plan",
        does=_plan,
        text="Show what importing FILE would create, change and, with --prune, delete; nothing is changed.",
        takes=(
            vhost_option(None),
            named("file", default="-"),
            _PRUNE,
            flag("--detailed-exitcode", text="exit with status 2 if there are changes"),
        ),
    ),
    CustomCommand(
        group="definitions",
        name="apply",
        does=_apply,
        text="Apply the plan of FILE; refused if the broker has changed since the plan.",
        takes=(
            vhost_option(None),
            named("file", default="-"),
            _PRUNE,
            option("--fingerprint", "fingerprint of the plan"),
            flag("--yes", text="apply without a fingerprint"),
        ),
    ),
)
