"""`warren cluster recover`: a stopped member of a cluster goes on alone."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import broker
from tests.integration.test_serve import connect
from tests.warren_process import free_port, warren_environment

from warren.journal.journal import Journal
from warren.journal.journal_dependencies import JournalDependencies
from warren.journal.log_reader import RecoveredLog
from warren.journal.recovery import recover
from warren.metadata.commands import CommandContext, DeclareQueue, MetadataCommand
from warren.metadata.incarnation import NODE_ALONE, Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberUp
from warren.node.cluster_recovery import RecoveryRefused, continue_alone, read_member
from warren.replication.raft.change import Configuration
from warren.runtime.disk import DirectoryDisk
from warren.runtime.randomness import random_bytes
from warren.runtime.worker_thread import WorkerThread

CLUSTER_ID = b"sixteen bytes..."


@contextmanager
def opened(data: Path) -> Iterator[tuple[Metadata, DirectoryDisk, RecoveredLog]]:
    """The metadata of a stopped node, on their disk."""
    metadata = Metadata()
    loop = asyncio.new_event_loop()
    with (
        closing(loop),
        closing(WorkerThread("metadata")) as worker,
        closing(DirectoryDisk(data / "metadata", loop, worker)) as disk,
    ):
        yield metadata, disk, recover(disk, metadata)


def made_member(data: Path, name: str) -> None:
    """Make the stopped node a member of a cluster with two others, which have a queue each."""
    commands: list[MetadataCommand] = [
        FormCluster(
            cluster_id=CLUSTER_ID, name=name, host="here", cluster_port=1, incarnation=1, feature_level=1
        )
    ]
    for number, other in ((2, "b@there"), (3, "c@there")):
        commands += [
            AdmitMember(name=other, host="there", cluster_port=number, incarnation=1, feature_level=1),
            MemberUp(id=number, incarnation=1, host="there", cluster_port=number, feature_level=1),
            DeclareQueue(vhost="/", name=f"on-{number}", durable=True, home=number),
        ]
    with opened(data) as (metadata, disk, found):
        for command in commands:
            context = CommandContext(index=metadata.index + 1, now=found.now)
            reply = metadata.apply(command, context)
            assert not reply.text, reply
        found.configuration = Configuration((1, 2, 3))
        dependencies = JournalDependencies(
            now=lambda: 0,
            random_bytes=random_bytes,
            make_future=asyncio.Future,
            report=lambda _: None,
            incarnation=Incarnation(NODE_ALONE, 1),
        )
        Journal(metadata, disk, dependencies, found).begin()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a stopped member, with a queue of its own that has a message."""
    with broker("--data-dir", str(tmp_path / "data")) as node:
        channel = connect(node.port).channel()
        channel.confirm_delivery()
        channel.queue_declare("own", durable=True)
        channel.basic_publish("", "own", b"kept", pika.BasicProperties(delivery_mode=2))
        name = HttpClient(node).get("/overview")["node"]
        assert node.stop() == 0
    made_member(tmp_path / "data", name)
    return tmp_path / "data"


def ran(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "warren.cli.main", "cluster", "recover", str(data), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=warren_environment()
    )


def test_what_is_lost_is_shown_first_and_nothing_is_changed(data: Path) -> None:
    before = (data / "metadata" / "metadata").read_bytes()
    shown = ran(data, "--alive", "b@there")
    assert shown.returncode == 0, shown.stderr
    assert f"cluster {CLUSTER_ID.hex()}" in shown.stdout
    assert "what was agreed on later is lost" in shown.stdout
    assert "b@there: to be admitted again; 1 queues on it become unavailable" in shown.stdout
    assert "c@there: removed; 1 queues on it become unavailable" in shown.stdout
    assert "nothing was changed; --accept-loss makes" in shown.stdout
    assert (data / "metadata" / "metadata").read_bytes() == before


def test_the_member_goes_on_alone_with_its_own_messages_and_another_cluster_id(data: Path) -> None:
    done = ran(data, "--accept-loss", "--alive", "b@there")
    assert done.returncode == 0, done.stderr
    assert "is the only member of cluster " in done.stdout
    assert "on b@there: stop it, start it with an empty data directory" in done.stdout
    assert "warren cluster join here:1" in done.stdout
    assert any((data / "quarantine" / "metadata").iterdir())
    with opened(data) as (metadata, _, found):
        assert metadata.members.cluster_id not in (b"", CLUSTER_ID)
        assert list(metadata.members.by_id) == [1]
        assert {one.name for one in metadata.members.removed.values()} == {"b@there", "c@there"}
        assert found.configuration == Configuration((1,))
    with broker("--data-dir", str(data), "--cluster-port", str(free_port())) as node:
        status = HttpClient(node).get("/warren/cluster")
        assert [(one["node"], one["is_member"], one["names"]) for one in status["unavailable"]] == [
            ("b@there", False, ["on-2"]), ("c@there", False, ["on-3"]),
        ]  # fmt: skip
        assert status["problems"] == [
            f"1 queue on the former member '{name}' is lost: delete them" for name in ("b@there", "c@there")
        ]
        channel = connect(node.port).channel()
        channel.queue_declare("new", durable=True)
        assert channel.basic_get("own")[2] == b"kept"
    # There is nobody left to recover from.
    assert "is in no cluster with another node" in ran(data, "--accept-loss").stderr


def test_a_recovery_is_refused_with_the_reason(data: Path, tmp_path: Path) -> None:
    refused = ran(data, "--accept-loss", "--alive", "b@there,d@there")
    assert refused.returncode == 1
    assert "'d@there' is no other member of the cluster: b@there, c@there" in refused.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "it has no identity" in ran(empty).stderr
    file = data / "metadata" / "metadata"
    content = bytearray(file.read_bytes())
    content[200] ^= 1
    file.write_bytes(content)
    with pytest.raises(RecoveryRefused, match=f"warren metadata recover {data}"):
        read_member(data)


def test_a_directory_that_a_broker_uses_is_not_recovered(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path / "data")):
        refused = ran(tmp_path / "data", "--accept-loss")
    assert refused.returncode == 1
    assert "warren: " in refused.stderr
    assert str(tmp_path / "data") in refused.stderr


def test_secrets_stay_as_they_are_without_the_key(data: Path) -> None:
    (data / "secret.key").unlink()
    member = read_member(data)
    continue_alone(data, member)
    with opened(data) as (metadata, _, _found):
        assert list(metadata.members.by_id) == [1]
