"""Builds the client of the web server that decides logins and permissions, from RabbitMQ's `auth_http`."""

import logging
import ssl

from msgspec import Struct

from warren.access.web_grants import WebQuestionKind
from warren.node import http_login_settings as keys
from warren.node import settings
from warren.node.auth_server import AuthServer, AuthServerSettings
from warren.node.bounded_fetch import is_secure, verifying_context
from warren.node.client_listeners import numbered_values
from warren.node.config import Config
from warren.node.errors import BootRefused
from warren.node.http_login import HttpLogin
from warren.node.http_permissions import HttpPermissions
from warren.runtime.clock import Clock
from warren.transport.tls import TlsError, restrict

logger = logging.getLogger("warren.login")

_PREFIX = "auth_http.ssl_options"


class HttpBackend(Struct, frozen=True):
    """The web server as a backend."""

    login: HttpLogin
    permissions: HttpPermissions

    async def close(self) -> None:
        """End the requests in progress, and close the connections."""
        await self.login.close()
        await self.permissions.close()


def make_http_backend(config: Config, clock: Clock) -> HttpBackend:
    """Create the clients of the web server; raises BootRefused if the settings of its TLS are not usable."""
    url = config.get(keys.USER_URL)
    if not is_secure(url):
        logger.warning("passwords are sent to %s in clear text: set an https address", url)
    server = AuthServerSettings(
        method=config.get(keys.METHOD),
        request_timeout_ms=config.get(keys.REQUEST_TIMEOUT),
        connection_timeout_ms=config.get(keys.CONNECTION_TIMEOUT),
        tls=_tls(config),
        server_name=config.get(keys.SERVER_NAME) or "",
    )
    cache_ttl_ms = config.get(settings.AUTH_CACHE_TTL)
    # Each has connections of its own, so that logins do not wait for slow answers about permissions.
    return HttpBackend(
        HttpLogin(AuthServer(server), url, clock, cache_ttl_ms=cache_ttl_ms),
        HttpPermissions(
            AuthServer(server),
            {
                WebQuestionKind.VHOST: config.get(keys.VHOST_URL),
                WebQuestionKind.RESOURCE: config.get(keys.RESOURCE_URL),
                WebQuestionKind.TOPIC: config.get(keys.TOPIC_URL),
            },
            clock,
            cache_ttl_ms=cache_ttl_ms,
            discloses_reasons=config.get(keys.DISCLOSURE),
        ),
    )


def _tls(config: Config) -> ssl.SSLContext:
    context = verifying_context(config.get(keys.AUTHORITY_FILE), is_verified=config.get(keys.VERIFY))
    certificate = config.get(keys.CERTIFICATE_FILE)
    try:
        restrict(
            context,
            versions=numbered_values(config.family(keys.VERSIONS)),
            ciphers=numbered_values(config.family(keys.CIPHERS)),
            prefix=_PREFIX,
        )
        if certificate:
            key, password = config.get(keys.KEY_FILE), config.get(keys.KEY_PASSWORD)
            context.load_cert_chain(certificate, key or None, password or None)
    except TlsError as error:
        raise BootRefused(str(error)) from error
    except OSError as error:
        raise BootRefused(f"{_PREFIX}: {error}") from error
    return context
