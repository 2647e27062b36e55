"""Commands for dead letters and moved messages: list, redrive, move, and follow the jobs."""

import time
from typing import Any

import click

from warren.cli.operator.command_types import (
    CustomCommand,
    ListCommand,
    OperatorCommand,
    ShowCommand,
    vhost_option,
)
from warren.cli.operator.failures import USAGE, Failure
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.parameters import QUEUE, flag, named, option, pairs_of
from warren.cli.operator.session import Arguments, Session

# Interval at which a job is queried while the command waits for it.
_LOOK_S = 0.2
_OVER = ("done", "failed", "stopped")
_GROUPS = (
    "vhost",
    "in",
    "first death queue",
    "reason",
    "first death exchange",
    "count",
    "oldest",
    "newest",
    "routing keys",
)
_ENDS = ("exchange", "routing key", "queues", "count")
_REFUSALS = ("reason", "count", "positions")
_JOBS = (
    "id",
    "kind",
    "vhost",
    "queue",
    "target",
    "user",
    "state",
    "moved",
    "not_moved",
    "moved_per_second",
    "reason",
)


def _dead_letters(session: Session, arguments: Arguments) -> None:
    queues = _holding(session, arguments)
    if session.is_json:
        session.print_json(queues)
        return
    rows = [
        (
            queue["vhost"],
            queue["name"],
            group["queue"],
            group["reason"],
            group["exchange"],
            group["count"],
            _when(group["oldest"]),
            _when(group["newest"]),
            group["routing_keys"],
        )
        for queue in queues
        for group in queue["groups"]
    ]
    session.print_rows(_GROUPS, rows)
    for queue in queues:
        if queue["next"] is not None:
            session.note(
                f"queue {queue['name']}: {queue['examined']} messages were examined, and there are more; "
                f"'warren dead-letters list {queue['name']}' examines all"
            )


def _holding(session: Session, arguments: Arguments) -> list[Row]:
    """Return the queues with dead letters, without a limit if one queue is named."""
    if arguments["queue"] is None:
        path = "/warren/dead-letters" if arguments["vhost"] is None else "/warren/dead-letters/{vhost}"
        return [
            queue
            for queue in session.api.rows(filled(path, arguments), {}, session.progress)
            if queue["dead_letters"] or queue["next"] is not None
        ]
    where = arguments | {"vhost": arguments["vhost"] or "/"}
    path = filled("/warren/queues/{vhost}/{queue}/dead-letters", where)
    whole: Row = session.api.get(path)
    place = whole["next"]
    while place is not None:
        more = session.api.get(path, {"from": place})
        _add(whole, more)
        place = more["next"]
    whole["next"] = None
    return [whole]


def _add(whole: Row, more: Row) -> None:
    """Add the counts in `more` to those of the same queue in `whole`."""
    for name in ("dead_letters", "other_messages", "examined", "other_dead_letters"):
        whole[name] += more[name]
    groups = {(each["queue"], each["reason"], each["exchange"]): each for each in whole["groups"]}
    for group in more["groups"]:
        known = groups.get((group["queue"], group["reason"], group["exchange"]))
        if known is None:
            whole["groups"].append(group)
            continue
        known["count"] += group["count"]
        known["bytes"] += group["bytes"]
        known["oldest"] = min(known["oldest"], group["oldest"])
        known["newest"] = max(known["newest"], group["newest"])


def _redrive(session: Session, arguments: Arguments) -> None:
    body = _order(arguments)
    if arguments["exchange"] is not None or arguments["routing_key"] is not None:
        if arguments["to"] == "queue":
            raise Failure("--exchange and --routing-key require --to exchange", USAGE)
        body |= {"exchange": arguments["exchange"], "routing_key": arguments["routing_key"]}
    to_queue = arguments["to_queue"]
    body |= {"to": arguments["to"] or "queue"} | ({} if to_queue is None else {"queue": to_queue})
    group = {
        name: arguments[given]
        for name, given in (
            ("queue", "first_death_queue"),
            ("reason", "reason"),
            ("exchange", "first_death_exchange"),
        )
        if arguments[given] is not None
    }
    if group:
        body["group"] = group
    headers, removed = pairs_of(arguments["set_header"], "--set-header"), list(arguments["remove_header"])
    if headers or removed:
        body["edit"] = {"headers": headers, "remove_headers": removed}
    _started(session, arguments, filled("/warren/queues/{vhost}/{queue}/redrive", arguments), body)


def _move(session: Session, arguments: Arguments) -> None:
    body = _order(arguments) | {"destination": arguments["destination"]}
    if arguments["to_vhost"] is not None:
        body["destination_vhost"] = arguments["to_vhost"]
    _started(session, arguments, filled("/warren/queues/{vhost}/{queue}/move", arguments), body)


def _order(arguments: Arguments) -> dict[str, Any]:
    body: dict[str, Any] = {"dry_run": arguments["dry_run"], "match": list(arguments["match"])}
    return body | {name: arguments[name] for name in ("limit", "rate") if arguments[name] is not None}


def _started(session: Session, arguments: Arguments, path: str, body: dict[str, Any]) -> None:
    answer = session.api.send("POST", path, body)
    if arguments["dry_run"]:
        _print_preview(session, answer)
    elif arguments["no_wait"]:
        _print_job(session, answer)
    else:
        _wait(session, answer)


