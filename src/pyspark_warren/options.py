"""Parses and validates the options of readers and writers; errors name the option and the allowed values."""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pyspark_warren.schema import COLUMNS
from warren.client.uri import DEFAULT_URI, ClientTls, Target, parse_uri

MODES = ("auto", "stream", "lease", "classic", "browse")
TRANSPORTS = ("auto", "arrow", "amqp")
TRANSACTIONS = ("auto", "staged", "dedupe", "none")
# With the delays between them about a minute: a broker with much data on disk takes that long to restart.
RETRIES = 16
EARLIEST = "earliest"
LATEST = "latest"
# The prefetch count of AMQP is a field of 16 bits.
PREFETCH_MAX = 65_535
# The largest batch number of staged publish.
VERSION_MAX = 2**30 - 1
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """Addresses of the broker, TLS, and how often and how long requests are retried."""

    target: Target
    # Not in the repr, since it may contain a password.
    management: str | None = field(repr=False)
    transport: str
    tls: ClientTls
    retries: int
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The parsed options of a reader: sources, range of offsets, and limits of a micro-batch."""

    broker: BrokerOptions
    queue: str | None
    queue_pattern: str | None
    super_stream: str | None
    mode: str
    # "earliest" or "latest", a timestamp in milliseconds, or offsets by queue.
    starting: str | int | Mapping[str, Any]
    ending: str | int | Mapping[str, Any]
    offsets_max: int | None
    bytes_max: int | None
    partitions_min: int
    is_loss_fatal: bool
    # None: the default of the read mode.
    prefetch: int | None
    lease_s: int
    columns: tuple[str, ...]
    is_filter_pushed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The parsed options of a writer: target, and delivery guarantees."""

    broker: BrokerOptions
    exchange: str | None
    routing_key: str | None
    is_mandatory: bool
    is_persistent: bool
    transaction: str
    transaction_id: str | None
    # The number of a batch write under `transaction_id`.
    transaction_version: int


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """Return the parsed options of a reader. Raises ValueError that names the invalid option."""
    options = _Options(given, _BROKER | _READ)
    named = [name for name in ("queue", "queuePattern", "superStream", "path") if options.text(name)]
    if len(named) != 1:
        told = " and ".join(named) or "none of them"
        # Spark passes the options of a temporary view to the source, but not those of a table.
        hint = (
            ""
            if named
            else "; in SQL, use CREATE TEMPORARY VIEW, since Spark does not pass the options of a TABLE"
        )
        raise ValueError(f"give exactly one of queue, queuePattern, superStream or a path, not {told}{hint}")
    return ReadOptions(
        broker=_broker(options),
        queue=options.text("queue") or options.text("path"),
        queue_pattern=options.parsed("queuePattern", _pattern, "") or None,
        super_stream=options.text("superStream"),
        mode=options.choice("mode", MODES),
        starting=_edge(options, "starting", EARLIEST),
        ending=_edge(options, "ending", LATEST),
        offsets_max=options.count("maxOffsetsPerTrigger"),
        bytes_max=options.count("maxBytesPerTrigger"),
        partitions_min=options.count("minPartitions") or 1,
        is_loss_fatal=options.flag("failOnDataLoss", default=True),
        prefetch=options.count("prefetch", maximum=PREFETCH_MAX),
        lease_s=options.count("leaseSeconds") or 3_600,
        columns=_columns(options),
        is_filter_pushed=options.flag("pushdown", default=False),
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Return the parsed options of a writer. Raises ValueError that names the invalid option."""
    options = _Options(given, _BROKER | _WRITE)
    queue = options.text("queue") or options.text("path")
    if queue and (options.text("exchange") or options.text("routingKey")):
        raise ValueError(
            "'queue' publishes to the default exchange: give either 'queue', or 'exchange' and 'routingKey'"
        )
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
        raise ValueError("'txnVersion' needs 'txnId', the name of the transaction whose batches it numbers")
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
    """Return `text` if its port is valid; the error does not contain `text`, which may have a password."""
    try:
        urlsplit(text).port  # noqa: B018
    except ValueError:
        raise ValueError("the port must be a number from 0 to 65535") from None
    return text


def _edge(options: "_Options", which: str, default: str) -> str | int | Mapping[str, Any]:
    """Return where a read starts or ends: "earliest", "latest", offsets by queue, or milliseconds."""
    by_offset, by_time = f"{which}Offsets", f"{which}Timestamp"
    offsets, time = options.text(by_offset), options.text(by_time)
    if offsets and time:
        raise ValueError(f"give either {by_offset!r} or {by_time!r}, not both")
    if time:
        return options.parsed(by_time, milliseconds, "")
    if offsets is None or offsets.lower() in (EARLIEST, LATEST):
        return (offsets or default).lower()
    return options.parsed(by_offset, _offsets, "")


def milliseconds(text: str) -> int:
    """Parse a time, in milliseconds since 1970 or ISO 8601 (UTC without a zone), to milliseconds."""
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
        raise ValueError("not a JSON object")
    return read


def _columns(options: "_Options") -> tuple[str, ...]:
    text = options.text("columns")
    if text is None:
        return tuple(COLUMNS)
    chosen = tuple(column.strip().lower() for column in text.split(","))
    unknown = [column for column in chosen if column not in COLUMNS]
    if unknown or len(set(chosen)) < len(chosen):
        raise ValueError(f"'columns' must be distinct names out of {', '.join(COLUMNS)}, not {text!r}")
    return chosen


class _Options:
    """The options given by the user; names are case-insensitive."""

    def __init__(self, given: Mapping[str, str], known: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}
        self._known = known
        lowered = {name.lower(): name for name in known}
        # Readers and writers often share options, so those of the other direction are ignored.
        for name in sorted(
            self._given.keys() - {one.lower() for one in _BROKER | _READ | _WRITE} - _OF_SPARK
        ):
            close = difflib.get_close_matches(name, lowered, 1, 0.6)
            hint = (
                f"did you mean {lowered[close[0]]!r}?" if close else f"options are {', '.join(sorted(known))}"
            )
            raise ValueError(f"unknown option {name!r}; {hint}")

    def text(self, name: str) -> str | None:
        """Return the option as text; None if it was not given."""
        assert name in self._known, name
        return self._given.get(name.lower())

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """Return the option, which must be one of `allowed`; the first is the default."""
        value = (self.text(name) or allowed[0]).lower()
        if value not in allowed:
            raise ValueError(f"{name!r} must be one of {', '.join(allowed)}, not {value!r}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return the option, which must be true or false."""
        value = (self.text(name) or str(default)).lower()
        if value not in ("true", "false"):
            raise ValueError(f"{name!r} must be true or false, not {value!r}")
        return value == "true"

    def count(self, name: str, *, minimum: int = 1, maximum: int = 2**63 - 1) -> int | None:
        """Return the option as an integer from `minimum` to `maximum`; None if it was not given."""
        text = self.text(name)
        if text is None:
            return None
        if not text.strip().isdecimal() or not minimum <= int(text) <= maximum:
            end = "" if maximum == 2**63 - 1 else f" to {maximum}"
            raise ValueError(f"{name!r} must be an integer from {minimum}{end}, not {text!r}")
        return int(text)

    def parsed(self, name: str, parse: Callable[[str], T], default: str) -> T:
        """Return `parse` of the option or of `default`; ValueError names the option if `parse` fails."""
        text = self.text(name) or default
        try:
            return parse(text)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name!r} must be {self._known[name]}: {error}") from None


