"""Messages that come back to a quorum queue wait before they are delivered again, also across a kill."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_serve import connect
from tests.patience import patient

# Times on a clock of milliseconds, in seconds.
GRAIN_S = 0.002
TIMEOUT_S = patient(60)


@pytest.fixture(params=["on disk", "in memory"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    options = ["--data-dir", str(tmp_path / "data")] if request.param == "on disk" else ["--in-memory"]
    with broker(*options) as process:
        yield process


def declare(channel: BlockingChannel, type: str, min: int, max: int | None = None) -> None:
    """Declare the queue `later` anew."""
    arguments: dict[str, object] = {
        "x-queue-type": "quorum",
        "x-delayed-retry-type": type,
        "x-delayed-retry-min": min,
    }
    if max is not None:
        arguments["x-delayed-retry-max"] = max
    channel.queue_declare("later", durable=True, arguments=arguments)


def delays(channel: BlockingChannel, *hows: str) -> list[float]:
    """How long the only message waits (s) after each of `hows`."""
    channel.confirm_delivery()
    channel.basic_publish("", "later", b"job")
    found: list[float] = []
    returned_at = 0.0
    for method, _, _ in channel.consume("later", inactivity_timeout=TIMEOUT_S):
        assert method is not None
        if returned_at:
            found.append(time.monotonic() - returned_at)
        assert method.redelivered == bool(found)
        if len(found) == len(hows):
            channel.basic_ack(method.delivery_tag)
            return found
        returned_at = time.monotonic()
        if hows[len(found)] == "reject":
            channel.basic_reject(method.delivery_tag)
        else:
            channel.basic_nack(method.delivery_tag)
    raise AssertionError("the consumer was cancelled")


def test_each_reject_makes_the_delay_longer_up_to_the_maximum(process: BrokerProcess) -> None:
    with connect(process.port) as connection:
        channel = connection.channel()
        declare(channel, "failed", 200, 500)
        found = delays(channel, *["reject"] * 4)
    wanted = [0.2, 0.4, 0.5, 0.5]
    assert all(each >= least - GRAIN_S for each, least in zip(found, wanted, strict=True)), found


def test_a_nack_waits_for_the_minimum_each_time_and_only_if_the_type_says_so(process: BrokerProcess) -> None:
    with connect(process.port) as connection:
        channel = connection.channel()
        declare(channel, "returned", 200)
        found = delays(channel, "nack", "nack")
        assert all(each >= 0.2 - GRAIN_S for each in found), found
        channel.queue_delete("later")
    with connect(process.port) as connection:
        channel = connection.channel()
        # It would not come within the time limit.
        declare(channel, "failed", int(1_000 * TIMEOUT_S * 2))
        assert len(delays(channel, "nack", "nack")) == 2


def test_what_an_ended_connection_held_waits_and_is_counted(process: BrokerProcess) -> None:
    client = HttpClient(process)
    with connect(process.port) as connection:
        channel = connection.channel()
        declare(channel, "failed", int(1_000 * TIMEOUT_S))
        channel.confirm_delivery()
        channel.basic_publish("", "later", b"job")
        assert channel.basic_get("later")[0] is not None
    queue = client.get("/queues/%2F/later")
    assert [queue[name] for name in ("messages", "messages_ready", "messages_delayed")] == [1, 0, 1]
    with connect(process.port) as connection:
        channel = connection.channel()
        assert channel.basic_get("later")[0] is None
        assert channel.queue_purge("later").method.message_count == 1
    assert client.get("/queues/%2F/later")["messages"] == 0


def test_a_message_that_waits_when_the_broker_is_killed_waits_as_long_after_the_start(
    tmp_path: Path,
) -> None:
    options = ("--data-dir", str(tmp_path / "data"))
    with broker(*options) as process:
        with connect(process.port) as connection:
            channel = connection.channel()
            declare(channel, "all", 4_000, 60_000)
            channel.confirm_delivery()
            channel.basic_publish("", "later", b"job")
            rejected_at = time.time()
            channel.basic_reject(channel.basic_get("later")[0].delivery_tag)
            # What was sent before a confirm is on the disk.
            channel.basic_publish("", "later", b"next")
        process.process.kill()
        process.process.wait(10)
    with broker(*options) as process, connect(process.port) as connection:
        channel = connection.channel()
        consumed = channel.consume("later", inactivity_timeout=TIMEOUT_S)
        method, _, body = next(consumed)
        if time.time() < rejected_at + 4:
            # It was there before, and is not ready yet.
            assert body == b"next"
        others = {body: method}
        while len(others) < 2:
            method, _, body = next(consumed)
            assert method is not None
            others[body] = method
            if body == b"job":
                assert time.time() >= rejected_at + 4 - GRAIN_S
        assert others[b"job"].redelivered
        # The next delay is longer, as the first one is remembered.
        rejected_at = time.time()
        channel.basic_reject(others[b"job"].delivery_tag)
        assert next(consumed)[2] == b"job"
        assert time.time() >= rejected_at + 8 - GRAIN_S


def test_a_type_without_a_minimum_is_refused(process: BrokerProcess) -> None:
    with connect(process.port) as connection:
        arguments = {"x-queue-type": "quorum", "x-delayed-retry-type": "all"}
        with pytest.raises(ChannelClosedByBroker) as raised:
            connection.channel().queue_declare("later", durable=True, arguments=arguments)
    assert (raised.value.reply_code, raised.value.reply_text) == (
        406,
        "PRECONDITION_FAILED - invalid arg 'x-delayed-retry-type' for queue 'later' in vhost '/': "
        "delayed_retry_type_but_no_min_defined",
    )
