"""A broker with its links and its disks, without sockets and threads, that can lose power at any step.

A `Site` is what survives: two disks, one with the journal of the metadata and one with the messages. A `Node`
is one run of the broker on them. After a crash the old node hears of nothing any more, and changes nothing.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from tests.clock import ManualClock
from tests.sim.disk import SimulatedDisk
from tests.unit.session.client import EVERYTHING, Client, OpenGate

from warren.client.answer import Answer
from warren.federation.federated_exchanges import FederatedExchanges, FederationDependencies
from warren.federation.federated_queues import FederatedQueues
from warren.journal.journal import Journal, JournalDependencies
from warren.journal.recovery import recover
from warren.metadata.commands import MetadataCommand, PutUser, PutVhost, SetPermissions
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.vhosts import VhostMetadata
from warren.model.coroutine_driver import drive
from warren.queues.classic import ClassicQueue
from warren.queues.local import LocalQueue
from warren.relay.dialer import Dialer
from warren.relay.link import Link, LinkDependencies
from warren.relay.links import Links
from warren.relay.status import LinkState
from warren.session.handshake import HandshakeSettings
from warren.session.server import Server, ServerDependencies, SessionSettings
from warren.session.server_properties import server_properties
from warren.session.vhost_services import VhostDependencies, VhostServices
from warren.shovel.shovel_links import ShovelDependencies, ShovelLinks
from warren.store.disk import DiskStep, OnDone
from warren.store.recovery import RecoveryDependencies, open_erased, open_store
from warren.store.segment import StoreFileError
from warren.store.store_port import StorePort
from warren.store.stores import Stores

VHOST = "/"
_FIRST_COMMANDS: tuple[MetadataCommand, ...] = (
    PutVhost(name=VHOST),
    PutUser(name="guest", password_hash=b"", hashing_algorithm=""),
    SetPermissions(user="guest", vhost=VHOST, configure=EVERYTHING, write=EVERYTHING, read=EVERYTHING),
)

# Returns the dialer of a node.
MakeDialer = Callable[["Node"], Dialer]


class Site:
    """The disks of a broker, and the node that runs on them; None while it is down."""

    def __init__(self, name: str, chance: random.Random, clock: ManualClock, make_dialer: MakeDialer) -> None:
        self.name = name
        self.chance = chance
        self.clock = clock
        self.make_dialer = make_dialer
        self.journal_disk = SimulatedDisk(chance)
        self.message_disk = SimulatedDisk(chance)
        self.running: Node | None = None
        # How often it was started.
        self.start_count = 0

    @property
    def node(self) -> "Node":
        """The running node."""
        assert self.running is not None
        return self.running

    def start(self) -> None:
        """Start a node with what is on the disks."""
        self.running = Node(self, is_first=not self.start_count)
        self.start_count += 1

    def crash(self) -> None:
        """Lose power: what was not synced may be lost."""
        node, self.running = self.node, None
        node.is_dead = True
        self.journal_disk.lose_power()
        self.message_disk.lose_power()


class Node:
    """One run of a broker: everything that a crash loses."""

    def __init__(self, site: Site, *, is_first: bool) -> None:
        self.site = site
        self.clock = site.clock
        self.is_dead = False
        self.turns: list[Callable[[int], None]] = []
        # Timers: when they are due, the order in which they were set, and what they do.
        self.timers: list[tuple[int, int, Callable[[], None]]] = []
        self._timer_count = 0
        # Unexpected exceptions, and lines of the log: level and text.
        self.reports: list[str] = []
        self.log: list[tuple[str, str]] = []
        self.metadata = Metadata()
        self.journal = self._open_journal(is_first=is_first)
        self.server = self._make_server()
        self.services = VhostServices.open(
            VHOST,
            self.metadata,
            self.journal,
            VhostDependencies(
                random_bytes=site.chance.randbytes,
                later=self.later,
                after=self.after,
                turn=self.clock.turn,
                node_name=site.name,
            ),
        )
        self.port = _Port()
        self._open_store()
        self.server.vhost_services[VHOST] = self.services
        self.links = Links(site.name)
        self._start_links()

    # --- what the broker uses -----------------------------------------------------------------------

    def later(self, action: Callable[[int], None]) -> None:
        """Call `action` in a later turn."""
        self.turns.append(action)

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Call `action` after a time."""
        self._timer_count += 1
        self.timers.append((self.clock.now + delay_ms, self._timer_count, action))

    # --- what happens to it -------------------------------------------------------------------------

    def run_turns(self) -> None:
        """Run the turns there are, and those that they cause."""
        while self.turns and not self.is_dead:
            self.turns.pop(0)(self.clock.now)

    def run_timers(self) -> None:
        """Run the timers that are due."""
        for timer in sorted(self.timers):
            if timer[0] <= self.clock.now and not self.is_dead:
                self.timers.remove(timer)
                timer[2]()
        self.run_turns()

    def write(self, steps: int | None = None) -> None:
        """Perform `steps` steps of what is being written, or all of it."""
        self.port.commit()
        self.site.message_disk.advance(steps)
        self.site.journal_disk.advance(steps)
        self.run_turns()

    @property
    def is_idle(self) -> bool:
        """True if nothing waits for a turn or for a disk."""
        disks = (self.site.message_disk, self.site.journal_disk)
        return not (self.turns or self.port.is_due or any(disk.is_busy for disk in disks))

    def propose(self, command: MetadataCommand, done: Callable[[], None] = lambda: None) -> None:
        """Change the metadata, and call `done` when that is written."""
        drive(self._propose(command, done))

    async def _propose(self, command: MetadataCommand, done: Callable[[], None]) -> None:
        await self.journal.propose(command)
        done()

    def client(self) -> Client:
        """A client with channel 1 open, connected to this node without a network."""
        client = Client(self)  # type: ignore[arg-type]
        client.open(0, {"consumer_cancel_notify": True})
        return client

    # --- what it has ----------------------------------------------------------------------------------

    @property
    def vhost(self) -> VhostMetadata:
        """The metadata of the virtual host."""
        vhost = self.metadata.vhost(VHOST)
        assert vhost is not None
        return vhost

    def queue(self, name: str) -> ClassicQueue | None:
        """The live queue `name`, if there is one."""
        queue = self.services.vhost.queues.get(name)
        assert queue is None or isinstance(queue, ClassicQueue)
        return queue

    def depth(self, queue: str) -> int:
        """The number of messages of `queue`, ready or unacknowledged."""
        found = self.queue(queue)
        return 0 if found is None else found.message_count + found.unacked_count

    def is_forwarding(self) -> bool:
        """True if all links run, and have forwarded everything that they were given."""
        return all(_is_settled(link) for link in self.links.all())

    # --- private --------------------------------------------------------------------------------------

    def _open_journal(self, *, is_first: bool) -> Journal:
        disk = _MountedDisk(self, self.site.journal_disk)
        found = recover(disk, self.metadata)
        assert (found.damage, found.loss) == ([], None)
        if is_first:
            local = LocalProposals(self.metadata, lambda: self.clock.now)
            for command in _FIRST_COMMANDS:
                local.apply(command)
        journal = Journal(
            self.metadata,
            disk,
            JournalDependencies(
                now=lambda: self.clock.now,
                random_bytes=self.site.chance.randbytes,
                make_future=_JournalFuture,
                report=lambda error: self.reports.append(repr(error)),
            ),
            found,
        )
        journal.begin()
        return journal

    def _make_server(self) -> Server:
        properties = server_properties(self.site.name)
        dependencies = ServerDependencies(
            random_bytes=self.site.chance.randbytes,
            later=self.later,
            turn=self.clock.turn,
            report=self.reports.append,
            node_name=self.site.name,
        )
        settings = SessionSettings(handshake=HandshakeSettings(server_properties=properties))
        return Server(OpenGate(), settings, dependencies)  # type: ignore[arg-type]

    def _open_store(self) -> None:
        """Open the store, and restore the queues of the metadata."""
        chance, numbers = self.site.chance, {queue.number for queue in self.vhost.topology.queues.values()}
        recovered = open_store(
            _MountedDisk(self, self.site.message_disk),
            self.port,
            RecoveryDependencies(
                random_bytes=chance.randbytes,
                has_queue=lambda number: number in numbers or not self.metadata.was_deleted(number),
                progress=lambda *_: None,
            ),
        )
        assert not recovered.damage
        assert recovered.queues.keys() <= numbers
        self.port.store = recovered.store
        transient = open_erased(SimulatedDisk(chance), _Port(), chance.randbytes)
        self.services.vhost.attach_store(Stores(recovered.store, transient))
        for _ in self.services.recover(recovered.queues):
            self.run_turns()

    def _start_links(self) -> None:
        """Start the links of all kinds, as a node does."""
        link_dependencies = LinkDependencies(
            dialer=self.site.make_dialer(self),
            turn=self.clock.turn,
            after=self.after,
            log=self._log,
            changed=lambda link: None,
        )
        federation = FederationDependencies(
            metadata=self.metadata,
            links=self.links,
            link=link_dependencies,
            later=self.later,
            cluster_name=lambda: self.site.name,
        )
        shovels = ShovelDependencies(
            metadata=self.metadata,
            proposals=self.journal,
            links=self.links,
            link_dependencies=link_dependencies,
            later=self.later,
            cluster_name=lambda: self.site.name,
        )
        ShovelLinks(shovels).start()
        FederatedExchanges(federation).start()
        FederatedQueues(federation, self._find_queue).start()
        self.run_turns()

    def _find_queue(self, vhost: str, name: str) -> LocalQueue | None:
        assert vhost == VHOST
        return self.queue(name)

    def _log(self, level: str, text: str, fields: Mapping[str, object]) -> None:
        self.log.append((level, text))


