"""Rows of a batch are published exactly once, wherever the broker is interrupted."""

import random

import pytest
from tests.seeds import SEEDS
from tests.sim.disk import SimulatedDisk
from tests.sim.segments import make_small
from tests.unit.vhost.places import Place

from warren.model.arguments import Overflow
from warren.model.message import BODY_END, Message, encode_address
from warren.queues.classic import ClassicQueue
from warren.store.recovery import RecoveryDependencies, open_erased, open_store
from warren.store.staged.commit_progress import CommitProgress, CommitState, progress_key
from warren.store.store_port import StorePort
from warren.store.stores import Stores
from warren.store.streams.chunk import Chunk, ChunkBuilder, read_head
from warren.vhost.batch_commit import BatchCommit
from warren.wire.properties import BasicProperties

QUEUES = {"a": 1, "b": 2}
FIRST = CommitProgress(
    state=CommitState.PUBLISHING, batch=7, rows=0, published=0, unroutable=0, at=0, user="somebody"
)


class Port(StorePort):
    """Commits when the test says so."""

    def commit_due(self) -> None:
        """Nothing to do: the test commits."""


class Broker:
    """A virtual host on a disk, opened anew after each power cut."""

    def __init__(self, disk: SimulatedDisk, **settings: object) -> None:
        chance = random.Random(1)
        dependencies = RecoveryDependencies(
            random_bytes=chance.randbytes, has_queue=lambda _: True, progress=lambda *_: None
        )
        self.disk = disk
        recovered = open_store(disk, Port(), dependencies)
        assert not recovered.damage
        self.store = recovered.store
        self.place = Place()
        self.place.vhost.attach_store(
            Stores(self.store, open_erased(SimulatedDisk(chance), Port(), chance.randbytes))
        )
        self.queues: dict[str, ClassicQueue] = {}
        for name, number in QUEUES.items():
            queue = self.queues[name] = self.place.queue(name, **settings)
            self.place.bind("amq.fanout", queue)
            assert self.place.vhost.stores is not None
            queue.attach_store(self.place.vhost.stores, number)
            for level, found in recovered.queues.get(number, {}).items():
                queue.restore(level, found)

    def committing(self) -> BatchCommit:
        mark = self.store.markers.get(progress_key("query"))
        progress = FIRST if mark is None else CommitProgress.decode(mark.value)
        return BatchCommit(self.place.vhost, "query", progress)

    def write(self, steps: int | None = None) -> None:
        self.store.commit()
        self.disk.advance(steps)

    def bodies(self, name: str) -> list[bytes]:
        return [peeked.message.body for peeked in self.queues[name].peek(0, 10_000)]


def chunk(first: int, *bodies: bytes, exchange: str = "amq.fanout") -> Chunk:
    builder = ChunkBuilder(first)
    properties = BasicProperties(delivery_mode=2)
    for body in bodies:
        builder.add(Message.compose(encode_address(exchange, ""), properties, body + BODY_END, now=0))
    data = builder.encode(1, 2, 0)
    head = read_head(data, 0, 1, 2)
    assert head is not None
    return Chunk(data, 0, head)


def test_a_slice_is_published_and_its_rows_are_counted() -> None:
    broker = Broker(SimulatedDisk(random.Random(0)))
    committing = broker.committing()
    assert committing.publish(chunk(0, b"1", b"2"), 0) == (2, "")
    assert not committing.is_safe
    broker.write()
    assert committing.is_safe
    assert broker.bodies("a") == broker.bodies("b") == [b"1", b"2"]
    committing.end(CommitState.COMMITTED)
    broker.write()
    broker.disk.lose_power()
    progress = Broker(broker.disk).committing().progress
    assert (progress.state, progress.published, progress.user) == (CommitState.COMMITTED, 2, "somebody")


def test_rows_before_the_progress_are_skipped() -> None:
    broker = Broker(SimulatedDisk(random.Random(0)))
    assert broker.committing().publish(chunk(0, b"1", b"2", b"3"), 2) == (3, "")
    assert broker.bodies("a") == [b"3"]


def test_an_unroutable_row_is_counted() -> None:
    broker = Broker(SimulatedDisk(random.Random(0)))
    committing = broker.committing()
    assert committing.publish(chunk(0, b"1", exchange="amq.topic"), 0) == (1, "")
    assert (committing.progress.published, committing.progress.unroutable) == (1, 1)


def test_a_full_queue_ends_the_slice_and_no_other_queue_receives_the_row() -> None:
    broker = Broker(SimulatedDisk(random.Random(0)), length_max=2, overflow=Overflow.REJECT_PUBLISH)
    committing = broker.committing()
    rows = chunk(0, b"1", b"2", b"3")
    assert committing.publish(rows, 0) == (2, "queue 'a' is full and refuses it")
    assert committing.publish(rows, 2) == (2, "queue 'a' is full and refuses it")
    assert committing.progress.published == 2
    assert broker.bodies("b") == [b"1", b"2"]
    for queue in broker.queues.values():
        queue.clear()
    assert committing.publish(rows, 2) == (3, "")


def test_a_missing_exchange_stops_the_commit_until_it_exists() -> None:
    broker = Broker(SimulatedDisk(random.Random(0)))
    place, reason = broker.committing().publish(chunk(0, b"1", exchange="gone"), 0)
    assert (place, reason) == (0, "no exchange 'gone' in vhost 'v'")
    assert progress_key("query") not in broker.store.markers


def test_the_number_of_slices_in_flight_is_bounded() -> None:
    broker = Broker(SimulatedDisk(random.Random(0)))
    committing = broker.committing()
    number = 0
    while not committing.is_full:
        committing.publish(chunk(number, b"%d" % number), 0)
        number += 1
    woken = []
    committing.wake = lambda: woken.append(1)
    broker.write()
    assert woken
    assert not committing.is_full


@pytest.mark.seeds(SEEDS // 4)
def test_each_row_is_published_once_whenever_the_power_fails(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, 8_192)
    chance = random.Random(seed)
    broker = Broker(SimulatedDisk(chance))
    texts = [b"%d " % number + bytes(chance.choice([0, 20, 700])) for number in range(60)]
    committing = broker.committing()
    is_over = False
    while not is_over:
        published = committing.progress.published
        action = chance.choice(["publish"] * 4 + ["write"] * 4 + ["cut"])
        if action == "publish" and published < len(texts) and not committing.is_full:
            rows = texts[published : published + chance.randrange(1, 8)]
            committing.publish(chunk(published, *rows), 0)
        elif action == "write":
            broker.write(chance.choice([1, 2, None]))
            is_over = published == len(texts) and committing.is_safe
        elif action == "cut":
            if chance.random() < 0.5:
                broker.disk.advance()
                broker.write(1)
            broker.disk.lose_power()
            broker = Broker(broker.disk)
            committing = broker.committing()
            for name in QUEUES:
                assert broker.bodies(name) == texts[: committing.progress.published]
    assert broker.bodies("a") == broker.bodies("b") == texts
