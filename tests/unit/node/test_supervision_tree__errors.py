"""An error in what belongs to one queue ends that queue; its virtual host and other queues go on."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.node.test_broker import connect, frame, say
from tests.unit.node.test_supervision_tree import until, within

from warren.metadata.commands import Outcome, SetPolicy
from warren.model.arguments import DEFAULT_SETTINGS, QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import BODY_END, PERSISTENT, StoredMessage, encode_address
from warren.node.broker import Broker
from warren.queues.classic import ClassicQueue
from warren.queues.failed_queue import FailedQueue
from warren.queues.quorum.group import QuorumGroup
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.queues.stream import StreamQueue
from warren.queues.vhost_queue import VhostQueue
from warren.routing.exchange import Binding
from warren.store.group_listener import GroupListener
from warren.vhost.vhost import VirtualHost
from warren.wire.methods import BasicConsume, ChannelOpen, QueueDeclare, QueueDelete
from warren.wire.properties import BasicProperties

PROPERTIES = BasicProperties(delivery_mode=2).encode_list()
PLANTED = "planted"


class Publisher(ConfirmListener):
    """A publisher that records its answers."""

    def __init__(self) -> None:
        self.confirmed: list[int] = []
        self.refusals: list[int] = []

    def expect(self, sequence: int) -> None:
        pass

    def done(self, first: int, last: int) -> None:
        self.confirmed += range(first, last + 1)

    def refused(self, sequence: int) -> None:
        self.refusals.append(sequence)


class BrokenPublisher(Publisher):
    """A publisher that raises an error when it is answered."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[str] = []

    def done(self, first: int, last: int) -> None:
        raise IndexError(PLANTED)

    def failed(self, error: Exception) -> None:
        self.reasons.append(str(error))


class BrokenGroup(GroupListener):
    """The group of a quorum queue, one call of which raises an error."""

    def __init__(self, group: GroupListener, broken: str) -> None:
        self.group = group
        self.broken = broken

    def prepare(self) -> None:
        if self.broken == "prepare":
            raise IndexError(PLANTED)
        self.group.prepare()

    def written(self, ticket: int) -> None:
        if self.broken == "written":
            raise IndexError(PLANTED)
        self.group.written(ticket)

    def failed(self, error: Exception) -> None:
        self.group.failed(error)


class BrokenQueue(ClassicQueue):
    """A classic queue that raises an error when it is woken, or gets settings."""

    def expire(self) -> None:
        raise IndexError(PLANTED)

    def apply_settings(self, settings: QueueSettings) -> None:
        if settings.length_max is not None:
            raise IndexError(PLANTED)
        super().apply_settings(settings)


def raise_planted() -> None:
    raise IndexError(PLANTED)


def message(name: str) -> StoredMessage:
    made = StoredMessage(encode_address("", name), PROPERTIES, b"x" + BODY_END, 0)
    made.flags = PERSISTENT
    return made


def break_stream_as_it_reads(vhost: VirtualHost, queue: VhostQueue) -> None:
    assert isinstance(queue, StreamQueue)
    queue.log.listener = raise_planted


def break_stream_as_it_writes(vhost: VirtualHost, queue: VhostQueue) -> None:
    assert isinstance(queue, StreamQueue)
    # No segment can be added.
    queue.log.segments = ()  # type: ignore[assignment]


def group_of(queue: VhostQueue) -> QuorumGroup:
    replica = queue.replica_here()
    assert isinstance(replica, QuorumQueue)
    assert replica.group is not None
    return replica.group


def break_group_as_it_proposes(vhost: VirtualHost, queue: VhostQueue) -> None:
    group = group_of(queue)
    group.log.listener = BrokenGroup(group, "prepare")


def break_group_as_it_is_written(vhost: VirtualHost, queue: VhostQueue) -> None:
    group = group_of(queue)
    group.log.listener = BrokenGroup(group, "written")


def break_timer(vhost: VirtualHost, queue: VhostQueue) -> None:
    broken = BrokenQueue(queue.name, vhost.name, vhost, DEFAULT_SETTINGS)
    vhost.queues[queue.name] = broken
    for binding in vhost.router.bindings_of(queue):
        vhost.router.unbind(binding)
        vhost.router.bind(Binding(binding.source, binding.key, binding.arguments, broken))
    vhost.wake_at(broken, vhost.turn.now())


