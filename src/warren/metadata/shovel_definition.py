"""The definition of a shovel: the parameter `shovel`, its validation, and its meaning.

Keys, order and texts are RabbitMQ 3.10.8's, measured. What later versions accept, up to 4.3.6, is accepted:
`predeclared`, `internal` and its owner, any arguments of queues and consumers, and the protocol `local`,
whose ends are this node. Five keys are Warren's own: `rate-limit`, `filter-headers`, `filter-routing-key`,
`exactly-once` and `single-run`.
"""

from collections.abc import Mapping

from msgspec import Struct

from warren.limits_relay import LINK_MESSAGES_MAX, SHOVEL_DURATION_S_MAX
from warren.metadata import validation
from warren.metadata.commands import Json
from warren.metadata.definition_reader import ACK_MODES, NO_ACK, ON_CONFIRM, DefinitionReader
from warren.metadata.uri_check import VhostAccess, uri_check, uris_of
from warren.metadata.validation import Check
from warren.model.erlang_terms import printed_json

SHOVEL = "shovel"
# Values of `delete_after`, which is otherwise a number of messages.
NEVER = "never"
QUEUE_LENGTH = "queue-length"
AMQP091 = "amqp091"
LOCAL = "local"

AMQP10 = "amqp10"
_RECONNECT_DELAY_S = 5
_PREFETCH_COUNT = 1000
_INTERNAL_OWNER: Mapping[str, Check] = {
    "name": validation.string,
    "kind": validation.one_of("exchange", "queue"),
    "virtual_host": validation.string,
}
_PROPERTIES: Mapping[str, Check] = {
    "content_type": validation.short_string,
    "content_encoding": validation.short_string,
    "delivery_mode": validation.natural(2**8 - 1),
    "priority": validation.natural(2**8 - 1),
    "correlation_id": validation.short_string,
    "reply_to": validation.short_string,
    "expiration": validation.short_string,
    "message_id": validation.short_string,
    "timestamp": validation.natural(2**64 - 1),
    "type": validation.short_string,
    "user_id": validation.short_string,
    "app_id": validation.short_string,
    "cluster_id": validation.short_string,
}


class ShovelSource(Struct, frozen=True, kw_only=True):
    """Where a shovel takes messages from: a queue, or an exchange to which it binds a queue of its own."""

    # Tried in turn; they may contain passwords.
    uris: tuple[str, ...]
    is_local: bool = False
    queue: str | None = None
    # Of the queue, if the shovel declares it.
    queue_arguments: Mapping[str, Json] = {}
    exchange: str | None = None
    exchange_key: str = ""
    # True if the queue must exist: the shovel declares nothing.
    is_predeclared: bool = False
    # 0 is no limit.
    prefetch_count: int = _PREFETCH_COUNT
    # The shovel is deleted after this number of messages, or after those that the queue had when it started.
    delete_after: int | str = NEVER
    # The shovel is deleted this many seconds after it has started; 0 for never.
    delete_after_s: int = 0
    consumer_arguments: Mapping[str, Json] = {}
    # Empty for a tag of the shovel's choice.
    consumer_tag: str = ""

    def __repr__(self) -> str:
        """Show no addresses, since a repr can end up in a traceback."""
        return f"ShovelSource(queue={self.queue!r}, exchange={self.exchange!r})"


class ShovelDestination(Struct, frozen=True, kw_only=True):
    """Where a shovel publishes: to a queue, an exchange, or as each message was published at the source."""

    # Tried in turn; they may contain passwords.
    uris: tuple[str, ...]
    is_local: bool = False
    queue: str | None = None
    # Of the queue, if the shovel declares it.
    queue_arguments: Mapping[str, Json] = {}
    # None: the exchange, or the routing key, of each message.
    exchange: str | None = None
    exchange_key: str | None = None
    # True if the queue must exist: the shovel declares nothing.
    is_predeclared: bool = False
    # True to add the header x-shovelled, or x-shovelled-timestamp.
    adds_forward_headers: bool = False
    adds_timestamp_header: bool = False
    # Replace those of each message; the names are those of the specification, with underscores.
    publish_properties: Mapping[str, Json] = {}

    def __repr__(self) -> str:
        """Show no addresses, since a repr can end up in a traceback."""
        return f"ShovelDestination(queue={self.queue!r}, exchange={self.exchange!r})"


