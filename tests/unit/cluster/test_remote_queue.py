"""A client of another node gets the same bytes as one of the home: each verb, compared with a local queue."""

from collections.abc import Callable

import pytest
from tests.unit.cluster.client_script import Script
from tests.unit.cluster.two_nodes import VHOST
from tests.unit.session.client import publication

from warren.model.coroutine_driver import drive
from warren.vhost.requester import Requester
from warren.wire import methods
from warren.wire.method import Method

QUEUE = "b.queue"
TWO = methods.BasicQos(prefetch_count=2)


def declared(**arguments: object) -> Method:
    return methods.QueueDeclare(queue=QUEUE, arguments=arguments)  # type: ignore[arg-type]


def published(count: int, **more: object) -> bytes:
    return b"".join(publication(QUEUE, b"m%d" % number, **more) for number in range(count))


def consume(tag: str = "t", **more: object) -> Method:
    return methods.BasicConsume(queue=QUEUE, consumer_tag=tag, **more)  # type: ignore[arg-type]


def declare(script: Script) -> None:
    script.send(0, declared())
    script.send(0, published(3))
    script.send(0, methods.QueueDeclare(queue=QUEUE, passive=True))
    script.send(0, declared())
    script.send(0, declared(**{"x-max-length": 5}))


def publish(script: Script) -> None:
    script.send(0, declared(), methods.ConfirmSelect())
    script.send(0, published(3), published(2, delivery_mode=2, priority=3, headers={"a": 1}))
    script.send(0, publication("nowhere", b"returned", mandatory=True), published(1))
    script.send(0, published(1, expiration="10"), publication(QUEUE, b""))
    script.send(0, publication(QUEUE, bytes(range(256)) * 300))
    script.send(0, consume(no_ack=True))


def get(script: Script) -> None:
    script.send(0, declared(), methods.BasicGet(queue=QUEUE))
    script.send(0, published(4, message_id="x"))
    script.send(0, methods.BasicGet(queue=QUEUE), methods.BasicGet(queue=QUEUE))
    script.send(0, methods.BasicReject(1, True), methods.BasicGet(queue=QUEUE, no_ack=True))
    script.send(0, methods.BasicNack(0, True, False), methods.BasicGet(queue=QUEUE))
    script.send(0, methods.BasicAck(4), methods.QueueDeclare(queue=QUEUE, passive=True))
    script.send(0, methods.BasicAck(4))


def prefetch(script: Script) -> None:
    script.send(0, declared(), published(10), TWO)
    script.send(0, consume())
    script.send(0, methods.BasicAck(1))
    script.send(0, methods.BasicAck(2), methods.BasicAck(3))
    script.send(0, methods.BasicNack(5, True, True))
    script.send(0, methods.BasicReject(6, False))
    script.send(0, methods.BasicRecover(requeue=True))


def global_prefetch(script: Script) -> None:
    script.send(0, declared(), published(9), methods.BasicQos(prefetch_count=3, is_global=True))
    script.send(0, consume("one"))
    script.send(0, methods.BasicAck(1))
    script.send(0, methods.BasicAck(3, True))
    script.send(0, methods.BasicQos(prefetch_count=5, is_global=True))
    script.send(0, methods.BasicQos(prefetch_count=0, is_global=True))


def cancel(script: Script) -> None:
    script.send(0, declared(), published(3), methods.BasicQos(prefetch_count=1), consume())
    script.send(0, methods.BasicCancel("t"), published(1))
    script.send(0, methods.BasicAck(1), methods.BasicGet(queue=QUEUE))
    script.send(0, consume("u"), methods.BasicCancel("u", True), methods.BasicCancel("unknown"))


def purge(script: Script) -> None:
    script.send(0, declared(), published(5), methods.BasicGet(queue=QUEUE))
    script.send(0, methods.QueuePurge(queue=QUEUE), methods.QueuePurge(queue=QUEUE, no_wait=True))
    script.send(0, methods.QueueDeclare(queue=QUEUE, passive=True))


def delete(script: Script) -> None:
    script.send(0, declared(), published(2), methods.QueueDelete(queue=QUEUE))
    script.send(0, declared(), published(2), methods.QueueDelete(queue=QUEUE, if_unused=True))
    script.send(0, declared(), published(2), methods.QueueDelete(queue=QUEUE, if_empty=True))


def delete_in_use(script: Script) -> None:
    script.send(1, declared(), consume("other"))
    script.send(0, methods.QueueDelete(queue=QUEUE, if_empty=True, if_unused=True))


def delete_with_consumers(script: Script) -> None:
    script.send(1, declared(), published(2), consume("other"))
    script.send(0, published(2), consume("mine"))
    script.send(0, methods.QueueDelete(queue=QUEUE))
    script.send(1, methods.BasicAck(1), methods.BasicGet(queue=QUEUE))


def refused_consumers(script: Script) -> None:
    script.send(0, declared(), consume(exclusive=True))
    script.send(1, consume("second"))


def second_exclusive(script: Script) -> None:
    script.send(1, declared(), consume())
    script.send(0, consume("second", exclusive=True))


def same_tag(script: Script) -> None:
    script.send(0, declared(), consume(), consume())


def single_active(script: Script) -> None:
    script.send(0, declared(**{"x-single-active-consumer": True}), published(4), TWO, consume("one"))
    script.send(1, consume("two"))
    script.send(0, methods.BasicCancel("one"))
    script.send(0, methods.BasicNack(2, True, True))


