"""Brokers in one event loop with equal metadata, whose management APIs ask each other over real links.

The links have no sockets, and their time is that of the test; the HTTP ports are real.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from tests.unit.cluster.link_nodes import Network, TestNode, connect
from tests.unit.node.test_broker import IgnoredOutput, frame, say
from yarl import URL

from warren.access.passwords import SALT_SIZE, SHA256, hash_password
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink
from warren.cluster.node_queries import NodeQueries, QueryOperation
from warren.flow.alarms import Alarms
from warren.jobs.jobs import Jobs
from warren.management.carried_request_server import HTTP_REQUEST, CarriedRequestServer
from warren.management.controls import LogView
from warren.management.http_connections import HttpPortSettings
from warren.management.http_server import HttpServer, ResponseSettings
from warren.management.managed_node import ManagedNode
from warren.management.oauth_logins import OAuthLogins, OAuthSettings
from warren.management.queried_nodes import QueriedNodes
from warren.management.queue_index import QueueIndex
from warren.management.web_sessions import WebSessions
from warren.metadata.commands import (
    INTERNAL_USER,
    CommandContext,
    DeclareExchange,
    DeclareQueue,
    MetadataCommand,
    PutUser,
    PutVhost,
    Reply,
    SetPermissions,
)
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberDown, MemberUp
from warren.metrics.node_usage import NodeUsage
from warren.metrics.sampler import Sampler
from warren.model.message import Message, encode_address
from warren.node.broker import Broker
from warren.node.client_access import ClientAccess
from warren.node.cluster_controls import WITHOUT_CLUSTER, ClusterControlsDependencies, NodeClusterControls
from warren.node.cluster_status import ClusterView
from warren.node.config import Config
from warren.node.node_identity import NodeIdentity
from warren.queues.local import LocalQueue
from warren.runtime.clock import Clock
from warren.runtime.randomness import random_bytes
from warren.session.connection import Connection
from warren.session.direct_publish import compose_message
from warren.session.peer import Peer
from warren.session.streams.counts import StreamCounts
from warren.wire.methods import ChannelOpen, ConnectionOpen, ConnectionStartOk, ConnectionTuneOk
from warren.wire.properties import BasicProperties

CONTROL = LinkPurpose.CONTROL
USERS = {"guest": ("administrator",), "watcher": ("monitoring",), "joe": ("management",)}
MS = 1_000


class NoControls:
    """The operations on a running node, of which only the place of the log is asked for."""

    def log(self) -> LogView:
        return LogView(file="", console=True, exchange=False, levels={})


@dataclass
class HttpAnswer:
    """An HTTP response."""

    status: int
    value: Any
    headers: Mapping[str, str]
    body: bytes


class SharedMetadata:
    """The metadata of all nodes, as one of them proposes to it: all apply the same at once."""

    def __init__(self, cluster: "ManagedCluster", own: Metadata) -> None:
        self._cluster = cluster
        self._own = own

    @property
    def index(self) -> int:
        return self._own.index

    def apply(self, command: MetadataCommand, context: CommandContext) -> Reply:
        reply = self._own.apply(command, context)
        for node in self._cluster.nodes:
            if node.broker.metadata is not self._own:
                node.broker.metadata.apply(command, context)
        return reply


class ClusterBroker:
    """One node: a broker, its management API, and its links."""

    def __init__(self, cluster: "ManagedCluster", id: int) -> None:
        self.id = id
        self.name = f"{chr(96 + id)}@test"
        config, clock = Config([]), Clock()
        self.broker = Broker(config, clock, NodeIdentity(self.name, Incarnation(id, 1)))
        self.local = self.broker._local
        self.local._metadata = SharedMetadata(cluster, self.broker.metadata)  # type: ignore[assignment]
        server = self.broker.server
        self.alarms = Alarms(server.block, server.event_publisher.alarm)
        usage = NodeUsage(server, self.alarms)
        self.sampler = Sampler(server, self.broker.metadata, usage.row)
        self.links: dict[int, NodeLink] = {}
        self.managed = ManagedNode(
            node_name=self.name,
            first_cluster_name="cluster@test",
            metadata=self.broker.metadata,
            proposals=self.broker.proposals,
            hash_password=self.broker.hash_password,
            default_hash=self.broker.default_hash,
            server=server,
            alarms=self.alarms,
            sampler=self.sampler,
            queue_index=QueueIndex(self.broker.metadata),
            jobs=Jobs(random_bytes, clock.now, self.broker.count_failure),
            staging=self.broker.staging,
            stream_counts=StreamCounts(),
            data_directory="",
            config_files=(),
            vhosts=self.broker.tree.views,
            losses=self.broker.tree.losses,
            acknowledge_losses=self.broker.tree.acknowledge_losses,
            start_vhost=self.broker.tree.start,
            quarantine=self.broker.quarantine_view(),
            certificates=dict,
            sessions=WebSessions(random_bytes, clock.now),
            oauth_logins=OAuthLogins(OAuthSettings(), random_bytes, clock.now),
            controls=NoControls(),  # type: ignore[arg-type]
            cluster_controls=self._cluster_controls(),
            now=clock.now,
            started_at=clock.now(),
        )
        self.server = CarriedRequestServer(self.managed)
        # Answers the requests of other nodes; a test may replace it.
        self.answer: QueryOperation = self.server.answer
        self.queries = NodeQueries(
            self.links, lambda: cluster.network.now, {HTTP_REQUEST: lambda *query: self.answer(*query)}
        )
        self.http = HttpServer(
            self.managed, "http", HttpPortSettings(connections_max=100, tls=None), ResponseSettings()
        )
        self.prometheus = HttpServer(
            self.managed,
            "http/prometheus",
            HttpPortSettings(connections_max=100, tls=None),
            ResponseSettings(),
        )
        self.link_node: TestNode | None = None
        self._clients = 0

    def _cluster_controls(self) -> NodeClusterControls:
        server = self.broker.server
        view = ClusterView(
            identity=NodeIdentity(self.name, Incarnation(self.id, 1)), metadata=self.broker.metadata,
            journal=None, links=self.links, cluster_name=lambda: "cluster@test",
        )  # fmt: skip
        controlled = ClusterControlsDependencies(
            server=server, proposals=self.broker.proposals,
            client_access=ClientAccess([], server, server.later), actions=WITHOUT_CLUSTER,
            default_vhost="/", default_user="guest",
        )  # fmt: skip
        return NodeClusterControls(view, controlled)

    def queue(self, name: str) -> LocalQueue:
        """A queue of the virtual host / as this node has it."""
        queue = self.broker.server.vhost_services["/"].vhost.queues[name]
        assert isinstance(queue, LocalQueue)
        return queue

    def publish(self, name: str, *bodies: bytes, exchange: str = "") -> None:
        """Publish messages here."""
        for body in bodies:
            address = encode_address(exchange, name)
            message: Message = compose_message(address, BasicProperties(), body, self.managed.now())
            self.broker.server.vhost_services["/"].vhost.publish(message, None, 0)

    def connect(self, user: str = "guest") -> Connection:
        """A client of this node, with one channel."""
        self._clients += 1
        port = 1_000 * self.id + self._clients
        peer = Peer(host="127.0.0.1", port=port, server_host="127.0.0.1", server_port=5672)
        connection = Connection(self.broker.server, peer, IgnoredOutput())
        login = ConnectionStartOk({}, "PLAIN", f"\x00{user}\x00secret", "en_US")
        methods = (login, ConnectionTuneOk(2047, 131_072, 0), ConnectionOpen("/"))
        say(connection, b"AMQP\x00\x00\x09\x01" + b"".join(map(frame, methods)) + frame(ChannelOpen(), 1))
        assert connection.is_open
        connection.take_output()
        return connection


class ManagedCluster:
    """Some nodes, and a client of their APIs."""

    def __init__(self, count: int, speed: int) -> None:
        self.speed = speed
        self.network = Network()
        self.nodes = [ClusterBroker(self, id) for id in range(1, count + 1)]
        self._session = aiohttp.ClientSession()
        # Nodes whose answers do not leave.
        self.stopped: set[int] = set()

    async def start(self) -> None:
        """Form the cluster, with the virtual host / and the USERS."""
        first, *others = self.nodes
        await self.apply(
            FormCluster(
                cluster_id=b"c" * 16, name=first.name, host="a", cluster_port=1, incarnation=1,
                feature_level=1,
            )
        )  # fmt: skip
        for node in others:
            await self.apply(
                AdmitMember(name=node.name, host=node.name, cluster_port=1, incarnation=1, feature_level=1)
            )
            await self.up(node)
        await self.apply(PutVhost(name="/"))
        for name, tags in USERS.items():
            hashed = hash_password("secret", bytes(SALT_SIZE), SHA256)
            await self.apply(
                PutUser(
                    name=name,
                    password_hash=hashed.salted_hash,
                    hashing_algorithm=hashed.algorithm,
                    tags=tags,
                )
            )
        await self.grant("guest")
        self._connect()
        for node in self.nodes:
            await node.server.start()
            await node.http.start("127.0.0.1", 0)
            await node.prometheus.start("127.0.0.1", 0)

    def _connect(self) -> None:
        for node in self.nodes:
            node.managed.cluster = QueriedNodes(node.id, node.links, node.queries)
            node.link_node = self.network.add(node.id, node.name)
            _listen(node.link_node, node, self)
        for node in self.nodes:
            for other in self.nodes:
                if other is not node:
                    assert node.link_node is not None
                    assert other.link_node is not None
                    node.links[other.id] = connect(node.link_node, other.link_node)
        self.network.run(100)

    async def grant(self, user: str, pattern: str = ".*") -> None:
        """Give a user permissions in the virtual host /."""
        await self.apply(SetPermissions(user=user, vhost="/", configure=pattern, write=pattern, read=pattern))

    async def declare(self, name: str, home: int, **properties: Any) -> None:
        """Declare a durable queue of the virtual host / with a home."""
        await self.apply(DeclareQueue(vhost="/", name=name, durable=True, home=home, **properties))

    async def declare_exchange(self, name: str) -> None:
        """Declare a durable fanout exchange of the virtual host /."""
        await self.apply(DeclareExchange(vhost="/", name=name, type="fanout", durable=True, user="guest"))

    async def apply(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        """Have all nodes apply a command."""
        return await self.nodes[0].broker.proposals.propose(command, user)

    async def up(self, node: ClusterBroker) -> None:
        """Say that a node is there."""
        await self.apply(MemberUp(id=node.id, incarnation=1, host=node.name, cluster_port=1, feature_level=1))

    async def down(self, node: ClusterBroker) -> None:
        """Say that a node is not there."""
        await self.apply(MemberDown(id=node.id, incarnation=1))

    async def work(self) -> None:
        """Let the links work for ever."""
        loop = asyncio.get_running_loop()
        began, passed = loop.time(), 0
        while True:
            elapsed = int((loop.time() - began) * MS * self.speed) - passed
            passed += elapsed
            self.network.run(elapsed)
            for node in self.nodes:
                node.queries.tick()
            await asyncio.sleep(0)

    async def ask(
        self, at: int, line: str, body: Any = None, *, user: str = "guest", headers: Mapping[str, str] = {}
    ) -> HttpAnswer:
        """The response of node `at` to a method and a path after /api."""
        method, path = line.split(" ", 1)
        _, port = self.nodes[at - 1].http.addresses[0]
        login = base64.b64encode(f"{user}:secret".encode()).decode()
        url = URL(f"http://127.0.0.1:{port}/api{path}", encoded=True)
        async with self._session.request(
            method, url, json=body, headers={"authorization": f"Basic {login}", **headers}
        ) as answer:
            data = await answer.read()
            is_json = data and answer.content_type == "application/json"
            return HttpAnswer(answer.status, await answer.json() if is_json else None, answer.headers, data)

    async def metrics(self, at: int) -> str:
        """The metrics page of node `at`."""
        _, port = self.nodes[at - 1].prometheus.addresses[0]
        async with self._session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            return await answer.text()

    async def get(self, at: int, path: str, *, user: str = "guest") -> Any:
        """The JSON with which node `at` answers a GET."""
        answer = await self.ask(at, f"GET {path}", user=user)
        assert answer.status == 200, answer
        return answer.value

    async def close(self) -> None:
        """Stop all nodes."""
        await self._session.close()
        for node in self.nodes:
            await node.http.stop()
            await node.prometheus.stop()
            await node.server.stop()
            await node.managed.jobs.close()
            await node.broker.close()


@asynccontextmanager
async def managed_cluster(count: int = 3, speed: int = 1) -> AsyncIterator[ManagedCluster]:
    """Nodes that run until the block ends; the time of their links is `speed` times as fast as others."""
    cluster = ManagedCluster(count, speed)
    await cluster.start()
    working = asyncio.create_task(cluster.work())
    try:
        yield cluster
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await cluster.close()


def _listen(told: TestNode, node: ClusterBroker, cluster: ManagedCluster) -> None:
    """Hand to the queries of `node` what its links tell."""

    def received(link: NodeLink, purpose: LinkPurpose, kind: int, body: bytes) -> None:
        if node.id not in cluster.stopped and purpose is CONTROL and NodeQueries.takes(kind):
            node.queries.received(link, kind, body)

    def session_lost(link: NodeLink, purpose: LinkPurpose) -> None:
        if purpose is CONTROL:
            node.queries.session_lost(link)

    def writable(link: NodeLink, purpose: LinkPurpose) -> None:
        if purpose is CONTROL:
            node.queries.writable(link)

    told.received = received  # type: ignore[method-assign]
    told.session_lost = session_lost  # type: ignore[method-assign]
    told.writable = writable  # type: ignore[method-assign]
