"""Metadata that survive a kill, and metadata that do not."""

import json
import os
import resource
import signal
from pathlib import Path

import pika
import pytest
from tests.integration.broker_process import BrokerProcess, broker, refusal
from tests.integration.test_serve import connect, get

DEFINITIONS = {
    "users": [{"name": "u", "password": "p", "tags": "administrator"}],
    "vhosts": [{"name": "/"}, {"name": "v"}],
    "permissions": [
        {"user": "u", "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"} for vhost in ("/", "v")
    ],
    "policies": [{"vhost": "v", "name": "short", "pattern": "^limited", "definition": {"max-length": 1}}],
}


PERSISTENT = pika.BasicProperties(delivery_mode=2)


def killed(started: BrokerProcess) -> None:
    os.kill(started.process.pid, signal.SIGKILL)
    started.process.wait()


def declare(port: int) -> None:
    """Declare durable objects, and transient ones beside them."""
    channel = connect(port, "u", "p", "v").channel()
    for name, durable in (("kept", True), ("lost", False)):
        channel.exchange_declare(name, "topic", durable=durable, arguments={"x": 1})
        channel.queue_declare(name, durable=durable, arguments={"x-max-length": 5})
    channel.queue_declare("limited", durable=True)
    channel.queue_declare("deleted", durable=True)
    channel.queue_declare("own", exclusive=True, durable=True)
    for source in ("kept", "lost"):
        for destination in ("kept", "lost", "limited"):
            channel.queue_bind(destination, source, f"{source}.{destination}")
    channel.exchange_bind("amq.fanout", "kept", "to.exchange")
    channel.queue_bind("limited", "kept", "unbound")
    channel.queue_unbind("limited", "kept", "unbound")
    channel.queue_delete("deleted")


def exists(port: int, kind: str, name: str) -> bool:
    channel = connect(port, "u", "p", "v").channel()
    try:
        if kind == "queue":
            channel.queue_declare(name, passive=True)
        else:
            channel.exchange_declare(name, passive=True)
    except pika.exceptions.ChannelClosedByBroker as closed:
        return closed.reply_code != 404
    return True


def arrived(port: int, exchange: str, key: str, queue: str) -> int:
    """How many of two messages with `key` arrive in `queue`."""
    channel = connect(port, "u", "p", "v").channel()
    channel.queue_purge(queue)
    for _ in range(2):
        channel.basic_publish(exchange, key, b"")
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def declare_much(channel: pika.adapters.blocking_connection.BlockingChannel) -> None:
    for number in range(1_000):
        channel.queue_declare(f"q{number}", durable=True, arguments={"x-filling": "x" * 10_000})


def check(port: int) -> None:
    assert [name for name in ("kept", "lost") if exists(port, "exchange", name)] == ["kept"]
    names = ("kept", "lost", "limited", "deleted", "own")
    assert [name for name in names if exists(port, "queue", name)] == ["kept", "limited"]
    assert arrived(port, "kept", "kept.kept", "kept") == 2
    # The policy applies as well.
    assert arrived(port, "kept", "kept.limited", "limited") == 1
    assert arrived(port, "kept", "unbound", "limited") == 0
    channel = connect(port, "u", "p", "v").channel()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
        channel.queue_declare("kept", durable=True, arguments={"x-max-length": 6})
    assert "inequivalent arg 'x-max-length'" in caught.value.reply_text


