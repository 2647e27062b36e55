"""Two nodes of a cluster in one thread: brokers with equal metadata, and a link that the test lets work."""

import random
from collections import deque
from collections.abc import Callable, Generator

from msgspec.structs import replace
from tests.unit.session.client import Broker, Client

from warren.cluster.groups.group_traffic import GroupTraffic, GroupTrafficDependencies
from warren.cluster.node_traffic import NodeTraffic, TrafficDependencies
from warren.cluster.remote_queue import RemoteQueue
from warren.cluster.remote_stream import RemoteStream
from warren.cluster.replicated.background_proposals import BackgroundProposals
from warren.cluster.replicated.replicated_queues import ReplicatedNode, ReplicatedQueues
from warren.cluster.reply_forwarding import ReplyForwarding
from warren.journal.barriers import timed_out
from warren.limits_cluster import DISCONNECTED_MS
from warren.metadata.commands import INTERNAL_USER, MetadataCommand, Reply
from warren.metadata.incarnation import Incarnation
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberUp
from warren.metadata.proposals import LocalProposals
from warren.metadata.records import QueueRecord
from warren.model.arguments import QUORUM, STREAM, QueueSettings
from warren.model.coroutine_driver import NextTurn
from warren.queues.local import LocalQueue
from warren.queues.quorum.quorum_queue import ReplicaMaker
from warren.queues.vhost_queue import VhostQueue
from warren.session.vhost_services import VhostDependencies, VhostServices
from warren.simulation.disk import SimulatedDisk
from warren.store.recovered_queue import RecoveredQueue
from warren.store.recovery import RecoveredStore, RecoveryDependencies, open_erased, open_store
from warren.store.store_port import StorePort
from warren.store.stores import Stores
from warren.store.streams.recovery import open_streams
from warren.store.streams.stream_log import StreamLogDependencies
from warren.vhost.queue_home import QueueLocators
from warren.vhost.remote_replies import RemoteReplies
from warren.vhost.vhost import VirtualHost

VHOST = "/"
NAMES = "ab"
# Of both nodes, and in their first run.
ADDRESS = {"host": "h", "cluster_port": 1, "incarnation": 1, "feature_level": 1}
# Rounds in which everything is at rest; what moves for ever would need more.
ROUNDS_MAX = 10_000
# Connections of one node, so that the owners of exclusive queues of both have different names.
OWNERS = 1_000


class MemoryChannel:
    """The way to the other node: payloads wait until they are passed on."""

    def __init__(self) -> None:
        self.payloads: deque[tuple[int, bytes]] = deque()
        self.is_writable = True
        # The reasons for which sessions were ended, and the number of payloads sent.
        self.ended: list[str] = []
        self.count = 0

    def send(self, kind: int, body: bytes) -> None:
        self.payloads.append((kind, body))
        self.count += 1

    def end_session(self, reason: str) -> None:
        self.ended.append(reason)


class CommitPort(StorePort):
    """Notes that a store has something to commit."""

    is_due = False

    def commit_due(self) -> None:
        self.is_due = True


class Held:
    """What a proposal awaits until the test lets it go on."""

    def __init__(self, held: list[Callable[[object], None]]) -> None:
        self._held = held

    def __await__(self) -> Generator["Held", None, None]:
        yield self

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        self._held.append(callback)


class ClusterProposals:
    """The proposals of one node: applied there at once, and on the others when they are prompt."""

    is_in_doubt = False

    def __init__(self, cluster: "TwoNodes", node: "ClusterNode") -> None:
        self._cluster = cluster
        self._node = node

    async def resolve(self) -> None:
        """Nothing is in doubt."""

    async def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        if self._cluster.is_holding:
            await Held(self._cluster.held)
        return self._cluster.apply(command, user, self._node)

    async def is_outdated(self, index: int) -> bool:
        return await self._cluster.is_outdated(self._node, index)


