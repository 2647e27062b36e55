"""What a simulated broker has: queues and exchanges of every kind, or those of a definitions file."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from warren.limits import DELIVERY_LIMIT_DEFAULT
from warren.metadata.commands import Bind, DeclareExchange, MetadataCommand, PutVhost
from warren.metadata.declared_topology import DEFAULT_EXCHANGES
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.records import BindingRecord, ExchangeRecord, QueueRecord
from warren.metadata.vhosts import VhostMetadata
from warren.model.arguments import QUORUM
from warren.simulation.dead_letter_chains import VHOST, chain_definitions, chain_queues
from warren.simulation.expected_routes import BindingSpecification, ExchangeSpecification
from warren.simulation.queue_history import QueueSpecification
from warren.wire.table import Value

# The queue whose policy clients change.
POLICED = "policed"
_FANOUT, _DIRECT, _TOPIC, _HEADERS, _NESTED = "everyone", "by-name", "by-topic", "by-header", "nested"
_DEAD_LETTER_EXCHANGE = "dead-letter-exchange"
_ALTERNATE = "alternate-exchange"
# What lets a queue drop messages or keep them back, as arguments and in policies.
_LOSSY = (
    "message-ttl", "max-length", "max-length-bytes", "max-age", "expires", "delivery-limit",
    "delayed-retry-type", _DEAD_LETTER_EXCHANGE,
)  # fmt: skip
_REFUSING = {"x-max-length": 12, "x-overflow": "reject-publish"}
# Messages may come back any number of times: each look at a queue is a delivery.
_QUORUM: dict[str, Value] = {"x-queue-type": "quorum", "x-delivery-limit": -1}
_PATIENT = {"x-delayed-retry-type": "all", "x-delayed-retry-min": 400, "x-delayed-retry-max": 1_000}
_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


class Topology(Struct, frozen=True, kw_only=True):
    """The commands that each start of the broker applies, and what clients use."""

    definitions: list[MetadataCommand]
    queues: list[QueueSpecification]
    exchanges: list[ExchangeSpecification]


def standard_topology() -> Topology:
    """Queues of every kind, which clients declare, delete and bind, and exchanges of every type."""
    exchanges = [
        _exchange(_FANOUT, "fanout"),
        _exchange(_DIRECT, "direct"),
        _exchange(_TOPIC, "topic"),
        _exchange(_HEADERS, "headers"),
        _exchange(
            _NESTED,
            "topic",
            BindingSpecification(_NESTED, "all.#", exchange=_TOPIC),
            BindingSpecification(_NESTED, "*.direct", exchange=_DIRECT),
            BindingSpecification(_NESTED, "*.*", exchange=_FANOUT),
        ),
    ]
    return Topology(
        definitions=[PutVhost(name=VHOST), *_declarations(exchanges), *chain_definitions()],
        queues=[*_plain_queues(), *_bound_queues(), *chain_queues(), *_private_queues()],
        exchanges=exchanges,
    )


def _exchange(name: str, type: str, *bindings: BindingSpecification) -> ExchangeSpecification:
    return ExchangeSpecification(vhost=VHOST, name=name, type=type, bindings=bindings)


def _queue(name: str, *bindings: BindingSpecification, **more: object) -> QueueSpecification:
    return QueueSpecification(vhost=VHOST, name=name, bindings=bindings, **more)  # type: ignore[arg-type]


def _plain_queues() -> list[QueueSpecification]:
    """Queues to which clients publish by name, or to all that are bound to one fanout exchange."""
    everyone = BindingSpecification(_FANOUT)
    return [
        _queue("orders", everyone),
        _queue("invoices", everyone),
        _queue("priorities", arguments={"x-max-priority": 3}),
        _queue("rejecting", arguments=_REFUSING, may_refuse=True),
        _queue("lazy", arguments={"x-queue-mode": "lazy"}),
        _queue("short", everyone, arguments={"x-max-length": 5, **_DEAD}, keeps_all=False),
        _queue("fleeting", arguments={"x-message-ttl": 2_000, **_DEAD}, keeps_all=False),
        _queue("expiring", arguments={"x-expires": 30_000}, keeps_all=False),
        _queue("agreed", everyone, arguments=_QUORUM),
        _queue("patient", everyone, arguments={**_QUORUM, **_PATIENT}),
        _queue(
            "attempts",
            arguments={"x-queue-type": "quorum", "x-delivery-limit": 2, **_DEAD},
            keeps_all=False,
        ),
        # Without a dead-letter exchange what expires is dropped.
        _queue("passing", arguments={**_QUORUM, "x-message-ttl": 2_000}, keeps_all=False),
        _queue("dead", takes_others=True, keeps_all=False),
        _queue("transient", durable=False),
        _queue("leaving", auto_delete=True, keeps_all=False),
        _queue(POLICED, keeps_all=False),
    ]


def _bound_queues() -> list[QueueSpecification]:
    """Queues with bindings of each type of exchange; a queue may be reached in more than one way."""
    return [
        _queue(
            "routed",
            BindingSpecification(_DIRECT, "a"),
            BindingSpecification(_DIRECT, "all.direct"),
            BindingSpecification(_TOPIC, "#.a.*"),
        ),
        _queue(
            "filtered",
            BindingSpecification(_HEADERS, arguments={"x-match": "all", "kind": "a", "size": 1}),
            BindingSpecification(_HEADERS, arguments={"x-match": "any", "kind": "b", "size": 2}),
            BindingSpecification(_TOPIC, "all.*"),
        ),
        _queue("log", BindingSpecification(_TOPIC, "#"), arguments={"x-queue-type": "stream"}),
    ]


def _private_queues() -> list[QueueSpecification]:
    """Exclusive queues, one for each of the clients."""
    return [
        _queue(
            f"private{number}",
            BindingSpecification(_TOPIC, "all.*"),
            BindingSpecification(_FANOUT),
            owner=f"client{number}",
            durable=False,
        )
        for number in range(2)
    ]


def _declarations(exchanges: Iterable[ExchangeSpecification]) -> Iterable[MetadataCommand]:
    """The commands that declare `exchanges` and bind them to each other."""
    for one in exchanges:
        yield DeclareExchange(vhost=one.vhost, name=one.name, type=one.type, durable=True, user="simulation")
    for one in exchanges:
        for binding in one.bindings:
            yield Bind(
                vhost=one.vhost,
                source=one.name,
                destination=binding.exchange,
                is_to_queue=False,
                routing_key=binding.key,
                arguments=binding.arguments,
            )


def topology_of(commands: list[MetadataCommand]) -> Topology:
    """The queues, exchanges and bindings that `commands` declare, and what their policies promise."""
    metadata = Metadata()
    proposals = LocalProposals(metadata, lambda: 0)
    for command in commands:
        proposals.apply(command)
    vhosts = list(metadata.vhosts.by_name.values())
    return Topology(
        definitions=commands,
        queues=[specification for vhost in vhosts for specification in _specifications(vhost)],
        exchanges=[_exchange_of(vhost, one) for vhost in vhosts for one in _exchanges(vhost)],
    )


def _exchanges(vhost: VhostMetadata) -> list[ExchangeRecord]:
    """The exchanges that clients publish to: those of the file, and those of the broker that it binds."""
    defaults = {name for name, *_ in DEFAULT_EXCHANGES}
    topology = vhost.topology
    return [
        record
        for record in topology.exchanges.values()
        if record.name and (record.name not in defaults or topology.has_bindings_from(record.name))
    ]


def _exchange_of(vhost: VhostMetadata, record: ExchangeRecord) -> ExchangeSpecification:
    bindings = vhost.topology.bindings_from(record.name)
    keys = _with_policies(vhost, record.name, "exchange", record.arguments)
    return ExchangeSpecification(
        vhost=vhost.name,
        name=record.name,
        type=record.type,
        bindings=tuple(map(_binding_of, (one for one in bindings if not one.is_to_queue))),
        alternate=str(keys.get(_ALTERNATE, "")),
        is_public=not record.internal,
    )


def _binding_of(record: BindingRecord) -> BindingSpecification:
    return BindingSpecification(
        record.source,
        record.routing_key,
        record.arguments,
        exchange="" if record.is_to_queue else record.destination,
    )


def _specifications(vhost: VhostMetadata) -> Iterable[QueueSpecification]:
    """The queues of one virtual host, with their bindings but those to the default exchange."""
    targets = _dead_letter_targets(vhost)
    for record in vhost.topology.queues.values():
        keys = _limits(vhost, record)
        if record.kind == QUORUM and keys.setdefault("delivery-limit", DELIVERY_LIMIT_DEFAULT) == -1:
            del keys["delivery-limit"]
        yield QueueSpecification(
            vhost=vhost.name,
            name=record.name,
            durable=record.durable,
            auto_delete=record.auto_delete,
            arguments=record.arguments,
            keeps_all=not (record.auto_delete or any(key in keys for key in _LOSSY)),
            may_refuse=str(keys.get("overflow", "")).startswith("reject-publish"),
            takes_others=record.name in targets or None in targets,
            bindings=tuple(
                _binding_of(binding)
                for binding in vhost.topology.bindings_to_queue(record.name)
                if binding.source
            ),
            is_defined=True,
        )


def _limits(vhost: VhostMetadata, record: QueueRecord) -> dict[str, object]:
    """The arguments and policy keys of a queue, without `x-`."""
    return _with_policies(vhost, record.name, record.kind, record.arguments)


def _with_policies(
    vhost: VhostMetadata, name: str, kind: str, arguments: Mapping[str, Value]
) -> dict[str, object]:
    keys: dict[str, object] = {}
    for policies in (vhost.policies, vhost.operator_policies):
        policy = policies.match(name, kind)
        if policy is not None:
            keys.update(policy.definition)
    keys.update({key.removeprefix("x-"): value for key, value in arguments.items()})
    return keys


def _dead_letter_targets(vhost: VhostMetadata) -> set[str | None]:
    """The queues that get dead letters; None stands for any."""
    targets: set[str | None] = set()
    for record in vhost.topology.queues.values():
        keys = _limits(vhost, record)
        exchange = keys.get(_DEAD_LETTER_EXCHANGE)
        if exchange == "":
            key = keys.get("dead-letter-routing-key")
            targets.add(None if key is None else str(key))
        elif exchange is not None:
            bindings = vhost.topology.bindings_from(str(exchange))
            targets.update(binding.destination if binding.is_to_queue else None for binding in bindings)
    return targets
