"""How the file descriptors of the process are shared out, so that no port takes what the store needs.

files         whatever stands on the disk, logs, clients of ours
each of HTTP  so many connections of each of its ports
clients       the rest: AMQP and streams, all their listeners together
"""

import resource
from dataclasses import dataclass

from warren.limits_http import (
    HTTP_CONNECTIONS_MAX,
)

_FILES_SHARE = 4
_FILES_MIN = 64
_HTTP_SHARE = 8
_HTTP_MIN = 8
# What is asked for where as many may be had as one likes.
_ENOUGH = 1_048_576


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Connections that there may be."""

    clients: int
    per_http_port: int


def connection_limits(descriptors: int, http_ports: int) -> ConnectionLimits:
    """Of so many `descriptors`, beside so many ports of HTTP."""
    files = max(_FILES_MIN, descriptors // _FILES_SHARE)
    per_http_port = max(_HTTP_MIN, min(HTTP_CONNECTIONS_MAX, descriptors // _HTTP_SHARE))
    return ConnectionLimits(max(1, descriptors - files - http_ports * per_http_port), per_http_port)


def raise_descriptor_limit() -> int:
    """Take as many file descriptors as this process may have; returns how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, _ENOUGH) if hard == resource.RLIM_INFINITY else hard
    if soft == wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted
