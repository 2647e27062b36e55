"""Metadata are replaced by those of a snapshot, through events that tell what has changed."""

import random
from dataclasses import dataclass, field

import pytest
from tests.seeds import SEEDS
from tests.sim.metadata_commands import any_command, any_member_command, lease
from tests.sim.test_journal_replay import everything

from warren.metadata.commands import (
    Bind,
    CommandContext,
    DeclareExchange,
    DeclareQueue,
    DeleteExclusiveQueues,
    DeleteQueue,
    EndLease,
    GrantLease,
    MetadataCommand,
    PauseQueue,
    PutUser,
    PutVhost,
    SetPermissions,
    SetPolicy,
)
from warren.metadata.difference import replace
from warren.metadata.events import (
    BindingAdded,
    BindingRemoved,
    Event,
    ExchangeDeclared,
    ExchangeDeleted,
    LeaseEnded,
    LeaseGranted,
    MemberChanged,
    MemberRemoved,
    PermissionsChanged,
    PoliciesChanged,
    QueueDeclared,
    QueueDeleted,
    QueueMembersChanged,
    QueuePaused,
    UserChanged,
    VhostAdded,
    VhostRemoved,
)
from warren.metadata.incarnation import Incarnation
from warren.metadata.leases import LeaseState
from warren.metadata.machine import Metadata
from warren.metadata.records import QueueRecord


@dataclass
class Mirror:
    """What somebody knows who hears events only."""

    vhosts: set[str] = field(default_factory=set)
    objects: set[object] = field(default_factory=set)
    members: dict[int, object] = field(default_factory=dict)

    @classmethod
    def of(cls, metadata: Metadata) -> "Mirror":
        mirror = cls(set(metadata.vhosts.by_name), members=dict(metadata.members.by_id))
        for name, vhost in metadata.vhosts.by_name.items():
            topology = vhost.topology
            defaults = [
                exchange for exchange in topology.exchanges if exchange.startswith("amq.") or not exchange
            ]
            mirror.objects |= {(name, "queue", *_identity(queue)) for queue in topology.queues.values()}
            mirror.objects |= {(name, "exchange", one) for one in topology.exchanges if one not in defaults}
            mirror.objects |= {(name, "binding", binding) for binding in topology.bindings()}
            mirror.objects |= {(name, "paused", queue) for queue in topology.paused}
            mirror.objects |= {(name, "lease", one.id) for one in topology.leases.active()}
        return mirror

    def hear(self, event: Event) -> None:
        match event:
            case VhostAdded():
                self.vhosts.add(event.vhost)
            case VhostRemoved():
                self.vhosts.remove(event.vhost)
                self.objects = {one for one in self.objects if one[0] != event.vhost}  # type: ignore[index]
            case QueueDeclared():
                self._add(event.vhost, "queue", *_identity(event.queue))
            case QueueMembersChanged():
                self.objects.remove((event.vhost, "queue", *_identity(event.before)))
                self._add(event.vhost, "queue", *_identity(event.queue))
            case QueueDeleted():
                name = event.queue.name
                self.objects.remove((event.vhost, "queue", *_identity(event.queue)))
                self.objects.discard((event.vhost, "paused", name))
                # Leases end with their queue, without events.
                self.objects -= {(event.vhost, "lease", f"of {name}")}
            case QueuePaused(is_paused=True):
                self._add(event.vhost, "paused", event.queue.name)
            case QueuePaused():
                self.objects.remove((event.vhost, "paused", event.queue.name))
            case ExchangeDeclared():
                self._add(event.vhost, "exchange", event.exchange.name)
            case ExchangeDeleted():
                self.objects.remove((event.vhost, "exchange", event.exchange.name))
            case BindingAdded():
                self._add(event.vhost, "binding", event.binding)
            case BindingRemoved():
                self.objects.remove((event.vhost, "binding", event.binding))
            case LeaseGranted():
                self._add(event.vhost, "lease", event.lease.id)
            case LeaseEnded():
                self.objects.remove((event.vhost, "lease", event.lease.id))
            case MemberChanged():
                assert self.members.get(event.member.id) == event.before
                self.members[event.member.id] = event.member
            case MemberRemoved():
                del self.members[event.member.id]
            case _:
                pass

    def _add(self, *row: object) -> None:
        assert row not in self.objects
        self.objects.add(row)


def _identity(queue: QueueRecord) -> tuple[object, ...]:
    return queue.name, queue.number, queue.home, queue.members


def applied(metadata: Metadata, chance: random.Random, count: int, run: int) -> None:
    """Apply random commands of one run of a node."""
    for serial in range(1, count + 1):
        is_of_member = chance.random() < 0.1
        command = any_member_command(chance) if is_of_member else any_command(chance)
        context = CommandContext(
            index=metadata.index + 1, now=0, incarnation=Incarnation(1, run), serial=serial
        )
        metadata.apply(command, context)


