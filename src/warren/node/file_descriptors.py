"""Divides the file descriptors of the process, so that connections do not use those that the store needs.

files         files of the data directory, logs
outgoing      connections of shovels and links to other brokers: at most half of the share of files
each of HTTP  a fixed number of connections for each HTTP port
clients       the rest: AMQP and stream connections of all listeners
"""

import resource

from msgspec import Struct

from warren.limits_http import (
    HTTP_CONNECTIONS_MAX,
)

_FILES_SHARE = 4
_FILES_MIN = 64
_HTTP_SHARE = 8
_HTTP_MIN = 8
# The number that is requested if the system sets no limit.
_ENOUGH = 1_048_576


class ConnectionLimits(Struct, frozen=True):
    """The maximum numbers of connections."""

    clients: int
    per_http_port: int
    # To other brokers.
    outgoing: int


def connection_limits(descriptors: int, http_ports: int) -> ConnectionLimits:
    """Divide `descriptors` between clients, other brokers and the given number of HTTP ports."""
    files = max(_FILES_MIN, descriptors // _FILES_SHARE)
    per_http_port = max(_HTTP_MIN, min(HTTP_CONNECTIONS_MAX, descriptors // _HTTP_SHARE))
    clients = max(1, descriptors - files - http_ports * per_http_port)
    return ConnectionLimits(clients, per_http_port, files // 2)


def raise_descriptor_limit() -> int:
    """Raise the soft limit on file descriptors as far as the process may; returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, _ENOUGH) if hard == resource.RLIM_INFINITY else hard
    if soft == wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted
