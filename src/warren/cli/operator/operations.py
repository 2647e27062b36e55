"""What Warren has beyond RabbitMQ: where a message would go, queues that pause, and messages taken back."""

import click

from warren.cli.operator.api import Row, filled
from warren.cli.operator.command import Change, Command, Task
from warren.cli.operator.failures import USAGE, Failure
from warren.cli.operator.session import Arguments, Session
from warren.cli.operator.taking import EXCHANGE, QUEUE, flag, named, option, pairs_of
from warren.limits import TRACED_MISSES_MAX

_REACHED = ("queue", "outcome", "through", "reason")
_MISSED = ("exchange", "destination", "binding_key", "why not")
_MISSES = 10


def _route(session: Session, arguments: Arguments) -> None:
    properties = pairs_of(arguments["property"], "--property")
    headers = pairs_of(arguments["header"], "--header")
    body = {
        "routing_key": arguments["routing_key"],
        "properties": properties | ({"headers": headers} if headers else {}),
        "misses": arguments["misses"],
    }
    # The default exchange has no name, and an empty segment is none.
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
    if answer["misses"]:
        if answer["is_routed"]:
            session.say("")
        session.print_rows(_MISSED, [_missed(miss) for miss in answer["misses"]])
        _note_rest(session, "bindings that do not match", len(answer["misses"]), answer["misses_total"])
    if not answer["is_routed"]:
        raise Failure("no queue would have it")


def _return(session: Session, arguments: Arguments) -> None:
    names = ("connection", "channel", "consumer_tag", "older_than_ms")
    body = {name: arguments[name] for name in names if arguments[name] is not None}
    if arguments["delivery_tag"]:
        if arguments["connection"] is None or arguments["channel"] is None or len(body) > 2:
            raise Failure("--delivery-tag goes with --connection and --channel", USAGE)
        body = {"deliveries": [body | {"delivery_tag": tag} for tag in arguments["delivery_tag"]]}
    if arguments["all"]:
        body["all"] = True
    answer = session.api.send("POST", filled("/warren/queues/{vhost}/{queue}/return", arguments), body)
    if session.is_json:
        session.print_json(answer)
    if answer["missing"]:
        raise Failure(f"{answer['returned']} returned, {answer['missing']} not held any more")
    session.say(f"queue {arguments['queue']}: {answer['returned']} returned")


def _reached(queue: Row) -> list[object]:
    through = queue["through"][0]
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


OPERATIONS: tuple[Command, ...] = (
    Change(
        group="queues",
        name="pause",
        text="Hand no messages of a queue out; they go on to come, and to be settled.",
        method="PUT",
        path="/warren/queues/{vhost}/{queue}/pause",
        takes=(QUEUE,),
        says="queue {queue}: paused",
    ),
    Change(
        group="queues",
        name="resume",
        text="Hand messages of a queue out again.",
        method="DELETE",
        path="/warren/queues/{vhost}/{queue}/pause",
        takes=(QUEUE,),
        says="queue {queue}: goes on",
    ),
    Task(
        group="queues",
        name="return",
        is_in_vhost=True,
        does=_return,
        text="Take back what consumers hold and do not settle: it is ready again, as after a requeue.",
        takes=(
            QUEUE,
            option("--connection", "of this connection"),
            option("--channel", "of the channel of this number", type=click.IntRange(0, 65_535)),
            option("--consumer-tag", "of this consumer"),
            option("--older-than-ms", "held for so long at least", type=click.IntRange(0)),
            option("--delivery-tag", "one of a channel; repeat", type=click.IntRange(1), multiple=True),
            flag("--all", text="all of the queue"),
        ),
    ),
    Task(
        group="exchanges",
        name="route",
        is_in_vhost=True,
        does=_route,
        text="Tell where a message would go, and which bindings nearly match; nothing is published.",
        takes=(
            EXCHANGE,
            named("routing_key"),
            option("--property", "as priority=5; repeat", multiple=True, metavar="NAME=VALUE"),
            option("--header", "of the application; repeat", multiple=True, metavar="NAME=VALUE"),
            option(
                "--misses",
                "how many bindings that do not match are told of",
                type=click.IntRange(0, TRACED_MISSES_MAX),
                default=_MISSES,
                show_default=True,
            ),
        ),
    ),
)
