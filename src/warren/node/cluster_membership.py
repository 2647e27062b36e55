"""This node as a member of a cluster: the composition of `cluster` with sockets, timers and the metadata.

A node that has met no other has none of it running, unless it is told to listen: then another node can join
it, by which it becomes the first member of a cluster.

    start ─▶ links to the members ─▶ caught_up: all that was agreed on is applied here, and the others know
                                                this run ─▶ the stores are opened, clients are served
    join  ─▶ admitted by a member ─▶ kept in the data directory ─▶ restart, without what was here
    leave ─▶ removed by the members ─▶ kept in the data directory ─▶ restart, alone
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from warren import __version__
from warren.cluster.admission import AdmissionAnswer
from warren.cluster.catching_up import CatchingUp
from warren.cluster.cluster_member import TICK_MS, ClusterAddress, ClusterDependencies, ClusterMember
from warren.cluster.groups.group_traffic import GroupTraffic
from warren.cluster.hello import FEATURE_LEVEL, NO_CLUSTER, LocalNode
from warren.cluster.node_digest import AdvertisedStreams, NodeListener
from warren.cluster.node_link import NodeLink
from warren.cluster.node_queries import NodeQueries, QueryOperation
from warren.cluster.node_states import NodeStates, NodeStatesDependencies
from warren.cluster.partition_handling import PartitionSettings
from warren.cluster.remote_queues import RemoteQueues
from warren.flow.alarms import Alarms
from warren.limits_cluster import CLUSTER_JOIN_FAILURES_MS, CLUSTER_JOIN_MS
from warren.management.carried_request_server import HTTP_REQUEST
from warren.management.controls import ControlRefused
from warren.management.managed_node import ListenerView
from warren.metadata.events import Event, MemberChanged
from warren.metadata.machine import Metadata
from warren.node.client_access import ClientAccess
from warren.node.cluster_formation import ClusterFormation, FormationSettings
from warren.node.cluster_problems import removal_text
from warren.node.errors import BootRefused
from warren.node.metadata_journal import MetadataJournal
from warren.node.node_identity import ClusterIdentity, MembershipPhase, NodeIdentity, keep_membership
from warren.node.stream_homes import STREAM_QUESTION
from warren.runtime.randomness import random_bytes
from warren.runtime.timers import PeriodicTimer
from warren.session.server import Server
from warren.transport.cluster.cluster_transport import (
    ClusterTransport,
    ClusterTransportDependencies,
    ClusterTransportSettings,
)
from warren.transport.protocol import LoopContext

logger = logging.getLogger("warren.cluster")

# The cause for which the clients of a node are shut out that is kept from the others, and RabbitMQ's text.
_PARTITION = "partition"
_SHUT_OUT = "broker forced connection closure with reason 'shutdown'"
# Interval at which a node that waits for the others says for whom.
_REPORT_S = 10


class MembershipSettings(Struct, frozen=True, kw_only=True):
    """How a node is reached by others, and reaches them."""

    transport: ClusterTransportSettings
    # Finds the secret of the cluster, which may be generated; raises BootRefused.
    cookie: Callable[[], bytes]
    # Where the others reach this node; without a port, where it listens.
    address: ClusterAddress
    # True if it listens though it is no member.
    is_listening: bool
    # How it comes into its cluster by itself; None: it stands alone until it is told to join.
    formation: FormationSettings | None = None
    # What it does while it is kept from the others.
    partition: PartitionSettings = PartitionSettings()
    # Where it wants clients of the stream protocol to connect.
    advertised_streams: AdvertisedStreams = AdvertisedStreams()


class MembershipDependencies(Struct, frozen=True, kw_only=True):
    """What a membership needs of its node."""

    loop_context: LoopContext
    server: Server
    alarms: Alarms
    directory: Path
    remote_queues: RemoteQueues
    group_traffic: GroupTraffic
    # Where this node listens to clients.
    listeners: Callable[[], Sequence[ListenerView]]
    client_access: ClientAccess
    # Answers what other nodes ask the HTTP API of this one.
    answer_request: QueryOperation
    # Answers questions about streams of this node.
    answer_stream_question: QueryOperation
    # Called when the node must start again, because it has become a member or is none any more.
    restart: Callable[[], None]


class Membership:
    """One run of this node in its cluster, or ready for one."""

    def __init__(
        self,
        identity: NodeIdentity,
        metadata_journal: MetadataJournal,
        settings: MembershipSettings,
        dependencies: MembershipDependencies,
    ) -> None:
        """`start` follows."""
        self._identity = identity
        self._settings = settings
        self._dependencies = dependencies
        self._metadata: Metadata = metadata_journal.metadata
        self._journal = metadata_journal.journal
        self._peers = metadata_journal.peers
        loop = asyncio.get_running_loop()
        self.queries = NodeQueries(
            self._peers.links,
            lambda: int(loop.time() * 1000),
            {
                HTTP_REQUEST: dependencies.answer_request,
                STREAM_QUESTION: dependencies.answer_stream_question,
            },
        )
        self.states = NodeStates(
            NodeStatesDependencies(
                node=self.node_id,
                release=__version__,
                metadata=self._metadata,
                journal=self._journal,
                links=self._peers.links,
                alarms=dependencies.alarms,
                client_counts=dependencies.server.client_counts,
                client_totals=self._client_totals,
                listeners=self._told_listeners,
                advertised_streams=settings.advertised_streams,
                partition_settings=settings.partition,
                access=_PartitionedClients(dependencies.client_access),
                report=_report,
            )
        )
        self.member: ClusterMember | None = None
        self._transport: ClusterTransport | None = None
        self._catching_up = CatchingUp(
            self._metadata, self._journal, identity.incarnation, loop.create_future
        )
        # A member that has removed this node, if one says so; and when it has said so.
        self.removed_by: str | None = None
        self._is_refused = asyncio.Event()
        # True while the start of this node waits for the members.
        self._is_starting = False
        self._metadata.listen(self._changed, (MemberChanged,))

    @property
    def node_id(self) -> int:
        """The number of this node."""
        return self._identity.incarnation.node

    @property
    def is_member(self) -> bool:
        """True if the node is in a cluster with others, or was."""
        return bool(self._metadata.members.by_id) or self._identity.cluster is not None

    @property
    def links(self) -> dict[int, NodeLink]:
        """The links to the other members, by their numbers."""
        return self._peers.links

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where the node listens to others."""
        return [] if self._transport is None else self._transport.addresses

    async def start(self) -> None:
        """Listen to others and connect to them, if the node is a member or is to be found by others.

        Raises BootRefused.
        """
        if not (self.is_member or self._settings.is_listening):
            return
        await self._open()

    async def caught_up(self) -> None:
        """Wait until this node has applied all that the members had agreed on, and they know this run.

        Without a majority of the members that takes until there is one, which is logged. Raises BootRefused
        if they have removed this node, and OSError if it can not be noted in the data directory.
        """
        if not self.is_member:
            return
        loop = asyncio.get_running_loop()
        reports = PeriodicTimer(loop, _REPORT_S, self._report_waiting)
        waiting = loop.create_task(self._catching_up.wait())
        refused = loop.create_task(self._is_refused.wait())
        self._is_starting = True
        try:
            await asyncio.wait((waiting, refused), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise BootRefused(self._refusal())
            await waiting
        finally:
            self._is_starting = False
            reports.stop()
            waiting.cancel()
            refused.cancel()
        known = self._identity.cluster
        if known is not None and known.phase is MembershipPhase.JOINING:
            keep_membership(self._dependencies.directory, replace(known, phase=MembershipPhase.JOINED))
            logger.info("joined the cluster as node %d", known.node_id)

    async def join(self, host: str, port: int) -> None:
        """Join the cluster of the node that listens at `host`: this one starts again, without what it has.

        Raises ControlRefused.
        """
        if self._metadata.members.by_id:
            raise ControlRefused("this node is a member of a cluster already: it can leave it")
        if self._transport is None:
            try:
                await self._open()
            except BootRefused as error:
                raise ControlRefused(str(error)) from error
        answer = await self._ask(host, port)
        if answer.refusal:
            raise ControlRefused(f"the node at {host}:{port} refuses: {answer.refusal}")
        logger.info("admitted to the cluster of the node at %s:%d, as node %d", host, port, answer.node_id)
        self._become(answer)

    async def formed(self) -> bool:
        """Come into a cluster as the settings say; False if this node starts again, since it has joined one.

        Raises BootRefused.
        """
        formation = self._settings.formation
        if formation is None or self.is_member:
            return True
        assert self.member is not None
        answer = await ClusterFormation.of(formation, self.member).run()
        if answer is None:
            return True
        self._become(answer)
        return False

    def minority_since(self) -> int | None:
        """Since when this node is in the minority (Unix time, ms); None if it is not."""
        minority = self.states.minority
        if not minority.is_in_minority:
            return None
        return self._dependencies.loop_context.turn.now() - minority.without_contact_ms

    def version_of(self, node: int) -> str | None:
        """The version that another member runs, if it is heard."""
        digest = self.states.others.digests.get(node)
        return None if digest is None else digest.release

    def hand_over(self) -> None:
        """Have other members lead what this node leads, before it stops."""
        if len(self._metadata.members.by_id) > 1:
            self._dependencies.remote_queues.hand_over()
            self._journal.give_up_leadership()

    @property
    def is_handing_over(self) -> bool:
        """True while another member is about to lead a quorum queue that this node leads."""
        return self._dependencies.remote_queues.is_handing_over

    async def stop(self) -> None:
        """Close all links."""
        self._metadata.ignore(self._changed)
        if self._transport is not None:
            await self._transport.stop()

    def reload(self) -> None:
        """Read the certificates again."""
        if self._transport is not None and self._transport.tls is not None:
            self._transport.tls.accepted.reload()

    # --- private -------------------------------------------------------------------------------------

    async def _open(self) -> None:
        """Begin with links. Raises BootRefused if there is no cookie, or the port cannot be used."""
        settings, dependencies = self._settings, self._dependencies
        known = self._identity.cluster
        told = b"" if known is None else known.cluster_id
        local = LocalNode(
            cluster_id=self._metadata.members.cluster_id or told or NO_CLUSTER, node_id=self.node_id,
            name=self._identity.name, incarnation=self._identity.incarnation.number,
            feature_level=FEATURE_LEVEL,
        )  # fmt: skip
        member = ClusterMember(
            local,
            ClusterDependencies(
                metadata=self._metadata, journal=self._journal, peers=self._peers,
                remote_queues=dependencies.remote_queues, group_traffic=dependencies.group_traffic,
                address=settings.address,
                random_bytes=random_bytes, later=dependencies.server.later, on_removed=self._removed,
                on_refused=self._refused,
                states=self.states, queries=self.queries, while_blank=self._while_blank(),
            ),
        )  # fmt: skip
        transport = ClusterTransport(
            settings.transport,
            local.introduced,
            settings.cookie(),
            ClusterTransportDependencies(
                loop_context=dependencies.loop_context,
                listener=member,
                digest=self.states.digest,
                is_removed=lambda node: node in self._metadata.members.removed,
                tick=member.tick,
                tick_ms=TICK_MS,
            ),
        )
        try:
            await transport.start()
        except OSError as error:
            listener = settings.transport.listener
            raise BootRefused(
                f"cannot listen to other nodes on {listener.host or '*'}:{listener.port}: "
                f"{error.strerror or error}: set another port with --cluster-port"
            ) from error
        # Only now: another attempt to listen may follow one that has failed.
        self.member, self._transport = member, transport
        # Once it has metadata, they say who the others are.
        others = () if known is None or self._metadata.members.by_id else known.members
        member.begin(transport.links, dependencies.loop_context.turn.now, others)

    async def _ask(self, host: str, port: int) -> AdmissionAnswer:
        """Ask the node that listens at `host` for admission. Raises ControlRefused if it does not answer."""
        assert self.member is not None
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[AdmissionAnswer] = loop.create_future()
        link = self.member.join(host, port, answered.set_result)
        failing_since = loop.time()
        end = failing_since + CLUSTER_JOIN_MS / 1000
        try:
            while not answered.done():
                await asyncio.wait((answered,), timeout=TICK_MS / 1000)
                if not link.failure:
                    failing_since = loop.time()
                if loop.time() - failing_since > CLUSTER_JOIN_FAILURES_MS / 1000:
                    raise ControlRefused(f"cannot connect to the node at {host}:{port}: {link.failure}")
                if loop.time() > end:
                    raise ControlRefused(f"the node at {host}:{port} has not answered in time")
        finally:
            self.member.stop_joining()
        return answered.result()

    def _while_blank(self) -> AdmissionAnswer | None:
        """What this node answers to others that ask it while it is in no cluster."""
        formation = self._settings.formation
        return None if formation is None else formation.plan.blank_answer()

    def _changed(self, event: Event) -> None:
        cluster_id = self._metadata.members.cluster_id
        if self._identity.cluster is None and cluster_id:
            # This node has formed the cluster: it does not begin anew without its metadata.
            formed = ClusterIdentity(phase=MembershipPhase.JOINED, cluster_id=cluster_id)
            keep_membership(self._dependencies.directory, formed)
            self._identity = replace(self._identity, cluster=formed)

    def erase(self) -> None:
        """Start again without anything that this node has, and in no cluster."""
        self._restart_as(ClusterIdentity(phase=MembershipPhase.ERASING))

    def _removed(self) -> None:
        """The members have removed this node."""
        logger.warning("this node is no member of its cluster any more")
        self.erase()

    def _refused(self, member: str) -> None:
        """A member refuses this node, since it was removed."""
        self.removed_by = member
        self._is_refused.set()
        # A start that waits ends because of it.
        if not self._is_starting:
            logger.error("%s", self._refusal())

    def _refusal(self) -> str:
        return removal_text(self.removed_by or "", str(self._dependencies.directory))

    def _become(self, answer: AdmissionAnswer) -> None:
        """Start again as the member that was admitted."""
        self._restart_as(
            ClusterIdentity(
                phase=MembershipPhase.ERASING,
                node_id=answer.node_id,
                cluster_id=answer.cluster_id,
                members=answer.members,
            )
        )

    def _client_totals(self) -> tuple[int, int]:
        server = self._dependencies.server
        return len(server.connections), server.channel_count

    def _told_listeners(self) -> Sequence[NodeListener]:
        return [NodeListener(one.protocol, one.host, one.port) for one in self._dependencies.listeners()]

    def _restart_as(self, cluster: ClusterIdentity) -> None:
        keep_membership(self._dependencies.directory, cluster)
        self._dependencies.restart()

    def _report_waiting(self) -> None:
        """Say for whom this node waits."""
        missing = [
            f"{link.peer.name} ({link.failure or 'not connected'})"
            for link in self.links.values()
            if link.is_silent
        ]
        logger.warning(
            "waiting for a majority of the cluster: %s", ", ".join(missing) or "no leader is elected yet"
        )


class _PartitionedClients:
    """The clients of a node that is kept from the others: implements port `PartitionActions`."""

    def __init__(self, access: ClientAccess) -> None:
        self._access = access
        # What is done at present, and what is done next.
        self._done: asyncio.Future[None] | None = None

    def pause(self, reason: str) -> None:
        """Close all connections of clients with 320, and listen to clients no more."""
        self._then(self._access.suspend(_PARTITION, _SHUT_OUT))

    def resume(self) -> None:
        """Listen to clients again."""
        self._then(self._access.resume(_PARTITION))

    def _then(self, work: Coroutine[object, object, None]) -> None:
        before = self._done

        async def act() -> None:
            if before is not None:
                await asyncio.wait((before,))
            try:
                await work
            except OSError as error:
                logger.error("cannot listen to clients again: %s", error.strerror or error)
            except Exception:
                logger.exception("internal error of the clients of a node that is kept from the others")

        self._done = asyncio.ensure_future(act())


def _report(text: str) -> None:
    logger.warning("%s", text)
