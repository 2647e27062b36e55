"""The metadata as a deterministic state machine: the same commands lead to the same state on every node.

Listeners are called after a command is completely applied and before its reply is returned, so that a queue
is running when its declaration is answered. They must not apply commands themselves.
"""

from collections.abc import Callable
from typing import TypeVar

from warren.limits_metadata import QUEUE_NUMBERS_MAX, TRANSIENT_NUMBERS_FROM
from warren.metadata.applied_proposals import AppliedProposals
from warren.metadata.bounds import ConfiguredBounds, beyond_bounds
from warren.metadata.cluster_members import ClusterMembers
from warren.metadata.commands import (
    DONE,
    PARTLY,
    SKIPPED,
    Bind,
    ChangeQueueMembers,
    ClearGlobalParameter,
    ClearParameter,
    ClearPermissions,
    ClearPolicy,
    ClearTopicPermissions,
    CommandContext,
    DeclareExchange,
    DeclareQueue,
    DeleteEphemeral,
    DeleteExchange,
    DeleteExclusiveQueues,
    DeleteQueue,
    DoubtNumbers,
    EndLease,
    GrantLease,
    LeadQueue,
    MetadataCommand,
    Outcome,
    PauseQueue,
    PermissionCommand,
    PutUser,
    PutVhost,
    RememberRemoved,
    RemoveReplicas,
    RemoveUser,
    RemoveVhost,
    RenewLease,
    Reply,
    RestoreTopology,
    SetGlobalParameter,
    SetParameter,
    SetPermissions,
    SetPolicy,
    SettleNumbers,
    SetTopicPermissions,
    SetUserLimits,
    SetUserTags,
    SetVhostLimits,
    Unbind,
    VhostCommand,
)
from warren.metadata.declared_topology import DeclaredTopology
from warren.metadata.events import (
    ALL_EVENTS,
    Event,
    Listener,
    MemberChanged,
    MemberRemoved,
    UserChanged,
    UserRemoved,
)
from warren.metadata.in_doubt_numbers import InDoubtNumbers
from warren.metadata.incarnation import FIRST_INCARNATION, Incarnation
from warren.metadata.member_commands import (
    AdmitMember,
    FormCluster,
    MemberDown,
    MemberUp,
    RaiseFeatureLevel,
    RemoveMember,
    RestoreAppliedProposals,
    RestoreMembers,
    SetMemberDraining,
)
from warren.metadata.parameters import GlobalParameters, checked_parameter
from warren.metadata.permissions import Permissions
from warren.metadata.queue_members import first_members
from warren.metadata.queues_per_node import QueuesPerNode
from warren.metadata.users import Users
from warren.metadata.vhosts import VhostMetadata, Vhosts, protection_refusal

C = TypeVar("C", bound=MetadataCommand)
V = TypeVar("V", bound=VhostCommand)
P = TypeVar("P", bound=PermissionCommand)
Handler = Callable[[MetadataCommand], Reply]
Observer = Callable[[MetadataCommand, CommandContext, Reply, tuple[Event, ...]], None]

_OF_NO_VHOST = (UserChanged, UserRemoved, MemberChanged, MemberRemoved)


