"""Message files that are deleted, truncated or damaged: the loss is reported until it is acknowledged."""

import hashlib
import http.client
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_serve import connect
from tests.long_params import long_params

PATIENCE_S = 20
COUNT = 40
PERSISTENT = pika.BasicProperties(delivery_mode=2)
STREAM = {"x-queue-type": "stream"}


@contextmanager
def started(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker("--data-dir", str(tmp_path / "data")) as node:
        yield node


def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "vhosts" / hashlib.sha256(b"/").hexdigest()[:32]


def filled(tmp_path: Path) -> None:
    """A queue and a stream with `COUNT` confirmed messages each, of a broker that was killed."""
    with started(tmp_path) as node:
        channel = connect(node.port).channel()
        channel.queue_declare("q", durable=True)
        channel.queue_declare("s", durable=True, arguments=STREAM)
        channel.confirm_delivery()
        for number in range(COUNT):
            for queue in ("q", "s"):
                channel.basic_publish("", queue, b"%03d" % number + bytes(200), PERSISTENT)
        node.process.kill()
        node.process.wait(PATIENCE_S)


def victim(tmp_path: Path, kind: str) -> Path:
    if kind == "queue":
        return max(folder(tmp_path).glob("*.segment"), key=lambda path: b"039" in path.read_bytes())
    [path] = (folder(tmp_path) / "streams").glob("*.stream")
    return path


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    middle = data.index(b"020" + bytes(100))
    if how == "deleted":
        path.unlink()
    elif how == "cut short":
        path.write_bytes(data[:middle])
    elif how == "zeroed":
        path.write_bytes(data[:middle] + bytes(len(data) - middle))
    else:
        data[middle] ^= 1
        path.write_bytes(data)


def count_of(node: BrokerProcess, kind: str) -> int:
    """The number of recovered messages."""
    channel = connect(node.port).channel()
    if kind == "queue":
        return channel.queue_declare("q", passive=True).method.message_count
    channel.basic_qos(prefetch_count=100)
    count = 0
    consumed = channel.consume("s", arguments={"x-stream-offset": "first"}, inactivity_timeout=2)
    for method, _, _ in consumed:
        if method is None:
            break
        count += 1
        channel.basic_ack(method.delivery_tag)
    return count


def metric(node: BrokerProcess, name: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", node.ports["http/prometheus"], timeout=10)
    connection.request("GET", "/metrics")
    found = re.search(rf'^{name}{{vhost="/"}} (\d+)$'.encode(), connection.getresponse().read(), re.MULTILINE)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("kind", ["queue", "stream"])
@pytest.mark.parametrize("how", ["deleted", "flipped", *long_params("cut short", "zeroed")])
def test_recovered_and_reported_messages_are_all_that_were_confirmed(
    tmp_path: Path, kind: str, how: str
) -> None:
    filled(tmp_path)
    path = victim(tmp_path, kind)
    damage(path, how)
    with started(tmp_path) as node:
        back = count_of(node, kind)
        client = HttpClient(node)
        losses = client.get("/warren/losses")
        assert back + sum(loss["messages"] for loss in losses) == COUNT
        assert 0 < sum(loss["messages"] for loss in losses) <= COUNT
        assert {loss["file"] for loss in losses} == {path.name}
        assert {name for loss in losses for name in loss["queues"]} == {"q" if kind == "queue" else "s"}
        if kind == "queue" and how == "flipped":
            assert back == COUNT - 1
        print(f"{kind} {how}: {back} back, {[loss['messages'] for loss in losses]} named")


@pytest.mark.parametrize("part", ["", *long_params("streams", "catalog")])
def test_a_store_that_is_entirely_missing_is_reported(tmp_path: Path, part: str) -> None:
    filled(tmp_path)
    lost = folder(tmp_path) / part
    if part == "catalog":
        lost.unlink()
        victim(tmp_path, "queue").unlink()
    else:
        shutil.rmtree(lost)
    for _ in range(2):
        with started(tmp_path) as node:
            client = HttpClient(node)
            assert client.status("GET /health/checks/losses") == 503
            [loss] = client.get("/warren/losses")
            assert (loss["vhost"], loss["messages"], sorted(loss["queues"])) == ("/", None, ["q", "s"])
            count = metric(node, "warren_vhost_unacknowledged_losses")
            print(f"{part or 'all'}: {loss['file']}: {loss['reason']}; {count}")
    with started(tmp_path) as node:
        assert HttpClient(node).status("POST /warren/losses/acknowledge") == 200
    with started(tmp_path) as node:
        assert HttpClient(node).status("GET /health/checks/losses") == 200


def test_a_deleted_and_recreated_vhost_has_no_loss(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        client = HttpClient(node)
        for line in (
            "PUT /vhosts/v",
            "DELETE /vhosts/v",
            "PUT /vhosts/v",
            "PUT /vhosts/w",
            "DELETE /vhosts/w",
        ):
            assert client.status(line) in (201, 204)
        node.process.kill()
        node.process.wait(PATIENCE_S)
    with started(tmp_path) as node:
        assert HttpClient(node).get("/warren/losses") == []


def test_a_foreign_file_does_not_prevent_the_start(tmp_path: Path) -> None:
    filled(tmp_path)
    data = tmp_path / "data"
    places = [data, *(path for path in data.rglob("*") if path.is_dir())]
    for place in places:
        for name in ("README", "x.segment", "x.stream", "x.index", "x.stage", "x.part"):
            (place / name).write_bytes(b"not ours")
    for _ in range(2):
        with started(tmp_path) as node:
            assert HttpClient(node).get("/warren/losses") == []
            assert count_of(node, "queue") == COUNT
    assert {path.read_bytes() for path in data.rglob("README")} == {b"not ours"}
    assert all((place / name).exists() for place in places for name in ("x.segment", "x.part"))


def test_a_loss_fails_the_health_check_until_it_is_acknowledged_and_again_with_the_next(
    tmp_path: Path,
) -> None:
    filled(tmp_path)
    damage(victim(tmp_path, "queue"), "flipped")
    for _ in range(2):
        with started(tmp_path) as node:
            client = HttpClient(node)
            assert client.status("GET /health/checks/losses") == 503
            [loss] = client.get("/nodes")[0]["losses"]
            assert (loss["vhost"], loss["messages"], loss["queues"]) == ("/", 1, ["q"])
            assert (
                metric(node, "warren_vhost_unacknowledged_losses"),
                metric(node, "warren_vhost_lost_messages"),
            ) == (1, 1)
            assert node.stop() == 0
    with started(tmp_path) as node:
        client = HttpClient(node)
        assert client.ask("POST /warren/losses/acknowledge").value == {"acknowledged": 1}
        assert client.status("GET /health/checks/losses") == 200
        assert metric(node, "warren_vhost_unacknowledged_losses") == 0
        assert node.stop() == 0
    with started(tmp_path) as node:
        client = HttpClient(node)
        assert client.status("GET /health/checks/losses") == 200
        assert [loss["acknowledged"] for loss in client.get("/warren/losses")] == [True]
        assert node.stop() == 0
    damage(victim(tmp_path, "stream"), "deleted")
    with started(tmp_path) as node:
        client = HttpClient(node)
        assert client.status("GET /health/checks/losses") == 503
        [loss] = client.get("/nodes")[0]["losses"]
        assert (loss["messages"], loss["queues"]) == (COUNT, ["s"])
