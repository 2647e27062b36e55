"""The settings of a cluster: where nodes listen to each other, how they find each other, and their secret.

The keys are RabbitMQ's wherever it has one; `cluster_config.py` reads them.
"""

import re
from enum import Enum

from msgspec import Struct

from warren.cluster.partition_handling import PartitionMode
from warren.limits_cluster import CLUSTER_HOST_SIZE_MAX, CLUSTER_NODE_NAME_SIZE_MAX
from warren.node.setting_types import Family, Setting
from warren.node.values import Address, InvalidValue, address, choice, integer, text, unless

PORT = 25_672
# Less would ask nodes that answer at once without a pause.
_INTERVAL_MS_MIN, _INTERVAL_MS = 100, 500
_NODE = re.compile(r"(?P<name>[A-Za-z0-9_-][A-Za-z0-9_.-]*)@(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)")
_PORT = re.compile(r":(?P<port>\d{1,5})")
# Backends of RabbitMQ that Warren does not have, with what does the same.
_OTHER_BACKENDS = {
    "k8s": "on Kubernetes, use `dns` with the name of the headless service",
    "aws": "use `classic_config`, or `dns` with a name that has the addresses of the nodes",
    "consul": "use `dns` with the name that Consul serves for the nodes",
    "etcd": "use `classic_config`, or `dns` with a name that has the addresses of the nodes",
}


class PeerDiscovery(Enum):
    """How a node finds the others of its cluster."""

    CLASSIC_CONFIG = "classic_config"
    DNS = "dns"


class ListedNode(Struct, frozen=True):
    """A node in the settings; without a port, it listens where this one does."""

    name: str
    host: str
    port: int | None


def _backend(value: str) -> PeerDiscovery:
    """Parse a backend, by its short or its long name."""
    name = value.lower().removeprefix("rabbit_peer_discovery_")
    try:
        return PeerDiscovery(name)
    except ValueError:
        instead = _OTHER_BACKENDS.get(name)
        more = "" if instead is None else f" ({instead.replace('`', '')})"
        raise InvalidValue(f"must be classic_config or dns{more}") from None


def _member_name(value: str) -> str:
    """Parse the whole name of a node."""
    found = _NODE.fullmatch(value)
    if found is None or len(value) > CLUSTER_NODE_NAME_SIZE_MAX:
        raise InvalidValue("must be the whole name of a node, such as warren@host1")
    return value


def _listed_node(value: str) -> ListedNode:
    """Parse a node: name@host, or name@host:port."""
    found = _NODE.match(value)
    rest = "" if found is None else value[found.end() :]
    port = _PORT.fullmatch(rest)
    number = None if port is None else int(port["port"])
    is_port = not rest if number is None else 0 < number < 1 << 16
    if found is None or not is_port or len(found[0]) > CLUSTER_NODE_NAME_SIZE_MAX:
        raise InvalidValue("must be a node such as warren@host1, or warren@host1:25672")
    return ListedNode(found[0], found["host"].strip("[]"), number)


def _host(value: str) -> str:
    """Parse the name or the address of a host."""
    if len(value) > CLUSTER_HOST_SIZE_MAX or not value.isprintable() or " " in value:
        raise InvalidValue(f"must be a host of at most {CLUSTER_HOST_SIZE_MAX} characters")
    return value


