"""Static shovels of the classic configuration, as RabbitMQ 3.10.8 reads them (measured).

    {name, [{source, [{uris, ["amqp://…"]}, {declarations, ['queue.declare', …]}, {queue, <<"q">>}]},
            {destination, [{uris, ["amqp://…"]}, {publish_fields, [{routing_key, <<"to">>}]}]},
            {ack_mode, on_confirm}]}

The older form has `sources` and `destinations` with `broker` or `brokers`, and all else beside them. A key
that neither has is ignored with a warning, as RabbitMQ ignores it.
"""

from collections.abc import Callable, Iterable, Mapping
from math import ceil

from msgspec import Struct

from warren.client.rabbitmq_uri import uri_refusal
from warren.errors import AmqpError, FrameError
from warren.limits_relay import PREFETCH_COUNT_MAX, RECONNECT_DELAY_S_MAX, URIS_MAX
from warren.metadata.commands import Json
from warren.metadata.definition_reader import ACK_MODES
from warren.metadata.shovel_definition import (
    AMQP091,
    AMQP10,
    LOCAL,
    NEVER,
    QUEUE_LENGTH,
    ShovelDefinition,
    ShovelDestination,
    ShovelSource,
)
from warren.model.erlang_reader import Term
from warren.model.erlang_terms import Atom
from warren.node.term_values import (
    InvalidTerm,
    count_of,
    flag_of,
    items,
    methods_of,
    pairs,
    shown,
    table_of,
    text_of,
    word_of,
)
from warren.wire.method import Method
from warren.wire.properties import BasicProperties
from warren.wire.table import Table

_RECONNECT_DELAY_S = 5
_PREFETCH_COUNT = 1000
# The keys of the older form, by the end to which they belong now.
_OLDER_KEYS = {
    "source": ("queue", "delete_after", "prefetch_count"),
    "destination": ("publish_properties", "publish_fields", "add_forward_headers", "add_timestamp_header"),
}


class ClassicShovel(Struct, frozen=True, kw_only=True):
    """One shovel of the classic configuration."""

    definition: ShovelDefinition
    # What is declared at each end, in order; nothing else is.
    source_declarations: tuple[Method, ...]
    destination_declarations: tuple[Method, ...]
    # Its addresses and names with the keys of the parameter of a shovel, to be shown; it has passwords.
    parameter: Mapping[str, Json]


def classic_shovels(term: Term, warn: Callable[[str], None]) -> dict[str, ClassicShovel]:
    """The shovels in `term`, by name. Raises InvalidTerm; `warn` is told which keys are ignored."""
    found: dict[str, ClassicShovel] = {}
    for item in items("shovels", term):
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], Atom):
            raise InvalidTerm(
                f"shovels: each entry has to be {{name, [{{key, value}}, …]}}, not {shown(item)}"
            )
        name = str(item[0])
        if name in found:
            raise InvalidTerm(f"shovel {name!r} is defined twice")
        try:
            found[name] = _ShovelReader(f"shovel {name!r}", warn).read(item[1])
        except InvalidTerm as error:
            raise InvalidTerm(f"shovel {name!r}: {error}") from None
    return found


