"""Nodes that the DNS tells: without this one, bounded, and by name where certificates need names."""

import asyncio

import pytest
from tests.virtual_loop import run

from warren.cluster.formation import FormationNode
from warren.limits_cluster import FORMATION_LOOKUP_MS, FORMATION_NODES_MAX
from warren.transport.cluster.discovery import DiscoverySettings, discover_nodes
from warren.transport.host_socket import HostUnreachable

NAME = "nodes.example"


def discovered(names: dict[str, list[str]], *, are_names_needed: bool = False) -> list[FormationNode]:
    settings = DiscoverySettings(
        hostname=NAME, port=7, own_host="own.example", are_names_needed=are_names_needed
    )
    return run(discover_nodes(settings), names)


def nodes(*hosts: str) -> list[FormationNode]:
    return [FormationNode(host=host, port=7) for host in hosts]


def test_each_other_address_of_the_name_is_a_node() -> None:
    names = {NAME: ["10.0.0.3", "10.0.0.1", "10.0.0.2", "10.0.0.1"], "own.example": ["10.0.0.2"]}
    assert discovered(names) == nodes("10.0.0.1", "10.0.0.3")


def test_a_node_without_an_address_of_its_own_takes_all_for_others() -> None:
    assert discovered({NAME: ["10.0.0.1"]}) == nodes("10.0.0.1")


def test_no_more_nodes_are_returned_than_may_be_asked() -> None:
    assert len(discovered({NAME: [f"10.0.0.{number}" for number in range(FORMATION_NODES_MAX + 9)]})) == (
        FORMATION_NODES_MAX
    )


def test_nodes_are_named_if_certificates_need_names() -> None:
    names = {NAME: ["10.0.0.1", "10.0.0.2"], "one.example": ["10.0.0.1"]}
    assert discovered(names, are_names_needed=True) == nodes("one.example", "10.0.0.2")


def test_a_name_that_does_not_exist_is_no_empty_answer() -> None:
    with pytest.raises(HostUnreachable, match=r"^'nodes\.example': .*name or service not known"):
        discovered({})


def test_a_dns_that_does_not_answer_is_not_waited_for() -> None:
    async def looked_up() -> float:
        settings = DiscoverySettings(hostname=NAME, port=7, own_host="own.example")
        with pytest.raises(HostUnreachable, match=r"^no answer about 'nodes\.example' within"):
            await discover_nodes(settings)
        return asyncio.get_running_loop().time()

    assert run(looked_up(), {NAME: []}) == FORMATION_LOOKUP_MS / 1000