class ClusterNode(Broker):
    """One node: a broker that is the home of the queues whose names begin with its letter."""

    def __init__(self, name: str, cluster: "TwoNodes") -> None:
        super().__init__()
        self.name = name
        self._cluster = cluster
        # Its run.
        self.incarnation = Incarnation(NAMES.index(name) + 1, 1)
        self.metadata = self.services.metadata
        self.local = LocalProposals(self.metadata, lambda: self.clock.now)
        # The number of commands of the cluster that it has applied.
        self.applied = 0
        self.channel = MemoryChannel()
        self.disk: SimulatedDisk | None = None
        self.stores: Stores | None = None
        self.port = CommitPort()
        # The disk of the streams, which loses nothing here.
        self.stream_disk = SimulatedDisk(random.Random(1))
        self.stream_port = CommitPort()
        self.traffic = NodeTraffic(
            "a" if name == "b" else "b",
            self.channel,
            TrafficDependencies(
                metadata=self.metadata,
                later=self.turns.append,
                after=lambda ms, action: self.later.append((self.clock.now + ms, action)),
                turn=self.clock.turn,
                vhost=self.vhost_named,
                report=self.reports.append,
            ),
            node=3 - self.incarnation.node,
        )
        self.replicated = ReplicatedQueues(
            ReplicatedNode(
                incarnation=self.incarnation,
                metadata=self.metadata,
                later=self.turns.append,
                after=lambda ms, action: self.later.append((self.clock.now + ms, action)),
                home_of=lambda _, vhost: self.traffic.home_of(vhost),
                traffic=GroupTraffic(
                    GroupTrafficDependencies(
                        node=self.incarnation.node,
                        links={},
                        later=self.turns.append,
                        after=lambda ms, action: self.later.append((self.clock.now + ms, action)),
                        report=self.reports.append,
                    )
                ),
                random_bytes=bytes,
                metadata_proposals=ClusterProposals(self._cluster, self),
                proposals=BackgroundProposals(
                    ClusterProposals(self._cluster, self),
                    lambda ms, action: self.later.append((self.clock.now + ms, action)),
                    self.reports.append,
                ),
                disconnected_ms=cluster.disconnected_ms,
            )
        )
        for _ in range(OWNERS if name == "b" else 0):
            self.server.next_owner()
        self.open_vhost()

    def open_vhost(self, found: dict[int, dict[int, RecoveredQueue]] | None = None) -> None:
        """Begin the virtual host anew, with what was `found` in its store."""
        self.services.close()
        self.services = VhostServices.open(
            VHOST,
            self.metadata,
            ClusterProposals(self._cluster, self),
            VhostDependencies(
                random_bytes=bytes,
                later=self.turns.append,
                after=lambda ms, action: self.later.append((self.clock.now + ms, action)),
                turn=self.clock.turn,
                node_name="warren@test",
                incarnation=self.incarnation,
                locators=QueueLocators(group_size=1),
                remote_queue=self._remote_queue,
                remote_replies=self._remote_replies,
            ),
        )
        if self.stores is not None:
            self.services.vhost.attach_store(self.stores)
        self._open_streams()
        for _ in self.services.recover({} if found is None else found):
            pass
        self.server.vhost_services[VHOST] = self.services

    def attach_store(self, chance: random.Random) -> None:
        """Store persistent messages on a simulated disk from now on."""
        self.disk = SimulatedDisk(chance)
        self._open_store(self.disk)
        assert self.stores is not None
        self.services.vhost.attach_store(self.stores)

    def lose_power(self) -> None:
        """Lose power, and start again with what is on the disk; the metadata and the link survive."""
        assert self.disk is not None
        self.turns.clear()
        self.replicated.vhost_ended(VHOST)
        self.disk.lose_power()
        self.open_vhost(self._open_store(self.disk).queues)

    def _open_store(self, disk: SimulatedDisk) -> RecoveredStore:
        random_bytes = disk.chance.randbytes
        self.port = CommitPort()
        recovered = open_store(
            disk,
            self.port,
            RecoveryDependencies(
                random_bytes=random_bytes, has_queue=lambda _: True, progress=lambda *_: None
            ),
        )
        self.store = recovered.store
        transient = open_erased(SimulatedDisk(disk.chance), CommitPort(), random_bytes)
        self.stores = Stores(recovered.store, transient)
        return recovered

    def _open_streams(self) -> None:
        """Open the streams that are on the disk."""
        self.stream_port = CommitPort()
        random_bytes = self.stream_disk.chance.randbytes
        files = StreamLogDependencies(
            disk=self.stream_disk, random_bytes=random_bytes, report=self.reports.append
        )
        self.streams = open_streams(files, self.stream_port, lambda _: True).store
        self.services.vhost.attach_stream_store(self.streams)

    @property
    def is_writing(self) -> bool:
        """True if there is something to write."""
        disks = [disk for disk in (self.disk, self.stream_disk) if disk is not None]
        return self.port.is_due or self.stream_port.is_due or any(disk.is_busy for disk in disks)

    def write(self) -> None:
        """Commit what is due, and perform all of it."""
        if self.stream_port.is_due:
            self.stream_port.is_due = False
            self.streams.commit()
        self.stream_disk.advance(None)
        if self.port.is_due:
            self.port.is_due = False
            self.store.commit()
        if self.disk is not None:
            self.disk.advance(None)

    def vhost_named(self, name: str) -> VirtualHost | None:
        services = self.server.vhost_services.get(name)
        return None if services is None else services.vhost

    def run_timers(self) -> None:
        """Do what is due."""
        due = [timer for timer in self.later if timer[0] <= self.clock.now]
        self.later = [timer for timer in self.later if timer[0] > self.clock.now]
        for _, action in due:
            action()

    def queue(self, name: str) -> LocalQueue:
        """The queue `name`, of which it is the home."""
        queue = self.services.vhost.queues[name].led_here()
        assert isinstance(queue, LocalQueue)
        return queue

    def _remote_replies(self, vhost: VirtualHost) -> RemoteReplies:
        return ReplyForwarding(self.incarnation.node, self.metadata, lambda _: self.traffic.home_of(vhost))

    def _remote_queue(
        self, vhost: VirtualHost, record: QueueRecord, settings: QueueSettings, make: ReplicaMaker
    ) -> VhostQueue | None:
        if settings.kind == QUORUM and self.stores is not None:
            home = NAMES.index(record.name[0]) + 1
            return self.replicated.queue(vhost, replace(record, home=home), settings, make)
        if record.name[:1] in ("", self.name):
            return None
        kind = RemoteStream if settings.kind == STREAM else RemoteQueue
        return kind(record, vhost, settings, self.traffic.home_of(vhost))