class _ShovelReader:
    """Reads one shovel."""

    def __init__(self, place: str, warn: Callable[[str], None]) -> None:
        self._place = place
        self._warn = warn

    def read(self, term: Term) -> ClassicShovel:
        """The shovel in `term`."""
        table = pairs("the shovel", term)
        if "source" not in table:
            table = self._of_older_form(table)
        self._ignore_others("", table, ("source", "destination", "ack_mode", "reconnect_delay"))
        source = _required(table, "source", "the shovel")
        destination = _required(table, "destination", "the shovel")
        source_keys, source_end = pairs("source", source), self._source(pairs("source", source))
        destination_keys = pairs("destination", destination)
        destination_end = self._destination(destination_keys)
        mode = word_of("ack_mode", table.get("ack_mode", Atom("on_confirm")), *_ACK_MODES)
        definition = ShovelDefinition(
            source=source_end,
            destination=destination_end,
            ack_mode=_ACK_MODES[mode],
            reconnect_delay_s=_reconnect_delay_s(table.get("reconnect_delay", _RECONNECT_DELAY_S)),
        )
        return ClassicShovel(
            definition=definition,
            source_declarations=methods_of("source: declarations", source_keys.get("declarations", [])),
            destination_declarations=methods_of(
                "destination: declarations", destination_keys.get("declarations", [])
            ),
            parameter=_parameter(source_end, destination_end),
        )

    def _of_older_form(self, table: Mapping[str, Term]) -> dict[str, Term]:
        """The shovel `table` of the older form in the present one."""
        found: dict[str, Term] = {}
        for end, older in (("source", "sources"), ("destination", "destinations")):
            if older not in table:
                raise InvalidTerm(
                    f"neither source nor {older} is given" if end == "source" else _missing(older)
                )
            keys = pairs(older, table[older])
            self._ignore_others(f"{older}: ", keys, ("broker", "brokers", "declarations"))
            if "brokers" not in keys and "broker" not in keys:
                raise InvalidTerm(f"{older}: {_missing('broker')}")
            uris = keys["brokers"] if "brokers" in keys else [keys["broker"]]
            moved = [(Atom(key), table[key]) for key in _OLDER_KEYS[end] if key in table]
            declarations = [(Atom(key), keys[key]) for key in ("declarations",) if key in keys]
            found[end] = [(Atom("uris"), uris), *declarations, *moved]
        known = ("sources", "destinations", *_OLDER_KEYS["source"], *_OLDER_KEYS["destination"])
        return found | {key: value for key, value in table.items() if key not in known}

    def _source(self, keys: Mapping[str, Term]) -> ShovelSource:
        known = (
            "protocol",
            "uris",
            "declarations",
            "queue",
            "delete_after",
            "prefetch_count",
            "consumer_args",
        )
        is_local = _is_local("source", keys)
        self._ignore_others("source: ", keys, known)
        prefetch_count = count_of("source: prefetch_count", keys.get("prefetch_count", _PREFETCH_COUNT))
        return ShovelSource(
            uris=_uris("source", keys),
            is_local=is_local,
            queue=text_of("source: queue", _required(keys, "queue", "source")),
            prefetch_count=min(prefetch_count, PREFETCH_COUNT_MAX),
            delete_after=_delete_after(keys.get("delete_after", Atom(NEVER))),
            consumer_arguments=table_of("source: consumer_args", keys.get("consumer_args", [])),
        )

    def _destination(self, keys: Mapping[str, Term]) -> ShovelDestination:
        known = ("protocol", "uris", "declarations", *_OLDER_KEYS["destination"])
        is_local = _is_local("destination", keys)
        self._ignore_others("destination: ", keys, known)
        fields = pairs("destination: publish_fields", keys.get("publish_fields", []))
        return ShovelDestination(
            uris=_uris("destination", keys),
            is_local=is_local,
            exchange=_publish_field(fields, "exchange"),
            exchange_key=_publish_field(fields, "routing_key"),
            adds_forward_headers=_flag(keys, "add_forward_headers"),
            adds_timestamp_header=_flag(keys, "add_timestamp_header"),
            publish_properties=_properties(
                pairs("destination: publish_properties", keys.get("publish_properties", []))
            ),
        )

    def _ignore_others(self, where: str, keys: Mapping[str, Term], known: Iterable[str]) -> None:
        for key in keys.keys() - set(known):
            self._warn(f"{self._place}: {where}{key} has no effect: it is not a key of a static shovel")


def _required(keys: Mapping[str, Term], key: str, where: str) -> Term:
    if key not in keys:
        raise InvalidTerm(f"{where}: {_missing(key)}")
    return keys[key]


def _missing(key: str) -> str:
    return f"{key} is not given"


