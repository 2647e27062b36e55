"""What happens to a cluster of whole brokers and its clients, by a seed, and what must be true in the end."""

import errno
from collections.abc import Callable
from itertools import permutations

from tests.sim.broker_cluster import BrokerCluster
from tests.sim.broker_node import METADATA, VHOST, BrokerNode
from tests.sim.cluster_client import (
    CONSUMING,
    DECLARING,
    GETTING,
    PUBLISHING,
    ClusterChannel,
    ClusterClient,
)
from tests.sim.cluster_history import BrokenPromise, ClusterHistory, KnownQueue

from warren.cluster.partition_handling import PartitionMode, PartitionSettings
from warren.queues.capabilities import local_queue
from warren.store.disk import CreateFile, SyncFile, WriteFile
from warren.wire import methods

CLIENT_COUNT = 5
_LOCATORS = ("", "client-local", "balanced", "random")
# After the last fault: when everybody serves again, and when all clients are answered.
SERVING_MS = 30_000
ANSWERED_MS = 20_000
_QUIET_MS = 300
# The first channel of those who read what is left.
_READING = 100
NODES_MAX = 5
# A node that was not admitted by then asks another member.
JOINED_MS = 5_000


class BrokerScenario:
    """One seed: a cluster, its clients, and what has happened."""

    # What passes between two steps.
    pauses_ms = (20, 60, 200, 800)
    # After all clients are answered: when all messages were taken out of the queues.
    drained_ms = 20_000

    def __init__(self, seed: int, node_count: int = 3, *, has_changing_members: bool = False) -> None:
        self.seed = seed
        mode = PartitionMode.PAUSE_MINORITY if seed % 3 == 0 else PartitionMode.IGNORE
        self.cluster = BrokerCluster(seed, PartitionSettings(mode=mode))
        self.chance = self.cluster.chance
        self.history = self.new_history()
        self.history.is_given_up = self._is_given_up
        self.queues = list(self.history.queues.values())
        self.clients = [ClusterClient(f"client{number}", self.history) for number in range(CLIENT_COUNT)]
        self.cluster.on_home_lost = self._home_lost
        self.cluster.on_home_gone = lambda node: self.history.home_gone(node.member_of())
        self.cluster.form(node_count)
        self._node_count = self._last_node = node_count
        # Names of nodes that never start again.
        self.forgotten: list[str] = []
        # Names of nodes that were told to leave.
        self.leaving: list[str] = []
        self.has_changing_members = has_changing_members

    def new_history(self) -> ClusterHistory:
        """The queues of the scenario, and what happens to them."""
        durable = [KnownQueue(f"durable{number}", locator=_LOCATORS[number % 4]) for number in range(5)]
        fleeting = [KnownQueue(f"fleeting{number}", is_durable=False) for number in range(2)]
        private = [
            KnownQueue(f"private{number}", is_durable=False, owner=f"client{number}") for number in range(2)
        ]
        quorum = [KnownQueue(f"quorum{number}", is_quorum=True) for number in range(2)]
        return ClusterHistory([*durable, *fleeting, *private, *quorum])

    def actions(self) -> list[tuple[Callable[[ClusterClient, KnownQueue], None], int]]:
        """What clients do, and how often."""
        return [
            (self.publish, 12), (self.consume, 4), (self.get, 3), (self.settle, 12), (self._cancel, 1),
            (self._purge, 1), (self._delete, 1), (self._intrude, 1), (self._close_channel, 1),
            (self.leave, 1),
        ]  # fmt: skip

    def take(self, channel: ClusterChannel, tag: int) -> None:
        """Take a message out of its queue in the end."""
        channel.settle(tag)

    # --- clients --------------------------------------------------------------------------------------

    def act(self) -> None:
        """Have a client do something."""
        client = self.chance.choice(self.clients)
        if not client.is_connected:
            self.connect(client)
            return
        if not client.is_open or any(channel.is_closing for channel in client.channels.values()):
            return
        queues = [queue for queue in self.queues if queue.owner in ("", client.name)]
        queue = self.chance.choice(queues)
        actions = self.actions()
        action = self.chance.choices([one for one, _ in actions], [weight for _, weight in actions])[0]
        action(client, queue)

    def connect(self, client: ClusterClient, node: BrokerNode | None = None) -> None:
        """Connect a client to a node that accepts clients."""
        nodes = [one for one in self.cluster.nodes if one.accepts_clients]
        if nodes:
            (node or self.chance.choice(nodes)).network.connect(client)

    def publish(self, client: ClusterClient, queue: KnownQueue) -> None:
        client.declare(queue)
        channel = client.channel(PUBLISHING)
        for _ in range(self.chance.choice((1, 1, 4, 12))):
            channel.publish(
                queue,
                self.chance.choice((8, 60, 900, 900, 9_000)),
                is_persistent=self.chance.random() < 0.7,
                is_mandatory=self.chance.random() < 0.4,
            )

    def consume(self, client: ClusterClient, queue: KnownQueue) -> None:
        client.declare(queue)
        channel = client.channel(CONSUMING)
        if len(channel.consumers) < 3:
            channel.consume(queue, self.chance.choice((1, 3, 50)))

    def get(self, client: ClusterClient, queue: KnownQueue) -> None:
        client.declare(queue)
        client.channel(GETTING).get(queue)

    def settle(self, client: ClusterClient, _: KnownQueue) -> None:
        held = list(client.all_unacked())
        if held:
            channel, tag = self.chance.choice(held)
            is_multiple = self.chance.random() < 0.5
            channel.settle(tag, is_multiple=is_multiple, is_requeued=self.chance.random() < 0.3)

    def _cancel(self, client: ClusterClient, _: KnownQueue) -> None:
        channel = client.channels.get(CONSUMING)
        if channel is not None and channel.consumers:
            channel.cancel(self.chance.choice(sorted(channel.consumers)))

    def _purge(self, client: ClusterClient, queue: KnownQueue) -> None:
        channel = client.channel(DECLARING)
        channel.remove(queue, methods.QueuePurge(queue=queue.name), methods.QueuePurgeOk)

    def _delete(self, client: ClusterClient, queue: KnownQueue) -> None:
        channel = client.channel(DECLARING)
        channel.remove(queue, methods.QueueDelete(queue=queue.name), methods.QueueDeleteOk)

    def _intrude(self, client: ClusterClient, _: KnownQueue) -> None:
        """Look for the exclusive queue of another client, which must not be shown."""
        other = self.chance.choice([queue for queue in self.queues if queue.owner not in ("", client.name)])

        def shown(_: object) -> None:
            raise BrokenPromise(f"{client.name} sees {other.name}, which is exclusive to {other.owner}")

        declare = methods.QueueDeclare(queue=other.name, passive=True)
        client.channel(DECLARING).call(declare, methods.QueueDeclareOk, then=shown)

    def _close_channel(self, client: ClusterClient, _: KnownQueue) -> None:
        channel = client.channels.get(self.chance.choice((PUBLISHING, CONSUMING, GETTING)))
        if channel is not None:
            channel.close()

    def leave(self, client: ClusterClient, _: KnownQueue) -> None:
        """End a connection, in order or not."""
        if self.chance.random() < 0.5:
            client.close()
        else:
            self._network_of(client).cut(client)

    def _network_of(self, client: ClusterClient) -> "object":
        return next(
            node.network
            for node in self.cluster.nodes
            if any(connection.client is client for connection in node.network.connections)
        )

    # --- faults ---------------------------------------------------------------------------------------

    def fault(self) -> None:
        """Let something fail, or be as before."""
        kinds: list[tuple[Callable[[], None], int]] = [
            (self._crash, 3), (self._start, 4), (self._pause, 2), (self._part, 3), (self.cluster.heal, 4),
            (self._cut_connection, 3), (self._hold, 3), (self.cluster.network.corrupt, 1),
            (self._jump, 2), (self._stall, 2), (self._fail_disk, 1), (self._fill_disk, 1),
            (self._empty_disks, 2), (self._drain, 1), (self._revive, 2), (self._be_rough, 3),
            (self._leave_cluster, 2), (self._forget, 5), (self._join, 3),
        ]  # fmt: skip
        self.chance.choices([one for one, _ in kinds], [weight for _, weight in kinds])[0]()

    def _node(self) -> BrokerNode | None:
        """A node that is up."""
        up = [node for node in self.cluster.nodes if node.is_up and not node.is_stopped]
        return self.chance.choice(up) if up else None

    def _crash(self) -> None:
        node = self._node()
        if node is not None:
            is_power_lost = self.chance.random() < 0.6
            self.history.note(f"{node.name} crashes, power lost: {is_power_lost}")
            node.stop(is_power_lost=is_power_lost)

    def _start(self) -> None:
        for node in self.cluster.nodes:
            if not node.is_up:
                self.history.note(f"{node.name} starts")
                node.start()

    def _pause(self) -> None:
        node = self._node()
        if node is not None:
            self.history.note(f"{node.name} is stopped for a while")
            self.cluster.suspend(node, self.chance.choice((100, 1_000, 3_000, 8_000)))

    def _part(self) -> None:
        """Cut the network between two nodes, around one, between two sets or everywhere, perhaps one way."""
        nodes = list(self.cluster.nodes)
        if len(nodes) < 2:
            return
        self.chance.shuffle(nodes)
        shape = self.chance.choice(("pair", "node", "sets", "total"))
        size = self.chance.randint(1, len(nodes) - 1)
        if shape == "total":
            cuts = list(permutations(nodes, 2))
        else:
            some = nodes[: 1 if shape in ("pair", "node") else size]
            others = nodes[len(some) : 2 if shape == "pair" else None]
            cuts = [(one, other) for one in some for other in others]
            if self.chance.random() < 0.7:
                cuts += [(other, one) for one, other in cuts]
        self.history.note(f"cut: {[(one.name, other.name) for one, other in cuts]}")
        self.cluster.cut(cuts)

    def _cut_connection(self) -> None:
        self.cluster.network.cut(is_told_late=self.chance.random() < 0.5)

    def _hold(self) -> None:
        self.cluster.network.hold(1_500)

    def _jump(self) -> None:
        node = self.chance.choice(self.cluster.nodes)
        ms = self.chance.choice((-3_600_000, -5_000, 700, 60_000, 3_600_000))
        # Consumers may be taken for ones that hold a delivery for too long.
        self.history.has_consumer_timeouts |= ms >= 3_600_000
        node.set_clock(ms)

    def _stall(self) -> None:
        node = self._node()
        if node is not None:
            node.stalled_until = self.cluster.network.time + self.chance.choice((200, 2_000, 6_000))

    def _fail_disk(self) -> None:
        node = self._node()
        if node is not None and node.has_started:
            disk = node.machine.disk(self.chance.choice((METADATA, VHOST)))
            disk.fault = (self.chance.choice((CreateFile, WriteFile, SyncFile)), errno.EIO)

    def _fill_disk(self) -> None:
        node = self._node()
        if node is not None and node.has_started:
            node.machine.disk(self.chance.choice((METADATA, VHOST))).is_full = True

    def _empty_disks(self) -> None:
        for node in self.cluster.nodes:
            for disk in node.machine.disks:
                disk.is_full = False

    def _drain(self) -> None:
        node = self._node()
        if node is not None:
            node.operate("drain")

    def _revive(self) -> None:
        for node in self.cluster.nodes:
            if not node.is_stopped:
                node.operate("revive")

    def _be_rough(self) -> None:
        self.cluster.is_rough = not self.cluster.is_rough

    # --- members --------------------------------------------------------------------------------------

    def _leave_cluster(self) -> None:
        """Have a node leave, which loses its queues."""
        node = self._node()
        if self.forgotten or self.leaving:
            # One after the other, so that there always is a majority that does not need them.
            return
        if self.has_changing_members and node is not None and node.is_in_cluster:
            self.leaving.append(node.name)
            self.history.note(f"{node.name} leaves")
            self.history.counts["leave"] += 1
            self.history.home_gone(node.member_of())
            node.operate("leave", is_loss_accepted=True)

    def _forget(self) -> None:
        """Forget a node that is down, which never starts again."""
        down = [node for node in self.cluster.nodes if not node.is_up]
        operator = self._node()
        if self.has_changing_members and down and operator is not None and operator.is_in_cluster:
            node = self.chance.choice(down)
            voters = operator.journal.group.replica.configuration.voters
            # One that is down may have lost that another one was made a voter, and then needs the vote of
            # the node that is forgotten.
            others = (one for one in self.cluster.nodes if one.is_up and one.is_in_cluster)
            left = [one for one in others if one.node_id in voters]
            if 2 * len(left) <= len(voters) or self.leaving:
                return
            self.history.note(f"{node.name} is forgotten")
            self.history.counts["forget"] += 1
            self.history.home_gone(node.member_of())
            self.cluster.nodes.remove(node)
            self.forgotten.append(node.name)
            operator.operate("forget", node.name)

    def _join(self) -> None:
        """Have nodes join that are in no cluster; sometimes there is a new one."""
        nodes = self.cluster.nodes
        # One that has left would begin a cluster for those who ask it.
        members = [
            node for node in nodes if node.is_up and node.is_in_cluster and node.name not in self.leaving
        ]
        if not self.has_changing_members or not members:
            return
        if len(nodes) < self._node_count or (len(nodes) < NODES_MAX and self.chance.random() < 0.2):
            self._last_node += 1
            self.history.counts["join"] += 1
            self.cluster.add(f"node{self._last_node}@here", port=self._last_node)
        for node in nodes:
            if node.is_up and not node.is_stopped and not node.is_in_cluster:
                self.history.note(f"{node.name} joins")
                node.join(self.chance.choice(members))

    def _repair_members(self) -> None:
        """Do what operators do until all nodes are members, and nobody else is."""
        nodes = self.cluster.nodes
        leader = next((node for node in nodes if node.is_in_cluster and node.journal.group.is_leader), None)
        if leader is None:
            return
        members = leader.metadata.members
        asked = next(
            node for node in (leader, *nodes) if node.is_in_cluster and node.name not in self.leaving
        )
        for node in nodes:
            if node.is_in_cluster and node.node_id in members.removed:
                # It was removed while it was away, and starts without data.
                node.become_alone()
            elif not node.is_in_cluster and self._may_join(node):
                node.joined_at = self.cluster.network.time
                node.join(asked)
        for name in self.forgotten:
            member = members.named(name)
            if member is not None and not member.is_up:
                leader.operate("forget", name)

    def _may_join(self, node: BrokerNode) -> bool:
        """True if a node does not ask to join already, or waits for its answer for too long."""
        return node.joined_at is None or self.cluster.network.time - node.joined_at > JOINED_MS

    def _home_lost(self, node: BrokerNode, *, is_power_lost: bool) -> None:
        self.history.home_ended(node.home_of(), is_power_lost=is_power_lost)

    # --- the run --------------------------------------------------------------------------------------

    def run(self, step_count: int, *, is_faulty: bool = True) -> None:
        """Let things happen, then verify everything."""
        for _ in range(step_count):
            for _ in range(self.chance.choice((1, 3, 8))):
                self.act()
            if is_faulty and self.chance.random() < 0.35:
                self.fault()
            self.cluster.run(lambda: False, ms_max=self.chance.choice(self.pauses_ms))
        self.heal()
        self.drain()

    def heal(self) -> None:
        """Undo all faults, and wait until everybody serves clients, and all of these are answered."""
        cluster = self.cluster
        cluster.is_rough = False
        cluster.heal()
        for node in cluster.nodes:
            node.stopped_until = min(node.stopped_until, cluster.network.time)
            node.stalled_until = 0
            for disk in node.machine.disks:
                disk.fault = None
        self._empty_disks()
        cluster.step()
        self._start()

        def is_serving() -> bool:
            self._repair_members()
            for node in cluster.nodes:
                member = node.metadata.members.by_id.get(node.node_id)
                if not node.access.is_open or (member is not None and member.is_draining):
                    node.operate("revive")
            return cluster.is_settled() and not any(node.is_operating for node in cluster.nodes)

        assert cluster.run(is_serving, ms_max=SERVING_MS), cluster.states()
        assert cluster.run(lambda: not self._waiting(), ms_max=ANSWERED_MS), self._waiting()
        for client in self.clients:
            if client.is_connected:
                self._network_of(client).cut(client)

    def _waiting(self) -> list[str]:
        """Channels that wait for an answer, and what for."""
        lost = self._without_majority()
        channels = [channel for client in self.clients for channel in client.channels.values()]
        return [f"{one.publisher}: {awaited}" for one in channels if (awaited := one.waits_for(lost))]

    def _without_majority(self) -> set[str]:
        """The quorum queues most of whose voters are gone for good."""
        node = next(one for one in self.cluster.nodes if one.is_in_cluster)
        return {one.name for one in node.records() if one.members and not self._has_majority(one.name)}

    def drain(self) -> None:
        """Take everything out of all queues, and verify that nothing is missing or left over."""
        readers = [
            ClusterClient(f"reader{number}", self.history) for number in range(len(self.cluster.nodes))
        ]
        for reader, node in zip(readers, self.cluster.nodes, strict=True):
            self.connect(reader, node)
        assert self.cluster.run(lambda: all(reader.is_open for reader in readers))
        shared = [queue for queue in self.queues if not queue.owner]
        nodes = self.cluster.nodes
        members = nodes[0].metadata.members.by_id
        gone = {record.name for record in nodes[0].records() if record.home not in members}
        gone |= self._without_majority()
        quiet_since = self.cluster.network.time

        def is_drained() -> bool:
            nonlocal quiet_since
            now = self.cluster.network.time
            for reader, node in zip(readers, nodes, strict=True):
                # A node that knows no leader of the metadata for a while closes its clients' connections.
                if not reader.is_connected and node.accepts_clients:
                    self.connect(reader, node)
            for number, queue in enumerate(shared):
                reader = readers[(number + self.seed) % len(readers)]
                if not reader.is_open:
                    quiet_since = now
                    continue
                channel = reader.channels.get(_READING + number)
                # Its home may not be reached at once.
                if channel is None and queue.name not in gone:
                    reader.declare(queue, _READING + number)
                    reader.channel(_READING + number).consume(queue, 10)
                    quiet_since = now
                for tag in [] if channel is None else list(channel.unacked):
                    self.take(channel, tag)
                    quiet_since = now
                if channel is not None and channel.is_waiting:
                    quiet_since = now
            return now - quiet_since >= _QUIET_MS

        assert self.cluster.run(is_drained, ms_max=self.drained_ms), "the queues do not get empty"
        self.history.check_nothing_is_lost()
        self._check_nothing_is_left(readers)

    def _has_majority(self, name: str) -> bool:
        """False if most voters of a quorum queue are gone for good."""
        groups = [group for node in self.cluster.nodes if (group := node.group_of(name)) is not None]
        replicas = {group.driver.replica.id for group in groups}
        voters = [group.driver.replica.configuration.voters for group in groups]
        return any(2 * len(replicas.intersection(each)) > len(each) for each in voters)

    def _is_given_up(self, queue: KnownQueue) -> bool:
        """True if half of the first members of a quorum queue were removed before one of them has led."""
        records = (record for node in self.cluster.nodes for record in node.records())
        return any(record.name == queue.name and record.never_begins for record in records)

    def _check_nothing_is_left(self, readers: list[ClusterClient]) -> None:
        """All queues are empty, exclusive ones are gone, and nobody is connected any more."""
        counts: dict[str, int] = {}
        for number, queue in enumerate(self.queues):
            if not queue.owner:
                declare = methods.QueueDeclare(queue=queue.name, passive=True)
                readers[0].channel(_READING + len(self.queues) + number).call(
                    declare,
                    methods.QueueDeclareOk,
                    then=lambda answer, name=queue.name: counts.__setitem__(name, answer.message_count),
                )
        assert self.cluster.run(lambda: not readers[0].is_waiting)
        assert not any(counts.values()), f"messages are left: {counts}"
        for reader in readers:
            reader.close()
        assert self.cluster.run(lambda: not self._left(), ms_max=5_000), f"left: {self._left()}"

    def _left(self) -> list[str]:
        """What nodes still have although no client is connected."""
        left = []
        for node in self.cluster.nodes:
            left += [f"{node.name}: {one.description}" for one in node.broker.server.all_connections()]
            left += [f"{node.name}: {record.name}" for record in node.records() if record.owner]
            for name, queue in node.broker.server.vhost_services[VHOST].vhost.queues.items():
                if local_queue(queue) is not None and (queue.total_count or queue.consumer_count):
                    left.append(f"{node.name}: {name} {queue.total_count} {queue.consumer_count}")
        return left
