"""The broker without its sockets: what exists, the virtual hosts that live, and what sessions share."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

from warren.access.authenticate import AuthenticationSettings, Authenticator
from warren.access.passwords import hash_password
from warren.errors import ConnectionForced
from warren.limits import CLOSED_PER_TURN
from warren.metadata.commands import Command, Outcome
from warren.metadata.defaults import DefaultsSettings, initial_commands
from warren.metadata.definitions_import import DefinitionsError, imported
from warren.metadata.events import Event, UserRemoved, VhostAdded, VhostRemoved
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals, Proposals
from warren.node import settings
from warren.node.config import Config
from warren.node.expiry import VhostExpiry
from warren.node.journaling import Journaling
from warren.node.listening import in_order
from warren.node.refusal import BootRefused
from warren.node.storage import Storage
from warren.runtime.clock import Clock
from warren.runtime.randomness import random_octets
from warren.runtime.turns import Turns
from warren.session.domain import Domain, DomainWorld
from warren.session.gate import Gate
from warren.session.greeting import server_properties
from warren.session.handshake import HandshakeSettings
from warren.session.server import Server, SessionSettings, World
from warren.store.segment import SegmentError

logger = logging.getLogger("warren.broker")

# Frame numbers on the wire are two octets: what "no limit" is.
_CHANNELS_MAX = 65_535
_SALT_SIZE = 4


class Broker:
    """Everything of one node that needs no socket."""

    def __init__(self, config: Config, clock: Clock, name: str, journaling: Journaling | None = None) -> None:
        """A broker with what `journaling` knows of, or with nothing that survives."""
        self._config = config
        self._clock = clock
        self._expiries: dict[str, VhostExpiry] = {}
        self._turns = Turns(clock)
        self.name = name
        self.cluster_name = config.get(settings.CLUSTER_NAME) or name
        self._journaling = journaling
        self.metadata = journaling.metadata if journaling else Metadata()
        self._storage: Storage | None = None
        # Removals of directories that are under way.
        self._tasks: set[asyncio.Task[None]] = set()
        self._local = LocalProposals(self.metadata, clock.now)
        self.proposals: Proposals = journaling.journal if journaling else self._local
        self.server = Server(
            Gate(self.metadata, self._authenticator(), lambda: self.server, logger.warning),
            self._session_settings(),
            World(random_octets=random_octets, later=self._turns.later, report=_report),
        )
        for vhost in self.metadata.vhosts.by_name:
            self._open(vhost)
        self.metadata.listen(self._changed)

    def populate(self) -> None:
        """What the definitions say exists, or a first user in a first virtual host, as RabbitMQ does.

        Definitions are imported at each start, the first user is made where nobody and nothing is. It is
        written when all of it is there: nobody was told yet that any of it is.
        """
        files = self._definition_files()
        if files is None and self._is_new():
            self._apply("defaults", initial_commands(self._defaults(), _hash_password))
        for file in files or ():
            self._apply(f"definitions file {str(file)!r}", _read_definitions(file))
            logger.info("definitions imported from %s", file)
        if self._journaling is not None:
            self._journaling.journal.begin()

    def _is_new(self) -> bool:
        metadata = self.metadata
        return not (
            metadata.users.by_name or metadata.vhosts.by_name or metadata.permissions.by_user_and_vhost
        )

    def _changed(self, event: Event) -> None:
        """Keep one domain per virtual host, and nobody connected to what is gone (RabbitMQ's texts)."""
        if isinstance(event, VhostAdded):
            self._open(event.vhost)
        elif isinstance(event, VhostRemoved):
            # Its topology has heard of this itself.
            self.metadata.ignore(self.server.domains.pop(event.vhost).heed)
            self._expiries.pop(event.vhost).stop()
            if self._storage is not None:
                self._keep(self._storage.remove(event.vhost))
            self._dismiss(lambda _, vhost: vhost == event.vhost, f"vhost '{event.vhost}' is deleted")
        elif isinstance(event, UserRemoved):
            self._dismiss(lambda user, _: user == event.user, f"user '{event.user}' is deleted")

    def _open(self, vhost: str) -> None:
        world = DomainWorld(random_octets=random_octets, later=self._turns.later, now=self._clock.now())
        domain = Domain.open(vhost, self.metadata, self.proposals, world)
        self.server.domains[vhost] = domain
        self._expiries[vhost] = VhostExpiry(domain.vhost, self._clock)
        if self._storage is not None:
            self._storage.open(domain)

    def _dismiss(self, is_meant: Callable[[str, str], bool], reason: str) -> None:
        """Close connections by their user and virtual host, turn by turn.

        That begins when the change that caused it is complete.
        """
        meant = [
            connection
            for connection in self.server.connections
            if connection.login is not None
            and connection.domain is not None
            and is_meant(connection.login.user, connection.domain.vhost.name)
        ]

        def close(_: int) -> None:
            for connection in meant[-CLOSED_PER_TURN:]:
                connection.close(ConnectionForced(reason))
            del meant[-CLOSED_PER_TURN:]
            if meant:
                self._turns.later(close)

        self._turns.later(close)

    def _authenticator(self) -> Authenticator:
        users = self._config.family(settings.LOOPBACK_USERS)
        return Authenticator(
            self.metadata,
            AuthenticationSettings(
                mechanisms=in_order(self._config.family(settings.MECHANISMS)),
                loopback_users=frozenset(user for user, is_local in users.items() if is_local),
            ),
        )

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
        )

    def open_storage(self, folder: Path) -> None:
        """Recover the messages of every virtual host, and keep what comes; BootRefused if that cannot be."""
        self._storage = Storage(folder, self.metadata)
        for domain in self.server.domains.values():
            try:
                self._storage.open(domain)
            except (OSError, SegmentError) as error:
                raise BootRefused(
                    f"cannot open the messages of vhost '{domain.vhost.name}': {error}"
                ) from error

    async def close(self) -> None:
        """Write what is pending; then every virtual host ends."""
        if self._storage is not None:
            await asyncio.gather(*self._tasks)
            await self._storage.close()
        for expiry in self._expiries.values():
            expiry.stop()
        for domain in self.server.domains.values():
            domain.close()

    def _keep(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _definition_files(self) -> list[Path] | None:
        """The files to import in order; None if none are configured."""
        config = self._config
        name = (
            config.get(settings.DEFINITIONS)
            or config.get(settings.DEFINITIONS_PATH)
            or config.get(settings.DEFINITIONS_OLD)
        )
        if not name:
            return None
        path = Path(name)
        return sorted(path.glob("*.json")) if path.is_dir() else [path]

    def _defaults(self) -> DefaultsSettings:
        config = self._config
        return DefaultsSettings(
            vhost=config.get(settings.DEFAULT_VHOST),
            user=config.get(settings.DEFAULT_USER),
            password=config.get(settings.DEFAULT_PASSWORD),
            tags=tuple(tag for tag, has in config.family(settings.DEFAULT_TAGS).items() if has),
            configure=config.get(settings.DEFAULT_CONFIGURE),
            write=config.get(settings.DEFAULT_WRITE),
            read=config.get(settings.DEFAULT_READ),
        )

    def _apply(self, origin: str, commands: list[Command]) -> None:
        for command in commands:
            reply = self._local.apply(command)
            if reply.outcome in (Outcome.REFUSED, Outcome.MISSING):
                raise BootRefused(f"{origin}: {reply.text or command}")


def _read_definitions(file: Path) -> list[Command]:
    try:
        document = json.loads(file.read_bytes())
        return imported(document, _hash_password)
    except OSError as error:
        raise BootRefused(f"definitions file {str(file)!r}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BootRefused(f"definitions file {str(file)!r} is not JSON: {error}") from error
    except DefinitionsError as error:
        raise BootRefused(f"definitions file {str(file)!r}: {error}") from error


def _hash_password(password: str) -> bytes:
    return hash_password(password, random_octets(_SALT_SIZE))


def _report(text: str) -> None:
    """What a session did not expect, with the exception that is being handled, if any."""
    logger.error("%s", text, exc_info=sys.exc_info()[0] is not None)