class ShovelDefinition(Struct, frozen=True, kw_only=True):
    """A shovel, with defaults filled in."""

    source: ShovelSource
    destination: ShovelDestination
    # on-confirm, on-publish or no-ack.
    ack_mode: str = ON_CONFIRM
    # 0: once it has ended, it is not started again.
    reconnect_delay_s: int = _RECONNECT_DELAY_S
    # Messages per second; None is no limit.
    rate_limit: float | None = None
    # Only messages that have all of these headers, and whose routing key matches this pattern of a topic
    # exchange, are forwarded; None matches all.
    filter_headers: Mapping[str, Json] = {}
    filter_routing_key: str | None = None
    # True to deliver exactly once if both brokers are Warrens.
    is_exactly_once: bool = False
    # True if it does not begin again once it has consumed: neither by itself, nor when its node starts.
    is_single_run: bool = False


def shovel_errors(name: str, value: Json, access: VhostAccess | None = None) -> list[str]:
    """The errors in `value`, the parameter of the shovel `name`, in RabbitMQ's order.

    With `access`, an address of this node must be in a virtual host that it allows.
    """
    table: Mapping[str, Json] = value if isinstance(value, Mapping) else {}
    errors: list[str] = []
    if _is_amqp091(table, "src") and isinstance(value, Mapping | list):
        if "src-exchange" not in table and "src-queue" not in table:
            errors.append("Must specify 'src-exchange' or 'src-queue'")
        if "src-exchange" in table and "src-queue" in table:
            errors.append("Cannot specify 'src-exchange' and 'src-queue'")
        last = table.get("src-delete-after", table.get("delete-after"))
        if isinstance(last, int) and not isinstance(last, bool) and table.get("ack-mode") == NO_ACK:
            errors.append("Cannot specify 'no-ack' and numerical 'delete-after'")
    if _is_amqp091(table, "dest") and "dest-exchange" in table and "dest-queue" in table:
        errors.append("Cannot specify 'dest-exchange' and 'dest-queue'")
    if table.get("exactly-once") is True and table.get("ack-mode", ON_CONFIRM) != ON_CONFIRM:
        errors.append(f"Cannot specify 'exactly-once' without the ack-mode '{ON_CONFIRM}'")
    checks: dict[str, Check] = {
        "internal": validation.boolean,
        "internal_owner": validation.table(_INTERNAL_OWNER),
        "reconnect-delay": validation.number,
        "ack-mode": validation.one_of(*ACK_MODES),
        "src-protocol": _protocol,
        "dest-protocol": _protocol,
        **_source_checks(table, access),
        **_destination_checks(table, access),
        "rate-limit": _rate,
        "filter-headers": _headers,
        "filter-routing-key": validation.string,
        "exactly-once": validation.boolean,
        "single-run": validation.boolean,
    }
    return errors + validation.fields(name, value, checks, mandatory=("src-uri", "dest-uri"))


def parse_shovel(value: Json) -> ShovelDefinition | str:
    """The shovel that the stored `value` describes; a text that says what is wrong if it describes none.

    A value that was accepted may be wrong nevertheless, as RabbitMQ accepts an empty list of addresses.
    """
    errors = shovel_errors("the shovel", value)
    if errors or not isinstance(value, Mapping):
        return "; ".join(errors)
    settings = DefinitionReader(value)
    delete_after = settings.value("src-delete-after", "delete-after", default=NEVER)
    assert isinstance(delete_after, int | str)
    duration_s = settings.value("src-delete-after-duration", default=0)
    assert isinstance(duration_s, int)
    rate = settings.value("rate-limit")
    source = ShovelSource(
        uris=uris_of(value["src-uri"]),
        is_local=value.get("src-protocol") == LOCAL,
        queue=settings.optional_text("src-queue"),
        queue_arguments=settings.table("src-queue-args"),
        exchange=settings.optional_text("src-exchange"),
        exchange_key=settings.text("src-exchange-key"),
        is_predeclared=settings.is_set("src-predeclared"),
        prefetch_count=settings.prefetch_count(
            "src-prefetch-count", "prefetch-count", default=_PREFETCH_COUNT
        ),
        delete_after=delete_after,
        delete_after_s=duration_s,
        consumer_arguments=settings.table("src-consumer-args"),
        consumer_tag=settings.text("src-consumer-name"),
    )
    destination = ShovelDestination(
        uris=uris_of(value["dest-uri"]),
        is_local=value.get("dest-protocol") == LOCAL,
        queue=settings.optional_text("dest-queue"),
        queue_arguments=settings.table("dest-queue-args"),
        exchange=settings.optional_text("dest-exchange"),
        exchange_key=settings.optional_text("dest-exchange-key"),
        is_predeclared=settings.is_set("dest-predeclared"),
        adds_forward_headers=settings.is_set("dest-add-forward-headers", "add-forward-headers"),
        adds_timestamp_header=settings.is_set("dest-add-timestamp-header", "add-timestamp-header"),
        publish_properties=settings.table("dest-publish-properties", "publish-properties"),
    )
    for key, uris in (("src-uri", source.uris), ("dest-uri", destination.uris)):
        if not uris:
            settings.errors.append(f"{key} has no address")
    definition = ShovelDefinition(
        source=source,
        destination=destination,
        ack_mode=settings.text("ack-mode", ON_CONFIRM),
        reconnect_delay_s=settings.reconnect_delay_s(_RECONNECT_DELAY_S),
        rate_limit=float(rate) if isinstance(rate, int | float) else None,
        filter_headers=settings.table("filter-headers"),
        filter_routing_key=settings.optional_text("filter-routing-key"),
        is_exactly_once=settings.is_set("exactly-once"),
        is_single_run=settings.is_set("single-run"),
    )
    return "; ".join(settings.errors) or definition


