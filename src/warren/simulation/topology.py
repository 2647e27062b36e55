"""The queues of a simulated broker: a topology with every kind of queue, or those of a definitions file."""

from collections.abc import Iterable

from msgspec import Struct

from warren.limits import DELIVERY_LIMIT_DEFAULT
from warren.metadata.commands import DeclareExchange, MetadataCommand, PutVhost
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.records import QueueRecord
from warren.metadata.vhosts import VhostMetadata
from warren.model.arguments import QUORUM, STREAM
from warren.simulation.history import QueueSpecification
from warren.wire.table import Value

VHOST = "/"
FANOUT = "everyone"
# The queue whose policy clients change.
POLICED = "policed"
_DEAD_LETTER_EXCHANGE = "dead-letter-exchange"
# What lets a queue drop messages, as arguments and in policies.
_LOSSY = ("message-ttl", "max-length", "max-length-bytes", "expires", _DEAD_LETTER_EXCHANGE, "delivery-limit")
_REFUSING = {"x-max-length": 12, "x-overflow": "reject-publish"}
# Messages may come back any number of times: each look at a queue is a delivery.
_QUORUM: dict[str, Value] = {"x-queue-type": "quorum", "x-delivery-limit": -1}
_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


class Topology(Struct, frozen=True, kw_only=True):
    """The commands that each start of the broker applies, and the queues that clients use."""

    definitions: list[MetadataCommand]
    queues: list[QueueSpecification]
    # True if the queues are in the definitions, so that they are there after each start.
    is_declared: bool
    # The virtual host of the clients that publish to several queues at once, and the exchange for that.
    fanout: str = ""


def standard_topology() -> Topology:
    """Queues of every kind, which clients declare, delete and bind."""

    def queue(name: str, **more: object) -> QueueSpecification:
        return QueueSpecification(vhost=VHOST, name=name, **more)  # type: ignore[arg-type]

    return Topology(
        definitions=[
            PutVhost(name=VHOST),
            DeclareExchange(vhost=VHOST, name=FANOUT, type="fanout", durable=True, user="simulation"),
        ],
        queues=[
            queue("orders", bound_to=(FANOUT,)),
            queue("invoices", bound_to=(FANOUT,)),
            queue("priorities", arguments={"x-max-priority": 3}),
            queue("rejecting", arguments=_REFUSING, may_refuse=True),
            queue("lazy", arguments={"x-queue-mode": "lazy"}),
            queue("short", arguments={"x-max-length": 5, **_DEAD}, keeps_all=False, bound_to=(FANOUT,)),
            queue("fleeting", arguments={"x-message-ttl": 2_000, **_DEAD}, keeps_all=False),
            queue("expiring", arguments={"x-expires": 30_000}, keeps_all=False),
            queue("agreed", arguments=_QUORUM, bound_to=(FANOUT,)),
            queue(
                "attempts",
                arguments={"x-queue-type": "quorum", "x-delivery-limit": 2, **_DEAD},
                keeps_all=False,
            ),
            queue("dead", takes_others=True, keeps_all=False),
            queue("transient", durable=False),
            queue("leaving", auto_delete=True, keeps_all=False),
            queue(POLICED, keeps_all=False),
        ],
        is_declared=False,
        fanout=FANOUT,
    )


def topology_of(commands: list[MetadataCommand]) -> Topology:
    """The classic and quorum queues that `commands` declare, and what they promise there."""
    metadata = Metadata()
    proposals = LocalProposals(metadata, lambda: 0)
    for command in commands:
        proposals.apply(command)
    queues = [
        specification
        for vhost in metadata.vhosts.by_name.values()
        for specification in _specifications(vhost)
    ]
    return Topology(definitions=commands, queues=queues, is_declared=True)


def _specifications(vhost: VhostMetadata) -> Iterable[QueueSpecification]:
    """The queues of one virtual host that clients can consume from."""
    targets = _dead_letter_targets(vhost)
    for record in vhost.topology.queues.values():
        if record.kind != STREAM:
            keys = _limits(vhost, record)
            if record.kind == QUORUM and keys.setdefault("delivery-limit", DELIVERY_LIMIT_DEFAULT) == -1:
                del keys["delivery-limit"]
            yield QueueSpecification(
                vhost=vhost.name,
                name=record.name,
                durable=record.durable,
                auto_delete=record.auto_delete,
                arguments=record.arguments,
                keeps_all=not (record.auto_delete or any(key in _LOSSY for key in keys)),
                takes_others=record.name in targets or None in targets,
                can_be_deleted=False,
            )


def _limits(vhost: VhostMetadata, record: QueueRecord) -> dict[str, object]:
    """The arguments and policy keys of a queue, without `x-`."""
    keys: dict[str, object] = {}
    for policies in (vhost.policies, vhost.operator_policies):
        policy = policies.match(record.name, record.kind)
        if policy is not None:
            keys.update(policy.definition)
    keys.update({key.removeprefix("x-"): value for key, value in record.arguments.items()})
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
