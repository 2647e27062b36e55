"""Whole brokers as nodes of a cluster: metadata, stores, queues, sessions and links are the real ones.

A node starts as a real one does: links first, then what the others have agreed on, then its stores, then its
clients. Its clock need not be right, its process can be stopped for a while, and so can its disk.
"""

from collections.abc import Callable, Sequence

from tests.sim.disk import SimulatedDisk
from tests.sim.link_network import SimulatedSocket
from tests.sim.simulated_cluster import ClusterNode, SimulatedCluster

from warren.access.client_counts import ClientCountKind
from warren.cluster.catching_up import CatchingUp
from warren.cluster.formation import FormationPlan
from warren.cluster.groups.group_traffic import GroupTraffic, GroupTrafficDependencies
from warren.cluster.hello import NO_CLUSTER
from warren.cluster.node_digest import AdvertisedStreams
from warren.cluster.node_states import NodeStates, NodeStatesDependencies
from warren.cluster.node_traffic import TrafficDependencies
from warren.cluster.remote_queues import RemoteQueues, Replication
from warren.cluster.replicated.replicated_queue import ReplicatedQueue
from warren.errors import AmqpError
from warren.flow.alarms import Alarms
from warren.journal.journal import Journal
from warren.management.controls import ControlRefused
from warren.metadata.commands import MetadataCommand, PutVhost
from warren.metadata.incarnation import NODE_ALONE, Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.records import QueueRecord
from warren.model.coroutine_driver import NextTurn, drive
from warren.node.client_access import ClientAccess
from warren.node.cluster_controls import (
    WITHOUT_CLUSTER,
    ClusterControlsDependencies,
    NodeClusterControls,
)
from warren.node.cluster_status import ClusterView
from warren.node.node_identity import NodeIdentity
from warren.queues.quorum.group import QuorumGroup
from warren.session.server import Server
from warren.simulation.machine import SimulatedMachine
from warren.simulation.network import SimulatedNetwork
from warren.simulation.ports import JournalFuture, MountedDisk
from warren.simulation.simulated_clock import SimulatedClock
from warren.simulation.simulated_node import METADATA, SimulatedNode
from warren.vhost.vhost import VirtualHost

VHOST = "/"
DEFINITIONS: Sequence[MetadataCommand] = (PutVhost(name=VHOST),)
# How much of what clients and the broker send each other passes in a step.
_PIECES = (2, 8, 40)
_CALM_PIECES = 400
_SHUT_OUT = "broker forced connection closure with reason 'shutdown'"


class ClusterBroker(SimulatedNode):
    """One run of the broker of a node."""

    def __init__(self, machine: "ClusterMachine") -> None:
        self._host = machine.host
        super().__init__(machine)
        links = self._host.peers.links
        self.group_traffic = GroupTraffic(
            GroupTrafficDependencies(
                node=self.incarnation.node, links=links, later=self.later, after=self.after,
                report=self.reports.append,
            )
        )  # fmt: skip
        self.remote_queues = RemoteQueues(
            self.incarnation,
            links,
            TrafficDependencies(
                metadata=self.metadata, later=self.later, after=self.after, turn=self.clock.turn,
                vhost=self._running_vhost, report=self.reports.append,
            ),
            Replication(
                traffic=self.group_traffic, random_bytes=self.random_bytes, proposals=self.journal
            ),
        )  # fmt: skip

    @property
    def timer_now(self) -> int:
        return self._host.cluster.network.time

    def opened_journal(self, disk: MountedDisk) -> Journal:
        host = self._host
        found = self._recovered(disk)
        others = {*found.configuration.members} - {self.incarnation.node}
        if not (host.is_member or others):
            self._apply_definitions()
        dependencies = self._journal_dependencies(host.peers, is_joining=host.is_joining)
        return Journal(self.metadata, disk, dependencies, found)

    def _running_vhost(self, name: str) -> VirtualHost | None:
        services = self.server.vhost_services.get(name)
        return None if services is None else services.vhost


class ClusterMachine(SimulatedMachine):
    """The disks of one node, and its run."""

    def __init__(self, host: "BrokerNode", cluster: SimulatedCluster) -> None:
        super().__init__(cluster.chance, SimulatedClock(0), DEFINITIONS, host.name)
        self.host = host
        self.on_restart = lambda _: cluster.on_home_lost(host, is_power_lost=True)

    def begin(self, incarnation: Incarnation) -> ClusterBroker:
        """Begin a run; it opens its stores when it is told to start."""
        self.incarnation = incarnation
        broker = self.running = ClusterBroker(self)
        return broker

    def erase(self) -> None:
        """Delete what is on the disks."""
        self._disks.clear()


