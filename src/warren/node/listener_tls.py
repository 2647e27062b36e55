"""The TLS of the AMQP and stream listeners, with the lists of revoked certificates that servers have."""

from typing import TYPE_CHECKING

from warren.node import settings
from warren.node.client_listeners import tls
from warren.node.config import Config
from warren.node.errors import BootRefused
from warren.node.revocation_config import revocation_sources
from warren.runtime.clock import Clock
from warren.transport.tls import Tls, TlsError

if TYPE_CHECKING:
    from warren.node.revocation_lists import RevocationLists


class ListenerTls:
    """The TLS of the AMQP and stream listeners, from `start` on."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        # None if no listener has TLS.
        self.tls: Tls | None = None
        self._lists: RevocationLists | None = None

    async def start(self) -> None:
        """Load the files and fetch the lists; raises BootRefused if they cannot be used."""
        try:
            self.tls = tls(self._config)
            servers = revocation_sources(self._config).servers
            if self.tls is not None and servers:
                # Libraries for certificates are loaded only by brokers that use them (decision 0194).
                from warren.node.revocation_lists import ListFiles, RevocationLists

                keys, get = settings.LISTENER_TLS, self._config.get
                files = ListFiles(get(keys.authority_file), get(keys.certificate_file))
                self._lists = RevocationLists(servers, files, self.tls, self._clock)
                await self._lists.start()
        except TlsError as error:
            raise BootRefused(f"TLS: {error}") from error

    async def stop(self) -> None:
        """Fetch no more lists."""
        if self._lists is not None:
            await self._lists.stop()

    def reload(self) -> None:
        """Load the files again."""
        if self.tls is not None:
            self.tls.reload()

    def reload_if_changed(self) -> None:
        """Load the files again if one has changed."""
        if self.tls is not None:
            self.tls.reload_if_changed()

    def expiries(self) -> dict[str, int]:
        """The expiry of the certificates in each file (Unix time, ms)."""
        return {} if self.tls is None else self.tls.expiries()
