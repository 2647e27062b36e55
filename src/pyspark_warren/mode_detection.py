"""Detects the queues, the read mode and the transport that the options of a reader leave open."""

import re
from dataclasses import dataclass, replace

from pyspark_warren import answers
from pyspark_warren.amqp import connect
from pyspark_warren.http import HttpApi, HttpApiError, path
from pyspark_warren.options import EARLIEST, LATEST, BrokerOptions, ReadOptions

STREAM = "stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStrategy:
    """The read mode, transport and queues that the options of a reader were resolved to."""

    mode: str
    transport: str
    queues: tuple[str, ...]


def detect_strategy(options: ReadOptions, *, is_streaming: bool) -> ReadStrategy:
    """Resolve `options`, asking the broker where needed. Raises ValueError if they cannot be read."""
    broker = options.broker
    transport = detect_transport(broker)
    if options.queue is None:
        if options.mode not in ("auto", STREAM):
            raise ValueError(f"mode={options.mode} reads a single queue: give the option 'queue'")
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
    """Whether this version of Warren has the HTTP endpoint for rows that `mode` needs."""
    if mode == "classic":
        return False
    places = {
        STREAM: path("warren", "streams", broker.target.vhost, queue),
        "lease": path("warren", "leases"),
    }
    return mode not in places or has_api_path(broker, places[mode])


def has_api_path(broker: BrokerOptions, place: str) -> bool:
    """Whether the HTTP API has this path: its answer is not 404."""
    try:
        HttpApi(broker).get(place)
    except HttpApiError as refused:
        if refused.status != 404:
            raise
        return False
    return True


def detect_transport(broker: BrokerOptions) -> str:
    """Return the transport: the option if given, else arrow for Warren and amqp for any other broker."""
    if broker.transport != "auto":
        return broker.transport
    if "warren" not in server_properties(broker):
        return "amqp"
    try:
        HttpApi(replace(broker, retries=0)).get(path("whoami"))
    except HttpApiError as refused:
        if refused.status in (0, -1):
            raise ValueError(
                f"{refused}. The Arrow transport needs the HTTP API of Warren: give its address with "
                "'managementUri', or use transport=amqp"
            ) from None
        if refused.status == 401:
            raise ValueError(
                f"{refused}. The Arrow transport needs the HTTP API of Warren: give the user the tag "
                "'management', or use transport=amqp"
            ) from None
    return "arrow"


def server_properties(broker: BrokerOptions) -> dict[str, object]:
    """Connect to the broker and return the server properties of its connection.start."""
    link = connect(broker)
    link.close()
    return link.server_properties


def _check(mode: str, transport: str, *, is_streaming: bool) -> None:
    if mode == "lease" and transport == "amqp":
        raise ValueError("mode=lease needs Warren and transport=arrow, since AMQP has no leases")
    if mode == "browse" and transport == "amqp":
        raise ValueError(
            "mode=browse needs Warren and transport=arrow: over AMQP, a message can only be read by getting "
            "and requeueing it, which marks it as redelivered and may change the order"
        )
    if mode == "browse" and is_streaming:
        raise ValueError(
            "mode=browse reads the messages that are ready now: use spark.read instead of spark.readStream"
        )
    if mode in ("lease", "classic") and not is_streaming:
        raise ValueError(
            f"mode={mode} consumes messages, and a batch read cannot acknowledge them: use spark.readStream "
            "with trigger(availableNow=True), or mode=browse"
        )


def _check_edges(options: ReadOptions, mode: str, *, is_streaming: bool) -> None:
    """Raise ValueError for starting and ending offsets that `mode` cannot apply."""
    if mode != STREAM and (options.starting != EARLIEST or options.ending != LATEST):
        raise ValueError(
            "startingOffsets, startingTimestamp, endingOffsets and endingTimestamp need a stream: with "
            f"mode={mode} a queue is read from its head to its end"
        )
    if is_streaming and options.ending != LATEST:
        raise ValueError(
            "endingOffsets and endingTimestamp need spark.read: the trigger of spark.readStream decides when "
            "the query ends"
        )


def _mode(broker: BrokerOptions, queue: str, *, is_arrow: bool, is_streaming: bool) -> str:
    if _kind(broker, queue) == STREAM:
        return STREAM
    if not is_streaming:
        return "browse"
    return "lease" if is_arrow else "classic"


def _kind(broker: BrokerOptions, queue: str) -> str:
    """Return the type of a queue, such as classic or stream. Raises ValueError if it does not exist."""
    try:
        place = path("queues", broker.target.vhost, queue)
        return HttpApi(replace(broker, retries=0)).get(place, read=answers.queue_type)
    except HttpApiError as refused:
        if refused.status == 404:
            raise ValueError(f"there is no queue {queue!r} in vhost {broker.target.vhost!r}") from None
        raise ValueError(
            f"the type of the queue {queue!r} is unknown, since AMQP cannot tell it and {refused}: "
            "give mode=stream or mode=classic, or 'managementUri'"
        ) from None


def _streams(options: ReadOptions) -> tuple[str, ...]:
    """Return the streams that match the pattern, or the partitions of the super stream, sorted by name."""
    management = HttpApi(options.broker)
    vhost = options.broker.target.vhost
    if options.super_stream is not None:
        try:
            place = path("exchanges", vhost, options.super_stream, "bindings", "source")
            found = management.get(place, read=answers.bound_queues)
        except HttpApiError as refused:
            if refused.status != 404:
                raise
            raise ValueError(
                f"there is no super stream {options.super_stream!r} in vhost {vhost!r}"
            ) from None
        if not found:
            raise ValueError(f"the super stream {options.super_stream!r} has no partitions")
        return tuple(sorted(found))
    pattern = re.compile(options.queue_pattern or "")
    kinds = management.get(path("queues", vhost), {"columns": "name,type"}, answers.queue_types)
    found = {name for name, kind in kinds.items() if kind == STREAM and pattern.fullmatch(name)}
    if not found:
        raise ValueError(f"no stream in vhost {vhost!r} matches queuePattern {options.queue_pattern!r}")
    return tuple(sorted(found))
