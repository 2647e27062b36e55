"""Opens the blocking connections of a load; the load loop uses their sockets later."""

import ssl
from functools import lru_cache

from warren.blocking.connection import BlockingConnection, ConnectOptions
from warren.blocking.tls import refusal_hint
from warren.cli.operator.tls import TLS_NAMES, tls_context
from warren.client.errors import BrokerRefused
from warren.client.uri import Target

NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
# Cached, since loading the trusted certificates of the system takes longer than a handshake.
_context = lru_cache(maxsize=1)(tls_context)


def open_connection(target: Target) -> BlockingConnection:
    """Connect to `target`. Raises BrokerRefused, with advice for TLS."""
    if not target.is_tls:
        return BlockingConnection(target, ConnectOptions(product="warren perf"))
    try:
        return BlockingConnection(target, ConnectOptions(product="warren perf", context=_context(target.tls)))
    except (OSError, BrokerRefused) as error:
        hint = refusal_hint(error, target.tls, TLS_NAMES)
        if not hint:
            raise
        raise BrokerRefused(f"{error}; {hint}") from None