def test_durable_objects_survive_a_kill_and_a_stop(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    definitions = tmp_path / "definitions.json"
    definitions.write_text(json.dumps(DEFINITIONS))
    with broker("--data-dir", data, WARREN_LOAD_DEFINITIONS=str(definitions)) as started:
        declare(started.port)
        killed(started)
    for _ in range(2):
        with broker("--data-dir", data) as again:
            # The default user is not created where users exist.
            assert get(again.ports["http"], "/api/whoami", "guest:guest")[0] == 401
            check(again.port)
            assert again.stop() == 0


def test_messages_are_recovered_in_their_queue_and_not_in_another_of_its_name(tmp_path: Path) -> None:
    persistent = pika.BasicProperties(delivery_mode=2)
    with broker("--data-dir", str(tmp_path)) as started:
        channel = connect(started.port).channel()
        channel.confirm_delivery()
        for name in ("stays", "made anew"):
            channel.queue_declare(name, durable=True)
            channel.basic_publish("", name, b"x", persistent)
        channel.queue_delete("made anew")
        channel.queue_declare("made anew", durable=True)
        killed(started)
    with broker("--data-dir", str(tmp_path)) as again:
        channel = connect(again.port).channel()
        counts = {
            name: channel.queue_declare(name, passive=True).method.message_count
            for name in ("stays", "made anew")
        }
    assert counts == {"stays": 1, "made anew": 0}


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    # The limit on file size stands in for a full disk; the requested change must not fit.
    data = tmp_path / "data"
    with broker("--data-dir", str(data)) as started:
        connection = connect(started.port)
        channel = connection.channel()
        channel.queue_declare("before", durable=True)
        limit = (data / "metadata" / "metadata").stat().st_size + 1_000
        _limit_files(started.process.pid, limit)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as caught:
            declare_much(channel)
        assert caught.value.reply_text.startswith(
            "INTERNAL_ERROR - cannot write the metadata: File too large"
        )
        connect(started.port).channel().queue_declare("transient")
        killed(started)
    with broker("--data-dir", str(data)) as again:
        connect(again.port).channel().queue_declare("before", passive=True)


def test_a_start_that_cannot_write_the_metadata_serves_what_is_synced_and_nothing_else(
    tmp_path: Path,
) -> None:
    # A directory in the place of the file stands in for a disk on which no file can be created.
    new = tmp_path / "metadata" / "metadata.new"
    new.mkdir(parents=True)
    status, errors = refusal("--data-dir", str(tmp_path))
    assert status == 1
    assert f"cannot write the metadata in '{new.parent}': Is a directory" in errors.splitlines()[-1]
    new.rmdir()
    with broker("--data-dir", str(tmp_path)) as started:
        connect(started.port).channel().queue_declare("kept", durable=True)
        killed(started)
    new.mkdir()
    with broker("--data-dir", str(tmp_path)) as started:
        channel = connect(started.port).channel()
        channel.queue_declare("kept", passive=True)
        channel.queue_declare("transient")
        assert any("cannot write the metadata" in line for line in started.lines)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="cannot write the metadata"):
            channel.queue_declare("refused", durable=True)
        new.rmdir()


def test_a_damaged_file_is_reported_and_skipped_only_on_request(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with broker("--data-dir", str(data)) as started:
        assert started.stop() == 0
    file = data / "metadata" / "metadata"
    raw = bytearray(file.read_bytes())
    raw[raw.index(b"guest")] ^= 1
    file.write_bytes(raw)
    status, errors = refusal("--data-dir", str(data))
    assert status == 1
    assert "a record is damaged" in errors.splitlines()[-1]
    assert str(data / "metadata") in errors.splitlines()[-1]
    with broker("--data-dir", str(data), WARREN_METADATA_SKIP_DAMAGE="true") as started:
        assert any("a record is damaged" in line for line in started.lines)


def test_a_truncated_file_is_reported_and_nothing_is_changed_until_it_is_restored(tmp_path: Path) -> None:
    data = tmp_path / "data"
    definitions = tmp_path / "definitions.json"
    definitions.write_text(json.dumps(DEFINITIONS))
    queues = [f"q{number}" for number in range(5)]
    with broker("--data-dir", str(data), WARREN_LOAD_DEFINITIONS=str(definitions)) as started:
        channel = connect(started.port, "u", "p", "v").channel()
        channel.confirm_delivery()
        channel.queue_declare("stream", durable=True, arguments={"x-queue-type": "stream"})
        for queue in queues:
            channel.queue_declare(queue, durable=True)
        for number in range(500):
            channel.basic_publish("", queues[number % 5], b"%d" % number, PERSISTENT)
        for number in range(50):
            channel.basic_publish("", "stream", b"%d" % number, PERSISTENT)
        killed(started)
    file = data / "metadata" / "metadata"
    whole = file.read_bytes()
    end = len(whole.rstrip(b"\0"))
    before = contents(data / "vhosts")
    for at in (0, 300, end // 2, end - 1, None):
        if at is None:
            file.unlink()
        else:
            file.write_bytes(whole[:at])
        status, errors = refusal("--data-dir", str(data))
        assert status == 1
        line = errors.splitlines()[-1]
        assert f"warren: metadata in '{data}/metadata': metadata, byte " in line
        assert f"warren metadata recover {data}" in line
        assert contents(data / "vhosts") == before
    file.write_bytes(whole)
    with broker("--data-dir", str(data)) as started:
        channel = connect(started.port, "u", "p", "v").channel()
        for queue in queues:
            assert channel.queue_declare(queue, passive=True).method.message_count == 100
        channel.basic_qos(prefetch_count=100)
        read = channel.consume("stream", arguments={"x-stream-offset": "first"}, inactivity_timeout=30)
        assert [next(read)[2] for _ in range(50)] == [b"%d" % number for number in range(50)]


def contents(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def _limit_files(process: int, size: int) -> None:
    resource.prlimit(process, resource.RLIMIT_FSIZE, (size, size))
