"""Chooses the member of the cluster that is to have a new queue.

The locators of RabbitMQ are obeyed on queues of every type, those of leaders first. As there, `client-local`
means the node of the client even while that is drained, an exclusive queue is always there, and so is one for
which no member can be chosen.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from warren.metadata.commands import DeclareQueue
from warren.metadata.machine import Metadata
from warren.metadata.records import MemberRecord
from warren.metadata.vhosts import VhostMetadata
from warren.model.arguments import CLASSIC, queue_kind

# The home of a queue that stays with the node which declares it, as in `DeclareQueue`.
CLIENT_LOCAL: Final = 0

_LEADER_LOCATOR = "queue-leader-locator"
_MASTER_LOCATOR = "queue-master-locator"
# The same choice has several names: `balanced` and `least-leaders` are those for leaders.
_FEWEST_QUEUES = ("min-masters", "balanced", "least-leaders")
_ANY = "random"
# Enough for a choice among all members that is even to one in 30 million.
_CHANCE_SIZE = 4


class QueueLocators(Struct, frozen=True, kw_only=True):
    """The settings of a node for declarations: the type of queues, and where they are to be, whose arguments
    and policies do not say that, and how exactly a quorum queue has to be declared again.
    """

    # The type of durable, shared queues of virtual hosts without a default of their own; empty: classic.
    default_type: str = ""

    # Of queues of every type; empty if it is not set.
    leader: str = ""
    # Of classic queues, if `leader` is not set.
    master: str = ""
    # The number of replicas of a quorum queue.
    group_size: int = 3
    # True if a quorum queue may be declared again as a classic one.
    has_relaxed_checks: bool = False


NO_LOCATORS = QueueLocators()


def queue_home(
    metadata: Metadata,
    vhost: VhostMetadata,
    command: DeclareQueue,
    random_bytes: Callable[[int], bytes],
    *,
    locators: QueueLocators = NO_LOCATORS,
) -> int:
    """The id of the member on which the new queue of `command` is placed, or CLIENT_LOCAL."""
    members = metadata.members.by_id
    if len(members) <= 1 or command.owner is not None:
        return CLIENT_LOCAL
    locator = _locator(vhost, command, locators)
    if locator != _ANY and locator not in _FEWEST_QUEUES:
        return CLIENT_LOCAL
    possible = [member for member in members.values() if member.takes_queues]
    if not possible:
        return CLIENT_LOCAL
    if locator == _ANY:
        return possible[int.from_bytes(random_bytes(_CHANCE_SIZE), "big") % len(possible)].id
    return _fewest(possible, metadata.homes)


def _fewest(possible: Sequence[MemberRecord], homes: Mapping[int, int]) -> int:
    """The member with the fewest queues, of equal ones the one with the lowest id."""
    return min(possible, key=lambda member: (homes.get(member.id, 0), member.id)).id


def _locator(vhost: VhostMetadata, command: DeclareQueue, locators: QueueLocators) -> object:
    """The locator of the new queue by its policies, its arguments and the settings of the node."""
    kind = queue_kind(command.arguments)
    # An operator policy has no locator.
    policy, _ = vhost.policies_of(command.name, kind)
    definition = {} if policy is None else policy.definition
    for key in (_LEADER_LOCATOR, _MASTER_LOCATOR) if kind == CLASSIC else (_LEADER_LOCATOR,):
        found = definition.get(key, command.arguments.get(f"x-{key}"))
        if found is not None:
            return found
    return locators.leader or (locators.master if kind == CLASSIC else "")
