"""The broker without its sockets: metadata, running virtual hosts, and what sessions share."""

import asyncio
import logging
import sys
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from warren.access.authenticate import BackendKind
from warren.access.passwords import (
    ARGON2ID,
    PUBLISHED_PASSWORD,
    PUBLISHED_PASSWORD_HASH,
    SALT_SIZE,
    hash_password,
)
from warren.cluster.groups.group_traffic import GroupTraffic, GroupTrafficDependencies
from warren.cluster.node_traffic import TrafficDependencies
from warren.cluster.remote_queues import RemoteQueues, Replication
from warren.errors import AmqpError
from warren.limits import (
    JOURNAL_SKIPPED_NUMBERS,
    PASSWORD_THREADS,
    PASSWORDS_WAITING_MAX,
    REMOVED_PER_TURN,
)
from warren.management.quarantine_view import QuarantinedItem, QuarantineView
from warren.metadata.bounds import ConfiguredBounds
from warren.metadata.commands import (
    INTERNAL_USER,
    OPERATOR,
    Bind,
    DeclareExchange,
    DeleteEphemeral,
    DoubtNumbers,
    MetadataCommand,
    Outcome,
    PutVhost,
    Reply,
    SetGlobalParameter,
    SettleNumbers,
)
from warren.metadata.defaults import DefaultsSettings, initial_commands
from warren.metadata.definitions_import import DEFAULT_HASHING, DefinitionsError
from warren.metadata.events import Event, ParameterChanged, UserRemoved, VhostAdded, VhostRemoved
from warren.metadata.machine import Metadata
from warren.metadata.parameters import CLUSTER_ID, CLUSTER_NAME
from warren.metadata.proposals import LocalProposals, Proposals
from warren.metadata.refusal_check import RefusalCheck
from warren.metadata.users import PasswordHash
from warren.model.turn import Turn
from warren.node import ldap_config, limit_settings, log_exchange, log_settings, settings
from warren.node.audit_log import AuditLog
from warren.node.authentication import authenticator, http_backend, is_backend_configured
from warren.node.config import Config
from warren.node.definition_settings import SKIP_INVALID
from warren.node.definition_sources import DefinitionSource, definition_sources
from warren.node.errors import BootRefused
from warren.node.ldap_directory import LdapDirectory
from warren.node.log_exchange import LogExchangeHandler
from warren.node.metadata_journal import MetadataJournal
from warren.node.node_identity import NodeIdentity
from warren.node.quarantine import finish_removals
from warren.node.queue_settings import (
    DEFAULT_TYPE,
    DELIVERY_LIMIT_COUNTS,
    DISCONNECTED,
    GROUP_SIZE,
    LEADER_LOCATOR,
    MASTER_LOCATOR,
    RELAXED_CHECKS,
)
from warren.node.storage import Storage
from warren.node.supervision_tree import SupervisionTree, TreeDependencies, VhostCreation
from warren.node.timed_proposals import TimedProposals
from warren.node.vhost_defaults import vhost_defaults
from warren.runtime.clock import Clock
from warren.runtime.randomness import random_bytes
from warren.runtime.thread_pool import ThreadPool
from warren.runtime.turns import TurnQueue
from warren.session.admission_control import AdmissionControl
from warren.session.events.event_publisher import EXCHANGE
from warren.session.handshake import HandshakeSettings
from warren.session.server import Server, ServerDependencies, SessionSettings
from warren.session.server_properties import server_properties
from warren.staging.staging import Staging
from warren.vhost.definitions_check import check_document, named_entries
from warren.vhost.queue_home import QueueLocators
from warren.vhost.queue_placement import with_members
from warren.vhost.vhost import VirtualHost

logger = logging.getLogger("warren.broker")

# Random bytes from which the unique name of a cluster is made.
_CLUSTER_ID_BYTES = 16
# Channel numbers have two bytes on the wire: the maximum if no limit is configured.
_CHANNELS_MAX = 65_535


def _nobody(reason: str) -> None:
    """The default `fail` callback of a broker without a node, which does nothing."""


async def _at_once() -> None:
    """The default `caught_up` of a broker without other members, which waits for nobody."""


