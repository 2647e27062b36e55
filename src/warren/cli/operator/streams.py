"""Commands for streams, also under the names of rabbitmq-streams; and for leases."""

from datetime import datetime
from typing import Any

import click

from warren.cli.operator.command_types import (
    CustomCommand,
    ListCommand,
    OperatorCommand,
    RequestCommand,
    ShowCommand,
)
from warren.cli.operator.failures import USAGE, Failure
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.parameters import VERBOSE, flag, named, option
from warren.cli.operator.session import Arguments, Session
from warren.cli.operator.tasks import COUNT, MATCH, peek

_STATUS = ("role", "node", "offset", "committed_offset", "first_offset", "readers", "segments")
_TRACKED = ("type", "reference", "value")
_ORDER = "x-stream-partition-order"
# Of a super stream for which rabbitmq-streams is told nothing.
_PARTITIONS = 3
_STREAM = named("queue", "/warren/streams/{vhost}")
_PATH = "/warren/streams/{vhost}/{queue}"


def _peek(session: Session, arguments: Arguments) -> None:
    peek(session, arguments, "ready", _place(session, arguments))


def _place(session: Session, arguments: Arguments) -> int:
    """Parse the offset in --from."""
    where: str = arguments["from_"]
    if where.isascii() and where.isdecimal():
        return int(where)
    path = filled(_PATH, arguments)
    if where in ("first", "last"):
        stream: Row = session.api.get(path)
        is_last = where == "last"
        first, end = stream["first_offset"], stream["committed_offset"]
        return int(max(first, end - arguments["count"] if is_last else 0))
    try:
        time = datetime.fromisoformat(where)
    except ValueError:
        what = "first, last, an offset, or a time as 2026-01-31T12:00"
        raise Failure(f"--from must be {what}, not {where!r}", USAGE) from None
    milliseconds = max(int(time.timestamp() * 1000), 0)
    return int(session.api.get(path, {"timestamp": milliseconds})["offset"])


def _status(session: Session, arguments: Arguments) -> None:
    stream: Row = session.api.get(filled(_PATH, arguments))
    clients: Row = session.api.get(filled(_PATH + "/clients", arguments))
    if arguments["tracking"]:
        rows = [("sequence", one["reference"], one["sequence"]) for one in clients["sequences"]]
        rows += [("offset", one["reference"], one["offset"]) for one in clients["offsets"]]
        session.print_rows(_TRACKED, rows)
        return
    node = session.api.get("/overview", {"columns": "node"})["node"]
    end = stream["committed_offset"]
    readers, files = len(clients["readers"]), len(stream["segments"])
    session.print_rows(_STATUS, [("writer", node, end, end, stream["first_offset"], readers, files)])


def _add_super(session: Session, arguments: Arguments) -> None:
    """Declare the exchange and its streams; if one fails, those declared before are deleted."""
    count, keys = arguments["partitions"], arguments["routing_keys"] or arguments.get("binding_keys")
    if session.is_rabbitmq and count is None and keys is None:
        count = _PARTITIONS
    if (count is None) == (keys is None):
        raise Failure("give --partitions or --routing-keys", USAGE)
    keys = [str(number) for number in range(count)] if keys is None else keys.split(",")
    if not all(keys) or len(set(keys)) < len(keys):
        raise Failure(
            f"--routing-keys must be distinct keys separated by commas, not {','.join(keys)!r}", USAGE
        )
    given = {"x-queue-type": "stream", "x-max-age": arguments["max_age"]} | {
        f"x-{name.replace('_', '-')}": arguments[name]
        for name in ("max_length_bytes", "stream_max_segment_size_bytes")
    }
    stream = {
        "durable": True,
        "arguments": {name: value for name, value in given.items() if value is not None},
    }
    exchange = filled("/exchanges/{vhost}/{name}", arguments)
    made: list[str] = []
    _check_new(session, exchange)
    try:
        arguments_of_super = {"x-super-stream": True}
        session.api.send(
            "PUT", exchange, {"type": "direct", "durable": True, "arguments": arguments_of_super}
        )
        made.append(exchange)
        for order, key in enumerate(keys):
            where = arguments | {"queue": f"{arguments['name']}-{key}"}
            queue = filled("/queues/{vhost}/{queue}", where)
            _check_new(session, queue)
            session.api.send("PUT", queue, stream)
            made.append(queue)
            bind = filled("/bindings/{vhost}/e/{name}/q/{queue}", where)
            session.api.send("POST", bind, {"routing_key": key, "arguments": {_ORDER: order}})
    except Failure:
        for path in reversed(made):
            session.api.send("DELETE", path)
        raise
    session.say(f"super stream {arguments['name']}: added, with {len(keys)} partitions")


def _delete_super(session: Session, arguments: Arguments) -> None:
    exchange = filled("/exchanges/{vhost}/{name}", arguments)
    shown: Row = session.api.get(exchange)
    bindings: list[Row] = session.api.get(exchange + "/bindings/source")
    partitions = [one["destination"] for one in bindings if _ORDER in one["arguments"]]
    if not shown["arguments"].get("x-super-stream") and not partitions:
        raise Failure(f"exchange {arguments['name']!r} is not a super stream")
    for partition in dict.fromkeys(partitions):
        session.api.send("DELETE", filled("/queues/{vhost}/{queue}", arguments | {"queue": partition}))
    session.api.send("DELETE", exchange)
    session.say(f"super stream {arguments['name']}: deleted, with {len(partitions)} partitions")


def _check_new(session: Session, path: str) -> None:
    """Raise Failure for existing objects, which a failure of the command would otherwise delete."""
    if session.api.exists(path):
        kind, name = path.split("/")[1][:-1], path.rsplit("/", 1)[1]
        raise Failure(f"{kind} {name!r} exists already")


