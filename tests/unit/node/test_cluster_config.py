"""What the configuration says about a cluster: listeners, addresses, TLS, the cookie, and forming."""

from pathlib import Path

import pytest

from warren.cluster.cluster_member import ClusterAddress
from warren.cluster.formation import FormationNode
from warren.cluster.node_digest import AdvertisedStreams
from warren.cluster.partition_handling import PartitionMode
from warren.limits_cluster import CLUSTER_HOST_SIZE_MAX, FORMATION_NODES_MAX
from warren.node.cluster_config import (
    check_cluster,
    formation_settings,
    membership_settings,
    partition_settings,
)
from warren.node.cluster_formation import FormationSettings
from warren.node.cluster_membership import MembershipSettings
from warren.node.config import Config
from warren.node.config_file import ConfigEntry, ConfigError
from warren.node.errors import BootRefused
from warren.transport.cluster.cluster_tls import ClusterTlsSettings
from warren.transport.cluster.discovery import DiscoverySettings

NAME = "w1@h1"
NODES = "cluster_formation.classic_config.nodes"
BACKEND = "cluster_formation.peer_discovery_backend"
THREE = {f"{NODES}.{number}": f"w{number}@h{number}" for number in (1, 2, 3)}
DNS = {BACKEND: "dns", "cluster_formation.dns.hostname": "nodes.example"}
TLS = {
    "cluster.ssl_options.cacertfile": "ca.pem", "cluster.ssl_options.certfile": "node.pem",
    "cluster.ssl_options.keyfile": "node.key",
}  # fmt: skip


def config(entries: dict[str, str]) -> Config:
    return Config(
        ConfigEntry(key, value, f"x.conf:{line}") for line, (key, value) in enumerate(entries.items(), 1)
    )


def membership(entries: dict[str, str], directory: Path = Path()) -> MembershipSettings:
    return membership_settings(config(entries), NAME, directory, has_objects=False)


def formation(entries: dict[str, str], name: str = NAME) -> FormationSettings:
    found = formation_settings(config(entries), name, has_objects=False)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("entries", "host", "port", "is_listening"),
    [
        ({}, "", 25_672, False),
        ({"cluster.listeners.tcp": "none"}, "", 25_672, False),
        ({"cluster.listeners.tcp.default": "7"}, "", 7, True),
        ({"cluster.listeners.tcp.internal": "10.0.0.1:7"}, "10.0.0.1", 7, True),
        ({"distribution.listener.interface": "10.0.0.1"}, "10.0.0.1", 25_672, False),
        ({"distribution.listener.port_range.min": "7"}, "", 7, True),
        (
            {"distribution.listener.interface": "10.0.0.1", "cluster.listeners.tcp.default": "7"},
            "10.0.0.1", 7, True,
        ),
        ({"distribution.listener.port_range.min": "8", "cluster.listeners.tcp.default": "7"}, "", 7, True),
        (THREE, "", 25_672, True),
        ({**DNS, "cluster_formation.seed": NAME}, "", 25_672, True),
    ],
)  # fmt: skip
def test_a_node_listens_to_others_where_it_is_told_to(
    entries: dict[str, str], host: str, port: int, is_listening: bool
) -> None:
    found = membership(entries)
    assert (found.transport.listener.host, found.transport.listener.port) == (host, port)
    assert found.is_listening == is_listening


def test_a_node_listens_to_others_on_one_port() -> None:
    with pytest.raises(ConfigError, match=r"^x\.conf:2: cluster\.listeners\.tcp\.b is set beside .*\.a"):
        membership({"cluster.listeners.tcp.a": "1", "cluster.listeners.tcp.b": "2"})


def test_others_reach_a_node_at_the_host_in_its_name_unless_another_is_advertised() -> None:
    assert membership({}).address == ClusterAddress(host="h1", port=25_672)
    assert membership({"cluster.listeners.tcp.default": "7"}).address.port == 7
    more = {"cluster.advertised_host": "public.example", "cluster.advertised_port": "8"}
    assert membership(more).address == ClusterAddress(host="public.example", port=8)


def test_tls_between_nodes_needs_all_its_files() -> None:
    assert membership({}).transport.tls is None
    found = membership({**TLS, "cluster.ssl_options.password": "secret"}).transport.tls
    assert found == ClusterTlsSettings(
        authority_file="ca.pem", certificate_file="node.pem", key_file="node.key", password="secret"
    )
    for missing in TLS:
        with pytest.raises(ConfigError, match=rf"^x\.conf:\d: .* is set, but {missing} is not"):
            membership({key: value for key, value in TLS.items() if key != missing})


def test_the_cookie_is_the_configured_one(tmp_path: Path) -> None:
    assert membership({"cluster.cookie": "abc"}, tmp_path).cookie() == b"abc"
    with pytest.raises(BootRefused, match=r"the cookie in cluster\.cookie has more than 255 bytes"):
        membership({"cluster.cookie": "x" * 256}, tmp_path).cookie()


def test_a_node_without_a_list_stands_alone() -> None:
    assert formation_settings(config({}), NAME, has_objects=False) is None


def test_the_first_listed_node_is_the_seed() -> None:
    found = formation({f"{NODES}.10": "w9@h9", f"{NODES}.2": "w1@h1:7", f"{NODES}.1": "w2@h2"})
    assert found.plan.seed == "w2@h2"
    assert found.plan.nodes == (
        FormationNode(name="w2@h2", host="h2", port=25_672),
        FormationNode(name="w1@h1", host="h1", port=7),
        FormationNode(name="w9@h9", host="h9", port=25_672),
    )
    assert not found.plan.is_looked_up
    assert found.discovery is None


