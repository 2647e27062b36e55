"""Looks up the nodes of a cluster in the DNS: each address of one name is that of a node."""

import asyncio
import socket

from msgspec import Struct

from warren.cluster.formation import FormationNode
from warren.limits_cluster import FORMATION_LOOKUP_MS, FORMATION_NODES_MAX
from warren.transport.host_socket import HostUnreachable, addresses_of


class DiscoverySettings(Struct, frozen=True, kw_only=True):
    """Which name is looked up, and where the nodes behind it listen."""

    hostname: str
    port: int
    # The host of this node, whose addresses are left out.
    own_host: str
    # True if nodes have to be dialed by their names, because certificates are for names.
    are_names_needed: bool = False


async def discover_nodes(settings: DiscoverySettings) -> list[FormationNode]:
    """Return the other nodes, FORMATION_NODES_MAX at most. Raises HostUnreachable."""
    try:
        async with asyncio.timeout(FORMATION_LOOKUP_MS / 1000):
            found = await _hosts(settings.hostname, settings.port)
            hosts = sorted(found - await _own_hosts(settings))[:FORMATION_NODES_MAX]
            if settings.are_names_needed:
                hosts = await asyncio.gather(*(_name(host, settings.port) for host in hosts))
    except TimeoutError:
        raise HostUnreachable(
            f"no answer about '{settings.hostname}' within {FORMATION_LOOKUP_MS} ms"
        ) from None
    except HostUnreachable as error:
        raise HostUnreachable(f"'{settings.hostname}': {error}") from None
    return [FormationNode(host=host, port=settings.port) for host in hosts]


async def _hosts(hostname: str, port: int) -> set[str]:
    """The addresses of a name, as they are dialed."""
    return {str(address[0]) for _, address in await addresses_of(hostname, port)}


async def _own_hosts(settings: DiscoverySettings) -> set[str]:
    """The addresses of this node; none if its host has no address yet: then it asks itself in vain."""
    try:
        return await _hosts(settings.own_host, settings.port)
    except HostUnreachable:
        return set()


async def _name(host: str, port: int) -> str:
    """The name of an address, or the address if it has none."""
    loop = asyncio.get_running_loop()
    try:
        name, _ = await loop.getnameinfo((host, port), socket.NI_NAMEREQD)
    except OSError:
        return host
    return name
