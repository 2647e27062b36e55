"""What a link holds in memory does not grow with its prefetch or with what waits at its source."""

import os
import signal
import time
from pathlib import Path

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.shovels import await_state, confirming, put_shovel, ready, shovels, uri, wait_until

MEBIBYTE = 1 << 20
# Messages of 1 MiB, fewer than the default prefetch.
MESSAGES = 150
GROWTH_MAX = 40 * MEBIBYTE


@pytest.mark.timeout(300)
def test_a_shovel_whose_destination_stands_still_holds_few_of_its_large_messages(tmp_path: Path) -> None:
    near_path, far_path = tmp_path / "near", tmp_path / "far"
    with broker("--data-dir", str(near_path)) as node, broker("--data-dir", str(far_path)) as other:
        client = HttpClient(node)
        with confirming(node.port) as near, confirming(other.port) as far:
            near.queue_declare("from", durable=True)
            far.queue_declare("to", durable=True)
            for number in range(MESSAGES):
                body = b"%d" % number
                near.basic_publish("", "from", body.ljust(MEBIBYTE), pika.BasicProperties(delivery_mode=2))
            before = resident(node)
            put_shovel(
                client, "large", src_uri=uri(node.port), src_queue="from", dest_uri=uri(other.port),
                dest_queue="to",
            )  # fmt: skip
            try:
                wait_until(lambda: shovels(client)["large"].get("forwarded", 0) > 0)
                os.kill(other.process.pid, signal.SIGSTOP)
                wait_until(lambda: "does not read" in shovels(client)["large"]["why"])
                most = 0
                end = time.monotonic() + 2
                while time.monotonic() < end:
                    most = max(most, resident(node))
                    time.sleep(0.02)
                shown = shovels(client)["large"]
                assert shown["confirmed"] < MESSAGES - 2 * GROWTH_MAX // MEBIBYTE
                assert shown["unconfirmed"] + shown["pending"] < GROWTH_MAX // MEBIBYTE
            finally:
                os.kill(other.process.pid, signal.SIGCONT)
            wait_until(lambda: ready(far, "to") == MESSAGES, lambda: str(shovels(client)["large"]))
        await_state(client, "large", "running")
        client.close()
    assert most - before < GROWTH_MAX


def resident(node: BrokerProcess) -> int:
    """The resident memory of the broker in bytes."""
    pages = int(Path(f"/proc/{node.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