def declared(broker: Broker, kind: str) -> VirtualHost:
    """The virtual host v with the queues `one`, of `kind`, and `other`; a client consumes from both."""
    client = connect(broker, "v")
    say(client, frame(ChannelOpen(), 1))
    for name in ("one", "other"):
        arguments = {"x-queue-type": kind if name == "one" else "classic"}
        say(client, frame(QueueDeclare(0, name, durable=True, arguments=arguments), 1))
    return broker.server.vhost_services["v"].vhost


BREAKS: dict[str, tuple[str, Callable[[VirtualHost, VhostQueue], None]]] = {
    "a stream that is read": ("stream", break_stream_as_it_reads),
    "a stream that is written": ("stream", break_stream_as_it_writes),
    "a group that proposes": ("quorum", break_group_as_it_proposes),
    "a group that was written": ("quorum", break_group_as_it_is_written),
    "a timer": ("classic", break_timer),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_an_error_in_one_queue_ends_that_queue_and_not_its_vhost(
    broken: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kind, break_it = BREAKS[broken]

    async def work(broker: Broker) -> None:
        services = broker.server.vhost_services["v"]
        vhost = declared(broker, kind)
        await until(lambda: {*vhost.queues} == {"one", "other"})
        queue = vhost.queues["one"]
        await until(lambda: kind != "quorum" or group_of(queue).is_open)
        break_it(vhost, queue)
        mine, others = Publisher(), Publisher()
        queue.publish(message("one"), mine, 1)
        vhost.queues["other"].publish(message("other"), others, 1)
        await until(lambda: isinstance(vhost.queues["one"], FailedQueue) and others.confirmed == [1])
        assert f"queue 'one' in vhost 'v' has failed and is down: {PLANTED}" in caplog.text or (
            broken == "a stream that is written" and "queue 'one' in vhost 'v' has failed" in caplog.text
        )
        assert vhost.failure_count == 1
        assert broker.server.vhost_services["v"] is services
        # What was written before the error is confirmed; nothing else is, and a lost batch is refused.
        assert mine.confirmed == ([1] if broken in ("a stream that is read", "a timer") else [])
        assert broken != "a stream that is written" or mine.refusals == [1]
        # Others are told that it is down, and it can be deleted and declared again.
        client = connect(broker, "v")
        say(client, frame(ChannelOpen(), 1) + frame(BasicConsume(0, "one"), 1))
        assert b"is down, as an error of the broker has ended it" in b"".join(client.take_output())
        say(client, frame(ChannelOpen(), 2) + frame(QueueDelete(0, "one"), 2))
        await until(lambda: "one" not in vhost.queues)
        say(client, frame(QueueDeclare(0, "one", durable=True, arguments={"x-queue-type": kind}), 2))
        await until(lambda: "one" in vhost.queues)
        vhost.queues["one"].publish(message("one"), mine, 2)
        await until(lambda: mine.confirmed[-1:] == [2])

    within(tmp_path, work)


def test_a_publisher_that_fails_when_it_is_answered_keeps_no_other_waiting(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        vhost = declared(broker, "classic")
        await until(lambda: {*vhost.queues} == {"one", "other"})
        broken, other = BrokenPublisher(), Publisher()
        vhost.queues["one"].publish(message("one"), broken, 1)
        vhost.queues["other"].publish(message("other"), other, 1)
        await until(lambda: other.confirmed == [1])
        assert (broken.reasons, vhost.failure_count) == ([PLANTED], 1)
        assert not isinstance(vhost.queues["one"], FailedQueue)

    within(tmp_path, work)


def test_a_queue_that_cannot_take_a_policy_ends_and_the_others_take_it(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        vhost = declared(broker, "classic")
        await until(lambda: {*vhost.queues} == {"one", "other"})
        break_timer(vhost, vhost.queues["one"])
        vhost.wake_at(vhost.queues["one"], -1)
        for length in (7, 8):
            reply = await broker.proposals.propose(
                SetPolicy(vhost="v", name="p", pattern=".*", definition={"max-length": length})
            )
            assert reply.outcome is Outcome.DONE
            assert isinstance(vhost.queues["one"], FailedQueue)
            assert vhost.queues["other"].settings.length_max == length
        assert vhost.queues["one"].settings.length_max == 8

    within(tmp_path, work)
