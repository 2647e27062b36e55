"""Operator controls of a cluster: joining, leaving, forgetting a member, and maintenance of this node.

drain: the members are told ─▶ no new clients ─▶ 320 to all others ─▶ another member leads the metadata
leave: drain ─▶ what ends with this run is deleted ─▶ the member is removed ─▶ the node goes on alone
reset: leave, of a node that has met others; drain ─▶ the node starts again, empty
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from warren.errors import AmqpError, InternalError
from warren.limits import REMOVED_PER_TURN
from warren.limits_metadata import REPLICAS_REMOVED_PER_TURN
from warren.management.cluster_controls import VOTER, ClusterStatus, UnknownMember
from warren.management.controls import ControlRefused
from warren.metadata.commands import DeleteEphemeral, MetadataCommand, Outcome, RemoveReplicas
from warren.metadata.member_commands import RemoveMember, SetMemberDraining
from warren.metadata.proposals import Proposals
from warren.metadata.records import MemberRecord
from warren.node.client_access import ClientAccess
from warren.node.cluster_status import ClusterView, cluster_status
from warren.node.node_content import NodeContent, content_of, message_count_on
from warren.session.server import Server

logger = logging.getLogger("warren.audit")

# RabbitMQ's text to clients, and the cause for which the listeners are closed.
_MAINTENANCE = "Node was put into maintenance mode"
_DRAINING = "maintenance"
_PERHAPS_REMOVED = (
    "the node may have been removed: if 'warren cluster status' on another member does not list it, start it "
    "with an empty data directory, else repeat this"
)


class ClusterActions(Struct, frozen=True, kw_only=True):
    """What only the node itself can do, since its layers start again with it."""

    # Asks the member at a host and port to admit this node, gives up what the node has, and starts it as a
    # member. ControlRefused with the reason if it is not admitted.
    join: Callable[[str, int], Awaitable[None]]
    # Starts this node again, which is the only one of its cluster or in none, without anything that it has.
    # ControlRefused with the reason if it cannot.
    erase: Callable[[], None]


async def _cannot_join(host: str, port: int) -> None:
    raise ControlRefused(
        f"this node does not listen for other nodes, which {host}:{port} would have to reach: it cannot join"
    )


def _cannot_erase() -> None:
    raise ControlRefused(
        "this node does not listen for other nodes, for which it would be reset: stop it, and start it with "
        "an empty data directory"
    )


# Of a node that does not listen for other nodes.
WITHOUT_CLUSTER = ClusterActions(join=_cannot_join, erase=_cannot_erase)


class ClusterControlsDependencies(Struct, frozen=True, kw_only=True):
    """The parts of a node that the controls need."""

    server: Server
    proposals: Proposals
    client_access: ClientAccess
    actions: ClusterActions
    # The virtual host and the user of a first start, which a node that joins gives up without being asked.
    default_vhost: str
    default_user: str


class NodeClusterControls:
    """The controls of one node."""

    def __init__(self, view: ClusterView, node: ClusterControlsDependencies) -> None:
        self._view = view
        self._node = node
        # One operation at a time, so that none begins in the middle of another.
        self._lock = asyncio.Lock()
        # True while this node, which has met no other, is in maintenance mode.
        self._is_draining_alone = False

    @property
    def accepts_clients(self) -> bool:
        """True if the listeners of AMQP and streams are open."""
        return self._node.client_access.is_open

    def status(self) -> ClusterStatus:
        """The cluster as this node sees it."""
        return cluster_status(self._view, is_draining_alone=self._is_draining_alone)

    async def join(self, user: str, host: str, port: int, *, is_reset: bool) -> bool:
        """Join the cluster of the member that listens at `host` and `port`; False if it is in it already."""
        async with self._lock:
            members = self._members.values()
            named = next((one for one in members if (one.host, one.cluster_port) == (host, port)), None)
            if named is not None and named.id == self._id:
                raise ControlRefused(f"a node cannot join itself: {host}:{port} is this node")
            if named is not None:
                return False
            if len(members) > 1:
                others = ", ".join(f"'{one.name}'" for one in members if one.id != self._id)
                raise ControlRefused(
                    f"this node is a member of a cluster with {others}: leave it first, with "
                    "'warren cluster leave'"
                )
            content = self._content()
            if content.is_there and not is_reset:
                raise ControlRefused(
                    f"joining would delete what this node has: {content}; export what is needed, then repeat "
                    'it with --reset, over HTTP with "reset": true'
                )
            await self._node.actions.join(host, port)
            self._audit(user, f"joined the cluster of {host}:{port}", {"host": host, "port": port})
            return True

    async def leave(self, user: str, *, is_loss_accepted: bool) -> None:
        """Leave the cluster."""
        async with self._lock:
            own = self._members.get(self._id)
            if own is None or len(self._members) == 1:
                raise ControlRefused("this node is in no cluster with another one: there is nothing to leave")
            queues = self._view.metadata.homes.get(self._id, 0)
            if queues and not is_loss_accepted:
                messages = message_count_on(self._view.metadata, self._node.server, self._id)
                raise ControlRefused(
                    f"leaving would lose the queues on this node: {queues}, with {messages} messages; delete "
                    "or move them, or repeat it with --accept-loss, over HTTP with ?accept-loss=true"
                )
            self._check_others_decide()
            await self._drain(user)
            try:
                await self._remove(own, user, is_forgotten=False)
            except AmqpError as error:
                raise InternalError(f"{error.message}; {_PERHAPS_REMOVED}") from error
            self._audit(user, "left the cluster", {"node": own.name})

    async def reset(self, user: str, *, is_loss_accepted: bool) -> None:
        """Give up everything that this node has; it leaves its cluster first."""
        if len(self._members) > 1:
            await self.leave(user, is_loss_accepted=is_loss_accepted)
            return
        async with self._lock:
            content = self._content()
            if content.is_there and not is_loss_accepted:
                raise ControlRefused(
                    f"a reset would delete what this node has: {content}; export what is needed, then repeat "
                    "it with ?accept-loss=true"
                )
            await self._drain(user)
            self._node.actions.erase()
            self._audit(user, "node reset", {"node": self._view.identity.name})

    async def forget(self, user: str, name: str) -> None:
        """Remove a member that is down."""
        async with self._lock:
            member = self._view.metadata.members.named(name)
            if member is None:
                names = ", ".join(f"'{one.name}'" for one in self.status().members)
                raise UnknownMember(f"the cluster has no member '{name}'; its members: {names}")
            if member.id == self._id:
                raise ControlRefused("a node does not forget itself: use 'warren cluster leave'")
            if member.is_up:
                raise ControlRefused(
                    f"'{name}' is up: stop it before it is forgotten, or let it leave by itself, with "
                    "'warren cluster leave' there"
                )
            self._check_leader(self.status())
            await self._remove(member, user, is_forgotten=True)
            self._audit(user, f"member '{name}' forgotten", {"node": name})

    async def drain(self, user: str) -> None:
        """Begin maintenance; without effect if the node is in it."""
        async with self._lock:
            await self._drain(user)
            self._audit(user, "node put into maintenance mode", {"node": self._view.identity.name})

    async def revive(self, user: str) -> None:
        """End maintenance; without effect if the node is not in it."""
        async with self._lock:
            try:
                await self._node.client_access.resume(_DRAINING)
            except OSError as error:
                raise ControlRefused(
                    f"clients cannot be accepted again: {error.strerror or error}; make the port free, and "
                    "repeat it"
                ) from error
            await self._set_draining(user, is_draining=False)
            self._audit(user, "maintenance mode ended", {"node": self._view.identity.name})

    # --- private ------------------------------------------------------------------------------

    @property
    def _id(self) -> int:
        return self._view.identity.incarnation.node

    @property
    def _members(self) -> Mapping[int, MemberRecord]:
        return self._view.metadata.members.by_id

    def _content(self) -> NodeContent:
        node = self._node
        return content_of(
            self._view.metadata, node.server, default_vhost=node.default_vhost, default_user=node.default_user
        )

    def _check_leader(self, status: ClusterStatus) -> None:
        """Raise ControlRefused if nothing can be agreed on now, instead of waiting for it in vain."""
        if status.is_in_minority:
            raise ControlRefused(status.problems[0])

    def _check_others_decide(self) -> None:
        """Raise ControlRefused if the others could agree on nothing without this node."""
        status = self.status()
        self._check_leader(status)
        voters = [one for one in status.members if one.role == VOTER and one.link != "self"]
        missing = [f"'{one.name}'" for one in voters if one.link != "connected"]
        if len(voters) - len(missing) <= len(voters) // 2:
            advice = f"start {', '.join(missing)}" if missing else "wait until one of them votes"
            raise ControlRefused(
                f"the others could not agree on anything without this node: {advice}; see "
                "'warren cluster status'"
            )

    async def _drain(self, user: str) -> None:
        """Have no clients and lead nothing, for the next moments at least."""
        await self._set_draining(user, is_draining=True)
        await self._node.client_access.suspend(_DRAINING, _MAINTENANCE)
        if self._view.journal is not None and len(self._members) > 1:
            self._view.journal.give_up_leadership()

    async def _set_draining(self, user: str, *, is_draining: bool) -> None:
        self._is_draining_alone = is_draining and not self._members
        if self._members:
            await self._propose(SetMemberDraining(id=self._id, is_draining=is_draining), user)

    async def _remove(self, member: MemberRecord, user: str, *, is_forgotten: bool) -> None:
        """Remove a member, with what ends with its present run."""
        ended = DeleteEphemeral(
            node=member.id, incarnation=member.incarnation + 1, count_max=REMOVED_PER_TURN
        )
        while await self._propose(ended, user) is Outcome.PARTLY:
            pass
        replicas = RemoveReplicas(node=member.id, count_max=REPLICAS_REMOVED_PER_TURN)
        while await self._propose(replicas, user) is Outcome.PARTLY:
            pass
        await self._propose(RemoveMember(id=member.id, is_forgotten=is_forgotten), user)

    async def _propose(self, command: MetadataCommand, user: str) -> Outcome:
        """Propose a change of the members, and return what became of it. ControlRefused if it is refused."""
        reply = await self._node.proposals.propose(command, user)
        if reply.outcome is Outcome.REFUSED:
            raise ControlRefused(reply.text)
        return reply.outcome

    def _audit(self, user: str, text: str, facts: Mapping[str, object]) -> None:
        fields = {"event": "cluster.changed", "user": user, "result": "done", "facts": facts}
        logger.info("user '%s': %s", user, text, extra={"fields": fields})
