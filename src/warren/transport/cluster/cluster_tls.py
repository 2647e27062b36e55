"""TLS between nodes: one certificate for both roles of a node, and each end verifies the other's."""

import asyncio
import ssl

from msgspec import Struct

from warren.blocking.tls import TlsNames, client_context
from warren.client.uri import ClientTls
from warren.cluster.link_handshake import LinkRefusal, RefusalCode
from warren.cluster.node_link import PeerNode
from warren.transport.certificates import is_issued_for
from warren.transport.tls import Tls, TlsSettings

_PREFIX = "cluster.ssl_options"
_NAMES = TlsNames(
    ca_file=f"{_PREFIX}.cacertfile", cert_file=f"{_PREFIX}.certfile", key_file=f"{_PREFIX}.keyfile",
    key_password=f"{_PREFIX}.password",
)  # fmt: skip


class ClusterTlsSettings(Struct, frozen=True, kw_only=True):
    """The files of TLS between nodes: those who are trusted, the certificate of this node, and its key."""

    authority_file: str
    certificate_file: str
    key_file: str
    password: str = ""


class ClusterTls:
    """The certificates of one node, which are loaded again when their files change."""

    def __init__(self, settings: ClusterTlsSettings) -> None:
        """Load the files. Raises TlsError."""
        self.accepted = Tls(
            TlsSettings(
                prefix=_PREFIX,
                certificate_file=settings.certificate_file,
                key_file=settings.key_file,
                authority_file=settings.authority_file,
                password=settings.password,
                is_peer_verified=True,
                is_certificate_required=True,
            )
        )
        self._dialed = ClientTls(
            ca_file=settings.authority_file,
            cert_file=settings.certificate_file,
            key_file=settings.key_file,
            key_password=settings.password or None,
        )

    async def dialed(self) -> ssl.SSLContext:
        """Return the context of a connection that this node dials, of the files as they are now.

        Raises ValueError.
        """
        return await asyncio.to_thread(client_context, self._dialed, _NAMES)


def check_certificate(transport: asyncio.BaseTransport, peer: PeerNode) -> None:
    """Raise LinkRefusal unless the certificate of the peer is that of the host of `peer`."""
    connected = transport.get_extra_info("ssl_object")
    certificate = connected.getpeercert() if connected is not None else None
    if not certificate or not is_issued_for(dict(certificate), peer.host):
        raise LinkRefusal(
            RefusalCode.CERTIFICATE, f"the certificate of '{peer.name}' is not for its host '{peer.host}'"
        )