def _is_settled(link: Link) -> bool:
    status = link.status()
    return link.state is LinkState.RUNNING and not status.unconfirmed and not status.pending


class _Port(StorePort):
    """Commits when the simulation decides."""

    def __init__(self) -> None:
        self.store = None
        # True if there is something to commit.
        self.is_due = False

    def commit_due(self) -> None:
        self.is_due = True

    def commit(self) -> None:
        """Commit what is due."""
        if self.is_due and self.store is not None:
            self.is_due = False
            self.store.commit()

    def unreadable(self, error: OSError | StoreFileError) -> None:
        raise AssertionError(error)


class _JournalFuture(Answer[None]):
    """What a proposal awaits until it is written."""

    __slots__ = ()

    def set_result(self, result: None, /) -> None:
        self.complete(result)

    def done(self) -> bool:
        return self.is_done


class _MountedDisk:
    """The disk of a site as one node sees it: a dead node writes nothing."""

    def __init__(self, node: Node, disk: SimulatedDisk) -> None:
        self._node = node
        self._disk = disk

    def names(self) -> Mapping[str, int]:
        return self._disk.names()

    def read(self, name: str, at: int, size: int) -> bytes:
        return self._disk.read(name, at, size)

    def perform(self, steps: Sequence[DiskStep]) -> None:
        if not self._node.is_dead:
            self._disk.perform(steps)

    def note(self, name: str, at: int, data: bytes) -> None:
        if not self._node.is_dead:
            self._disk.note(name, at, data)

    def submit(self, steps: Sequence[DiskStep], done: OnDone) -> None:
        if not self._node.is_dead:
            self._disk.submit(steps, done)