# --- listeners ----------------------------------------------------------------------------------
CLUSTER_TCP: Family[Address] = Family(
    "cluster.listeners.tcp", {}, address,
    "port, or address and port, on which other nodes of a cluster connect: "
    "`cluster.listeners.tcp.default = 25672`; without it, a node that is in a cluster, or is to form one, "
    "listens on 25672",
)  # fmt: skip
DISTRIBUTION_PORT: Setting[int | None] = Setting(
    "distribution.listener.port_range.min", None, integer(0, 65_535),
    "RabbitMQ's name of the port on which other nodes of the cluster connect, without "
    "`cluster.listeners.tcp`: the node listens on this one",
)  # fmt: skip
DISTRIBUTION_INTERFACE = Setting(
    "distribution.listener.interface", "", text,
    "IP address on which other nodes of the cluster connect, such as `10.0.0.1`, if "
    "`cluster.listeners.tcp` has none; unset: all interfaces",
)  # fmt: skip
ADVERTISED_HOST = Setting(
    "cluster.advertised_host", "", _host,
    "host at which other nodes of the cluster reach this one, such as `host1.example.com`; unset: the host "
    "in the name of the node",
)  # fmt: skip
ADVERTISED_PORT: Setting[int | None] = Setting(
    "cluster.advertised_port", None, integer(1, 65_535),
    "port at which other nodes of the cluster reach this one; unset: the one on which it listens to them",
)  # fmt: skip
COOKIE = Setting(
    "cluster.cookie", "", text,
    "secret by which all nodes of a cluster know each other, up to 255 characters; unset: "
    "`RABBITMQ_ERLANG_COOKIE`, the file `~/.erlang.cookie`, or the file `cookie` in the data directory",
    is_secret=True,
)  # fmt: skip
CERTIFICATE_FILE = Setting(
    "cluster.ssl_options.certfile", "", text,
    "PEM file with the certificate of this node and its chain, for TLS between the nodes of a cluster: for "
    "the host at which the others reach it, as a server and as a client",
)  # fmt: skip
KEY_FILE = Setting(
    "cluster.ssl_options.keyfile", "", text, "PEM file with the private key of `cluster.ssl_options.certfile`"
)
AUTHORITY_FILE = Setting(
    "cluster.ssl_options.cacertfile", "", text,
    "PEM file with the CA certificates that the other nodes of the cluster are verified against",
)  # fmt: skip
KEY_PASSWORD = Setting(
    "cluster.ssl_options.password", "", text, "passphrase of `cluster.ssl_options.keyfile`", is_secret=True
)

# --- forming ------------------------------------------------------------------------------------
BACKEND: Setting[PeerDiscovery | None] = Setting(
    "cluster_formation.peer_discovery_backend", None, _backend,
    "how a new node finds the cluster that it joins or begins: `classic_config` (a list of nodes) or `dns`; "
    "unset: `classic_config` if nodes are listed, else the node stands alone until it is told to join",
)  # fmt: skip
NODES: Family[ListedNode] = Family(
    "cluster_formation.classic_config.nodes", {}, _listed_node,
    "all nodes of the cluster, also this one, in one order on all of them: "
    "`cluster_formation.classic_config.nodes.1 = warren@host1`, with `:port` for another port than this "
    "node's",
)  # fmt: skip
DNS_HOSTNAME = Setting(
    "cluster_formation.dns.hostname", "", _host,
    "name whose addresses in the DNS are those of the nodes, such as that of a headless service of "
    "Kubernetes: `warren-nodes.default.svc.cluster.local`",
)  # fmt: skip
SEED = Setting(
    "cluster_formation.seed", "", _member_name,
    "node that begins the cluster, which all others join, such as `warren@host1`; unset: the first of "
    "`cluster_formation.classic_config.nodes`, and with `dns` the one with the least name of "
    "`cluster_formation.target_cluster_size_hint` nodes",
)  # fmt: skip
SIZE_HINT: Setting[int | None] = Setting(
    "cluster_formation.target_cluster_size_hint", None, integer(1, 65_535),
    "number of nodes, with itself, that must be known to be new before one begins a cluster; without "
    "`cluster_formation.seed`, the number of all nodes that are started; unset: the seed begins it when all "
    "listed nodes are new, or when it has asked for five seconds",
)  # fmt: skip
RETRY_LIMIT: Setting[int | None] = Setting(
    "cluster_formation.discovery_retry_limit", None, unless(("unlimited", "infinity"), integer(1)),
    "how often a new node asks the others in vain before it stops; unset or `unlimited`: it waits for a "
    "cluster",
)  # fmt: skip
RETRY_INTERVAL = Setting(
    "cluster_formation.discovery_retry_interval", _INTERVAL_MS, integer(_INTERVAL_MS_MIN, 2**32 - 1),
    "milliseconds between two rounds in which a new node asks the others",
)  # fmt: skip

# --- partitions ---------------------------------------------------------------------------------
PARTITION_HANDLING = Setting(
    "cluster_partition_handling", PartitionMode.IGNORE,
    choice({one.value: one for one in PartitionMode}),
    "what a node does that reaches no majority of the cluster: `ignore` and `autoheal` serve its own queues "
    "to its clients, `pause_minority` disconnects clients until there is a majority, `pause_if_all_down` "
    "does so if none of `cluster_partition_handling.pause_if_all_down.nodes` is reached",
)  # fmt: skip
PAUSE_NODES = Family(
    "cluster_partition_handling.pause_if_all_down.nodes", {}, _member_name,
    "nodes of which one must be reached with `cluster_partition_handling = pause_if_all_down`: "
    "`cluster_partition_handling.pause_if_all_down.nodes.1 = warren@host1`",
)  # fmt: skip