def _size(name: str, text: str) -> Any:
    return option(name, text, type=click.IntRange(1))


STREAMS: tuple[OperatorCommand, ...] = (
    ListCommand(
        group="streams",
        name="list",
        text="List streams.",
        path="/warren/streams",
        within="/warren/streams/{vhost}",
        columns=(
            "vhost",
            "name",
            "first_offset",
            "committed_offset",
            "bytes",
            "segments",
            "readers",
            "max_lag",
            "publishers",
        ),
    ),
    ShowCommand(
        group="streams",
        name="show",
        text="Show the offsets, retention and segments of a stream.",
        path=_PATH,
        takes=(_STREAM,),
    ),
    ShowCommand(
        group="streams",
        name="clients",
        text="Show the consumers of a stream with their lag, its publishers, and stored offsets.",
        path=_PATH + "/clients",
        takes=(_STREAM,),
    ),
    CustomCommand(
        group="streams",
        name="peek",
        is_in_vhost=True,
        text="Show messages of a stream from an offset or time, without consuming them.",
        takes=(
            _STREAM,
            COUNT,
            click.Option(
                ["--from", "from_"],
                default="last",
                show_default=True,
                metavar="WHERE",
                help="first, last (the last --count messages), an offset, or a time such as 2026-01-31T12:00",
            ),
            MATCH,
        ),
        does=_peek,
    ),
    CustomCommand(
        group="streams",
        name="status",
        known_as="stream_status",
        is_in_vhost=True,
        text="Show the first and last offset of a stream, or with --tracking its stored offsets.",
        takes=(
            _STREAM,
            flag("--tracking", text="show the sequences of publishers and the stored offsets of consumers"),
        ),
        does=_status,
    ),
    ListCommand(
        group="streams",
        name="connections",
        known_as="list_stream_connections",
        takes_known_as=(VERBOSE,),
        text="List connections of the stream protocol.",
        path="/stream/connections",
        within="/stream/connections/{vhost}",
        columns=("name", "user", "vhost", "state", "ssl", "user_provided_name"),
        known_columns=("conn_name",),
        renamed={"conn_name": "name"},
    ),
    ListCommand(
        group="streams",
        name="publishers",
        known_as="list_stream_publishers",
        takes_known_as=(VERBOSE,),
        text="List publishers of the stream protocol.",
        path="/stream/publishers",
        within="/stream/publishers/{vhost}",
        columns=(
            "vhost",
            "stream",
            "connection",
            "publisher_id",
            "reference",
            "published",
            "confirmed",
            "errored",
        ),
        known_columns=(
            "connection_pid",
            "publisher_id",
            "stream",
            "reference",
            "messages_published",
            "messages_confirmed",
            "messages_errored",
        ),
        renamed={
            "vhost": "queue.vhost",
            "stream": "queue.name",
            "connection": "connection_details.name",
            "connection_pid": "connection_details.name",
            "messages_published": "published",
            "messages_confirmed": "confirmed",
            "messages_errored": "errored",
        },
    ),
    ListCommand(
        group="streams",
        name="consumers",
        known_as="list_stream_consumers",
        takes_known_as=(VERBOSE,),
        text="List consumers of the stream protocol.",
        path="/stream/consumers",
        within="/stream/consumers/{vhost}",
        columns=(
            "vhost",
            "stream",
            "connection",
            "subscription_id",
            "consumed",
            "offset",
            "offset_lag",
            "credits",
        ),
        known_columns=(
            "connection_pid",
            "subscription_id",
            "stream",
            "messages_consumed",
            "offset",
            "offset_lag",
            "credits",
            "properties",
        ),
        renamed={
            "vhost": "queue.vhost",
            "stream": "queue.name",
            "connection": "connection_details.name",
            "connection_pid": "connection_details.name",
            "messages_consumed": "consumed",
        },
    ),
    CustomCommand(
        group="streams",
        name="add-super-stream",
        known_as="add_super_stream",
        is_in_vhost=True,
        text="Add a super stream: an exchange, and a stream for each partition.",
        takes=(
            named("name"),
            _size("--partitions", "number of partitions, with the routing keys 0, 1, and so on"),
            option("--routing-keys", "routing keys, one for each partition, separated by commas"),
            option("--max-age", "maximum age of messages, such as 7D"),
            _size("--max-length-bytes", "maximum size of each stream in bytes"),
            _size("--stream-max-segment-size-bytes", "size of each segment in bytes"),
        ),
        takes_known_as=(
            option("--binding-keys", "same as --routing-keys"),
            option("--leader-locator", "no effect: a stream has one replica"),
            _size("--initial-cluster-size", "no effect: a stream has one replica"),
        ),
        does=_add_super,
    ),
    CustomCommand(
        group="streams",
        name="delete-super-stream",
        known_as="delete_super_stream",
        is_in_vhost=True,
        text="Delete a super stream, and the streams that are its partitions.",
        takes=(named("name", "/exchanges/{vhost}"),),
        does=_delete_super,
    ),
    ListCommand(
        group="leases",
        name="list",
        text="List leases, including recently ended ones.",
        path="/warren/leases",
        is_filtered=True,
        columns=("lease", "vhost", "queue", "user", "key", "messages", "bytes", "state", "expires_at"),
    ),
    RequestCommand(
        group="leases",
        name="release",
        text="End a lease: its messages are requeued, marked as redelivered.",
        method="POST",
        path="/warren/leases/{lease}/settle",
        takes=(named("lease"),),
        body=lambda arguments: {"outcome": "requeue"},
        says="lease {lease}: released",
    ),
)