# Options that Spark adds for every source and sink, in lower case.
_OF_SPARK = frozenset(("checkpointlocation", "outputmode", "queryname"))
_BROKER = {
    "uri": "an AMQP URI, such as amqp://user:password@host:5672/%2f",
    "vhost": "the name of a virtual host",
    "managementUri": "the address of the HTTP API, such as http://host:15672",
    "transport": "arrow or amqp",
    "tls.caFile": "a file of trusted certificates",
    "tls.certFile": "a file with the client certificate",
    "tls.keyFile": "a file with the key of the client certificate",
    "tls.keyPassword": "the password of an encrypted key",
    "tls.verify": "whether the broker's certificate is checked",
    "retries": "how often a request is retried",
    "timeoutMs": "a timeout in milliseconds",
}
_READ = {
    "queue": "the name of a queue",
    "path": "the name of a queue",
    "queuePattern": "a regular expression for the names of queues",
    "superStream": "the name of a super stream",
    "mode": "a read mode",
    "startingOffsets": "earliest, latest or offsets as JSON",
    "startingTimestamp": "a time as ISO 8601 or in milliseconds since 1970",
    "endingOffsets": "earliest, latest or offsets as JSON",
    "endingTimestamp": "a time as ISO 8601 or in milliseconds since 1970",
    "maxOffsetsPerTrigger": "the maximum number of messages in a micro-batch",
    "maxBytesPerTrigger": "the approximate maximum number of bytes in a micro-batch",
    "minPartitions": "the minimum number of tasks of a batch",
    "failOnDataLoss": "whether lost messages fail the query",
    "prefetch": "the prefetch count of a consumer",
    "leaseSeconds": "the lifetime of a lease in seconds",
    "columns": "a list of columns",
    "pushdown": "whether filters are sent to the broker",
}
_WRITE = {
    "queue": "the name of a queue",
    "path": "the name of a queue",
    "exchange": "the name of an exchange",
    "routingKey": "a routing key",
    "mandatory": "whether an unroutable message fails the batch",
    "persistent": "whether messages are persistent",
    "txn": "auto, staged, dedupe or none",
    "txnId": "the name of the transaction",
    "txnVersion": "the number of a batch of the transaction",
}
