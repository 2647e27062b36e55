"""A quorum queue on one node, used by pika: what was confirmed is there after the broker was killed."""

import threading
from pathlib import Path

import pika
from pika.exceptions import AMQPError
from tests.integration.broker_process import broker

QUORUM = {"x-queue-type": "quorum"}
KILLS = 3
# The number of confirmed messages after which the broker is killed, while others are on their way.
CONFIRMED = 50


def test_a_pika_program_with_a_quorum_queue_loses_nothing_when_the_broker_is_killed(tmp_path: Path) -> None:
    confirmed: list[str] = []
    number = 0
    for _ in range(KILLS):
        with broker("--data-dir", str(tmp_path)) as node:
            connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
            channel = connection.channel()
            channel.queue_declare("orders", durable=True, arguments=QUORUM)
            channel.confirm_delivery()
            killing = threading.Thread(target=node.process.kill)
            enough = len(confirmed) + CONFIRMED
            try:
                while True:
                    number += 1
                    channel.basic_publish("", "orders", str(number).encode(), mandatory=True)
                    confirmed.append(str(number))
                    if len(confirmed) == enough:
                        killing.start()
            except (AMQPError, OSError):
                pass
            killing.join()
    with broker("--data-dir", str(tmp_path)) as node:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
        channel = connection.channel()
        channel.queue_declare("orders", durable=True, arguments=QUORUM)
        found = []
        while (got := channel.basic_get("orders"))[0] is not None:
            found.append(got[2].decode())
            channel.basic_ack(got[0].delivery_tag)
        assert [body for body in found if body in {*confirmed}] == confirmed
        # A message that was not confirmed may be there, once.
        assert len(found) - len(confirmed) <= KILLS
        assert found == sorted({*found}, key=int)
        connection.close()


def test_the_first_delivery_has_no_count_and_the_answer_to_a_get_has_one(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
        channel = connection.channel()
        channel.queue_declare("orders", durable=True, arguments=QUORUM)
        channel.confirm_delivery()
        for auto_ack in (True, False):
            consumed = channel.consume("orders", auto_ack=auto_ack)
            channel.basic_publish("", "orders", b"message")
            method, properties, _ = next(consumed)
            assert (method.redelivered, properties.headers) == (False, None)
            if not auto_ack:
                channel.basic_ack(method.delivery_tag)
            channel.cancel()
        channel.basic_publish("", "orders", b"message")
        method, properties, _ = channel.basic_get("orders")
        assert (method.redelivered, properties.headers) == (False, {"x-delivery-count": 0})
        connection.close()
