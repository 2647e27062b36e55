"""A shovel with on-confirm loses nothing: its links are cut, and its destination is killed."""

import threading
import time
from collections import Counter
from pathlib import Path

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.cut_proxy import CutProxy, cut_proxy
from tests.integration.shovels import (
    await_state,
    confirming,
    put_shovel,
    ready,
    shovels,
    take,
    uri,
    wait_until,
)

MESSAGES = 20_000
CUTS = 12
PERSISTENT = pika.BasicProperties(delivery_mode=2)


def publish(port: int, queue: str, count: int) -> None:
    """Publish the numbers up to `count`, and wait for their confirms at the end."""
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
    channel = connection.channel()
    channel.queue_declare(queue, durable=True)
    for number in range(count):
        channel.basic_publish("", queue, b"%d" % number, PERSISTENT)
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"last", PERSISTENT)
    connection.close()


def check_bodies(bodies: list[bytes], count: int) -> int:
    """Check that nothing is lost and first deliveries are in order; returns the number of duplicates."""
    times = Counter(bodies)
    wanted = [*(b"%d" % number for number in range(count)), b"last"]
    assert [body for body in wanted if body not in times] == []
    assert list(dict.fromkeys(bodies)) == wanted
    return len(bodies) - len(wanted)


def cut_often(proxy: CutProxy, done: threading.Event) -> None:
    """Cut the connections of `proxy` at growing intervals, until `done`."""
    for number in range(CUTS):
        if done.wait(0.15 + 0.05 * number):
            return
        proxy.cut()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("end", ["source", "destination"])
def test_nothing_is_lost_while_an_end_is_cut_again_and_again(node: BrokerProcess, end: str) -> None:
    client = HttpClient(node)
    name, source, destination = f"cut-{end}", f"from-{end}", f"to-{end}"
    with broker() as other, cut_proxy(node.port if end == "source" else other.port) as proxy:
        publish(node.port, source, MESSAGES)
        ports = {"source": node.port, "destination": other.port} | {end: proxy.port}
        cutter = threading.Thread(target=cut_often, args=(proxy, done := threading.Event()))
        put_shovel(
            client, name, src_uri=uri(ports["source"]), src_queue=source, dest_uri=uri(ports["destination"]),
            dest_queue=destination, reconnect_delay=1,
        )  # fmt: skip
        await_state(client, name, "running")
        cutter.start()
        with confirming(node.port) as near, confirming(other.port) as far:
            wait_until(
                lambda: not cutter.is_alive() and ready(near, source) == 0, lambda: str(shovels(client)[name])
            )
            wait_until(
                lambda: (
                    shovels(client)[name]["state"] == "running" and shovels(client)[name]["unconfirmed"] == 0
                )
            )
            done.set()
            duplicates = check_bodies([body for body, _ in take(far, destination)], MESSAGES)
            shown = shovels(client)[name]
        assert client.status(f"DELETE /shovels/vhost/%2F/{name}") == 204
        client.close()
    assert proxy.cuts > 1
    assert duplicates <= shown["redelivered"]


@pytest.mark.timeout(300)
def test_nothing_is_lost_when_the_destination_is_killed(node: BrokerProcess, tmp_path: Path) -> None:
    client = HttpClient(node)
    with cut_proxy(1) as proxy:
        publish(node.port, "before", MESSAGES)
        with broker("--data-dir", str(tmp_path)) as other:
            proxy.target = other.port
            # With few messages in flight it is not through before the destination is killed.
            put_shovel(
                client, "killed", src_uri=uri(node.port), src_queue="before", dest_uri=uri(proxy.port),
                dest_queue="after", src_prefetch_count=20, reconnect_delay=1,
            )  # fmt: skip
            await_state(client, "killed", "running")
            wait_until(lambda: shovels(client)["killed"].get("confirmed", 0) > MESSAGES // 10)
            other.process.kill()
            other.process.wait()
            assert shovels(client)["killed"]["confirmed"] < MESSAGES
        time.sleep(0.5)
        with broker("--data-dir", str(tmp_path)) as other:
            proxy.target = other.port
            with confirming(node.port) as near, confirming(other.port) as far:
                wait_until(
                    lambda: (
                        ready(near, "before") == 0
                        and shovels(client)["killed"]["state"] == "running"
                        and shovels(client)["killed"]["unconfirmed"] == 0
                    ),
                    lambda: str(shovels(client)["killed"]),
                )
                duplicates = check_bodies([body for body, _ in take(far, "after")], MESSAGES)
            shown = shovels(client)["killed"]
        assert client.status("DELETE /shovels/vhost/%2F/killed") == 204
    client.close()
    assert duplicates <= shown["redelivered"]