class BrokerAccess(ClientAccess):
    """Whether a node accepts clients, without listeners."""

    def __init__(self, server: Server) -> None:
        super().__init__([], server, lambda _: None)

    async def suspend(self, cause: str, reason: str) -> None:
        self._causes.add(cause)
        for connection in self._server.all_connections():
            connection.disconnect(reason)

    async def resume(self, cause: str) -> None:
        self._causes.discard(cause)


class BrokerNode(ClusterNode):
    """One machine with a broker."""

    broker: ClusterBroker

    def __init__(
        self, name: str, cluster: SimulatedCluster, port: int, plan: FormationPlan | None = None
    ) -> None:
        self.name = name
        self.machine = ClusterMachine(self, cluster)
        # How far the clock of the machine is ahead of the time, and what the node makes of it: in a run its
        # time never goes back.
        self._wall = self._ahead = 1_700_000_000_000
        # Until then its process, or its disk, does nothing.
        self.stopped_until = self.stalled_until = 0
        # Connections that nobody has accepted yet.
        self._backlog: list[SimulatedSocket] = []
        self.network = SimulatedNetwork(self.machine, cluster.chance)
        # True once it serves clients in this run, unless they are shut out.
        self.has_started = False
        # What operators were told of operations that were refused.
        self.refusals: list[str] = []
        self.is_operating = False
        # When it asked to join, as far as an operator waits for that.
        self.joined_at: int | None = None
        super().__init__(name, cluster, port, plan)

    def now(self) -> int:
        return self.cluster.network.time + self._ahead

    def set_clock(self, ms: int) -> None:
        """Set the clock of the machine forward or back."""
        self._wall += ms
        self._ahead = max(self._ahead, self._wall)

    @property
    def disk(self) -> SimulatedDisk:
        """The disk of the metadata."""
        return self.machine.disk(METADATA)

    @disk.setter
    def disk(self, disk: SimulatedDisk) -> None:
        """Use the disk of the machine."""

    def erase(self) -> None:
        self.machine.erase()

    @property
    def is_member(self) -> bool:
        """True if it was admitted to a cluster, or has formed one."""
        return self.cluster_id != NO_CLUSTER

    @property
    def is_stopped(self) -> bool:
        """True while its process does nothing."""
        return self.cluster.network.time < self.stopped_until

    @property
    def is_stalled(self) -> bool:
        """True while its disks do nothing."""
        return self.cluster.network.time < self.stalled_until

    @property
    def accepts_clients(self) -> bool:
        """True if a client can connect."""
        is_running = self.is_up and not self.is_stopped and self.has_started
        return is_running and self.is_in_cluster and self.access.is_open

    @property
    def is_in_cluster(self) -> bool:
        """True if its metadata are those of a cluster."""
        return bool(self.metadata.members.by_id)

    # --- start and end --------------------------------------------------------------------------------

    def start(self) -> None:
        self._ahead = self._wall
        self.machine.clock.now = self.now()
        self.has_started = False
        self.is_operating = False
        super().start()
        drive(self._serve())

    def opened_journal(self, incarnation: Incarnation) -> tuple[Metadata, Journal]:
        broker = self.broker = self.machine.begin(incarnation)
        return broker.metadata, broker.journal

    async def _serve(self) -> None:
        """Open the stores, and serve clients."""
        broker = self.broker
        if self.is_member or self.metadata.members.by_id:
            await CatchingUp(self.metadata, self.journal, broker.incarnation, JournalFuture).wait()
            await NextTurn(broker.later)
            self.is_joining = False
        broker.start()
        self.has_started = True

    def stop(self, *, is_power_lost: bool) -> None:
        self.is_up = False
        self.cluster.on_home_lost(self, is_power_lost=is_power_lost)
        self.stopped_until = self.stalled_until = 0
        self._backlog.clear()
        for disk in self.machine.disks:
            disk.fault = None
            disk.is_full = False
        if is_power_lost:
            self.machine.cut_power()
        else:
            self.machine.kill()
        self.cluster.lose_sockets_of(self)
        self.network.cut_all()

    def records(self) -> list[QueueRecord]:
        """The queues of the cluster, as it knows them."""
        vhost = self.metadata.vhost(VHOST)
        return [] if vhost is None else list(vhost.topology.queues.values())

    def home_of(self) -> list[str]:
        """The queues whose home it is, by any node, and that no other node has."""
        return self._named(lambda record: record.home == self.node_id and not record.members)

    def member_of(self) -> list[str]:
        """The queues that it has, or of which it has a replica, by any node."""
        return self._named(lambda record: record.replica_on(self.node_id) > 0)

    def _named(self, is_meant: Callable[[QueueRecord], bool]) -> list[str]:
        if not self.is_in_cluster:
            return []
        records = (record for node in self.cluster.nodes for record in node.records())
        return sorted({record.name for record in records if is_meant(record)})

    def group_of(self, name: str) -> QuorumGroup | None:
        """The replica of a quorum queue on it; None if it has none."""
        queue = self.front_of(name)
        return None if queue is None or queue.replica is None else queue.replica.group

    def front_of(self, name: str) -> ReplicatedQueue | None:
        """A quorum queue as clients of this node have it; None if it has none."""
        vhost = self.broker.server.vhost_services.get(VHOST)
        queue = None if vhost is None else vhost.vhost.queues.get(name)
        return queue if isinstance(queue, ReplicatedQueue) else None

    def removed(self) -> None:
        self.later(lambda _: self.become_alone())

    def become_alone(self) -> None:
        """Start again as a node in no cluster, without what was here."""
        self.cluster.on_home_gone(self)
        self.stop(is_power_lost=False)
        self.joined_at = None
        self.erase()
        self.node_id, self.cluster_id, self.known = NODE_ALONE, NO_CLUSTER, ()
        self.is_joining = False
        self.start()

    # --- parts of a run -------------------------------------------------------------------------------

    def later(self, action: object) -> None:
        self.broker.later(action)  # type: ignore[arg-type]

    def new_group_traffic(self) -> GroupTraffic:
        return self.broker.group_traffic

    def new_remote_queues(self) -> RemoteQueues:
        assert self.broker.remote_queues is not None
        return self.broker.remote_queues

    def new_states(self) -> NodeStates:
        server = self.broker.server
        self.access = BrokerAccess(server)
        self.alarms = Alarms(server.block, server.event_publisher.alarm)
        self.controls = self._new_controls()
        self.notices: list[str] = []
        return NodeStates(
            NodeStatesDependencies(
                node=self.node_id, release="1.0", metadata=self.metadata, journal=self.journal,
                links=self.peers.links, alarms=self.alarms, client_counts=server.client_counts,
                client_totals=lambda: (len(server.connections), server.channel_count),
                listeners=lambda: (), advertised_streams=AdvertisedStreams(),
                partition_settings=self.cluster.partition_settings, access=self,
                report=self.notices.append,
            )
        )  # fmt: skip

    def count(self, kind: ClientCountKind) -> int:
        return self.broker.server.client_counts.here((kind, "u"))

    # Port `PartitionActions`.

    def pause(self, reason: str) -> None:
        drive(self.access.suspend("partition", _SHUT_OUT))

    def resume(self) -> None:
        drive(self.access.resume("partition"))

    # --- operators ------------------------------------------------------------------------------------

    def _new_controls(self) -> NodeClusterControls:
        view = ClusterView(
            identity=NodeIdentity(self.name, self.broker.incarnation),
            metadata=self.metadata,
            journal=self.journal,
            links=self.peers.links,
            cluster_name=lambda: "simulated",
        )
        controlled = ClusterControlsDependencies(
            server=self.broker.server, proposals=self.journal, client_access=self.access,
            actions=WITHOUT_CLUSTER, default_vhost=VHOST, default_user="guest",
        )  # fmt: skip
        return NodeClusterControls(view, controlled)

    def operate(self, operation: str, *arguments: str, **options: bool) -> None:
        """Have an operator do something with this node, unless he is waiting for it."""
        if not self.is_operating and self.is_up and self.has_started:
            self.is_operating = True
            drive(self._operate(operation, *arguments, **options))

    async def _operate(self, operation: str, *arguments: str, **options: bool) -> None:
        broker = self.broker
        try:
            await getattr(self.controls, operation)("u", *arguments, **options)
        except (AmqpError, ControlRefused) as error:
            self.refusals.append(f"{operation}: {error}")
        finally:
            if broker is self.broker:
                self.is_operating = False

    # --- what happens ---------------------------------------------------------------------------------

    def accept(self, socket: SimulatedSocket) -> None:
        """Accept a connection of another node, once the process goes on."""
        if self.is_stopped:
            socket.is_stopped = True
            self._backlog.append(socket)
        else:
            socket.connection = self.links.accept(socket, self.now())

    def accept_backlog(self) -> None:
        """Accept what has waited while the process was stopped."""
        backlog, self._backlog = self._backlog, []
        for socket in backlog:
            if not socket.is_lost:
                self.accept(socket)

    def work(self) -> None:
        """Do what is due, write, and let something pass between clients and the broker."""
        broker = self.broker
        self.machine.clock.now = self.now()
        self.follow_time()
        broker.run_timers()
        is_calm = not self.cluster.is_rough
        pieces = _CALM_PIECES if is_calm else self.cluster.chance.choice(_PIECES)
        for _ in range(pieces):
            if broker.is_over:
                return
            is_moving = broker.run_turn()
            is_moving |= self.network.pass_piece()
            if not self.is_stalled and broker.is_busy:
                broker.write(None if is_calm else self.cluster.chance.choice((1, 3, None)))
                is_moving = True
            if not is_moving:
                break
        if not broker.is_over:
            self.network.expire()
            for connection in list(self.network.connections):
                if connection.client.is_done:
                    self.network.cut(connection.client)
