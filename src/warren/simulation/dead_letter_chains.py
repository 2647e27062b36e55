"""The queues of a simulated broker whose dead letters are followed, and the states of their targets.

A chain begins with the queue to which clients publish. That of classic queues, `first`, is never changed. A
pair is a source, of each kind and strategy, and a target of each kind, which an operator makes full or leaves
without a route, and mends again.
"""

from collections.abc import Iterator, Mapping

from warren.metadata.commands import (
    Bind,
    ClearPolicy,
    DeclareExchange,
    DeclareQueue,
    MetadataCommand,
    SetPolicy,
)
from warren.model.arguments import QUORUM, STREAM
from warren.simulation.queue_history import QueueSpecification
from warren.wire.table import Value

VHOST = "/"
_DEAD_LETTERS = "dead-letters"
# A chain of dead letters: what is rejected or waits too long comes to `late`, what is too much there goes on.
_CHAIN = "first"
_CHAIN_LENGTH = 4
_PASSED_ON = {"x-dead-letter-exchange": _DEAD_LETTERS}
_TTL_MS = 3_000
_KEPT = {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
# Pairs: the arguments of the source, and those of the target. The strategy of one that is lossy may change.
_PAIRS: dict[str, tuple[Mapping[str, Value], Mapping[str, Value]]] = {
    "classic-once": ({"x-message-ttl": _TTL_MS}, {"x-queue-type": QUORUM, "x-delivery-limit": -1}),
    "quorum-once": (
        {
            "x-queue-type": QUORUM,
            "x-message-ttl": _TTL_MS,
            "x-delivery-limit": -1,
            "x-overflow": "reject-publish",
        },
        {},
    ),
    "kept-ttl": ({"x-queue-type": QUORUM, "x-message-ttl": _TTL_MS, "x-delivery-limit": 2, **_KEPT}, {}),
    "kept-expiration": (
        {"x-queue-type": QUORUM, "x-delivery-limit": 2, **_KEPT},
        {"x-queue-type": QUORUM, "x-delivery-limit": -1},
    ),
    "kept-in-stream": (
        {"x-queue-type": QUORUM, "x-message-ttl": _TTL_MS, "x-delivery-limit": -1, **_KEPT},
        {"x-queue-type": STREAM},
    ),
}
_FULL = {"max-length": 0, "overflow": "reject-publish"}
_MISSING = {"dead-letter-routing-key": "nowhere"}


def chain_queues() -> list[QueueSpecification]:
    """The queues of all chains; clients publish to the first one of each."""
    first: dict[str, Value] = {
        "x-message-ttl": _TTL_MS,
        "x-dead-letter-routing-key": "late",
        **_PASSED_ON,
    }
    late: dict[str, Value] = {
        "x-dead-letter-routing-key": "last",
        "x-max-length": _CHAIN_LENGTH,
        **_PASSED_ON,
    }
    queues = [
        _queue(_CHAIN, _CHAIN, first),
        _queue("late", _CHAIN, late),
        _queue("last", _CHAIN, {}, is_chain_end=True),
    ]
    for name, (source, target) in _PAIRS.items():
        queues.append(_queue(name, name, {**source, **_PASSED_ON}, target=f"{name}-target"))
        queues.append(_queue(f"{name}-target", name, target, is_chain_end=True))
    return queues


def chain_definitions() -> Iterator[MetadataCommand]:
    """The commands that declare the chains."""
    yield DeclareExchange(vhost=VHOST, name=_DEAD_LETTERS, type="direct", durable=True, user="simulation")
    for one in chain_queues():
        yield DeclareQueue(
            vhost=VHOST, name=one.name, durable=True, arguments=one.arguments, user="simulation"
        )
        if one.name != one.chain:
            # A dead letter of a pair keeps the routing key, which is the name of the source.
            key = one.name if one.chain == _CHAIN else one.chain
            yield Bind(vhost=VHOST, source=_DEAD_LETTERS, destination=one.name, routing_key=key)


def target_states(source: QueueSpecification, target: QueueSpecification) -> list[list[MetadataCommand]]:
    """The changes that make the `target` of `source` full, or leave it without a route."""
    states = [[_policy(source.name, _MISSING)]]
    if not target.is_stream:
        states += [
            [_policy(target.name, _FULL)],
            [_policy(source.name, _MISSING), _policy(target.name, _FULL)],
        ]
    if source.is_quorum and not source.keeps_dead_letters:
        strategy = {"dead-letter-strategy": "at-least-once"}
        states += [[_policy(source.name, strategy | _MISSING)]]
    return states


def mended(source: QueueSpecification) -> list[MetadataCommand]:
    """The changes by which the target of `source` gets dead letters again."""
    return [ClearPolicy(vhost=VHOST, name=name) for name in (source.name, source.dead_letter_target)]


def _queue(
    name: str, chain: str, arguments: Mapping[str, Value], *, target: str = "", is_chain_end: bool = False
) -> QueueSpecification:
    return QueueSpecification(
        vhost=VHOST,
        name=name,
        arguments=arguments,
        chain=chain,
        dead_letter_target=target,
        is_chain_end=is_chain_end,
        is_defined=True,
    )


def _policy(queue: str, definition: Mapping[str, Value]) -> MetadataCommand:
    return SetPolicy(vhost=VHOST, name=queue, pattern=f"^{queue}$", definition=dict(definition))
