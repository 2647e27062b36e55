"""The name and the incarnation of a node, kept in its data directory."""

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from google_crc32c import value as checksum_of

from warren.cluster.admission import KnownMember
from warren.metadata.incarnation import Incarnation
from warren.node.config import Config, load
from warren.node.config_file import ConfigEntry, ConfigError
from warren.node.errors import BootRefused
from warren.node.node_identity import (
    ClusterIdentity,
    MembershipPhase,
    NodeIdentity,
    begin_incarnation,
    keep_membership,
    stored_name,
)

HOST = socket.gethostname().partition(".")[0]
NOW = 5_000_999

Damage = Callable[[bytes], bytes]


def named(name: str = "") -> Config:
    return Config([ConfigEntry("node.name", name, "here:1")] if name else [])


def begun(directory: Path | None, name: str = "", now: int = NOW) -> NodeIdentity:
    return begin_incarnation(named(name), directory, now)


def test_each_start_of_a_directory_has_a_greater_incarnation_whatever_the_clock_says(tmp_path: Path) -> None:
    numbers = [begun(tmp_path, now=now).incarnation for now in (NOW, NOW, NOW - 4_000_000, NOW + 9_000)]
    assert numbers == [Incarnation(1, number) for number in (5000, 5001, 5002, 5009)]


def test_an_incarnation_is_on_the_disk_before_it_is_known(tmp_path: Path) -> None:
    begun(tmp_path)
    content = (tmp_path / "node").read_bytes()
    assert content[:-4] == b'WRNNOD\0\2{"name":"warren@%b","incarnation":5000}' % HOST.encode()
    assert content[-4:] == checksum_of(content[:-4]).to_bytes(4, "big")


def test_a_node_in_memory_has_the_time_of_its_start_as_incarnation() -> None:
    assert begun(None) == NodeIdentity(f"warren@{HOST}", Incarnation(1, 5000))
    assert begun(None, "a@b").name == "a@b"


def test_a_name_without_a_host_gets_that_of_the_machine(tmp_path: Path) -> None:
    assert begun(tmp_path, "rabbit").name == f"rabbit@{HOST}"
    assert begun(tmp_path, "rabbit").name == f"rabbit@{HOST}"


def test_a_directory_keeps_the_name_of_its_first_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = begun(tmp_path).name
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    assert begun(tmp_path).name == first
    assert begun(None).name == "warren@elsewhere"


def test_another_name_than_that_of_the_directory_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    begun(tmp_path, "a@b")
    before = (tmp_path / "node").read_bytes()
    with pytest.raises(BootRefused) as refused:
        begun(tmp_path, "c@b")
    assert str(refused.value) == (
        f"the data directory '{tmp_path}' belongs to the node 'a@b', but here:1: node.name is 'c@b': "
        "set node.name = a@b, or start with another data directory"
    )
    assert (tmp_path / "node").read_bytes() == before


@pytest.mark.parametrize(
    "damaged", [lambda data: b"", lambda data: data[:-5], lambda data: data[:20] + b"x" + data[21:]]
)
def test_a_damaged_file_is_refused(tmp_path: Path, damaged: Damage) -> None:
    begun(tmp_path)
    path = tmp_path / "node"
    path.write_bytes(damaged(path.read_bytes()))
    with pytest.raises(BootRefused, match=r"node' is damaged: restore it from a backup, or delete it"):
        begun(tmp_path)


def test_a_directory_of_version_1_is_of_a_node_that_has_met_no_other(tmp_path: Path) -> None:
    content = b'WRNNOD\0\1{"name":"a@b","incarnation":7000}'
    (tmp_path / "node").write_bytes(content + checksum_of(content).to_bytes(4, "big"))
    assert begun(tmp_path) == NodeIdentity("a@b", Incarnation(1, 7001), None)


def test_what_a_node_was_told_at_its_admission_is_that_of_each_further_start(tmp_path: Path) -> None:
    begun(tmp_path)
    admitted = ClusterIdentity(
        phase=MembershipPhase.JOINING, node_id=3, cluster_id=bytes(range(16)),
        members=(KnownMember(1, "a@b", "b", 25672),),
    )  # fmt: skip
    keep_membership(tmp_path, admitted)
    again = begun(tmp_path)
    assert again.cluster == admitted
    assert again.incarnation == Incarnation(3, 5001)
    keep_membership(tmp_path, None)
    assert begun(tmp_path).incarnation == Incarnation(1, 5002)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    content = b"WRNNOD\0\3{}"
    (tmp_path / "node").write_bytes(content + checksum_of(content).to_bytes(4, "big"))
    with pytest.raises(BootRefused, match="has format 3, which is newer than 2"):
        begun(tmp_path)


def test_the_name_can_be_given_as_rabbitmq_has_it_and_as_every_setting() -> None:
    rabbitmq, own = {"RABBITMQ_NODENAME": "rabbit@a"}, {"WARREN_NODE_NAME": "warren@b"}
    assert begin_incarnation(load("", rabbitmq), None, NOW).name == "rabbit@a"
    assert begin_incarnation(load("", rabbitmq | own), None, NOW).name == "warren@b"


@pytest.mark.parametrize("name", ["@b", "a@", "a@b@c", "a b", "-\n", "é@b", "a/b@c", "a" * 256])
def test_what_cannot_be_the_name_of_a_node_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=re.escape("node.name must be a name such as 'warren@host1'")):
        named(name)


def test_the_name_of_a_stopped_node_is_read_from_its_directory(tmp_path: Path) -> None:
    assert stored_name(tmp_path) is None
    begun(tmp_path, "a@b")
    before = (tmp_path / "node").read_bytes()
    assert stored_name(tmp_path) == "a@b"
    assert (tmp_path / "node").read_bytes() == before