class Broker:
    """Everything of one node that needs no socket."""

    # The proposal that marks queue numbers as in doubt.
    _doubting: asyncio.Future[Reply] | None = None

    def __init__(
        self,
        config: Config,
        clock: Clock,
        identity: NodeIdentity,
        *,
        metadata_journal: MetadataJournal | None = None,
        fail: Callable[[str], None] = _nobody,
    ) -> None:
        """Create a broker with the metadata of `metadata_journal`, or without one with nothing that survives
        a restart.

        `fail` is called with the reason when the node has to end.
        """
        self._config = config
        self._clock = clock
        self.turn = Turn(clock.now, asyncio.get_running_loop().call_soon)
        self._turns = TurnQueue(self.turn)
        self._thread_pool = ThreadPool(thread_count=PASSWORD_THREADS, waiting_max=PASSWORDS_WAITING_MAX)
        self._ldap_directory = _ldap_directory(config, clock)
        self._http_backend = http_backend(config, clock)
        self._vhost_defaults = vhost_defaults(config, self.hash_password)
        self.name = identity.name
        self._incarnation = identity.incarnation
        self._metadata_journal = metadata_journal
        self.metadata = metadata_journal.metadata if metadata_journal else Metadata()
        named = self.metadata.global_parameters.by_name.get(CLUSTER_NAME)
        self.cluster_name = str(named or config.get(settings.CLUSTER_NAME) or self.name)
        self._local = LocalProposals(self.metadata, clock.now, self._incarnation)
        if not self._is_shared:
            self._delete_ephemeral()
        proposals: Proposals = TimedProposals(metadata_journal.journal) if metadata_journal else self._local
        self.server = self._new_server(RefusalCheck(self.metadata, proposals))
        # The queues of other nodes, and replicas with others there; None in memory only.
        self.group_traffic = None if metadata_journal is None else self._group_traffic(metadata_journal)
        self.remote_queues = None if metadata_journal is None else self._remote_queues(metadata_journal)
        self.staging = Staging(self.server, clock.now, random_bytes)
        self.tree = SupervisionTree(
            TreeDependencies(
                metadata=self.metadata,
                proposals=proposals,
                server=self.server,
                clock=clock,
                turn=self.turn,
                later=self._turns.later,
                node_name=self.name,
                locators=self._locators(),
                counts_all_returns=config.get(DELIVERY_LIMIT_COUNTS) == "all",
                on_down=fail if config.get(settings.VHOST_FAILURE_STOPS) else None,
                has_store=metadata_journal is not None,
                staging=self.staging,
                remote_queues=self.remote_queues,
                incarnation=self._incarnation,
            )
        )
        self.proposals: Proposals = VhostCreation(proposals, self.tree, self._of_new_vhost)
        for vhost in self.metadata.vhosts.by_name:
            self.tree.add(vhost)
        self.metadata.listen(self._changed, (VhostAdded, VhostRemoved, UserRemoved, ParameterChanged))

    @property
    def node_id(self) -> int:
        """The number of this node in its cluster."""
        return self._incarnation.node

    @property
    def _is_shared(self) -> bool:
        """True if other nodes have a part in the metadata, which are changed by proposals only then."""
        return self._metadata_journal is not None and self._metadata_journal.is_shared

    def _group_traffic(self, metadata_journal: MetadataJournal) -> GroupTraffic:
        return GroupTraffic(
            GroupTrafficDependencies(
                node=self._incarnation.node,
                links=metadata_journal.peers.links,
                later=self._turns.later,
                after=_after,
                report=_report,
            )
        )

    def _remote_queues(self, metadata_journal: MetadataJournal) -> RemoteQueues:
        assert self.group_traffic is not None
        return RemoteQueues(
            self._incarnation,
            metadata_journal.peers.links,
            TrafficDependencies(
                metadata=self.metadata,
                later=self._turns.later,
                after=_after,
                turn=self.turn,
                vhost=self._running_vhost,
                report=_report,
            ),
            Replication(
                traffic=self.group_traffic,
                random_bytes=random_bytes,
                proposals=metadata_journal.journal,
                disconnected_ms=self._config.get(DISCONNECTED),
            ),
        )

    def _running_vhost(self, name: str) -> VirtualHost | None:
        services = self.server.vhost_services.get(name)
        return None if services is None else services.vhost

    def count_failure(self, vhost: str) -> None:
        """Count, in `vhost` if that is up, that an error has ended one of its jobs or links."""
        running = self._running_vhost(vhost)
        if running is not None:
            running.count_failure()

    def _new_server(self, refusal_check: RefusalCheck) -> Server:
        """Create what all connections of the broker share, with its authentication and its limits."""
        self.metadata.bounds = _bounds(self._config)
        return Server(
            AdmissionControl(
                self.metadata,
                authenticator(
                    self._config,
                    self.metadata,
                    self._clock,
                    self._thread_pool,
                    ldap_directory=self._ldap_directory,
                    http_backend=self._http_backend,
                    refusal_check=refusal_check,
                ),
                lambda: self.server,
                logger.warning,
                refusal_check=refusal_check,
            ),
            self._session_settings(),
            ServerDependencies(
                random_bytes=random_bytes,
                later=self._turns.later,
                turn=self.turn,
                report=_report,
                log=_log,
                node_name=self.name,
                incarnation=self._incarnation,
            ),
        )

    def _delete_ephemeral(self) -> None:
        """Delete what ended with earlier runs of the node, before anything is made of it."""
        node, number = self._incarnation
        ended = DeleteEphemeral(node=node, incarnation=number, count_max=REMOVED_PER_TURN)
        while self._local.apply(ended).outcome is Outcome.PARTLY:
            pass

    async def populate(self, caught_up: Callable[[], Awaitable[None]] = _at_once) -> None:
        """Import the configured definitions, or create a first user in a first virtual host, as RabbitMQ
        does.

        Definitions are imported at each start; the first user is created only if there are no users and no
        virtual hosts. A node alone syncs the metadata once at the end: no client has seen any of it before.
        With other members it is proposed, when this node has `caught_up` with them.
        """
        if self._is_shared:
            assert self._metadata_journal is not None
            self._metadata_journal.begin_journal()
            await caught_up()
            await self._populate(self._metadata_journal.journal.propose)
        else:
            await self._populate(self._apply_now)
            if self._metadata_journal is not None:
                self._metadata_journal.begin_journal()
        for warning in self._vhost_defaults.warnings:
            logger.warning("%s", warning)
        # Objects that existed before are not logged.
        AuditLog(self.metadata, self.server.event_publisher, node=self._incarnation.node)

    async def _populate(self, change: Callable[[MetadataCommand], Awaitable[Reply]]) -> None:
        sources = definition_sources(self._config)
        if sources is None and self._is_new():
            commands = initial_commands(self._defaults(), self._hash_of_first_user)
            await self._change("defaults", commands, change)
        for source in sources or ():
            await self._change(source.name, await self._definitions_in(source), change)
            logger.info("%s imported", source.name)
        if CLUSTER_ID not in self.metadata.global_parameters.by_name:
            drawn = urlsafe_b64encode(random_bytes(_CLUSTER_ID_BYTES)).decode("ascii").rstrip("=")
            await change(SetGlobalParameter(name=CLUSTER_ID, value=f"rabbitmq-cluster-id-{drawn}"))
        exchanges = [(self._config.get(settings.EVENT_VHOST), EXCHANGE)]
        if self._config.get(log_settings.EXCHANGE):
            exchanges.append((self._config.get(settings.DEFAULT_VHOST), log_exchange.EXCHANGE))
        for vhost, name in exchanges:
            # Internal exchanges for messages of the broker, as RabbitMQ has them.
            if self.metadata.vhost(vhost) is not None:
                await change(
                    DeclareExchange(
                        vhost=vhost, name=name, type="topic", durable=True, internal=True, user=INTERNAL_USER
                    )
                )

    async def _apply_now(self, command: MetadataCommand) -> Reply:
        """Change the metadata of a node alone beside its log, which begins later."""
        return self._local.apply(command)

    def log_exchange(self) -> LogExchangeHandler:
        """The exchange that publishes log lines."""
        vhost, vhost_services = self._config.get(settings.DEFAULT_VHOST), self.server.vhost_services

        def find() -> VirtualHost | None:
            return vhost_services[vhost].vhost if vhost in vhost_services else None

        return LogExchangeHandler(find, self._turns.later, self.name)

    def hash_password(self, password: str) -> PasswordHash:
        """Return the hash to store for `password`, with the configured algorithm; slow by design."""
        algorithm = self._config.get(settings.PASSWORD_HASHING)
        return hash_password(password, random_bytes(SALT_SIZE), algorithm)

    def _hash_of_first_user(self, password: str) -> PasswordHash:
        if password == PUBLISHED_PASSWORD and self._config.get(settings.PASSWORD_HASHING) == ARGON2ID:
            return PUBLISHED_PASSWORD_HASH
        return self.hash_password(password)

    def default_hash(self, password: str) -> PasswordHash:
        """Hash a password with the algorithm that is assumed for hashes that do not name one."""
        return hash_password(password, random_bytes(SALT_SIZE), DEFAULT_HASHING)

    def _of_new_vhost(self, name: str) -> list[MetadataCommand]:
        """The commands for a virtual host that was created."""
        return self._vhost_defaults.commands(name, self.metadata)

    def _is_new(self) -> bool:
        metadata = self.metadata
        return not (
            metadata.users.by_name or metadata.vhosts.by_name or metadata.permissions.by_user_and_vhost
        )

    def _changed(self, event: Event) -> None:
        """Apply a metadata event to virtual hosts, and close connections of what was deleted (RabbitMQ's
        texts).
        """
        if isinstance(event, VhostAdded):
            self.tree.add(event.vhost)
        elif isinstance(event, VhostRemoved):
            self.tree.remove(event.vhost)
        elif isinstance(event, UserRemoved):
            self.tree.disconnect(lambda user, _: user == event.user, f"user '{event.user}' is deleted")
        elif isinstance(event, ParameterChanged) and not event.vhost and event.name == CLUSTER_NAME:
            # Downstreams of a federation recognise messages and bindings by the name that they were told.
            named = self.metadata.global_parameters.by_name.get(CLUSTER_NAME)
            self.server.offer.rename_cluster(named if isinstance(named, str) else self.cluster_name)

    def _session_settings(self) -> SessionSettings:
        config = self._config
        return SessionSettings(
            handshake=HandshakeSettings(
                server_properties=server_properties(self.cluster_name),
                channels_max=config.get(settings.CHANNELS) or _CHANNELS_MAX,
                frame_size_max=config.get(settings.FRAME_SIZE),
                frame_size_handshake=config.get(settings.FRAME_SIZE_HANDSHAKE),
                heartbeat_s=config.get(settings.HEARTBEAT),
                timeout_ms=config.get(settings.HANDSHAKE),
            ),
            message_size_max=config.get(settings.MESSAGE_SIZE),
            consumer_timeout_ms=config.get(settings.CONSUMER_TIMEOUT),
            consumers_per_channel_max=config.get(settings.CHANNEL_CONSUMERS),
            channels_max=config.get(limit_settings.NODE_CHANNELS),
            transaction_publishes_max=config.get(limit_settings.TRANSACTION_PUBLISHES),
            event_vhost=config.get(settings.EVENT_VHOST),
        )

    async def open_storage(self, folder: Path) -> None:
        """Recover and store the messages of every virtual host; raises BootRefused if that is impossible."""
        metadata_journal = self._metadata_journal
        assert metadata_journal is not None
        try:
            # What others have deleted while this node was away.
            finish_removals(folder, self.metadata)
            metadata_journal.quarantine.begin()
            metadata_journal.quarantine.reconcile_vhosts(self.metadata.vhosts.by_name)
        except OSError as error:
            raise BootRefused(f"cannot examine the stored messages in {str(folder)!r}: {error}") from error
        storage = Storage(
            folder,
            self.metadata,
            metadata_journal.quarantine,
            self._doubt,
            node=self._incarnation.node,
            metadata_index=lambda: metadata_journal.journal.synced_index,
            is_older_accepted=self._config.get(settings.ACCEPT_OLDER_STORES),
        )
        await self.tree.open_storage(storage)
        self._doubt()
        if self._doubting is not None:
            await self._doubting

    def _doubt(self) -> None:
        """Ensure that no queue gets the number of a stored queue that the metadata do not know."""
        metadata_journal = self._metadata_journal
        assert metadata_journal is not None
        number = metadata_journal.quarantine.number_max
        is_under_way = self._doubting is not None and not self._doubting.done()
        if number >= self.metadata.next_number and not is_under_way:
            logger.error(
                "queue %d is on disk, but the metadata end at queue %d: a part of the metadata is lost",
                number, self.metadata.next_number - 1,
            )  # fmt: skip
            proposal = metadata_journal.journal.propose(DoubtNumbers(until=number + JOURNAL_SKIPPED_NUMBERS))
            self._doubting = asyncio.ensure_future(proposal)

    def quarantine_view(self) -> QuarantineView:
        """The quarantine as the HTTP API uses it."""
        return QuarantineView(
            items=self.quarantined,
            acknowledge=self.acknowledge_quarantined,
            remove=self.remove_quarantined,
        )

    def quarantined(self) -> list[QuarantinedItem]:
        """The quarantined items: what is on the disk and not named by the metadata."""
        return [] if self._metadata_journal is None else self._metadata_journal.quarantine.items()

    def acknowledge_quarantined(self, user: str) -> int:
        """Acknowledge all quarantined items for `user`; returns how many were not acknowledged before."""
        count = 0 if self._metadata_journal is None else self._metadata_journal.quarantine.acknowledge()
        logger.info("quarantine: %d items acknowledged by user '%s'", count, user)
        return count

    async def remove_quarantined(self, id: str, user: str) -> bool:
        """Delete the quarantined item `id`; False if there is none; raises AmqpError or OSError."""
        if self._metadata_journal is None:
            return False
        quarantine = self._metadata_journal.quarantine
        number = quarantine.number_of(id)
        if number:
            await self.proposals.propose(SettleNumbers(numbers=(number,)), user)
            pinned = quarantine.take_pinned(id)
            if pinned is not None:
                self.tree.discard(*pinned)
        else:
            removal = quarantine.remove(id)
            if removal is None:
                return False
            await asyncio.to_thread(removal)
        logger.warning("quarantine: %s deleted by user '%s'", id, user)
        return True

    async def close(self) -> None:
        """Write what is pending, then stop every virtual host."""
        self._thread_pool.close()
        if self._ldap_directory is not None:
            await self._ldap_directory.close()
        if self._http_backend is not None:
            await self._http_backend.close()
        await self.staging.close()
        await self.tree.close()

    def _defaults(self) -> DefaultsSettings:
        config = self._config
        return DefaultsSettings(
            vhost=config.get(settings.DEFAULT_VHOST),
            user=config.get(settings.DEFAULT_USER),
            password=config.get(settings.DEFAULT_PASSWORD),
            tags=tuple(
                tag
                for tag, is_backend_configured in config.family(settings.DEFAULT_TAGS).items()
                if is_backend_configured
            ),
            configure=config.get(settings.DEFAULT_CONFIGURE),
            write=config.get(settings.DEFAULT_WRITE),
            read=config.get(settings.DEFAULT_READ),
        )

    async def _change(
        self,
        origin: str,
        commands: list[MetadataCommand],
        change: Callable[[MetadataCommand], Awaitable[Reply]],
    ) -> None:
        for command in commands:
            try:
                reply = await change(self.placed(command))
            except AmqpError as error:
                raise BootRefused(f"{origin}: {error}") from error
            # RabbitMQ, too, skips a binding whose source or destination does not exist.
            is_missing = reply.outcome is Outcome.MISSING and not isinstance(command, Bind)
            if reply.outcome is Outcome.REFUSED or is_missing:
                raise BootRefused(f"{origin}: {reply.text or command}")
            if isinstance(command, PutVhost) and reply.outcome is Outcome.DONE:
                await self._change("defaults", self._of_new_vhost(command.name), change)

    def _locators(self) -> QueueLocators:
        config = self._config
        return QueueLocators(
            default_type=config.get(DEFAULT_TYPE),
            leader=config.get(LEADER_LOCATOR),
            master=config.get(MASTER_LOCATOR),
            group_size=config.get(GROUP_SIZE),
            has_relaxed_checks=config.get(RELAXED_CHECKS),
        )

    def placed(self, command: MetadataCommand) -> MetadataCommand:
        """`command` of a definitions document, with the members of the cluster that get replicas."""
        size = self._config.get(GROUP_SIZE)
        return with_members(command, self.metadata, self._incarnation.node, group_size=size)

    async def _definitions_in(self, source: DefinitionSource) -> list[MetadataCommand]:
        try:
            found = check_document(
                await source.document(),
                self.metadata,
                self.hash_password,
                user=OPERATOR,
                default_type=self._config.get(DEFAULT_TYPE),
            )
            commands = found.commands if self._config.get(SKIP_INVALID) else found.complete()
        except DefinitionsError as error:
            raise BootRefused(f"{source.name}: {error}") from error
        for text in named_entries([*found.left_out, *found.warnings]):
            logger.warning("%s: %s", source.name, text)
        return commands


def _ldap_directory(config: Config, clock: Clock) -> LdapDirectory | None:
    is_needed = is_backend_configured(config, BackendKind.LDAP)
    return ldap_config.ldap_directory(config, clock) if is_needed else None


def _bounds(config: Config) -> ConfiguredBounds:
    return ConfiguredBounds(
        vhosts=config.get(limit_settings.VHOSTS),
        queues=config.get(limit_settings.QUEUES),
        exchanges=config.get(limit_settings.EXCHANGES),
    )


def _after(pause_ms: int, action: Callable[[], None]) -> None:
    """Call `action` after a time."""
    asyncio.get_running_loop().call_later(pause_ms / 1000, action)


def _report(text: str) -> None:
    """Log an unexpected failure in a session, with the exception that is being handled, if any."""
    logger.error("%s", text, exc_info=sys.exc_info()[0] is not None)


def _log(category: str, level: str, text: str, fields: Mapping[str, object]) -> None:
    """Log an event of a client connection, as RabbitMQ logs it."""
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger(f"warren.{category}").log(number, "%s", text, extra={"fields": fields})