def _source_checks(table: Mapping[str, Json], access: VhostAccess | None) -> Mapping[str, Check]:
    if table.get("src-protocol") == AMQP10:
        return _of_amqp10(table, "src-")
    return {
        "src-uri": uri_check(access),
        "src-exchange": validation.short_string,
        "src-exchange-key": validation.short_string,
        "src-queue": validation.short_string,
        "src-queue-args": validation.any_table,
        "src-consumer-args": validation.any_table,
        "src-consumer-name": validation.short_string,
        "prefetch-count": validation.number,
        "src-prefetch-count": validation.number,
        "delete-after": _delete_after,
        "src-delete-after": _delete_after,
        "src-delete-after-duration": _duration,
        "src-predeclared": validation.boolean,
    }


def _destination_checks(table: Mapping[str, Json], access: VhostAccess | None) -> Mapping[str, Check]:
    if table.get("dest-protocol") == AMQP10:
        return _of_amqp10(table, "dest-")
    return {
        "dest-uri": uri_check(access),
        "dest-exchange": validation.short_string,
        "dest-exchange-key": validation.short_string,
        "dest-queue": validation.short_string,
        "dest-queue-args": validation.any_table,
        "add-forward-headers": validation.boolean,
        "add-timestamp-header": validation.boolean,
        "dest-add-forward-headers": validation.boolean,
        "dest-add-timestamp-header": validation.boolean,
        "publish-properties": validation.table(_PROPERTIES),
        "dest-publish-properties": validation.table(_PROPERTIES),
        "dest-predeclared": validation.boolean,
    }


def _is_amqp091(table: Mapping[str, Json], end: str) -> bool:
    """True if an end has the keys of AMQP 0-9-1, which those of this node have, too."""
    return table.get(f"{end}-protocol") != AMQP10


def _of_amqp10(table: Mapping[str, Json], prefix: str) -> Mapping[str, Check]:
    """Check nothing of an end that is refused for its protocol."""
    found = {
        key: validation.anything for key in table if key.startswith(prefix) and key != f"{prefix}protocol"
    }
    return {f"{prefix}uri": uri_check(), **found}


def _protocol(name: str, term: object) -> str | None:
    if term == AMQP10:
        return f"{name}: AMQP 1.0 is not supported, only {AMQP091} and {LOCAL}"
    return validation.one_of(AMQP091, LOCAL)(name, term)


def _delete_after(name: str, term: object) -> str | None:
    is_count = isinstance(term, int) and not isinstance(term, bool) and term >= 0
    if is_count and isinstance(term, int) and term > LINK_MESSAGES_MAX:
        return f"{name} should be at most {LINK_MESSAGES_MAX}, actually was {printed_json(term)}"
    if is_count or term in (NEVER, QUEUE_LENGTH):
        return None
    allowed = f'a number greater than or equal to 0, "{NEVER}" or "{QUEUE_LENGTH}"'
    return f"{name} should be {allowed}, actually was {printed_json(term)}"


def _duration(name: str, term: object) -> str | None:
    if not isinstance(term, int) or isinstance(term, bool) or term <= 0:
        return f"{name} should be a positive integer (seconds), actually was {printed_json(term)}"
    if term > SHOVEL_DURATION_S_MAX:
        return f"{name} is {term} seconds, which exceeds the maximum supported duration"
    return None


def _rate(name: str, term: object) -> str | None:
    if isinstance(term, int | float) and not isinstance(term, bool) and 0 < term <= LINK_MESSAGES_MAX:
        return None
    return f"{name} should be a number of messages per second, actually was {printed_json(term)}"


def _headers(name: str, term: object) -> str | None:
    if isinstance(term, Mapping):
        return None
    return f"{name} should be a table, actually was {printed_json(term)}"
