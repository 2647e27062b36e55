"""Shovels and federation links of a node: what they are made of, their start and their end."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping

from warren.federation.federated_exchanges import FederatedExchanges, FederationDependencies
from warren.federation.federated_queues import FederatedQueues
from warren.federation.link_rights import check_publish
from warren.management.relay_view import RelayView
from warren.metadata.events import Event, MemberRemoved
from warren.metadata.parameters import CLUSTER_NAME
from warren.metrics.sampler import series_of
from warren.metrics.time_series import TimeSeries
from warren.model.coroutine_driver import Pending, drive
from warren.node.broker import Broker
from warren.node.config import Config
from warren.node.config_file import ConfigError
from warren.node.errors import BootRefused
from warren.node.link_dry_run import LinkDryRun
from warren.node.link_events import LinkEvents
from warren.node.local_connections import LocalConnections
from warren.node.node_dialer import NodeDialer
from warren.node.static_shovels import static_shovels
from warren.queues.vhost_queue import VhostQueue
from warren.relay.attempts import LinkAttempts
from warren.relay.link import Link, LinkDependencies
from warren.relay.link_rights import LinkRights, check_user
from warren.relay.links import Links
from warren.relay.status import LinkKey, LinkKind, LinkState
from warren.shovel.shovel_links import ShovelDependencies, ShovelLinks
from warren.transport.outgoing import OutgoingConnections
from warren.transport.protocol import LoopContext

# The level at which each state of a link is logged; an error has its own line.
_LEVELS = {LinkState.STARTING: logging.DEBUG, LinkState.TERMINATED: logging.DEBUG}


class NodeRelays:
    """The links that this node runs, and who decides which there are."""

    def __init__(self, broker: Broker, loop_context: LoopContext, config: Config) -> None:
        """Create the links of the configuration; raises BootRefused if one of them is wrong."""
        self._broker = broker
        try:
            static = static_shovels(config)
        except ConfigError as error:
            raise BootRefused(str(error)) from error
        for warning in static.warnings:
            logging.getLogger("warren.shovel").warning("%s", warning)
        self._static_definitions = static.definitions
        self.dialer = NodeDialer(
            OutgoingConnections(loop_context),
            LocalConnections(broker.server, broker.metadata, loop_context),
        )
        self.links = Links(broker.name)
        self._events = LinkEvents(broker.metadata, broker.server.event_publisher, static.definitions)
        self._attempts = LinkAttempts(broker.turn, _after)
        self._shovels = ShovelLinks(
            ShovelDependencies(
                metadata=broker.metadata,
                proposals=broker.proposals,
                links=self.links,
                link_dependencies=self._link_dependencies("shovel"),
                later=broker.server.later,
                cluster_name=self._cluster_name,
                defaults=static.defaults,
            ),
            static.shovels,
        )
        federation = FederationDependencies(
            metadata=broker.metadata,
            links=self.links,
            link=self._link_dependencies("federation"),
            later=broker.server.later,
            cluster_name=self._cluster_name,
        )
        self._federated_exchanges = FederatedExchanges(federation)
        self._federated_queues = FederatedQueues(federation, self._find_queue)
        self._link_rights = LinkRights(broker.metadata, self.links, broker.server.later, self._check_rights)
        self._is_started = False
        self._is_stopping = False

    def start(self) -> None:
        """Start all links that this node is to run, at present or later.

        Call it when clients can connect, since a link may connect to its own node.
        """
        self._broker.metadata.listen(self._member_removed, (MemberRemoved,))
        self._start_if_first()

    def _member_removed(self, _: Event) -> None:
        self._broker.server.later(lambda _: self._start_if_first())

    def _start_if_first(self) -> None:
        """Start the links if this node is the first member of its cluster, so that nobody else runs them."""
        members = self._broker.metadata.members.by_id
        if self._is_started or self._is_stopping or (members and min(members) != self._broker.node_id):
            return
        self._is_started = True
        self._shovels.start()
        self._federated_exchanges.start()
        self._federated_queues.start()
        self._link_rights.start()

    async def stop(self) -> None:
        """Stop all links, each within a bounded time; none is started any more."""
        self._is_stopping = True
        if self._is_started:
            self._federated_exchanges.stop()
            self._federated_queues.stop()
            self._link_rights.stop()
        stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        drive(_completed(self.links.stop(), lambda: stopped.set_result(None)))
        await stopped
        self.dialer.close()

    def view(self) -> RelayView:
        """The links as the HTTP API uses them."""
        dry_run = LinkDryRun(self._broker.metadata, self.dialer, self._cluster_name)
        return RelayView(
            statuses=lambda: self.links.statuses().values(),
            link_keys=lambda: [link.key for link in self.links],
            state=self.links.state,
            status=self.links.status,
            history=self._history,
            restart=self._restart,
            static_shovels=self._static_definitions,
            check_shovel=dry_run.check_shovel,
            check_federation=dry_run.explain,
        )

    def _history(self, key: LinkKey) -> TimeSeries | None:
        link = self.links.get(key)
        return None if link is None else series_of(link)

    def _check_rights(self, link: Link) -> None:
        """Raise BrokerRefused if the user of `link` may not do what it does here."""
        metadata = self._broker.metadata
        if link.key.kind is LinkKind.SHOVEL:
            check_user(metadata, link.user)
        else:
            check_publish(metadata, link.user, link.key)

    def _restart(self, key: LinkKey, user: str) -> bool:
        if self.links.get(key) is None:
            return False
        self._events.restarted(key, user)
        return self.links.restart(key)

    def _find_queue(self, vhost: str, name: str) -> VhostQueue | None:
        """The live queue `name` of `vhost`, if there is one now."""
        services = self._broker.server.vhost_services.get(vhost)
        return None if services is None else services.vhost.queues.get(name)

    def _cluster_name(self) -> str:
        name = self._broker.metadata.global_parameters.by_name.get(CLUSTER_NAME)
        return name if isinstance(name, str) else self._broker.cluster_name

    def _link_dependencies(self, category: str) -> LinkDependencies:
        """What links need, with a log of their own."""
        logger = logging.getLogger(f"warren.{category}")

        def log(level: str, text: str, fields: Mapping[str, object]) -> None:
            logger.log(logging.getLevelNamesMapping()[level.upper()], "%s", text, extra={"fields": fields})

        def changed(link: Link) -> None:
            level = _LEVELS.get(link.state, logging.INFO)
            logger.log(
                level, "%s '%s' of vhost '%s' is %s", category, link.key.name, link.key.vhost, link.state
            )
            self._events.changed(link.status)

        return LinkDependencies(
            dialer=self.dialer,
            turn=self._broker.turn,
            after=_after,
            log=log,
            attempts=self._attempts,
            changed=changed,
            count_failure=self._broker.count_failure,
        )


def _after(ms: int, action: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(ms / 1000, action)


async def _completed(coroutine: Coroutine[Pending, None, None], then: Callable[[], None]) -> None:
    await coroutine
    then()
