"""What the configuration says about a cluster: how its nodes reach each other, and how they form it."""

import os
from pathlib import Path
from typing import TypeVar

from warren.cluster.cluster_member import ClusterAddress
from warren.cluster.formation import FormationNode, FormationPlan
from warren.cluster.node_digest import AdvertisedStreams
from warren.cluster.partition_handling import PartitionMode, PartitionSettings
from warren.limits_cluster import CLUSTER_HOST_SIZE_MAX, FORMATION_NODES_MAX
from warren.node import cluster_settings as keys
from warren.node import settings
from warren.node.client_listeners import numbered_values
from warren.node.cluster_formation import FormationSettings
from warren.node.cluster_membership import MembershipSettings
from warren.node.cluster_settings import ListedNode, PeerDiscovery
from warren.node.config import Config
from warren.node.config_file import ConfigError
from warren.node.errors import BootRefused
from warren.node.setting_types import Family, Setting
from warren.runtime.randomness import random_bytes
from warren.transport.cluster.cluster_listener import ClusterListenerSettings
from warren.transport.cluster.cluster_tls import ClusterTlsSettings
from warren.transport.cluster.cluster_transport import ClusterTransportSettings
from warren.transport.cluster.cookie import CookieError, find_cookie
from warren.transport.cluster.discovery import DiscoverySettings

Value = TypeVar("Value")


def membership_settings(
    config: Config, name: str, directory: Path, *, has_objects: bool
) -> MembershipSettings:
    """How the node `name` is reached by others, and reaches them. Raises ConfigError.

    `has_objects` is true if it would lose something by joining a cluster.
    """
    listener = _listener(config)
    return MembershipSettings(
        transport=ClusterTransportSettings(listener=listener, tls=_tls(config)),
        cookie=lambda: _cookie(config, directory),
        address=ClusterAddress(
            host=_advertised_host(config, name), port=config.get(keys.ADVERTISED_PORT) or listener.port
        ),
        is_listening=_is_listening(config),
        formation=formation_settings(config, name, has_objects=has_objects),
        partition=partition_settings(config),
        advertised_streams=AdvertisedStreams(
            host=_told_host(config, settings.STREAM_HOST),
            port=config.get(settings.STREAM_PORT),
            tls_host=_told_host(config, settings.STREAM_TLS_HOST),
            tls_port=config.get(settings.STREAM_TLS_PORT),
        ),
    )


def formation_settings(config: Config, name: str, *, has_objects: bool) -> FormationSettings | None:
    """How the node `name` comes into its cluster; None if it stands alone until it is told to join.

    `has_objects` is true if it would lose something by joining. Raises ConfigError.
    """
    backend = _backend(config)
    if backend is None:
        return None
    if config.get(settings.IN_MEMORY):
        raise _error(config, settings.IN_MEMORY, "is set, but every member of a cluster has a data directory")
    is_listed = backend is PeerDiscovery.CLASSIC_CONFIG
    nodes = _listed_nodes(config) if is_listed else ()
    _check_own_name(config, name, nodes)
    plan = FormationPlan(
        own_name=name,
        seed=_seed(config, nodes, is_listed=is_listed),
        nodes=nodes,
        is_looked_up=not is_listed,
        size_hint=config.get(keys.SIZE_HINT),
        attempts_max=config.get(keys.RETRY_LIMIT),
        interval_ms=config.get(keys.RETRY_INTERVAL),
        has_objects=has_objects,
    )
    discovery = None if is_listed else _discovery(config, name)
    return FormationSettings(plan=plan, discovery=discovery)


def partition_settings(config: Config) -> PartitionSettings:
    """What the node does that is kept from others. Raises ConfigError."""
    handling = config.get(keys.PARTITION_HANDLING)
    nodes = numbered_values(config.family(keys.PAUSE_NODES))
    if handling is PartitionMode.PAUSE_IF_ALL_DOWN and not nodes:
        raise _error(
            config, keys.PARTITION_HANDLING, f"is {handling.value}, but {keys.PAUSE_NODES.key}.1 is not set"
        )
    return PartitionSettings(mode=handling, nodes=nodes)


def check_cluster(config: Config) -> list[str]:
    """Check all that can be without the data directory, and return warnings. Raises ConfigError."""
    name = config.get(settings.NODE_NAME)
    # The name of this node is that of its data directory, if the settings have none.
    membership_settings(config, name if "@" in name else "", Path(), has_objects=False)
    if partition_settings(config).mode is PartitionMode.AUTOHEAL:
        place = config.place(keys.PARTITION_HANDLING.key)
        return [
            f"{place}: {keys.PARTITION_HANDLING.key}: autoheal has the effect of ignore: nothing diverges"
        ]
    return []


# --- listening --------------------------------------------------------------------------------------


def _listener(config: Config) -> ClusterListenerSettings:
    interface = config.get(keys.DISTRIBUTION_INTERFACE)
    own = config.family(keys.CLUSTER_TCP)
    if len(own) > 1:
        first, second, *_ = (f"{keys.CLUSTER_TCP.key}.{name}" for name in own)
        raise ConfigError(
            f"{config.place(second)}: {second} is set beside {first}: a node listens to others on one port"
        )
    for where in own.values():
        return ClusterListenerSettings(host=where.host or interface, port=where.port)
    port = config.get(keys.DISTRIBUTION_PORT)
    return ClusterListenerSettings(host=interface, port=keys.PORT if port is None else port)


def _is_listening(config: Config) -> bool:
    """True if the node listens to others although it has met none."""
    is_told = bool(config.family(keys.CLUSTER_TCP)) or config.get(keys.DISTRIBUTION_PORT) is not None
    return is_told or _backend(config) is not None


