"""A simulated broker with links to others: shovels and federation, which can lose power at any step.

A `Site` is what survives: the disks. A `Node` is one run of the broker on them, with its links. After a crash
the old node hears of nothing any more, and changes nothing.
"""

import random
from collections.abc import Callable, Mapping

from tests.unit.session.client import EVERYTHING, Client, OpenGate

from warren.federation.federated_exchanges import FederatedExchanges, FederationDependencies
from warren.federation.federated_queues import FederatedQueues
from warren.metadata.commands import MetadataCommand, PutUser, PutVhost, SetPermissions
from warren.metadata.vhosts import VhostMetadata
from warren.model.coroutine_driver import drive
from warren.queues.classic import ClassicQueue
from warren.queues.vhost_queue import VhostQueue
from warren.relay.attempts import LinkAttempts
from warren.relay.dialer import Dialer
from warren.relay.link import Link, LinkDependencies
from warren.relay.links import Links
from warren.relay.status import LinkState
from warren.shovel.shovel_links import ShovelDependencies, ShovelLinks
from warren.simulation.machine import SimulatedMachine
from warren.simulation.simulated_clock import SimulatedClock
from warren.simulation.simulated_node import SimulatedNode

VHOST = "/"
_DEFINITIONS: tuple[MetadataCommand, ...] = (
    PutVhost(name=VHOST),
    PutUser(name="guest", password_hash=b"", hashing_algorithm=""),
    SetPermissions(user="guest", vhost=VHOST, configure=EVERYTHING, write=EVERYTHING, read=EVERYTHING),
)

# Returns the dialer of a node.
MakeDialer = Callable[["Node"], Dialer]


class Site(SimulatedMachine):
    """The disks of a broker, and the node that runs on them; None while it is down."""

    running: "Node | None"

    def __init__(
        self, name: str, chance: random.Random, clock: SimulatedClock, make_dialer: MakeDialer
    ) -> None:
        super().__init__(chance, clock, _DEFINITIONS, name)
        self.make_dialer = make_dialer

    @property
    def node(self) -> "Node":
        """The running node."""
        assert self.running is not None
        return self.running

    def new_node(self) -> "Node":
        """The node of the next run, with its links."""
        return Node(self)


class Node(SimulatedNode):
    """One run of a broker and its links: everything that a crash loses."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.site = site
        self.server.admission_control = OpenGate()  # type: ignore[assignment]
        self.links = Links(site.node_name)
        # What the links have logged: level and text.
        self.link_log: list[tuple[str, str]] = []

    def start(self) -> None:
        """Open the stores, accept clients, and start the links of all kinds, as a node does."""
        super().start()
        link_dependencies = LinkDependencies(
            dialer=self.site.make_dialer(self),
            turn=self.clock.turn,
            after=self.after,
            log=self._log_link,
            attempts=LinkAttempts(self.clock.turn, self.after),
            changed=lambda link: None,
            count_failure=lambda vhost: None,
        )
        federation = FederationDependencies(
            metadata=self.metadata,
            links=self.links,
            link=link_dependencies,
            later=self.later,
            cluster_name=lambda: self.site.node_name,
        )
        shovels = ShovelDependencies(
            metadata=self.metadata,
            proposals=self.journal,
            links=self.links,
            link_dependencies=link_dependencies,
            later=self.later,
            cluster_name=lambda: self.site.node_name,
        )
        ShovelLinks(shovels).start()
        FederatedExchanges(federation).start()
        FederatedQueues(federation, self._find_queue).start()
        self.run_turns()

    def change(self, command: MetadataCommand, done: Callable[[], None]) -> None:
        """Change the metadata, and call `done` when that is written."""
        drive(self._change(command, done))

    async def _change(self, command: MetadataCommand, done: Callable[[], None]) -> None:
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
        queue = self.server.vhost_services[VHOST].vhost.queues.get(name)
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

    def _find_queue(self, vhost: str, name: str) -> VhostQueue | None:
        assert vhost == VHOST
        return self.queue(name)

    def _log_link(self, level: str, text: str, fields: Mapping[str, object]) -> None:
        self.link_log.append((level, text))


def _is_settled(link: Link) -> bool:
    status = link.status()
    return link.state is LinkState.RUNNING and not status.unconfirmed and not status.pending
