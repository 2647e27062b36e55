"""Finds out what there is to read and how: which queues, of which kind, over which transport."""

import re
from dataclasses import dataclass, replace

from pyspark_warren.amqp import connect
from pyspark_warren.http import HttpApi, HttpApiError, path
from pyspark_warren.options import EARLIEST, LATEST, BrokerOptions, ReadOptions

STREAM = "stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStrategy:
    """How to read, with nothing left to choose."""

    mode: str
    transport: str
    queues: tuple[str, ...]


def detect_strategy(options: ReadOptions, *, is_streaming: bool) -> ReadStrategy:
    """Ask the broker for what the options leave open; ValueError says what cannot be."""
    broker = options.broker
    transport = detect_transport(broker)
    if options.queue is None:
        if options.mode not in ("auto", STREAM):
            raise ValueError(f"mode={options.mode} reads one queue: name it with 'queue'")
        mode, queues = STREAM, _streams(options)
    else:
        mode, queues = options.mode, (options.queue,)
    if mode == "auto":
        mode = _mode(broker, queues[0], is_arrow=transport == "arrow", is_streaming=is_streaming)
    if broker.transport == "auto" and transport == "arrow" and not _has_rows_api(broker, mode, queues[0]):
        if mode == STREAM and (kind := _kind(broker, queues[0])) != STREAM:
            raise ValueError(
                f"the queue {queues[0]!r} is a {kind} queue, not a stream: leave out mode=stream"
            )
        mode, transport = "classic" if mode == "lease" else mode, "amqp"
    _check(mode, transport, is_streaming=is_streaming)
    _check_edges(options, mode, is_streaming=is_streaming)
    return ReadStrategy(mode=mode, transport=transport, queues=queues)


def _has_rows_api(broker: BrokerOptions, mode: str, queue: str) -> bool:
    """Whether this Warren gives as rows what is read so: each version more."""
    if mode == "classic":
        return False
    places = {
        STREAM: path("warren", "streams", broker.target.vhost, queue),
        "lease": path("warren", "leases"),
    }
    return mode not in places or has_api_path(broker, places[mode])


def has_api_path(broker: BrokerOptions, place: str) -> bool:
    """Whether the HTTP API knows a path."""
    try:
        HttpApi(broker).get(place)
    except HttpApiError as refused:
        if refused.status != 404:
            raise
        return False
    return True


def detect_transport(broker: BrokerOptions) -> str:
    """arrow for Warren, amqp for any other broker, unless one is asked for."""
    if broker.transport != "auto":
        return broker.transport
    if "warren" not in server_properties(broker):
        return "amqp"
    try:
        HttpApi(replace(broker, retries=0)).get(path("whoami"))
    except HttpApiError as refused:
        if refused.status in (0, -1):
            raise ValueError(
                f"{refused}. Warren gives rows as Arrow there: say where with 'managementUri', "
                "or go by AMQP alone with transport=amqp"
            ) from None
        if refused.status == 401:
            raise ValueError(
                f"{refused}. Warren gives and takes rows as Arrow there: give the user the tag "
                "'management', or go by AMQP alone with transport=amqp"
            ) from None
    return "arrow"


def server_properties(broker: BrokerOptions) -> dict[str, object]:
    """What a broker says of itself."""
    link = connect(broker)
    link.close()
    return link.server_properties


def _check(mode: str, transport: str, *, is_streaming: bool) -> None:
    if mode == "lease" and transport == "amqp":
        raise ValueError("mode=lease needs Warren and transport=arrow: AMQP has no leases")
    if mode == "browse" and transport == "amqp":
        raise ValueError(
            "mode=browse needs Warren and transport=arrow: over AMQP, to look at a message is to take it and "
            "to put it back, which marks it as redelivered and may change the order"
        )
    if mode == "browse" and is_streaming:
        raise ValueError(
            "mode=browse looks at what waits now: it is for spark.read, not for spark.readStream"
        )
    if mode in ("lease", "classic") and not is_streaming:
        raise ValueError(
            f"mode={mode} takes messages out of the queue, and a batch read cannot say when they may go: "
            "use spark.readStream with trigger(availableNow=True), or mode=browse"
        )


def _check_edges(options: ReadOptions, mode: str, *, is_streaming: bool) -> None:
    """Refuse what would not be obeyed: who asks for the latest does not want everything."""
    if mode != STREAM and (options.starting != EARLIEST or options.ending != LATEST):
        raise ValueError(
            "startingOffsets, startingTimestamp, endingOffsets and endingTimestamp are for streams: with "
            f"mode={mode} a queue is read from its head, and all of it"
        )
    if is_streaming and options.ending != LATEST:
        raise ValueError(
            "endingOffsets and endingTimestamp are for spark.read: a query of spark.readStream ends by its "
            "trigger"
        )


def _mode(broker: BrokerOptions, queue: str, *, is_arrow: bool, is_streaming: bool) -> str:
    if _kind(broker, queue) == STREAM:
        return STREAM
    if not is_streaming:
        return "browse"
    return "lease" if is_arrow else "classic"


def _kind(broker: BrokerOptions, queue: str) -> str:
    """Of which type a queue is."""
    try:
        described = HttpApi(replace(broker, retries=0)).get(path("queues", broker.target.vhost, queue))
    except HttpApiError as refused:
        if refused.status == 404:
            raise ValueError(f"there is no queue {queue!r} in vhost {broker.target.vhost!r}") from None
        raise ValueError(
            f"AMQP cannot say of which kind the queue {queue!r} is, and {refused}: "
            "give mode=stream or mode=classic, or 'managementUri'"
        ) from None
    return str(described.get("type"))


def _streams(options: ReadOptions) -> tuple[str, ...]:
    """The streams that a pattern or a super stream names, in the order of their names."""
    management = HttpApi(options.broker)
    vhost = options.broker.target.vhost
    if options.super_stream is not None:
        try:
            bindings = management.get(path("exchanges", vhost, options.super_stream, "bindings", "source"))
        except HttpApiError as refused:
            if refused.status != 404:
                raise
            raise ValueError(
                f"there is no super stream {options.super_stream!r} in vhost {vhost!r}"
            ) from None
        found = {one["destination"] for one in bindings if one["destination_type"] == "queue"}
        if not found:
            raise ValueError(f"the super stream {options.super_stream!r} has no partitions")
        return tuple(sorted(found))
    pattern = re.compile(options.queue_pattern or "")
    queues = management.get(path("queues", vhost), {"columns": "name,type"})
    found = {one["name"] for one in queues if one.get("type") == STREAM and pattern.fullmatch(one["name"])}
    if not found:
        raise ValueError(f"no stream in vhost {vhost!r} has a name like {options.queue_pattern!r}")
    return tuple(sorted(found))