class Metadata:
    """The metadata of the broker: read freely, changed by `apply` only."""

    __slots__ = (
        "_events",
        "_handlers",
        "_heard_by",
        "_incarnation",
        "_listeners",
        "applied_proposals",
        "bounds",
        "global_parameters",
        "homes",
        "in_doubt_numbers",
        "index",
        "is_cascading",
        "members",
        "next_number",
        "next_transient_number",
        "observer",
        "permissions",
        "replicas",
        "users",
        "vhosts",
    )

    def __init__(self) -> None:
        self._events: list[Event] = []
        # The listeners of all vhosts, and those of one, with the classes of the events that they hear.
        self._listeners: dict[str | None, list[tuple[Listener, tuple[type[Event], ...]]]] = {}
        # Those that hear an event of a class and a vhost, as far as that was asked since one was added.
        self._heard_by: dict[tuple[type[Event], str | None], tuple[Listener, ...]] = {}
        # The log index of the last command applied.
        self.index = 0
        # The run of the node that proposed the command being applied.
        self._incarnation = FIRST_INCARNATION
        # The number of the next queue that survives a restart, and of the next one that does not. The former
        # have 32 bits in the stores, and many more of the latter are declared.
        self.next_number = 1
        self.next_transient_number = TRANSIENT_NUMBERS_FROM
        # False while a log of an old format is read, in which all consequences of a deletion are commands.
        self.is_cascading = True
        # Called with every command and its reply, after the listeners; None if it is not needed.
        self.observer: Observer | None = None
        per_node = QueuesPerNode()
        # The numbers of queues, and of replicas of quorum queues, on each node, of all vhosts.
        self.homes, self.replicas = per_node.homes, per_node.replicas
        self.vhosts = Vhosts(self._events.append, per_node)
        self.users = Users(self._events.append)
        self.permissions = Permissions(self._events.append)
        self.global_parameters = GlobalParameters(self._events.append)
        self.in_doubt_numbers = InDoubtNumbers()
        self.applied_proposals = AppliedProposals()
        self.members = ClusterMembers(self._events.append, self.applied_proposals)
        # The limits that an operator sets; they apply to commands that are not accepted yet.
        self.bounds = ConfiguredBounds()
        self._handlers: dict[type[MetadataCommand], Handler] = {}
        self._register()

    def apply(self, command: MetadataCommand, context: CommandContext) -> Reply:
        """Apply `command`, call the listeners with the events, and return the reply.

        SKIPPED, without any effect, for a proposal that was applied before, or whose run has ended.
        """
        assert not self._events, "a listener applied a command"
        self.index = context.index
        if context.serial and not self.applied_proposals.admit(context.incarnation, context.serial):
            return SKIPPED
        self._incarnation = context.incarnation
        accepted = command if context.is_accepted else self.accepted(command)
        reply = accepted if isinstance(accepted, Reply) else self._handlers[type(accepted)](accepted)
        if self.in_doubt_numbers.until:
            self.in_doubt_numbers.settle_deleted(self._events)
        try:
            # No listeners exist yet while a log is replayed.
            for event in self._events if self._listeners else ():
                for listener in self._listeners_of(event):
                    listener(event)
            if self.observer is not None:
                self.observer(command, context, reply, tuple(self._events))
        finally:
            self._events.clear()
        return reply

    def accepted(self, command: MetadataCommand) -> MetadataCommand | Reply:
        """The command to write and apply for `command`, or its refusal by a rule that can change with a
        version: a limit, or the check of a parameter.
        """
        beyond = beyond_bounds(self, command)
        if beyond is not None:
            return Reply(Outcome.REFUSED, beyond)
        if isinstance(command, SetParameter):
            vhost = self.vhost(command.vhost)
            return (
                command if vhost is None else checked_parameter(vhost.parameters, command, self.users.by_name)
            )
        return command

    def listen(
        self, listener: Listener, events: tuple[type[Event], ...] = ALL_EVENTS, *, vhost: str | None = None
    ) -> None:
        """Call `listener` from now on with events of these classes, of all vhosts or of one."""
        self._listeners.setdefault(vhost, []).append((listener, events))
        self._heard_by.clear()

    def ignore(self, listener: Listener, *, vhost: str | None = None) -> None:
        """Stop calling `listener`."""
        listeners = self._listeners[vhost]
        del listeners[[known for known, _ in listeners].index(listener)]
        if not listeners:
            del self._listeners[vhost]
        self._heard_by.clear()

    def vhost(self, name: str) -> VhostMetadata | None:
        """The vhost `name`; None if it does not exist."""
        return self.vhosts.by_name.get(name)

    def _listeners_of(self, event: Event) -> tuple[Listener, ...]:
        """Those that hear `event`; the tuple stays as it is when a listener removes itself."""
        kind = type(event)
        vhost = None if isinstance(event, _OF_NO_VHOST) else event.vhost
        found = self._heard_by.get((kind, vhost))
        if found is None:
            known = [*self._listeners.get(None, ())]
            if vhost is not None:
                known += self._listeners.get(vhost, ())
            found = tuple(listener for listener, events in known if kind in events)
            self._heard_by[kind, vhost] = found
        return found

    def _register(self) -> None:
        on = self._on
        on(PutVhost, self.vhosts.put)
        on(RemoveVhost, self._remove_vhost)
        on(PutUser, self.users.put)
        on(RemoveUser, self._remove_user)
        on(SetUserTags, self.users.set_tags)
        on(SetUserLimits, self.users.set_limits)
        on(SetPermissions, self._of_user_and_vhost(self.permissions.put))
        on(ClearPermissions, self._of_user_and_vhost(self.permissions.clear))
        on(SetTopicPermissions, self._of_user_and_vhost(self.permissions.put_topic))
        on(ClearTopicPermissions, self._of_user_and_vhost(self.permissions.clear_topic))
        on(SetGlobalParameter, self.global_parameters.put)
        on(ClearGlobalParameter, self.global_parameters.clear)
        on(SetVhostLimits, self._in_vhost(VhostMetadata.set_limits))
        on(SetPolicy, self._in_vhost(VhostMetadata.set_policy))
        on(ClearPolicy, self._in_vhost(VhostMetadata.clear_policy))
        on(SetParameter, self._in_vhost(VhostMetadata.set_parameter))
        on(ClearParameter, self._in_vhost(VhostMetadata.clear_parameter))
        on(DeclareExchange, self._in_vhost(self._declare_exchange))
        on(DeleteExchange, self._deleting(DeclaredTopology.delete_exchange))
        on(DeclareQueue, self._in_vhost(self._declare_queue))
        on(ChangeQueueMembers, self._in_vhost(self._change_queue_members))
        on(LeadQueue, self._in_vhost(self._lead_queue))
        on(RemoveReplicas, self._remove_replicas)
        on(PauseQueue, self._in_vhost(lambda vhost, command: vhost.topology.pause_queue(command)))
        on(GrantLease, self._in_vhost(lambda vhost, command: vhost.topology.grant_lease(command)))
        on(RenewLease, self._in_vhost(lambda vhost, command: vhost.topology.renew_lease(command)))
        on(EndLease, self._in_vhost(lambda vhost, command: vhost.topology.end_lease(command)))
        on(DeleteQueue, self._deleting(DeclaredTopology.delete_queue))
        on(DeleteExclusiveQueues, self._deleting(DeclaredTopology.delete_exclusive))
        on(Bind, self._in_vhost(lambda vhost, command: vhost.topology.bind(command)))
        on(Unbind, self._deleting(DeclaredTopology.unbind))
        on(RestoreTopology, self._in_vhost(self._restore))
        on(RememberRemoved, self.vhosts.remember_removed)
        on(DoubtNumbers, self._doubt_numbers)
        on(SettleNumbers, self.in_doubt_numbers.settle)
        on(DeleteEphemeral, self._delete_ephemeral)
        on(FormCluster, self.members.form)
        on(AdmitMember, self.members.admit)
        on(RemoveMember, self._remove_member)
        on(MemberUp, self.members.up)
        on(MemberDown, self.members.down)
        on(SetMemberDraining, self.members.set_draining)
        on(RaiseFeatureLevel, self.members.raise_level)
        on(RestoreMembers, self.members.restore)
        on(RestoreAppliedProposals, self.applied_proposals.restore)

    def _on(self, command: type[C], handler: Callable[[C], Reply]) -> None:
        # The dispatch by type above guarantees that the argument is a C.
        self._handlers[command] = handler  # type: ignore[assignment]

    def _in_vhost(self, handler: Callable[[VhostMetadata, V], Reply]) -> Callable[[V], Reply]:
        def handle(command: V) -> Reply:
            vhost = self.vhost(command.vhost)
            if vhost is None:
                return Reply(Outcome.MISSING, f"no such vhost '{command.vhost}'")
            return handler(vhost, command)

        return handle

    def _deleting(self, handler: Callable[[DeclaredTopology, V, bool], Reply]) -> Callable[[V], Reply]:
        return self._in_vhost(lambda vhost, command: handler(vhost.topology, command, self.is_cascading))

    def _declare_queue(self, vhost: VhostMetadata, command: DeclareQueue) -> Reply:
        survives_restart = command.durable and command.owner is None
        number = self.next_number if survives_restart else self.next_transient_number
        if survives_restart and number > QUEUE_NUMBERS_MAX:
            return Reply(Outcome.REFUSED, "all numbers of durable queues are used up")
        members = first_members(command, self.members) if command.members else ()
        home = members[0] if members else command.home
        # A queue that does not survive a restart ends with the run of its home, whoever has declared it.
        run = self.members.run_of(home) if home else None
        reply = vhost.topology.declare_queue(command, number, run or self._incarnation, members)
        if reply is DONE:
            if survives_restart:
                self.next_number += 1
            else:
                self.next_transient_number += 1
        return reply

    def _change_queue_members(self, vhost: VhostMetadata, command: ChangeQueueMembers) -> Reply:
        return vhost.topology.change_members(command, self.members.by_id)

    def _lead_queue(self, vhost: VhostMetadata, command: LeadQueue) -> Reply:
        return vhost.topology.lead_queue(command)

    def _remove_replicas(self, command: RemoveReplicas) -> Reply:
        left = command.count_max
        for vhost in self.vhosts.by_name.values():
            left -= vhost.topology.remove_replicas(command.node, left)
            if left <= 0:
                return PARTLY
        return DONE

    def _remove_member(self, command: RemoveMember) -> Reply:
        reply = self.members.remove(command)
        if reply is DONE:
            # Those that RemoveReplicas, proposed before, has not removed, of queues declared since.
            for vhost in self.vhosts.by_name.values():
                vhost.topology.remove_replicas(command.id)
        return reply

    def _declare_exchange(self, vhost: VhostMetadata, command: DeclareExchange) -> Reply:
        return vhost.topology.declare_exchange(command, self._incarnation)

    def _restore(self, vhost: VhostMetadata, command: RestoreTopology) -> Reply:
        for queue in command.queues:
            number = queue.number
            if queue.survives_restart:
                if number >= self.next_number:
                    self.next_number = number + 1
            elif number >= self.next_transient_number:
                self.next_transient_number = number + 1
        return vhost.topology.restore(command)

    def _of_user_and_vhost(self, handler: Callable[[P], Reply]) -> Callable[[P], Reply]:
        def handle(command: P) -> Reply:
            if command.user not in self.users.by_name:
                return Reply(Outcome.MISSING, f"no such user '{command.user}'")
            if command.vhost not in self.vhosts.by_name:
                return Reply(Outcome.MISSING, f"no such vhost '{command.vhost}'")
            return handler(command)

        return handle

    def _doubt_numbers(self, command: DoubtNumbers) -> Reply:
        # No queue gets one of these numbers.
        self.next_number = max(self.next_number, command.until + 1)
        return self.in_doubt_numbers.doubt(command)

    def was_deleted(self, number: int) -> bool:
        """True if `number` belongs to no queue because a command has deleted its queue."""
        return self.in_doubt_numbers.is_deleted(number, self.next_number - 1)

    def _remove_vhost(self, command: RemoveVhost) -> Reply:
        vhost = self.vhost(command.name)
        if vhost is not None:
            if vhost.protected_from_deletion:
                return Reply(Outcome.REFUSED, protection_refusal(command.name))
            self.in_doubt_numbers.settle_queues(vhost.topology.queues.values())
        reply = self.vhosts.remove(command)
        if reply is DONE:
            self.permissions.forget_vhost(command.name)
        return reply

    def _remove_user(self, command: RemoveUser) -> Reply:
        reply = self.users.remove(command)
        if reply is DONE:
            self.permissions.forget_user(command.name)
            for vhost in self.vhosts.by_name.values():
                vhost.parameters.forget_user(command.name)
        return reply

    def _other_run(self, node: int) -> Incarnation | None:
        """The run of the member with the lowest id that is up, other than `node`; None if there is none."""
        members = self.members.by_id
        others = [id for id, member in members.items() if member.is_up and id != node]
        return Incarnation(min(others), members[min(others)].incarnation) if others else None

    def _delete_ephemeral(self, command: DeleteEphemeral) -> Reply:
        left = command.count_max
        heir = self._other_run(command.node)
        for vhost in self.vhosts.by_name.values():
            left -= vhost.topology.delete_ephemeral(command, left, heir)
            if left <= 0:
                return PARTLY
        return DONE