def _is_local(end: str, keys: Mapping[str, Term]) -> bool:
    protocol = keys.get("protocol", Atom(AMQP091))
    if isinstance(protocol, Atom) and protocol == AMQP10:
        raise InvalidTerm(f"{end}: protocol: AMQP 1.0 is not supported, only {AMQP091} and {LOCAL}")
    return word_of(f"{end}: protocol", protocol, AMQP091, LOCAL) == LOCAL


def _uris(end: str, keys: Mapping[str, Term]) -> tuple[str, ...]:
    """The addresses of an end, which are strings, or binaries."""
    term = _required(keys, "uris", end)
    if isinstance(term, str):
        raise InvalidTerm(f'{end}: the addresses have to be a list: ["amqp://…"]')
    found: list[str] = []
    for item in items(f"{end}: the addresses", term):
        uri = item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else item
        if not isinstance(uri, str) or isinstance(uri, Atom):
            raise InvalidTerm(f"{end}: an address has to be a string, not {shown(item)}")
        error = uri_refusal(uri)
        if error is not None:
            raise InvalidTerm(f"{end}: {error}")
        found.append(uri)
    if not 0 < len(found) <= URIS_MAX:
        raise InvalidTerm(f"{end}: it has to have 1 to {URIS_MAX} addresses, not {len(found)}")
    return tuple(found)


def _delete_after(term: Term) -> int | str:
    if isinstance(term, int):
        return count_of("source: delete_after", term)
    return word_of("source: delete_after", term, NEVER, QUEUE_LENGTH)


def _reconnect_delay_s(term: Term) -> int:
    """Seconds; 0, for a shovel that is not started again, also for negative numbers."""
    if not isinstance(term, int | float):
        raise InvalidTerm(f"reconnect_delay has to be a number of seconds, not {shown(term)}")
    return ceil(min(max(term, 0), RECONNECT_DELAY_S_MAX))


def _publish_field(fields: Mapping[str, Term], wanted: str) -> str | None:
    """The exchange or routing key with which all messages are published; None for that of each message."""
    for key, term in fields.items():
        what = f"destination: publish_fields: {key}"
        if key in ("mandatory", "immediate"):
            # RabbitMQ's shovels drop what is returned to them, and no broker implements `immediate`.
            if flag_of(what, term) and key == "immediate":
                raise InvalidTerm(f"{what} is not implemented by RabbitMQ, nor by Warren")
        elif key not in ("exchange", "routing_key", "ticket"):
            raise InvalidTerm(f"{what} is no field of basic.publish")
    if wanted not in fields:
        return None
    return text_of(f"destination: publish_fields: {wanted}", fields[wanted])


def _flag(keys: Mapping[str, Term], key: str) -> bool:
    return flag_of(f"destination: {key}", keys.get(key, Atom("false")))


def _properties(given: Mapping[str, Term]) -> Table:
    """The properties that each message gets."""
    properties: Table = {}
    for key, term in given.items():
        what = f"destination: publish_properties: {key}"
        if key not in BasicProperties.__slots__:
            raise InvalidTerm(f"{what} is no property of a message")
        if key in ("delivery_mode", "priority", "timestamp"):
            properties[key] = count_of(what, term)
        else:
            properties[key] = table_of(what, term) if key == "headers" else text_of(what, term)
        try:
            BasicProperties(**{key: properties[key]}).encode_list()
        except (AmqpError, FrameError, ValueError, OverflowError) as error:
            raise InvalidTerm(f"{what}: {error}") from None
    return properties


def _parameter(source: ShovelSource, destination: ShovelDestination) -> dict[str, Json]:
    protocols = {True: LOCAL, False: AMQP091}
    given = {
        "src-uri": list(source.uris),
        "src-protocol": protocols[source.is_local],
        "src-queue": source.queue,
        "dest-uri": list(destination.uris),
        "dest-protocol": protocols[destination.is_local],
        "dest-exchange": destination.exchange,
        "dest-exchange-key": destination.exchange_key,
    }
    return {key: value for key, value in given.items() if value is not None}


# The modes of the parameter by the atoms of the classic configuration.
_ACK_MODES = {mode.replace("-", "_"): mode for mode in ACK_MODES}