def _cookie(config: Config, directory: Path) -> bytes:
    """Return the secret of the cluster. Raises BootRefused."""
    try:
        return find_cookie(config.get(keys.COOKIE), os.environ, directory, random_bytes)
    except CookieError as error:
        raise BootRefused(str(error)) from error


def _advertised_host(config: Config, name: str) -> str:
    return config.get(keys.ADVERTISED_HOST) or name.partition("@")[2]


def _told_host(config: Config, setting: Setting[str]) -> str:
    """The host of `setting`, which other nodes are told. Raises ConfigError."""
    host = config.get(setting)
    if len(host) > CLUSTER_HOST_SIZE_MAX or not (host.isascii() and host.isprintable()):
        raise _error(config, setting, f"must be a host of at most {CLUSTER_HOST_SIZE_MAX} ASCII characters")
    return host


def _tls(config: Config) -> ClusterTlsSettings | None:
    files = (keys.CERTIFICATE_FILE, keys.KEY_FILE, keys.AUTHORITY_FILE)
    given = [setting for setting in files if config.get(setting)]
    if not given:
        return None
    for missing in files:
        if missing not in given:
            raise _error(config, given[0], f"is set, but {missing.key} is not: TLS between nodes needs both")
    return ClusterTlsSettings(
        authority_file=config.get(keys.AUTHORITY_FILE),
        certificate_file=config.get(keys.CERTIFICATE_FILE),
        key_file=config.get(keys.KEY_FILE),
        password=config.get(keys.KEY_PASSWORD),
    )


# --- forming ----------------------------------------------------------------------------------------


def _backend(config: Config) -> PeerDiscovery | None:
    """How the others are found; None if this node looks for nobody."""
    backend = config.get(keys.BACKEND)
    nodes, hostname = config.family(keys.NODES), config.get(keys.DNS_HOSTNAME)
    if hostname and backend is not PeerDiscovery.DNS:
        raise _error(config, keys.DNS_HOSTNAME, f"is set, but {keys.BACKEND.key} is not dns")
    if nodes and backend is PeerDiscovery.DNS:
        raise _error(
            config,
            keys.BACKEND,
            f"is dns, but {keys.NODES.key}.{next(iter(nodes))} is set: remove one of them",
        )
    if backend is PeerDiscovery.DNS and not hostname:
        raise _error(config, keys.BACKEND, f"is dns, but {keys.DNS_HOSTNAME.key} is not set")
    if backend is PeerDiscovery.CLASSIC_CONFIG and not nodes:
        raise _error(config, keys.BACKEND, f"is classic_config, but {keys.NODES.key}.1 is not set")
    return PeerDiscovery.CLASSIC_CONFIG if nodes else backend


def _listed_nodes(config: Config) -> tuple[FormationNode, ...]:
    given: dict[str, ListedNode] = config.family(keys.NODES)
    if len(given) > FORMATION_NODES_MAX:
        raise ConfigError(f"{keys.NODES.key} has {len(given)} nodes: {FORMATION_NODES_MAX} are permitted")
    port = _listener(config).port or keys.PORT
    numbers: dict[str, str] = {}
    for number, node in given.items():
        key = f"{keys.NODES.key}.{number}"
        if node.name in numbers:
            raise ConfigError(
                f"{config.place(key)}: {key} is {node.name}, as {keys.NODES.key}.{numbers[node.name]} is"
            )
        numbers[node.name] = number
    return tuple(
        FormationNode(name=node.name, host=node.host, port=node.port or port)
        for node in numbered_values(given)
    )


def _check_own_name(config: Config, name: str, nodes: tuple[FormationNode, ...]) -> None:
    """Refuse a list that has this node under another name: it would be waited for in vain."""
    host = name.partition("@")[2]
    if not host or any(node.name == name for node in nodes):
        return
    port = _listener(config).port or keys.PORT
    for number, node in config.family(keys.NODES).items():
        if node.host == host and node.port in (None, port):
            key = f"{keys.NODES.key}.{number}"
            raise ConfigError(
                f"{config.place(key)}: {key} is {node.name}, but the name of this node is {name}: set "
                f"{settings.NODE_NAME.key} = {node.name} before its first start, or correct the list"
            )


def _seed(config: Config, nodes: tuple[FormationNode, ...], *, is_listed: bool) -> str:
    seed = config.get(keys.SEED)
    if not is_listed:
        if not seed and config.get(keys.SIZE_HINT) is None:
            raise _error(
                config, keys.DNS_HOSTNAME,
                f"needs {keys.SEED.key}, the node that begins the cluster, or {keys.SIZE_HINT.key}, the "
                "number of nodes that it is to have: otherwise several nodes could begin one",
            )  # fmt: skip
        return seed
    if seed and all(node.name != seed for node in nodes):
        raise _error(config, keys.SEED, f"is {seed}, which is none of {keys.NODES.key}")
    return seed or nodes[0].name


def _discovery(config: Config, name: str) -> DiscoverySettings:
    return DiscoverySettings(
        hostname=config.get(keys.DNS_HOSTNAME),
        port=_listener(config).port or keys.PORT,
        own_host=_advertised_host(config, name),
        are_names_needed=_tls(config) is not None,
    )


def _error(config: Config, setting: Setting[Value] | Family[Value], text: str) -> ConfigError:
    place = config.place(setting.key)
    return ConfigError(f"{place}: {setting.key} {text}" if place else f"{setting.key} {text}")