def _print_preview(session: Session, answer: Row) -> None:
    if session.is_json:
        session.print_json(answer)
        return
    ends = answer["destinations"]
    session.print_rows(
        _ENDS, [[end["exchange"], end["routing_key"], end["queues"], end["count"]] for end in ends]
    )
    _print_refusals(session, answer)
    session.say(
        f"{answer['would_move']} would be moved, {answer['not_moved']} would not; nothing was changed"
    )
    if answer["next"] is not None:
        session.note(f"{answer['examined']} messages were examined, and there are more")


def _print_refusals(session: Session, answer: Row) -> None:
    if answer["not_moved_reasons"]:
        rows = [[each["reason"], each["count"], each["positions"]] for each in answer["not_moved_reasons"]]
        session.print_rows(_REFUSALS, rows)


def _wait(session: Session, job: Row) -> None:
    """Wait until `job` has ended; interrupting the command does not stop the job."""
    path = filled("/warren/jobs/{id}", job)
    try:
        while job["state"] not in _OVER:
            time.sleep(_LOOK_S)
            job = session.api.get(path)
            session.progress(job["moved"], job["examined"])
    except KeyboardInterrupt:
        raise Failure(f"{job['kind']} is still running: 'warren jobs stop {job['id']}' stops it") from None
    _print_job(session, job)
    if job["state"] != "done":
        raise Failure(f"{job['kind']} {job['id']} {job['state']}: {job['reason']}")


def _print_job(session: Session, job: Row) -> None:
    if session.is_json:
        session.print_json(job)
        return
    _print_refusals(session, job)
    late = "" if job["not_undone"] is None else f", {job['not_undone']} already delivered"
    stay = f", {job['not_moved']} not moved" if job["not_moved"] else ""
    session.say(f"{job['kind']} {job['id']} {job['state']}: {job['moved']} moved{stay}{late}")


def _stop(session: Session, arguments: Arguments) -> None:
    session.api.send("DELETE", filled("/warren/jobs/{job}", arguments))
    session.say(f"job {arguments['job']}: stopped, or removed if it had ended")


def _undo(session: Session, arguments: Arguments) -> None:
    answer = session.api.send("POST", filled("/warren/jobs/{job}/undo", arguments))
    if arguments["no_wait"]:
        _print_job(session, answer)
    else:
        _wait(session, answer)


def _when(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(milliseconds / 1000))


_JOB = named("job")
_NO_WAIT = flag("--no-wait", text="do not wait until the job ends")
_ORDER = (
    option("--match", "condition on the message; can be repeated", multiple=True, metavar="CONDITION"),
    option("--limit", "maximum number of messages", type=click.IntRange(1)),
    option("--rate", "maximum messages per second", type=click.FloatRange(0, min_open=True)),
    flag("--dry-run", text="show what would be moved where, and what could not; move nothing"),
    _NO_WAIT,
)

MOVE_JOBS: tuple[OperatorCommand, ...] = (
    CustomCommand(
        group="dead-letters",
        name="list",
        does=_dead_letters,
        text="List dead letters by cause of death, of all queues or of QUEUE.",
        takes=(vhost_option(None), named("queue", "/queues/{vhost}", required=False)),
    ),
    CustomCommand(
        group="dead-letters",
        name="redrive",
        is_in_vhost=True,
        does=_redrive,
        text="Redrive dead letters of QUEUE to where they came from, or to another target.",
        takes=(
            QUEUE,
            option(
                "--to", "target: the queue where each message died first [default], or its exchange",
                type=click.Choice(("queue", "exchange")),
            ),
            option("--to-queue", "target queue of all messages"),
            option("--exchange", "target exchange of all messages"),
            option("--routing-key", "routing key for the target exchange"),
            option("--first-death-queue", "only messages that died first in this queue"),
            option("--reason", "only with this first cause: rejected, expired, maxlen, delivery_limit"),
            option("--first-death-exchange", "only messages published to this exchange"),
            option("--set-header", "set a header; can be repeated", multiple=True, metavar="NAME=VALUE"),
            option("--remove-header", "remove a header; can be repeated", multiple=True, metavar="NAME"),
            *_ORDER,
        ),
    ),
    CustomCommand(
        group="queues",
        name="move",
        is_in_vhost=True,
        does=_move,
        text="Move messages of QUEUE to the queue DESTINATION, unchanged and in order.",
        takes=(QUEUE, named("destination"), option("--to-vhost", "virtual host of DESTINATION"), *_ORDER),
    ),
    ListCommand(
        group="jobs",
        name="list",
        text="List redrive, move and undo jobs with their progress.",
        path="/warren/jobs",
        columns=_JOBS,
    ),
    ShowCommand(group="jobs", name="show", text="Show a job.", path="/warren/jobs/{job}", takes=(_JOB,)),
    CustomCommand(
        group="jobs",
        name="stop",
        does=_stop,
        text="Stop a job (moved messages stay moved), or remove a finished one from the list.",
        takes=(_JOB,),
    ),
    CustomCommand(
        group="jobs",
        name="undo",
        does=_undo,
        text="Undo a redrive: move back the messages that have not been delivered since.",
        takes=(_JOB, _NO_WAIT),
    ),
)  # fmt: skip
