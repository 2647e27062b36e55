"""One advanced.config on RabbitMQ and on Warren: the same declarations, messages and status."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests import rabbitmq
from tests.patience import patient
from tests.warren_process import IN_MEMORY, free_port, start_warren, stop

WAIT_S = patient(60)
# A source that the shovel declares, in the present form; a named queue that is moved by two messages at a
# time; and the older form, whose ends are this node.
SHOVELS = r"""
%% The same file for both.
[{rabbit, [{collect_statistics, fine}]},
 {rabbitmq_shovel, [{shovels, [
  {declaring,
   [{source,
     [{protocol, amqp091}, {uris, ["amqp://guest:guest@127.0.0.1:PORT/%2f?heartbeat=5"]},
      {declarations,
       [{'queue.declare', [exclusive, auto_delete]},
        {'exchange.declare', [{exchange, <<"x">>}, {type, <<"topic">>}, auto_delete]},
        {'queue.bind', [{queue, <<>>}, {exchange, <<"x">>}, {routing_key, <<"to.#">>}]}]},
      {queue, <<>>}, {prefetch_count, 10}]},
    {destination,
     [{uris, ["amqp://guest:guest@127.0.0.1:PORT"]},
      {declarations, [{'queue.declare', [{queue, <<"landed">>}, durable,
                                         {arguments, [{<<"x-max-length">>, long, 100}]}]}]},
      {publish_properties, [{delivery_mode, 2}, {content_type, <<"shovelled">>},
                            {headers, [{<<"kind">>, longstr, <<"set">>}]}]},
      {publish_fields, [{exchange, <<>>}, {routing_key, <<"landed">>}]},
      {add_forward_headers, true}, {add_timestamp_header, true}]},
    {ack_mode, on_confirm}, {reconnect_delay, 1}]},
  {finite,
   [{source, [{uris, ["amqp://"]}, {declarations, [{'queue.declare', [{queue, <<"pile">>}, durable]}]},
              {queue, <<"pile">>}, {delete_after, 2}]},
    {destination, [{uris, ["amqp://"]}, {publish_fields, [{routing_key, <<"landed">>}]}]},
    {ack_mode, on_publish}, {reconnect_delay, 1}]},
  {'older form',
   [{sources, [{broker, "amqp://"}, {declarations, [{'queue.declare', [{queue, <<"old">>}]}]}]},
    {destinations, [{brokers, ["amqp://"]}]},
    {queue, <<"old">>}, {publish_fields, [{routing_key, <<"landed">>}]}]}]}]}].
"""
FACTS = ("name", "type", "state", "src_uri", "src_protocol", "dest_protocol", "dest_uri", "src_queue")
Ask = Callable[[str], Any]


def asking(port: int) -> Ask:
    def ask(path: str) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/api{path}")
        request.add_header("Authorization", "Basic " + b64encode(b"guest:guest").decode())
        deadline = time.monotonic() + WAIT_S
        while True:
            # The port of AMQP is open before that of HTTP.
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.URLError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    return ask


def await_that(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@contextlib.contextmanager
def channel_of(port: int) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel


def effects(port: int, ask: Ask) -> dict[str, object]:
    """What the shovels of the file do, without ports, times and names of nodes."""
    states = lambda: {one["name"]: one["state"] for one in ask("/shovels")}  # noqa: E731
    await_that(lambda: set(states().values()) == {"running"})
    shown = [
        {key: one.get(key) for key in FACTS} for one in sorted(ask("/shovels"), key=lambda one: one["name"])
    ]
    with channel_of(port) as channel:
        # It exists with these arguments.
        channel.queue_declare("landed", durable=True, arguments={"x-max-length": 100})
        channel.exchange_declare("x", "topic", auto_delete=True)
        channel.basic_publish("x", "to.here", b"first", pika.BasicProperties(headers={"old": 1}, type="t"))
        first = taken(channel, 1)
        for body in (b"a", b"b", b"c", b"d"):
            channel.basic_publish("", "pile", body)
        piled = taken(channel, 4)
        channel.basic_publish("", "old", b"old")
        older = taken(channel, 1)
    for message in first:
        assert message["headers"]["x-shovelled"][0].pop("shovelled-by")
        assert message["headers"].pop("x-shovelled-timestamp")
    return json.loads(
        json.dumps({"shown": shown, "messages": [first, piled, older]}).replace(str(port), "PORT")
    )  # type: ignore[no-any-return]


def taken(channel: BlockingChannel, count: int) -> list[dict[str, Any]]:
    """The next messages of the queue at the destination."""
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count:
        assert time.monotonic() < deadline, found
        method, properties, body = channel.basic_get("landed", auto_ack=True)
        if method is None:
            channel.connection.sleep(0.1)
            continue
        facts = {key: value for key, value in vars(properties).items() if value is not None}
        found.append(facts | {"body": body.decode(), "key": method.routing_key})
    return found


@pytest.mark.rabbitmq
@pytest.mark.timeout(400)
def test_static_shovels_of_one_file_do_the_same_on_both_brokers(tmp_path: Path) -> None:
    if not rabbitmq.is_installed():
        pytest.skip("rabbitmq-server is not installed")
    folders = [tmp_path / name for name in ("rabbitmq", "warren")]
    for folder in folders:
        folder.mkdir()
    management = free_port()
    server = rabbitmq.RabbitMQ(
        folders[0],
        listen="127.0.0.1",
        settings=f"management.tcp.port = {management}\n",
        advanced=SHOVELS,
        plugins=("rabbitmq_management", "rabbitmq_shovel", "rabbitmq_shovel_management"),
    )
    (folders[0] / "advanced.config").write_text(SHOVELS.replace("PORT", str(server.port)))
    try:
        server.start()
        theirs = effects(server.port, asking(management))
    finally:
        server.stop()
        server.remove()
    port, management = free_port(), free_port()
    (folders[1] / "advanced.config").write_text(SHOVELS.replace("PORT", str(port)))
    (folders[1] / "rabbitmq.conf").write_text(f"listeners.tcp.default = 127.0.0.1:{port}\n")
    # Beside rabbitmq.conf, as in /etc/rabbitmq.
    broker = start_warren(
        folders[1],
        port,
        "--config",
        str(folders[1] / "rabbitmq.conf"),
        "--management-port",
        str(management),
        environment=IN_MEMORY,
    )
    try:
        ours = effects(port, asking(management))
    finally:
        stop(broker.process)
    assert ours == theirs
    assert "rabbit.collect_statistics has no effect" in broker.log.read_text()
