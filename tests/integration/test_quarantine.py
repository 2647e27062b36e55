"""A broker that lost a part of its metadata keeps the data that the metadata do not name any more."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker, refusal
from tests.integration.test_serve import connect
from tests.long_params import long_params

QUEUES = [f"q{number}" for number in range(5)]
PERSISTENT = pika.BasicProperties(delivery_mode=2)
DEFINITIONS = {
    "users": [{"name": "u", "password": "p", "tags": "administrator"}],
    "vhosts": [{"name": "/"}],
    "permissions": [{"user": "u", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
}


@contextmanager
def started(data: Path, **environment: str) -> Iterator[BrokerProcess]:
    definitions = data.parent / "definitions.json"
    definitions.write_text(json.dumps(DEFINITIONS))
    environment["WARREN_LOAD_DEFINITIONS"] = str(definitions)
    with broker("--data-dir", str(data), **environment) as one:
        yield one


def client(one: BrokerProcess) -> HttpClient:
    return HttpClient(one, "u:p")


def killed(one: BrokerProcess) -> None:
    os.kill(one.process.pid, signal.SIGKILL)
    one.process.wait()


def channel_of(one: BrokerProcess, vhost: str = "v") -> BlockingChannel:
    channel = connect(one.port, "u", "p", vhost).channel()
    channel.confirm_delivery()
    return channel


def filled(one: BrokerProcess) -> None:
    """A virtual host, five queues with 100 messages each, and a stream with 50."""
    assert client(one).ask("PUT /vhosts/v").status == 201
    client(one).status("PUT /permissions/v/u", {"configure": ".*", "write": ".*", "read": ".*"})
    channel = channel_of(one)
    channel.queue_declare("stream", durable=True, arguments={"x-queue-type": "stream"})
    for queue in QUEUES:
        channel.queue_declare(queue, durable=True)
    for number in range(500):
        channel.basic_publish("", QUEUES[number % 5], b"%d" % number, PERSISTENT)
    for number in range(50):
        channel.basic_publish("", "stream", b"%d" % number, PERSISTENT)


def is_filled(one: BrokerProcess) -> None:
    channel = channel_of(one)
    for at, queue in enumerate(QUEUES):
        bodies = [channel.basic_get(queue, auto_ack=False)[2] for _ in range(100)]
        assert bodies == [b"%d" % number for number in range(at, 500, 5)]
        assert channel.basic_get(queue) == (None, None, None)
    channel.basic_qos(prefetch_count=100)
    read = channel.consume("stream", arguments={"x-stream-offset": "first"}, inactivity_timeout=30)
    assert [next(read)[2] for _ in range(50)] == [b"%d" % number for number in range(50)]


# The kinds and the first fields of the commands that declare them.
VHOST = b"\x01\x96\xa1v"
STREAM = b"\x14\x99\xa1v\xa6stream"
QUEUE = b"\x14\x99\xa1v\xa2q3"


def cut_before(file: Path, text: bytes) -> None:
    """Truncate the journal before the first record that contains `text`."""
    data = file.read_bytes()
    file.write_bytes(data[: data.index(text) - 8])


@pytest.mark.parametrize(
    "text",
    [VHOST, *long_params(STREAM, QUEUE)],
)
def test_data_of_lost_metadata_is_quarantined_and_restored_with_them(tmp_path: Path, text: bytes) -> None:
    data = tmp_path / "data"
    with started(data) as one:
        filled(one)
        killed(one)
    shutil.copytree(data / "metadata", tmp_path / "copy")
    cut_before(data / "metadata" / "metadata", text)
    with started(data, WARREN_METADATA_SKIP_DAMAGE="true") as one:
        items = client(one).get("/warren/quarantine")
        messages = sum(item["messages"] for item in items)
        assert messages == (200 if b"q3" in text else 550)
        log = "".join(one.lines)
        for item in items:
            assert item["kind"] == "metadata" or item["id"] in log
        node = client(one).get("/nodes")[0]
        assert node["quarantined_items"] == len(items)
        assert node["quarantined_messages"] == messages
        killed(one)
    # Once more: quarantined data does not expire.
    with started(data) as one:
        assert sum(item["messages"] for item in client(one).get("/warren/quarantine")) == messages
        killed(one)
    shutil.rmtree(data / "metadata")
    shutil.copytree(tmp_path / "copy", data / "metadata")
    # The stores have seen more of the metadata since.
    assert "older copy" in refusal("--data-dir", str(data))[1]
    assert recovered(data, "--source", "readable", "--apply")[0] == 0
    with started(data) as one:
        is_filled(one)
        assert {item["kind"] for item in client(one).get("/warren/quarantine")} == {"metadata"}


def test_quarantined_data_is_removed_on_request_of_an_operator(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with started(data) as one:
        filled(one)
        killed(one)
    cut_before(data / "metadata" / "metadata", STREAM)
    with started(data, WARREN_METADATA_SKIP_DAMAGE="true") as one:
        api = client(one)
        assert api.ask("DELETE /warren/quarantine/queue-nosuch-1").status == 404
        for item in api.get("/warren/quarantine"):
            assert api.ask(f"DELETE /warren/quarantine/{item['id']}").status == 204
        assert api.get("/warren/quarantine") == []
        channel = channel_of(one)
        channel.queue_declare("new", durable=True)
        channel.basic_publish("", "new", b"1", PERSISTENT)
        killed(one)
    with started(data) as one:
        assert client(one).get("/warren/quarantine") == []
        assert channel_of(one).basic_get("new")[2] == b"1"
    assert not any(path.is_file() for path in (data / "quarantine").rglob("*"))


def test_quarantined_data_fails_a_health_check_until_an_operator_acknowledges_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with started(data) as one:
        filled(one)
        assert client(one).ask("GET /health/checks/quarantine").status == 200
        killed(one)
    shutil.copytree(data / "metadata", tmp_path / "copy")
    cut_before(data / "metadata" / "metadata", VHOST)
    with started(data, WARREN_METADATA_SKIP_DAMAGE="true") as one:
        api = client(one)
        refused = api.ask("GET /health/checks/quarantine")
        assert refused.status == 503
        (item,) = [item for item in api.get("/warren/quarantine") if item["kind"] == "vhost"]
        # The metadata were restored by an operator, so nothing is reported.
        assert refused.value["quarantine"] == [item]
        assert api.get("/nodes")[0]["quarantined_unacknowledged"] == 1
        assert api.get("/healthchecks/node")["status"] == "ok"
        assert api.ask("POST /warren/quarantine/acknowledge").value == {"acknowledged": 1}
        assert api.ask("POST /warren/quarantine/acknowledge").value == {"acknowledged": 0}
        assert api.ask("GET /health/checks/quarantine").status == 200
        killed(one)
    # That is remembered, and forgotten together with the data.
    with started(data) as one:
        assert client(one).ask("GET /health/checks/quarantine").status == 200
        assert all(item["acknowledged"] for item in client(one).get("/warren/quarantine"))
        killed(one)
    shutil.copytree(data / "metadata", tmp_path / "without")
    for metadata, status in (("copy", 200), ("without", 503)):
        shutil.rmtree(data / "metadata")
        shutil.copytree(tmp_path / metadata, data / "metadata")
        assert recovered(data, "--source", "readable", "--apply")[0] == 0
        with started(data) as one:
            assert client(one).ask("GET /health/checks/quarantine").status == status
            killed(one)


def test_data_deleted_by_commands_is_not_quarantined(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with started(data) as one:
        filled(one)
        channel = channel_of(one)
        for number in range(50):
            channel.queue_declare(f"short{number}", durable=True)
            channel.basic_publish("", f"short{number}", b"1", PERSISTENT)
        for number in range(50):
            channel.queue_delete(f"short{number}")
        channel.queue_delete("stream")
        killed(one)
    for _ in range(2):
        with started(data) as one:
            assert client(one).get("/warren/quarantine") == []
            killed(one)


def test_an_interrupted_removal_of_a_vhost_is_completed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with started(data) as one:
        filled(one)
        folders = {path.name for path in (data / "vhosts").iterdir()}
        copy = tmp_path / "vhosts"
        shutil.copytree(data / "vhosts", copy)
        assert client(one).ask("DELETE /vhosts/v").status == 204
        killed(one)
    # As after a power cut before its directory was renamed.
    shutil.rmtree(data / "vhosts")
    shutil.copytree(copy, data / "vhosts")
    assert len(folders) == 2
    with started(data) as one:
        assert client(one).get("/warren/quarantine") == []
        assert len(list((data / "vhosts").iterdir())) == 1


def test_entirely_missing_metadata_are_reported(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with started(data) as one:
        killed(one)
    shutil.rmtree(data / "metadata")
    for _ in range(2):
        status, errors = refusal("--data-dir", str(data))
        assert status == 1
        assert "there are no metadata that name their queues" in errors.splitlines()[-1]


def recovered(data: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "warren.cli.main", "metadata", "recover", str(data), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_an_operator_sees_what_each_choice_keeps_and_chooses_one(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with started(data) as one:
        filled(one)
        status, text = recovered(data)
        assert status == 1
        assert "in use by process" in text
        killed(one)
    file, copy = data / "metadata" / "metadata", tmp_path / "copy"
    shutil.copy(file, copy)
    cut_before(file, QUEUE)
    before = file.read_bytes()
    status, text = recovered(data, "--copy", str(copy))
    assert status == 0
    assert "stores: 1 virtual hosts, 6 queues and streams, 550 messages" in text
    assert "names 2 vhosts, 3 queues, 1 streams, 0 bindings, 1 users" in text
    assert "does not name 2 queues and streams: 200 messages" in text
    assert "names 2 vhosts, 5 queues, 1 streams, 0 bindings, 1 users" in text
    assert "does not name 6 queues and streams: 550 messages" in text
    assert recovered(data, "--source", "readable")[0] == 0
    assert file.read_bytes() == before
    assert refusal("--data-dir", str(data))[0] == 1
    file.unlink()
    assert recovered(data, "--source", "readable", "--apply")[0] == 1
    assert recovered(data, "--source", "empty", "--apply")[0] == 0
    with started(data) as one:
        assert sum(item["messages"] for item in client(one).get("/warren/quarantine")) == 550
        killed(one)
    # Older metadata than the data on disk.
    assert recovered(data, "--copy", str(copy), "--source", "copy", "--apply")[0] == 0
    with started(data) as one:
        is_filled(one)
