"""An older copy of a part of a data directory is refused, or taken by an operator's word."""

import shutil
import subprocess
import sys
from pathlib import Path

import pika
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker, refusal
from tests.integration.test_serve import connect, get

PERSISTENT = pika.BasicProperties(delivery_mode=2)
QUEUES = {"classic": {}, "quorum": {"x-queue-type": "quorum"}, "stream": {"x-queue-type": "stream"}}
LATER = 50


def publish(started: BrokerProcess, count: int) -> None:
    """Publish `count` confirmed messages to each queue."""
    channel = connect(started.port).channel()
    channel.confirm_delivery()
    for name, arguments in QUEUES.items():
        channel.queue_declare(name, durable=True, arguments=arguments)
        for _ in range(count):
            channel.basic_publish("", name, b"x", PERSISTENT)


def ready(started: BrokerProcess, queue: str) -> int:
    declared = connect(started.port).channel().queue_declare(queue, durable=True, passive=True)
    return int(declared.method.message_count)


def older(data: Path, folder: str) -> Path:
    """A data directory of which the part `folder` is from before the last run."""
    kept = data.parent / "kept"
    with broker("--data-dir", str(data)) as started:
        publish(started, 10)
        assert started.stop() == 0
    shutil.copytree(data / folder, kept)
    with broker("--data-dir", str(data)) as started:
        publish(started, LATER)
        assert started.stop() == 0
    shutil.rmtree(data / folder)
    shutil.copytree(kept, data / folder)
    return data


def test_a_vhost_whose_directory_is_an_older_copy_stays_down_until_an_operator_accepts_it(
    tmp_path: Path,
) -> None:
    data = older(tmp_path / "data", "vhosts")
    files = {path: path.stat().st_size for path in (data / "vhosts").rglob("*.segment")}
    with broker("--data-dir", str(data)) as started:
        log = "".join(started.lines)
        assert "vhost '/' is down" in log
        assert "the directory is an older copy" in log
        assert "set stores.accept_older = true" in log
        status, _ = get(started.ports["http"], "/api/health/checks/virtual-hosts")
        assert status == 503
        assert started.stop() == 0
    assert {path: path.stat().st_size for path in (data / "vhosts").rglob("*.segment")} == files
    with broker("--data-dir", str(data), "--stores-accept-older", "true") as accepted:
        assert ready(accepted, "classic") == 10
        assert get(accepted.ports["http"], "/api/health/checks/losses")[0] == 503
        assert accepted.stop() == 0
    with broker("--data-dir", str(data)) as again:
        # Its quorum queue stays down, as after any damage, until an operator continues with what is readable.
        down = [line for line in again.lines if "vhost '/' is down" in line]
        assert [line for line in down if "queue 'quorum'" not in line] == []
        assert ready(again, "classic") == 10


def test_a_node_whose_metadata_are_an_older_copy_does_not_start_until_an_operator_takes_it(
    tmp_path: Path,
) -> None:
    data = older(tmp_path / "data", "metadata")
    status, errors = refusal("--data-dir", str(data))
    assert status == 1
    assert "this is an older copy, up to change" in errors
    assert "warren metadata recover" in errors
    command = [sys.executable, "-m", "warren.cli.main", "metadata", "recover", str(data)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "this is an older copy" in shown.stdout
    subprocess.run([*command, "--source", "readable", "--apply"], check=True, capture_output=True)
    for _ in range(2):
        with broker("--data-dir", str(data)) as started:
            assert ready(started, "classic") == 10 + LATER
            assert started.stop() == 0


def test_a_directory_from_before_these_files_starts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with broker("--data-dir", str(data)) as started:
        publish(started, 10)
        assert started.stop() == 0
    for path in [*(data / "vhosts").glob("*/reach"), *(data / "metadata" / "reached").iterdir()]:
        path.unlink()
    with broker("--data-dir", str(data)) as again:
        assert ready(again, "classic") == 10


def test_a_vhost_that_is_deleted_and_made_again_is_no_older_copy(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with broker("--data-dir", data) as started:
        publish(started, 10)
        assert started.stop() == 0
    with broker("--data-dir", data) as started:
        client = HttpClient(started)
        assert client.status("DELETE /vhosts/%2f") == 204
        assert client.status("PUT /vhosts/%2f") == 201
        client.close()
        assert started.stop() == 0
    with broker("--data-dir", data) as again:
        assert "is down" not in "".join(again.lines)
