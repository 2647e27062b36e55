"""A quorum queue after a restart of its broker, as RabbitMQ 3.10.8 has it, and 4.3.6 with its own headers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests import rabbitmq
from tests.conformance.client import Client, TranscriptContext
from tests.conformance.transcript import Transcript
from tests.oracle import recorded
from tests.oracle.quorum_brokers import BROKERS, accepts_quorum_queues
from tests.oracle.quorum_differences import BELOW_REACH, CONSUMERS_OF_ONE_GET
from tests.warren_process import free_port, start_warren, stop

pytestmark = pytest.mark.timeout(300)
CONNECT = 'connect channels=1 user="guest" password="guest"'
# What was acknowledged before a confirm is gone.
BEFORE = """
C> {connect}
C> 1 queue.declare queue="q" durable=true arguments={{"x-queue-type": "quorum"}}
S> 1 queue.declare-ok queue="q" message_count=0 consumer_count=0
C> 1 confirm.select
S> 1 confirm.select-ok
C> 1 publish routing_key="q" delivery_mode=1 body="1"
C> 1 publish routing_key="q" delivery_mode=2 body="2"
C> 1 publish routing_key="q" body="3"
S> 1 confirmed 1 to=3
C> 1 basic.get queue="q"
S> 1 basic.get-ok delivery_tag=1 redelivered=false exchange="" routing_key="q" message_count=2
S> 1 header body_size=1 headers={{"x-delivery-count": 0l}} delivery_mode=1
S> 1 body "1"
C> 1 basic.get queue="q"
S> 1 basic.get-ok delivery_tag=2 redelivered=false exchange="" routing_key="q" message_count=1
S> 1 header body_size=1 headers={{"x-delivery-count": 0l}} delivery_mode=2
S> 1 body "2"
C> 1 basic.ack delivery_tag=1
C> 1 publish routing_key="q" delivery_mode=1 body="4"
S> 1 confirmed 4
C> 1 queue.declare queue="q" passive=true
S> 1 queue.declare-ok queue="q" message_count=2 consumer_count={consumer_count}
"""
# Transient messages survive as well.
AFTER = """
C> {connect}
C> 1 queue.declare queue="q" passive=true
S> 1 queue.declare-ok queue="q" message_count=3 consumer_count=0
C> 1 basic.get queue="q"
S> 1 basic.get-ok delivery_tag=1 redelivered=true exchange="" routing_key="q" message_count=2
S> 1 header body_size=1 headers={{{acquired}"x-delivery-count": 1l}} delivery_mode=2
S> 1 body "2"
C> 1 basic.get queue="q"
S> 1 basic.get-ok delivery_tag=2 redelivered={redelivered} exchange="" routing_key="q" message_count=1
S> 1 header body_size=1 headers={{"x-delivery-count": {count}}}
S> 1 body "3"
C> 1 basic.get queue="q"
S> 1 basic.get-ok delivery_tag=3 redelivered={redelivered} exchange="" routing_key="q" message_count=0
S> 1 header body_size=1 headers={{"x-delivery-count": {count}}} delivery_mode=1
S> 1 body "4"
"""


def _script(text: str) -> Transcript:
    return Transcript.parse(Path(__file__), text.splitlines())


@contextmanager
def restartable_broker(name: str, folder: Path) -> Iterator[tuple[TranscriptContext, Callable[[], None]]]:
    """A broker, and what ends it and starts it again with the same files: Warren is killed."""
    with ExitStack() as stack:
        if name == "rabbitmq":
            server = rabbitmq.RabbitMQ(folder, listen="127.0.0.1", plugins=())
            stack.callback(server.stop)
            server.start()

            def again() -> None:
                # Not killed: it forgets a queue that was declared less than three minutes before.
                server.stop()
                server.start()

            is_4 = server.version() >= (4,)
            yield (
                TranscriptContext("127.0.0.1", server.port, "/", is_rabbitmq=True, is_rabbitmq_4=is_4),
                again,
            )
            return
        port = free_port()
        arguments = ("--port", str(port), "--data-dir", str(folder / "data"))
        running = [start_warren(folder, port, *arguments)]
        stack.callback(lambda: stop(running[0].process))

        def start_again() -> None:
            running[0].process.kill()
            running[0].process.wait(10)
            running[0] = start_warren(folder, port, *arguments)

        yield TranscriptContext("127.0.0.1", port, "/"), start_again


@pytest.mark.parametrize("name", BROKERS)
def test_confirmed_messages_survive_and_unacknowledged_ones_come_back_first(
    name: str, tmp_path: Path
) -> None:
    with restartable_broker(name, tmp_path) as (context, restart):
        if not accepts_quorum_queues(context.port, "guest", "guest", "/"):
            pytest.skip(f"{name} does not accept quorum queues")
        before, after = Client(context), Client(context)
        redelivered, count = BELOW_REACH[name]
        consumer_count = CONSUMERS_OF_ONE_GET[name]
        # Not compared with that of Warren.
        acquired = '"x-acquired-count": 1l, ' if context.is_rabbitmq_4 else ""
        scripts = [
            _script(BEFORE.format(connect=CONNECT, consumer_count=consumer_count)),
            _script(AFTER.format(connect=CONNECT, acquired=acquired, redelivered=redelivered, count=count)),
        ]
        if context.is_rabbitmq_4:
            scripts = [recorded.of_rabbitmq_4(script) for script in scripts]
        recorded.perform(scripts[0], before)
        restart()
        recorded.perform(scripts[1], after)
        for client in (before, after):
            client.peers[1].disconnect()
