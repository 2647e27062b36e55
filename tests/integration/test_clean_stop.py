"""A broker that is stopped by SIGTERM: what no client has got is not marked as delivered after the start."""

from pathlib import Path

import pika
from tests.integration.broker_process import broker

QUEUES = {
    "classic": ({}, None),
    "quorum": ({"x-queue-type": "quorum"}, None),
    "with priorities": ({"x-queue-type": "quorum"}, 5),
}


def test_what_was_never_delivered_has_no_mark_after_a_clean_stop(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as started:
        held = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", started.port))
        channel = held.channel()
        channel.confirm_delivery()
        for name, (arguments, priority) in QUEUES.items():
            channel.queue_declare(name, durable=True, arguments=arguments)
            properties = pika.BasicProperties(delivery_mode=2, priority=priority)
            for body in (b"a", b"b", b"c"):
                channel.basic_publish("", name, body, properties)
            assert channel.basic_get(name)[2] == b"a"
        assert started.stop() == 0
    with broker("--data-dir", str(tmp_path)) as started:
        channel = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", started.port)).channel()
        for name in QUEUES:
            got = [channel.basic_get(name) for _ in range(3)]
            marks = [(body, method.redelivered) for method, _, body in got]
            assert marks == [(b"a", True), (b"b", False), (b"c", False)], name
            if name != "classic":
                counts = [properties.headers.get("x-delivery-count") for _, properties, _ in got]
                assert counts == [1, 0, 0]