@pytest.mark.seeds(SEEDS // 2)
def test_metadata_and_who_hears_their_events_become_those_of_a_snapshot(seed: int) -> None:
    chance = random.Random(seed)
    # A member that was away has the beginning of the history.
    common, only_there = (chance.randrange(most) for most in (120, 200))
    current, target, snapshot = Metadata(), Metadata(), Metadata()
    for metadata in (current, target, snapshot):
        applied(metadata, random.Random(seed), common, 1)
    for metadata in (target, snapshot):
        applied(metadata, random.Random(-seed), only_there, 2 + seed % 2)
    mirror = Mirror.of(current)
    current.listen(mirror.hear)
    replace(current, snapshot, snapshot.index)
    assert everything(current) == everything(target)
    assert mirror == Mirror.of(target)
    assert current.is_cascading
    # Both go on alike, also with commands that do a part of their work at once.
    for _ in range(20):
        command = any_command(chance)
        if isinstance(command, DeleteExclusiveQueues):
            command = DeleteExclusiveQueues(vhost=command.vhost, owner=command.owner, count_max=1)
        context = CommandContext(
            index=current.index + 1, now=0, incarnation=Incarnation(1, 9), serial=current.index + 1
        )
        assert current.apply(command, context) == target.apply(command, context)
        assert everything(current) == everything(target)


def made(*commands: MetadataCommand) -> Metadata:
    metadata = Metadata()
    for command in (PutVhost(name="v"), *commands):
        metadata.apply(command, CommandContext(index=metadata.index + 1, now=0))
    return metadata


def queue(name: str, owner: str | None = None) -> DeclareQueue:
    return DeclareQueue(vhost="v", name=name, durable=owner is None, owner=owner)


def events_of(current: Metadata, target: Metadata) -> list[Event]:
    events: list[Event] = []
    current.listen(events.append)
    replace(current, target, target.index)
    assert everything(current) == everything(target)
    return events


EVERYTHING: tuple[MetadataCommand, ...] = (
    queue("q"),
    DeclareExchange(vhost="v", name="e", type="fanout"),
    Bind(vhost="v", source="e", destination="q"),
    PauseQueue(vhost="v", name="q"),
    GrantLease(vhost="v", lease=lease("of q", "q")),
    PutUser(name="u", password_hash=b"", hashing_algorithm="x"),
    SetPermissions(user="u", vhost="v", configure="", write="", read=""),
    SetPolicy(vhost="v", name="p", pattern=".*", definition={"expires": 5}),
)


def test_what_is_the_same_in_both_causes_no_event() -> None:
    assert events_of(made(*EVERYTHING), made(*EVERYTHING)) == []


def test_all_is_new_to_a_node_that_knows_nothing_and_all_goes_that_is_in_no_snapshot() -> None:
    kinds = {type(event) for event in events_of(Metadata(), made(*EVERYTHING))}
    assert kinds == {
        VhostAdded, QueueDeclared, ExchangeDeclared, BindingAdded, QueuePaused, LeaseGranted, UserChanged,
        PermissionsChanged, PoliciesChanged,
    }  # fmt: skip
    assert VhostRemoved in {type(event) for event in events_of(made(*EVERYTHING), Metadata())}


def test_a_queue_that_was_declared_again_is_another_one() -> None:
    current = made(queue("q"))
    target = made(queue("q"), DeleteQueue(vhost="v", name="q"), queue("q"))
    assert [type(event) for event in events_of(current, target)] == [QueueDeleted, QueueDeclared]


def test_a_binding_that_is_gone_takes_no_exchange_with_it() -> None:
    exchange = DeclareExchange(vhost="v", name="e", type="fanout", durable=True, auto_delete=True)
    bound = (queue("q"), queue("r"), exchange, Bind(vhost="v", source="e", destination="q"))
    target = made(*bound, Bind(vhost="v", source="e", destination="r"))
    target.is_cascading = False
    target.apply(DeleteQueue(vhost="v", name="r"), CommandContext(index=target.index + 1, now=0))
    target.apply(DeleteQueue(vhost="v", name="q"), CommandContext(index=target.index + 1, now=0))
    target.is_cascading = True
    assert [type(event) for event in events_of(made(*bound), target)] == [
        BindingRemoved, QueueDeleted, QueueDeleted,
    ]  # fmt: skip


@pytest.mark.parametrize("state", [LeaseState.SETTLED, LeaseState.REQUEUED, LeaseState.EXPIRED])
def test_a_lease_ends_as_it_has_ended(state: LeaseState) -> None:
    granted = (queue("q"), GrantLease(vhost="v", lease=lease("of q", "q")))
    [event] = events_of(made(*granted), made(*granted, EndLease(vhost="v", id="of q", state=state)))
    assert isinstance(event, LeaseEnded)
    assert event.state is state