def test_listed_nodes_listen_on_the_port_of_this_one() -> None:
    found = formation({**THREE, "cluster.listeners.tcp.default": "7"})
    assert {node.port for node in found.plan.nodes} == {7}


def test_the_settings_of_forming_are_in_the_plan() -> None:
    more = {
        "cluster_formation.seed": "w3@h3", "cluster_formation.target_cluster_size_hint": "3",
        "cluster_formation.discovery_retry_limit": "10",
        "cluster_formation.discovery_retry_interval": "700",
    }  # fmt: skip
    plan = formation_settings(config({**THREE, **more}), NAME, has_objects=True)
    assert plan is not None
    found = plan.plan
    assert (found.own_name, found.seed, found.size_hint) == (NAME, "w3@h3", 3)
    assert (found.attempts_max, found.interval_ms, found.has_objects) == (10, 700, True)


def test_nodes_of_the_dns_are_looked_up() -> None:
    found = formation({**DNS, "cluster_formation.seed": "w2@h2"})
    assert (found.plan.seed, found.plan.is_looked_up, found.plan.nodes) == ("w2@h2", True, ())
    assert found.discovery == DiscoverySettings(hostname="nodes.example", port=25_672, own_host="h1")
    named = formation({**DNS, **TLS, "cluster_formation.target_cluster_size_hint": "3"})
    assert named.plan.seed == ""
    assert named.discovery is not None
    assert named.discovery.are_names_needed


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({BACKEND: "classic_config"}, f"x.conf:1: {BACKEND} is classic_config, but {NODES}.1 is not set"),
        ({BACKEND: "dns"}, f"x.conf:1: {BACKEND} is dns, but cluster_formation.dns.hostname is not set"),
        ({**DNS, f"{NODES}.1": "a@b"}, f"x.conf:1: {BACKEND} is dns, but {NODES}.1 is set"),
        (
            {"cluster_formation.dns.hostname": "a"},
            f"x.conf:1: cluster_formation.dns.hostname is set, but {BACKEND} is not dns",
        ),
        (DNS, "x.conf:2: cluster_formation.dns.hostname needs cluster_formation.seed, the node that"),
        (
            {**THREE, "cluster_formation.seed": "w9@h9"},
            f"x.conf:4: cluster_formation.seed is w9@h9, which is none of {NODES}",
        ),
        ({**THREE, f"{NODES}.4": "w2@h2"}, f"x.conf:4: {NODES}.4 is w2@h2, as {NODES}.2 is"),
        (
            {f"{NODES}.1": "rabbit@h1", f"{NODES}.2": "rabbit@h2"},
            f"x.conf:1: {NODES}.1 is rabbit@h1, but the name of this node is w1@h1: set node.name",
        ),
        ({**THREE, "in_memory": "true"}, "x.conf:4: in_memory is set, but every member"),
        (
            {f"{NODES}.{number}": f"w@h{number}" for number in range(FORMATION_NODES_MAX + 1)},
            f"{NODES} has {FORMATION_NODES_MAX + 1} nodes: {FORMATION_NODES_MAX} are permitted",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused_with_their_place(entries: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        formation(entries)
    assert str(refused.value).startswith(text)


def test_two_nodes_of_one_host_are_told_apart_by_their_ports() -> None:
    found = formation({f"{NODES}.1": "other@h1:7", f"{NODES}.2": "w2@h2"})
    assert found.plan.seed == "other@h1"


def test_a_list_of_which_a_node_is_no_part_has_it_join_those() -> None:
    assert formation(THREE, "w4@h4").plan.own_name == "w4@h4"


def test_the_nodes_that_must_be_reached_are_named() -> None:
    key = "cluster_partition_handling"
    found = partition_settings(
        config({key: "pause_if_all_down", f"{key}.pause_if_all_down.nodes.1": "w1@h1"})
    )
    assert (found.mode, found.nodes) == (PartitionMode.PAUSE_IF_ALL_DOWN, ("w1@h1",))
    with pytest.raises(ConfigError, match=rf"^x\.conf:1: {key} is pause_if_all_down, but .*nodes\.1 is not"):
        partition_settings(config({key: "pause_if_all_down"}))


def test_a_configuration_is_checked_without_a_data_directory() -> None:
    assert check_cluster(config({**THREE, **TLS})) == []
    assert check_cluster(config({"cluster_partition_handling": "autoheal"})) == [
        "x.conf:1: cluster_partition_handling: autoheal has the effect of ignore: nothing diverges"
    ]
    for wrong in (DNS, {"cluster_partition_handling": "pause_if_all_down"}, {BACKEND: "dns"}):
        with pytest.raises(ConfigError):
            check_cluster(config(wrong))
    with pytest.raises(ConfigError, match="the name of this node is rabbit@h1"):
        check_cluster(config({**THREE, "node.name": "rabbit@h1"}))


def test_others_are_told_where_clients_of_streams_are_to_connect() -> None:
    assert membership({}).advertised_streams == AdvertisedStreams()
    entries = {
        "stream.advertised_host": "streams.example", "stream.advertised_port": "7",
        "stream.advertised_tls_host": "tls.example", "stream.advertised_tls_port": "8",
    }  # fmt: skip
    told = membership(entries).advertised_streams
    assert told == AdvertisedStreams("streams.example", 7, "tls.example", 8)
    for host in ("é.example", "h" * (CLUSTER_HOST_SIZE_MAX + 1)):
        with pytest.raises(
            ConfigError, match=r"^x.conf:1: stream.advertised_host must be a host of at most 255 A"
        ):
            membership({"stream.advertised_host": host})