def priorities(script: Script) -> None:
    script.send(0, declared(), consume("low", arguments={"x-priority": -3}))
    script.send(1, TWO, consume("high", arguments={"x-priority": 5}))
    script.send(0, published(4))
    script.send(0, consume("bad", arguments={"x-priority": "high"}))


def channel_end(script: Script) -> None:
    script.send(0, declared(), published(4), methods.BasicQos(prefetch_count=3), consume("one"))
    script.send(1, consume("two"))
    script.send(0, methods.ChannelClose(0, "", 0, 0))


def transaction(script: Script) -> None:
    script.send(0, declared(), published(2), methods.TxSelect(), consume())
    script.send(0, published(2), methods.BasicAck(1))
    script.send(0, methods.QueueDeclare(queue=QUEUE, passive=True), methods.TxCommit())
    script.send(0, published(1), methods.TxRollback(), methods.QueueDeclare(queue=QUEUE, passive=True))


def overflow(script: Script) -> None:
    arguments = {"x-max-length": 2, "x-overflow": "reject-publish"}
    script.send(0, declared(**arguments), methods.ConfirmSelect())
    script.send(0, published(4))
    script.send(0, methods.BasicGet(queue=QUEUE), published(2))


def refused_transaction(script: Script) -> None:
    script.send(0, declared(**{"x-max-length": 1, "x-overflow": "reject-publish"}), methods.TxSelect())
    script.send(0, published(2), methods.TxCommit())


def dead_letters(script: Script) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "b.dead"}
    script.send(0, methods.QueueDeclare(queue="b.dead"), declared(**arguments), published(2), consume())
    script.send(0, methods.BasicReject(1, False), methods.BasicNack(2, False, False))
    script.send(0, methods.BasicConsume(queue="b.dead", consumer_tag="dead"))


def delivery_limit(script: Script) -> None:
    script.send(0, declared(**{"x-delivery-limit": 1}), published(1), TWO, consume())
    script.send(0, methods.BasicReject(1, True))
    script.send(0, methods.BasicReject(2, True))


def auto_delete(script: Script) -> None:
    script.send(0, methods.QueueDeclare(queue=QUEUE, auto_delete=True), published(1), consume())
    script.send(0, methods.BasicCancel("t"), methods.QueueDeclare(queue=QUEUE, passive=True))


def exclusive_queue(script: Script) -> None:
    script.send(1, methods.QueueDeclare(queue=QUEUE, exclusive=True))
    script.send(0, methods.QueueDeclare(queue=QUEUE, passive=True))


def missing(script: Script) -> None:
    script.send(0, methods.BasicConsume(queue=QUEUE))


def positions(script: Script) -> None:
    script.send(0, declared(), consume(arguments={"x-stream-offset": 5}))


def pause(script: Script) -> None:
    script.send(0, declared(), published(2))
    node = script.cluster.a
    user = next(iter(node.metadata.users.by_name.values()))
    requester = Requester(node.services.authorizer(user), node.server.next_owner())
    service = node.services.queue_service
    for is_paused in (True, False):
        drive(_ended(service.pause_queue(requester, QUEUE, is_paused=is_paused)))
        script.send(0, methods.BasicGet(queue=QUEUE))


async def _ended(awaitable: object) -> None:
    await awaitable  # type: ignore[misc]


def several_queues(script: Script) -> None:
    script.send(0, declared(), methods.QueueDeclare(queue="b.second"), methods.ConfirmSelect())
    for name in (QUEUE, "b.second"):
        script.send(0, methods.QueueBind(queue=name, exchange="amq.fanout"))
    script.send(0, publication("k", b"both", exchange="amq.fanout"))
    script.send(0, published(1))
    script.send(0, consume())
    script.send(0, methods.BasicConsume(queue="b.second", consumer_tag="second"))
    script.send(0, methods.BasicNack(0, True, True))


def big_message(script: Script) -> None:
    script.send(0, declared(), methods.ConfirmSelect(), publication(QUEUE, b"x" * 9_000))
    script.send(0, methods.BasicGet(queue=QUEUE))


SCRIPTS = (
    declare, publish, get, prefetch, global_prefetch, cancel, purge, delete, delete_in_use,
    delete_with_consumers, refused_consumers, second_exclusive, same_tag, single_active, priorities,
    channel_end, transaction, overflow, refused_transaction, dead_letters, delivery_limit, auto_delete,
    exclusive_queue, missing, positions, pause, several_queues, big_message,
)  # fmt: skip


@pytest.mark.parametrize("play", SCRIPTS, ids=lambda play: play.__name__)
@pytest.mark.parametrize("nodes", ["aa", "ab", "ba"])
def test_a_client_of_another_node_gets_the_bytes_that_one_of_the_home_gets(
    play: Callable[[Script], None], nodes: str
) -> None:
    home, remote = Script("bb"), Script(nodes)
    play(home)
    play(remote)
    assert remote.received == home.received
    assert any(home.received), "nothing was compared"
    assert not remote.cluster.a.channel.ended + remote.cluster.b.channel.ended


def test_what_is_published_is_at_the_home_only() -> None:
    script = Script("a")
    script.send(0, declared(), published(2))
    assert script.cluster.b.queue(QUEUE).message_count == 2
    assert VHOST in script.cluster.a.server.vhost_services
    assert script.cluster.a.services.vhost.queues[QUEUE].message_count == 0
