"""The options of a reader and of a writer: read once, and refused by name with what is allowed instead."""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pyspark_warren.schema import COLUMNS
from warren.client.tls import ClientTls
from warren.client.uri import DEFAULT_URI, Target, parse_uri

MODES = ("auto", "stream", "lease", "classic", "browse")
TRANSPORTS = ("auto", "arrow", "amqp")
TRANSACTIONS = ("auto", "staged", "dedupe", "none")
# With the waits between them, a minute: a broker with much on its disk takes as long to start again.
RETRIES = 16
EARLIEST = "earliest"
LATEST = "latest"
# What a consumer may hold unacknowledged; a field of 16 bits.
PREFETCH_MAX = 65_535
# What the broker counts batches with.
VERSION_MAX = 2**30 - 1
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """Where the broker is, and how patient to be with it."""

    target: Target
    # Like the target's, a password in it is not told.
    management: str | None = field(repr=False)
    transport: str
    tls: ClientTls
    retries: int
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What to read, from where to where, and how much of it at once."""

    broker: BrokerOptions
    queue: str | None
    queue_pattern: str | None
    super_stream: str | None
    mode: str
    # A word, milliseconds for a timestamp, or places by queue.
    starting: str | int | Mapping[str, Any]
    ending: str | int | Mapping[str, Any]
    offsets_max: int | None
    octets_max: int | None
    partitions_min: int
    is_loss_fatal: bool
    # None: as many as the way of reading wants.
    prefetch: int | None
    lease_s: int
    columns: tuple[str, ...]
    is_filter_pushed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Where to publish, and with which promises."""

    broker: BrokerOptions
    exchange: str | None
    routing_key: str | None
    is_mandatory: bool
    is_persistent: bool
    transaction: str
    transaction_id: str | None
    # Of a batch write: which one it is under that name.
    transaction_version: int


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """The options of a reader; ValueError names the one that is wrong."""
    options = _Options(given, _BROKER | _READ)
    named = [name for name in ("queue", "queuePattern", "superStream", "path") if options.text(name)]
    if len(named) != 1:
        told = " and ".join(named) or "none"
        # Spark keeps the options of a temporary view, and forgets those of a table.
        hint = "" if named else "; in SQL, by CREATE TEMPORARY VIEW, as Spark forgets the options of a TABLE"
        raise ValueError(
            f"say what to read by one of queue, queuePattern, superStream or a path, not {told}{hint}"
        )
    return ReadOptions(
        broker=_broker(options),
        queue=options.text("queue") or options.text("path"),
        queue_pattern=options.parsed("queuePattern", _pattern, "") or None,
        super_stream=options.text("superStream"),
        mode=options.choice("mode", MODES),
        starting=_edge(options, "starting", EARLIEST),
        ending=_edge(options, "ending", LATEST),
        offsets_max=options.count("maxOffsetsPerTrigger"),
        octets_max=options.count("maxBytesPerTrigger"),
        partitions_min=options.count("minPartitions") or 1,
        is_loss_fatal=options.flag("failOnDataLoss", default=True),
        prefetch=options.count("prefetch", maximum=PREFETCH_MAX),
        lease_s=options.count("leaseSeconds") or 3_600,
        columns=_columns(options),
        is_filter_pushed=options.flag("pushdown", default=False),
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """The options of a writer; ValueError names the one that is wrong."""
    options = _Options(given, _BROKER | _WRITE)
    queue = options.text("queue") or options.text("path")
    if queue and (options.text("exchange") or options.text("routingKey")):
        raise ValueError("'queue' means the default exchange: give either it, or 'exchange' and 'routingKey'")
    return WriteOptions(
        broker=_broker(options),
        exchange="" if queue else options.text("exchange"),
        routing_key=queue or options.text("routingKey"),
        is_mandatory=options.flag("mandatory", default=True),
        is_persistent=options.flag("persistent", default=True),
        transaction=options.choice("txn", TRANSACTIONS),
        transaction_id=options.text("txnId"),
        transaction_version=_version(options),
    )


def _version(options: "_Options") -> int:
    version = options.count("txnVersion", minimum=0, maximum=VERSION_MAX)
    if version is not None and not options.text("txnId"):
        raise ValueError("'txnVersion' counts the batches of a transaction: name it by 'txnId'")
    return version or 0


def _broker(options: "_Options") -> BrokerOptions:
    target = options.parsed("uri", parse_uri, DEFAULT_URI)
    vhost = options.text("vhost")
    if vhost is not None:
        target = replace(target, vhost=vhost)
    retries = options.count("retries", minimum=0)
    return BrokerOptions(
        target=target,
        management=options.parsed("managementUri", _management, "") or None,
        transport=options.choice("transport", TRANSPORTS),
        tls=ClientTls(
            ca_file=options.text("tls.caFile"),
            cert_file=options.text("tls.certFile"),
            key_file=options.text("tls.keyFile"),
            key_password=options.text("tls.keyPassword"),
            is_verified=options.flag("tls.verify", default=True),
        ),
        retries=RETRIES if retries is None else retries,
        timeout_ms=options.count("timeoutMs") or 60_000,
    )


def _management(text: str) -> str:
    """`text`, which a port can be read of; it is never told, as a password may be in it."""
    try:
        urlsplit(text).port  # noqa: B018
    except ValueError:
        raise ValueError("its port is none of 0 to 65535") from None
    return text


def _edge(options: "_Options", which: str, default: str) -> str | int | Mapping[str, Any]:
    """Where to begin or to end: by a word, by offsets, or by a time."""
    by_offset, by_time = f"{which}Offsets", f"{which}Timestamp"
    offsets, time = options.text(by_offset), options.text(by_time)
    if offsets and time:
        raise ValueError(f"give either {by_offset!r} or {by_time!r}")
    if time:
        return options.parsed(by_time, milliseconds, "")
    if offsets is None or offsets.lower() in (EARLIEST, LATEST):
        return (offsets or default).lower()
    return options.parsed(by_offset, _offsets, "")


def milliseconds(text: str) -> int:
    """A time as milliseconds since 1970, from that or from ISO 8601; without a zone it is UTC."""
    if text.isdigit():
        return int(text)
    time = datetime.fromisoformat(text)
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{error} in {text!r}") from None
    return text


def _offsets(text: str) -> Mapping[str, Any]:
    read = json.loads(text)
    if not isinstance(read, dict):
        raise ValueError("not an object")
    return read


def _columns(options: "_Options") -> tuple[str, ...]:
    text = options.text("columns")
    if text is None:
        return tuple(COLUMNS)
    chosen = tuple(column.strip().lower() for column in text.split(","))
    unknown = [column for column in chosen if column not in COLUMNS]
    if unknown or len(set(chosen)) < len(chosen):
        raise ValueError(f"'columns' is a list of some of {', '.join(COLUMNS)}, each once, not {text!r}")
    return chosen


class _Options:
    """What the user gave, whatever the case of its name."""

    def __init__(self, given: Mapping[str, str], known: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}
        self._known = known
        lowered = {name.lower(): name for name in known}
        # Options are often shared between a reader and a writer: those of the other one are not unknown.
        for name in sorted(
            self._given.keys() - {one.lower() for one in _BROKER | _READ | _WRITE} - _OF_SPARK
        ):
            close = difflib.get_close_matches(name, lowered, 1, 0.6)
            hint = (
                f"did you mean {lowered[close[0]]!r}?" if close else f"there are {', '.join(sorted(known))}"
            )
            raise ValueError(f"there is no option {name!r}; {hint}")

    def text(self, name: str) -> str | None:
        """As it was given; None if it was not."""
        assert name in self._known, name
        return self._given.get(name.lower())

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of `allowed`, the first by default."""
        value = (self.text(name) or allowed[0]).lower()
        if value not in allowed:
            raise ValueError(f"{name!r} is one of {', '.join(allowed)}, not {value!r}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """true or false."""
        value = (self.text(name) or str(default)).lower()
        if value not in ("true", "false"):
            raise ValueError(f"{name!r} is true or false, not {value!r}")
        return value == "true"

    def count(self, name: str, *, minimum: int = 1, maximum: int = 2**63 - 1) -> int | None:
        """A whole number; None if it was not given."""
        text = self.text(name)
        if text is None:
            return None
        if not text.strip().isdecimal() or not minimum <= int(text) <= maximum:
            end = "" if maximum == 2**63 - 1 else f" to {maximum}"
            raise ValueError(f"{name!r} is a whole number from {minimum}{end}, not {text!r}")
        return int(text)

    def parsed(self, name: str, parse: Callable[[str], T], default: str) -> T:
        """What `parse` makes of it."""
        text = self.text(name) or default
        try:
            return parse(text)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name!r} is {self._known[name]}: {error}") from None


# What Spark hands to every source and sink beside the options that are theirs, in lower case.
_OF_SPARK = frozenset(("checkpointlocation", "outputmode", "queryname"))
_BROKER = {
    "uri": "an AMQP URI, such as amqp://user:password@host:5672/%2f",
    "vhost": "the name of a virtual host",
    "managementUri": "the address of the HTTP API, such as http://host:15672",
    "transport": "how to talk to the broker",
    "tls.caFile": "a file of certificates to trust",
    "tls.certFile": "a file with the certificate to show",
    "tls.keyFile": "a file with its key",
    "tls.keyPassword": "what opens an encrypted key",
    "tls.verify": "whether the broker's certificate is checked",
    "retries": "how often to try again",
    "timeoutMs": "how long to wait for the broker",
}
_READ = {
    "queue": "the name of a queue",
    "path": "the name of a queue",
    "queuePattern": "a regular expression for the names of queues",
    "superStream": "the name of a super stream",
    "mode": "how to read",
    "startingOffsets": "earliest, latest or offsets as JSON",
    "startingTimestamp": "a time as ISO 8601 or in milliseconds since 1970",
    "endingOffsets": "earliest, latest or offsets as JSON",
    "endingTimestamp": "a time as ISO 8601 or in milliseconds since 1970",
    "maxOffsetsPerTrigger": "how many messages a batch may have",
    "maxBytesPerTrigger": "how many octets a batch may have",
    "minPartitions": "how many tasks a batch has at least",
    "failOnDataLoss": "whether what is gone ends the query",
    "prefetch": "how many messages a consumer may hold",
    "leaseSeconds": "how long a lease lasts",
    "columns": "which columns to read",
    "pushdown": "whether filters are sent to the broker",
}
_WRITE = {
    "queue": "the name of a queue",
    "path": "the name of a queue",
    "exchange": "the name of an exchange",
    "routingKey": "a routing key",
    "mandatory": "whether a message that no queue takes ends the batch",
    "persistent": "whether messages survive a restart",
    "txn": "how messages are kept from being published twice",
    "txnId": "the name of the transaction",
    "txnVersion": "the number of a batch of the transaction",
}