class TwoNodes:
    """The nodes a and b, and the link between them."""

    def __init__(self, *, disconnected_ms: int = DISCONNECTED_MS) -> None:
        """`disconnected_ms` is the time that a node which was lost keeps what it holds."""
        self.disconnected_ms = disconnected_ms
        self.commands: list[tuple[MetadataCommand, str]] = []
        # False while a node hears of commands of the other one only by `catch_up`.
        self.is_prompt = True
        # True while proposals wait, which are in `held`.
        self.is_holding = False
        self.held: list[Callable[[object], None]] = []
        # False while nobody can agree on anything.
        self.has_majority = True
        self.a = ClusterNode("a", self)
        self.b = ClusterNode("b", self)
        self.nodes = (self.a, self.b)
        for command in (
            FormCluster(cluster_id=bytes(16), name="a", **ADDRESS),  # type: ignore[arg-type]
            AdmitMember(name="b", **ADDRESS),  # type: ignore[arg-type]
            MemberUp(id=2, **ADDRESS),  # type: ignore[arg-type]
        ):
            self.apply(command, INTERNAL_USER, self.a)
        self.begin()

    def apply(self, command: MetadataCommand, user: str, node: ClusterNode) -> Reply:
        """Apply `command` on `node`, after all before it, and on the other one if it is prompt."""
        if not self.has_majority:
            raise timed_out()
        self.commands.append((command, user))
        reply = self.catch_up(node)
        assert reply is not None
        if self.is_prompt:
            for other in self.nodes:
                if other is not node:
                    self.catch_up(other)
        return reply

    def catch_up(self, node: ClusterNode) -> Reply | None:
        """Have `node` apply all commands; returns the last reply."""
        reply = None
        while node.applied < len(self.commands):
            command, user = self.commands[node.applied]
            node.applied += 1
            reply = node.local.apply(command, user)
        return reply

    def release(self) -> None:
        """Let held proposals go on, and hold no more."""
        self.is_holding = False
        while self.held:
            self.held.pop(0)(None)
        self.run()

    async def is_outdated(self, node: ClusterNode, index: int) -> bool:
        """Have `node` apply all commands, in a later turn; MetadataTimeout without a majority."""
        await NextTurn(node.turns.append)
        if not self.has_majority:
            raise timed_out()
        self.catch_up(node)
        return node.metadata.index != index

    def begin(self) -> None:
        """Begin a session of the link, of which both ends have lost the one before."""
        for node in self.nodes:
            node.channel.payloads.clear()
        for node in self.nodes:
            node.traffic.session_began()

    def lose_at(self, node: ClusterNode) -> None:
        """Lose the session at the end of `node`, which gets nothing more that is under way."""
        other = self.b if node is self.a else self.a
        other.channel.payloads.clear()
        node.traffic.session_lost()

    def lose(self) -> None:
        """Lose the session of the link at both ends."""
        for node in self.nodes:
            self.lose_at(node)

    def pass_one(self, sender: ClusterNode) -> bool:
        """Pass the next payload of `sender` on; False if there is none."""
        if not sender.channel.payloads:
            return False
        kind, body = sender.channel.payloads.popleft()
        receiver = self.b if sender is self.a else self.a
        receiver.traffic.received(kind, body)
        return True

    def run(self) -> None:
        """Run turns, pass payloads and write until nothing moves."""
        for _ in range(ROUNDS_MAX):
            is_moving = False
            for node in self.nodes:
                while node.turns:
                    node.turn()
                    is_moving = True
                is_moving |= self.pass_one(node)
                if node.is_writing:
                    node.write()
                    is_moving = True
            if not is_moving:
                return
        raise AssertionError("something moves for ever")

    def wait(self, ms: int) -> None:
        """Let time pass."""
        for node in self.nodes:
            node.clock.now += ms
            node.run_timers()
        self.run()

    def client(self, node: ClusterNode, **options: object) -> Client:
        """A client of `node` with channel 1 open."""
        return node.client(**options)  # type: ignore[arg-type]

    def ask(self, client: Client, *calls: object, after: Callable[[], None] | None = None) -> list[object]:
        """Send methods, let everything happen, and return what the client has received."""
        received = client.ask(*calls)  # type: ignore[arg-type]
        self.run()
        return [*received, *client.hear()]
