"""A failing disk stops one virtual host and loses nothing confirmed; the others continue."""

import errno
import hashlib
import http.client
import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pika
import pytest
from google_crc32c import value as checksum
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.broker_process import BrokerProcess, broker, refusal
from tests.integration.faults import Faults
from tests.integration.test_durability import taken
from tests.integration.test_serve import connect, get
from tests.long_params import long_params

from warren.limits import SEGMENT_SIZE

PERSISTENT = pika.BasicProperties(delivery_mode=2)
PATIENCE_S = 20
# On a busy machine everything is delayed a little; on a blocked node, for longer.
NOTICED_S = 5
IS_DOWN = "access to vhost 'a' refused for user 'guest': vhost 'a' is down"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two virtual hosts, each with a durable queue, and one that is deleted with its last consumer."""
    queues = [
        {"name": name, "vhost": vhost, "durable": True, "auto_delete": name == "passing", "arguments": {}}
        for vhost in "ab"
        for name in ("q", "passing")
    ]
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    definitions = {
        "vhosts": [{"name": vhost} for vhost in "ab"],
        "users": [{"name": "guest", "password": "guest", "tags": "administrator"}],
        "permissions": [{"user": "guest", "vhost": vhost, **everything} for vhost in "ab"],
        "queues": queues,
    }
    (tmp_path / "definitions.json").write_text(json.dumps(definitions))
    path = tmp_path / "warren.conf"
    path.write_text(f"load_definitions = {tmp_path / 'definitions.json'}\n")
    return path


@contextmanager
def started(tmp_path: Path, config: Path, **environment: str) -> Iterator[BrokerProcess]:
    with broker("--data-dir", str(tmp_path / "data"), config=config, **environment) as node:
        yield node


def folder(tmp_path: Path, vhost: str) -> Path:
    return tmp_path / "data" / "vhosts" / hashlib.sha256(vhost.encode()).hexdigest()[:32]


def end(node: BrokerProcess) -> None:
    node.process.kill()
    node.process.wait(PATIENCE_S)


def until_logged(node: BrokerProcess, text: str) -> str:
    """The next line of the log with `text`."""
    assert node.process.stderr is not None
    for line in node.process.stderr:
        node.lines.append(line)
        if text in line:
            return line
    raise AssertionError(f"ended without {text!r}: {''.join(node.lines)}")


def confirming(port: int, vhost: str) -> BlockingChannel:
    channel = connect(port, vhost=vhost).channel()
    channel.confirm_delivery()
    return channel


def start(node: BrokerProcess, vhost: str, where: str = "") -> tuple[int, bytes]:
    """Request a restart of `vhost`."""
    port = node.ports["http"]
    overview = get(port, "/api/overview")[1]
    assert isinstance(overview, dict)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    headers = {"authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
    connection.request("POST", f"/api/vhosts/{vhost}/start/{where or overview['node']}", headers=headers)
    response = connection.getresponse()
    return response.status, response.read()


class Bystander(threading.Thread):
    """A client of `vhost` that publishes with confirms and consumes in a loop, until it is stopped."""

    def __init__(self, port: int, vhost: str) -> None:
        super().__init__()
        self._channel = confirming(port, vhost)
        self._is_stopped = False
        self.rounds = 0
        self.slowest_s = 0.0
        self.surprise: object = None
        self.start()

    def run(self) -> None:
        try:
            while not self._is_stopped:
                started = time.monotonic()
                self._channel.basic_publish("", "q", b"%d" % self.rounds, PERSISTENT)
                method, _, body = self._channel.basic_get("q", auto_ack=True)
                if method is None or body != b"%d" % self.rounds:
                    self.surprise = (method, body)
                    return
                self.rounds += 1
                self.slowest_s = max(self.slowest_s, time.monotonic() - started)
        except pika.exceptions.AMQPError as error:
            self.surprise = error

    def stop(self) -> None:
        self._is_stopped = True
        self.join(PATIENCE_S)
        assert not self.is_alive()
        assert self.surprise is None
        assert self.rounds > 0
        assert self.slowest_s < NOTICED_S


class Publication(threading.Thread):
    """A publish whose confirm a thread waits for."""

    def __init__(self, channel: BlockingChannel, body: bytes) -> None:
        super().__init__(daemon=True)
        self._channel = channel
        self._body = body
        self.is_confirmed = False
        self.error: object = None
        self.start()

    def run(self) -> None:
        try:
            self._channel.basic_publish("", "q", self._body, PERSISTENT)
            self.is_confirmed = True
        except pika.exceptions.AMQPError as error:
            self.error = error


def is_refused(port: int) -> tuple[int, str]:
    """The refusal that a client of `a` gets."""
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError) as caught:
        connect(port, vhost="a")
    return caught.value.args[0]


def passes(channel: BlockingChannel, body: bytes) -> bool:
    """Whether a transient message passes through a new queue."""
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.basic_publish("", queue, body)
    return channel.basic_get(queue, auto_ack=True)[2] == body


@pytest.mark.parametrize("rule", ["fdatasync errno 5", "write short 7", *long_params("write errno 5")])
def test_a_failed_write_or_sync_restarts_its_vhost_and_affects_no_other(
    tmp_path: Path, config: Path, faults: Faults, rule: str
) -> None:
    with started(tmp_path, config, **faults.environment) as node:
        channel = confirming(node.port, "a")
        for number in range(10):
            channel.basic_publish("", "q", b"%d" % number, PERSISTENT)
        channel.basic_publish("", "q", b"transient", pika.BasicProperties(delivery_mode=1))
        tags = [channel.basic_get("q")[0].delivery_tag for _ in range(4)]
        channel.basic_ack(tags[0])
        channel.basic_consume("passing", lambda *_: None)
        channel.basic_publish("", "passing", b"held", PERSISTENT)
        channel.queue_declare("mine", exclusive=True)
        bystander = Bystander(node.port, "b")
        faults.set(f"{rule} {folder(tmp_path, 'a')}")
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            channel.basic_publish("", "q", b"never confirmed", PERSISTENT)
        assert closed.value.args == (320, "CONNECTION_FORCED - vhost 'a' is down")
        faults.set()
        failure = until_logged(node, "vhost 'a' failed")
        assert str(folder(tmp_path, "a")) in failure
        assert "00000001.segment" in failure
        until_logged(node, "vhost 'a' was restarted")
        channel = confirming(node.port, "a")
        found = [entry for entry in taken(channel, "q") if entry[0] != "never confirmed"]
        assert found == [(str(number), number < 4) for number in range(1, 10)]
        # It was not deleted with its consumer, which the disk failure closed.
        assert taken(channel, "passing") == [("held", True)]
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.queue_declare("mine", passive=True)
        channel = confirming(node.port, "a")
        channel.basic_publish("", "q", b"and on", PERSISTENT)
        bystander.stop()
        assert get(node.ports["http"], "/api/health/checks/virtual-hosts") == (200, {"status": "ok"})
        end(node)
    with started(tmp_path, config) as node:
        assert ("and on", False) in taken(confirming(node.port, "a"), "q")


def test_a_permanent_disk_failure_stops_its_vhost_and_the_others_continue(
    tmp_path: Path, config: Path, faults: Faults
) -> None:
    with started(tmp_path, config, **faults.environment) as node:
        channel = confirming(node.port, "a")
        channel.basic_publish("", "q", b"kept", PERSISTENT)
        bystander = Bystander(node.port, "b")
        faults.set(f"fdatasync errno {errno.EIO} {folder(tmp_path, 'a')}")
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
            channel.basic_publish("", "q", b"never confirmed", PERSISTENT)
        until_logged(node, "vhost 'a' is down, the other vhosts are running")
        assert sum("vhost 'a' failed" in line for line in node.lines) == 4
        assert IS_DOWN in str(is_refused(node.port))
        assert "(541)" in str(is_refused(node.port))
        assert get(node.ports["http"], "/api/health/checks/virtual-hosts") == (
            503, {"status": "failed", "reason": "Some virtual hosts are down", "virtual-hosts": ["a"]},
        )  # fmt: skip
        assert start(node, "a")[0] == 400
        assert IS_DOWN in str(is_refused(node.port))
        faults.set()
        assert start(node, "a", "nowhere")[0] == 400
        assert start(node, "nope")[0] == 400
        assert start(node, "a") == (204, b"")
        bystander.stop()
        bodies = [body for body, _ in taken(confirming(node.port, "a"), "q")]
        assert [body for body in bodies if body != "never confirmed"] == ["kept"]


def test_the_node_stops_with_its_vhost_if_it_is_configured_to(
    tmp_path: Path, config: Path, faults: Faults
) -> None:
    with config.open("a") as file:
        file.write("vhost_restart_strategy = stop_node\n")
    with started(tmp_path, config, **faults.environment) as node:
        channel = confirming(node.port, "a")
        faults.set(f"fdatasync errno {errno.EIO} {folder(tmp_path, 'a')}")
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
            channel.basic_publish("", "q", b"", PERSISTENT)
        assert node.process.wait(PATIENCE_S) == 1
        assert node.process.stderr is not None
        assert "warren: vhost 'a' is down" in node.process.stderr.readlines()[-1]


@pytest.mark.parametrize("number", [errno.ENOSPC, *long_params(errno.EDQUOT)])
def test_with_a_full_disk_confirms_wait_until_there_is_space(
    tmp_path: Path, config: Path, faults: Faults, number: int
) -> None:
    with started(tmp_path, config, **faults.environment) as node:
        channel = confirming(node.port, "a")
        other = connect(node.port, vhost="a").channel()
        bystander = Bystander(node.port, "b")
        faults.set(f"write errno {number} {folder(tmp_path, 'a')}")
        waiting = Publication(channel, b"waits")
        until_logged(
            node, "the disk is full: publishers to vhost 'a' get no confirms until more is available"
        )
        assert passes(other, b"transient")
        assert other.basic_get("q")[2] == b"waits"
        assert get(node.ports["http"], "/api/health/checks/virtual-hosts") == (200, {"status": "ok"})
        assert not waiting.is_confirmed
        faults.set()
        until_logged(node, "vhost 'a': messages can be written to disk again")
        waiting.join(PATIENCE_S)
        assert waiting.is_confirmed
        bystander.stop()
        end(node)
    with started(tmp_path, config) as node:
        assert [body for body, _ in taken(confirming(node.port, "a"), "q")] == ["waits"]


@pytest.mark.parametrize("number", [errno.EMFILE, *long_params(errno.ENFILE)])
def test_with_too_many_open_files_confirms_wait_until_one_can_be_opened(
    tmp_path: Path, config: Path, faults: Faults, number: int
) -> None:
    with started(tmp_path, config, **faults.environment) as node:
        channel = confirming(node.port, "a")
        bystander = Bystander(node.port, "b")
        faults.set(f"open errno {number} {folder(tmp_path, 'a')}")
        # A message larger than a segment has its own file.
        body = bytes(SEGMENT_SIZE)
        waiting = Publication(channel, body)
        until_logged(
            node, "no free file descriptors: publishers to vhost 'a' get no confirms until more is available"
        )
        assert get(node.ports["http"], "/api/health/checks/virtual-hosts") == (200, {"status": "ok"})
        assert not waiting.is_confirmed
        faults.set()
        until_logged(node, "vhost 'a': messages can be written to disk again")
        waiting.join(PATIENCE_S)
        assert waiting.is_confirmed
        bystander.stop()
        end(node)
    with started(tmp_path, config) as node:
        assert [len(body) for body, _ in taken(confirming(node.port, "a"), "q")] == [SEGMENT_SIZE]


def test_a_node_with_a_full_disk_starts_and_opens_the_vhost_when_there_is_space(
    tmp_path: Path, config: Path, faults: Faults
) -> None:
    faults.set(f"write errno {errno.ENOSPC} {tmp_path / 'data' / 'vhosts'}")
    with started(tmp_path, config, **faults.environment) as node:
        assert "vhost 'a' failed: the disk is full" in until_logged(node, "vhost 'a'")
        assert IS_DOWN in str(is_refused(node.port))
        faults.set()
        until_logged(node, "vhost 'a' was restarted")
        confirming(node.port, "a").basic_publish("", "q", b"", PERSISTENT)


def test_a_slow_disk_delays_confirms_and_nothing_else(tmp_path: Path, config: Path, faults: Faults) -> None:
    delay_s = 2
    with started(tmp_path, config, **faults.environment) as node:
        channel = confirming(node.port, "a")
        other = connect(node.port, vhost="a").channel()
        faults.set(f"fdatasync delay {delay_s * 1000} {folder(tmp_path, 'a')}")
        begun = time.monotonic()
        waiting = Publication(channel, b"slow")
        while time.monotonic() - begun < delay_s / 2:
            round_begun = time.monotonic()
            assert passes(other, b"transient")
            assert time.monotonic() - round_begun < delay_s / 4
        assert not waiting.is_confirmed
        waiting.join(PATIENCE_S)
        assert waiting.is_confirmed
        assert time.monotonic() - begun >= delay_s


def made_newer(segment: Path) -> None:
    """Change the format version of `segment` to that of a later release."""
    data = bytearray(segment.read_bytes())
    data[6:8] = (9).to_bytes(2, "big")
    data[20:24] = checksum(bytes(data[:20])).to_bytes(4, "big")
    segment.write_bytes(data)


def test_a_store_that_cannot_be_opened_is_reported_and_the_other_vhosts_continue(
    tmp_path: Path, config: Path
) -> None:
    with started(tmp_path, config) as node:
        for vhost in "ab":
            confirming(node.port, vhost).basic_publish("", "q", b"kept", PERSISTENT)
        end(node)
    made_newer(folder(tmp_path, "a") / "00000001.segment")
    with started(tmp_path, config) as node:
        [line] = [line for line in node.lines if "vhost 'a'" in line]
        assert "is down, the other vhosts are running: 00000001.segment, byte 6: format 9 is newer" in line
        assert f"(in {folder(tmp_path, 'a')}); start the version of Warren that wrote it" in line
        assert IS_DOWN in str(is_refused(node.port))
        assert taken(confirming(node.port, "b"), "q") == [("kept", False)]
        status, _ = get(node.ports["http"], "/api/health/checks/virtual-hosts")
        assert status == 503
        end(node)
    status, errors = refusal(
        "--data-dir", str(tmp_path / "data"), "--config", str(config),
        WARREN_VHOST_RESTART_STRATEGY="stop_node",
    )  # fmt: skip
    assert status == 1
    assert "warren: cannot open the messages of vhost 'a': 00000001.segment, byte 6: format 9" in errors


def test_damage_is_reported_and_the_readable_messages_recovered(tmp_path: Path, config: Path) -> None:
    with started(tmp_path, config) as node:
        channel = confirming(node.port, "a")
        for body in (b"before", b"damaged", b"behind"):
            channel.basic_publish("", "q", body, PERSISTENT)
        end(node)
    segment = folder(tmp_path, "a") / "00000001.segment"
    data = bytearray(segment.read_bytes())
    data[data.index(b"damaged")] ^= 1
    segment.write_bytes(data)
    with started(tmp_path, config) as node:
        [line] = [line for line in node.lines if "vhost 'a' is running without damaged data" in line]
        assert "00000001.segment, byte " in line
        assert taken(confirming(node.port, "a"), "q") == [("before", False), ("behind", False)]
        assert b'warren_vhost_damaged_records{vhost="a"} 1\n' in metrics(node)
        assert b'warren_vhost_damaged_records{vhost="b"} 0\n' in metrics(node)


def metrics(node: BrokerProcess) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", node.ports["http/prometheus"], timeout=10)
    connection.request("GET", "/metrics")
    return connection.getresponse().read()


def test_the_data_of_an_unknown_vhost_is_quarantined(tmp_path: Path, config: Path) -> None:
    with started(tmp_path, config) as node:
        assert node.stop() == 0
    unknown = folder(tmp_path, "unknown")
    shutil.copytree(folder(tmp_path, "a"), unknown)
    (unknown / "name").write_text("unknown\n")
    with started(tmp_path, config) as node:
        assert any("vhost 'unknown'" in line and "quarantine" in line for line in node.lines), node.lines
        assert not unknown.exists()
        assert folder(tmp_path, "a").exists()
    assert len(list((tmp_path / "data" / "quarantine").rglob("name"))) == 1


def test_messages_that_a_stopping_node_cannot_write_are_reported_and_were_not_confirmed(
    tmp_path: Path, config: Path, faults: Faults
) -> None:
    with started(tmp_path, config, **faults.environment) as node:
        channel = confirming(node.port, "a")
        faults.set(f"write errno {errno.ENOSPC} {folder(tmp_path, 'a')}")
        waiting = Publication(channel, b"never written")
        until_logged(node, "the disk is full")
        assert node.stop() == 0
        assert any("the last messages of vhost 'a' were not written" in line for line in node.lines)
        waiting.join(PATIENCE_S)
        assert waiting.error is not None
    with started(tmp_path, config) as node:
        assert taken(confirming(node.port, "a"), "q") == []
