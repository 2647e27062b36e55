"""Values of the settings of a cluster, and what is said about those that are refused."""

import pytest

from warren.cluster.partition_handling import PartitionMode
from warren.node import cluster_settings
from warren.node.cluster_settings import ListedNode, PeerDiscovery
from warren.node.config import Config, load
from warren.node.config_file import ConfigEntry, ConfigError


def config(key: str, value: str) -> Config:
    return Config([ConfigEntry(key, value, "x.conf:1")])


@pytest.mark.parametrize(
    ("value", "node"),
    [
        ("rabbit@host1", ListedNode("rabbit@host1", "host1", None)),
        (
            "warren@host1.example.com:25673",
            ListedNode("warren@host1.example.com", "host1.example.com", 25_673),
        ),
        ("w-1.a@10.0.0.1:1", ListedNode("w-1.a@10.0.0.1", "10.0.0.1", 1)),
        ("w@[fe80::1]", ListedNode("w@[fe80::1]", "fe80::1", None)),
        ("w@[fe80::1]:7", ListedNode("w@[fe80::1]", "fe80::1", 7)),
    ],
)
def test_a_listed_node_has_a_name_and_perhaps_a_port(value: str, node: ListedNode) -> None:
    found = config("cluster_formation.classic_config.nodes.1", value)
    assert found.family(cluster_settings.NODES) == {"1": node}


@pytest.mark.parametrize(
    "value", ["host1", "w@", "@host1", "w@h:0", "w@h:65536", "w@h:x", "w@h:", "w@a b", "w@" + "h" * 512]
)
def test_a_listed_node_without_a_name_or_with_a_wrong_port_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match=r"^x\.conf:1: .*nodes\.1 must be a node such as warren@host1"):
        config("cluster_formation.classic_config.nodes.1", value)


@pytest.mark.parametrize(
    ("value", "backend"),
    [
        ("classic_config", PeerDiscovery.CLASSIC_CONFIG),
        ("rabbit_peer_discovery_classic_config", PeerDiscovery.CLASSIC_CONFIG),
        ("dns", PeerDiscovery.DNS),
        ("rabbit_peer_discovery_dns", PeerDiscovery.DNS),
    ],
)
def test_a_backend_has_the_names_of_rabbitmq(value: str, backend: PeerDiscovery) -> None:
    found = config("cluster_formation.peer_discovery_backend", value)
    assert found.get(cluster_settings.BACKEND) is backend


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        ("k8s", "on Kubernetes, use dns with the name of the headless service"),
        ("rabbit_peer_discovery_k8s", "on Kubernetes, use dns"),
        ("rabbit_peer_discovery_aws", "use classic_config, or dns"),
        ("consul", "use dns with the name that Consul serves"),
        ("rabbit_peer_discovery_etcd", "use classic_config, or dns"),
    ],
)
def test_a_backend_that_does_not_exist_says_what_to_use(value: str, instead: str) -> None:
    key = "cluster_formation.peer_discovery_backend"
    with pytest.raises(ConfigError) as refused:
        config(key, value)
    assert str(refused.value).startswith(f"x.conf:1: {key} must be classic_config or dns ({instead}")
    assert str(refused.value).endswith(f"not {value!r}")


def test_a_seed_has_a_whole_name() -> None:
    assert config("cluster_formation.seed", "w@h").get(cluster_settings.SEED) == "w@h"
    with pytest.raises(ConfigError, match="must be the whole name of a node, such as warren@host1, not 'w'"):
        config("cluster_formation.seed", "w")


def test_the_number_of_attempts_may_be_unlimited() -> None:
    key = "cluster_formation.discovery_retry_limit"
    assert config(key, "10").get(cluster_settings.RETRY_LIMIT) == 10
    assert config(key, "unlimited").get(cluster_settings.RETRY_LIMIT) is None


def test_the_handling_of_partitions_has_the_words_of_rabbitmq() -> None:
    for handling in PartitionMode:
        found = config("cluster_partition_handling", handling.value)
        assert found.get(cluster_settings.PARTITION_HANDLING) is handling


@pytest.mark.parametrize(
    "key",
    [
        "net_ticktime", "cluster_keepalive_interval", "distribution.listener.port_range.max",
        "cluster_formation.randomized_startup_delay_range.min", "cluster_formation.node_cleanup.interval",
        "cluster_formation.node_cleanup.only_log_warning", "cluster_formation.k8s.host",
        "cluster_formation.node_type", "cluster_formation.registration.enabled",
        "cluster_partition_handling.pause_if_all_down.recover", "distribution.buffer_busy_limit",
    ],
)  # fmt: skip
def test_a_key_of_rabbitmq_without_effect_is_taken_with_a_warning(key: str) -> None:
    warning, *others = config(key, "1").warnings
    assert others == []
    assert warning.startswith(f"x.conf:1: {key} has no effect: ")


def test_a_key_that_nobody_has_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'cluster_formation\.sed' \(did you mean"):
        config("cluster_formation.sed", "w@h")


def test_a_variable_of_rabbitmq_sets_the_port() -> None:
    found = load("", {"RABBITMQ_DIST_PORT": "7"})
    assert found.get(cluster_settings.DISTRIBUTION_PORT) == 7
    assert found.place("distribution.listener.port_range.min") == "RABBITMQ_DIST_PORT"
