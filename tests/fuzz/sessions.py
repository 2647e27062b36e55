"""The fuzz target of whole AMQP sessions: the broker answers with frames, may close, and serves the next
client.
"""

from random import Random

from tests.clock import ManualClock
from tests.fuzz.broker import (
    HANDSHAKE,
    INTERNAL_ERROR,
    PREPARATION,
    InProcessBroker,
    call,
    collect,
    frame,
    publication,
    received,
)

from warren.session.connection import Connection
from warren.wire import methods

# Expiry is bounded: a deadline that does not move is a finding.
EXPIRATIONS_MAX = 50


def check_session(data: bytes) -> None:
    """The first byte selects how the rest is sent: as bytes or as frames, in pieces, before or
    after login.
    """
    if not data:
        return
    mode, raw = data[0], data[1:]
    if mode & 1:
        raw = framed(raw)
    if mode & 2:
        raw = HANDSHAKE + raw
    broker = InProcessBroker()
    witness = broker.connect(1)
    hear(witness, HANDSHAKE + PREPARATION)
    collect(witness)
    suspect = broker.connect(2)
    said = b""
    step = len(raw) if mode & 4 else mode % 61 + 1
    for broker.clock.now, at in enumerate(range(0, len(raw), max(1, step))):
        hear(suspect, raw[at : at + step])
        said += collect(suspect)
        received(collect(witness))
        if suspect.is_finished:
            break
    answers = received(said + expire(suspect, broker.clock))
    assert not broker.surprises, "\n".join(broker.surprises)
    for answer in answers:
        assert getattr(answer, "reply_code", 0) != INTERNAL_ERROR, answer
    broker.clock.now = 1_000_000
    suspect.lost()
    assert suspect not in broker.server.connections
    expect_service(broker)


def framed(data: bytes) -> bytes:
    """`data` as frames that are sound outside: a head of two bytes tells type, channel and size."""
    out = b""
    at = 0
    while at + 2 <= len(data):
        head, size = data[at], data[at + 1]
        kind = (1, 1, 1, 1, 2, 3, 8, head)[head % 8]
        out += frame(kind, (1, 1, 1, 0, 2)[head // 8 % 5], data[at + 2 : at + 2 + size])
        at += 2 + size
    return out


def expire(connection: Connection, clock: ManualClock) -> bytes:
    """Advance the time of `connection` until nothing is due within an hour."""
    said = b""
    for _ in range(EXPIRATIONS_MAX):
        due = connection.deadline()
        if due is None or due > 3_600_000 or connection.is_finished:
            return said
        clock.now = max(clock.now, due)
        connection.expire()
        said += collect(connection)
    return said


def expect_service(broker: InProcessBroker) -> None:
    """A new client declares, publishes and gets back what it published."""
    client = broker.connect(3)
    script = call(methods.QueueDeclare(queue="fresh", exclusive=True)) + publication("", "fresh", b"x")
    hear(client, HANDSHAKE + script + call(methods.BasicGet(queue="fresh")))
    names = [method.name for method in received(collect(client))]
    assert names[-2:] == ["queue.declare-ok", "basic.get-ok"], names
    client.lost()


def session_seeds() -> list[bytes]:
    """Each method once, and typical operations of clients, as frames and as bytes."""
    random = Random(1)
    deeds = [
        publication("events", "a.b", b"hello", delivery_mode=2, headers={"CC": ["jobs"]}),
        call(methods.ConfirmSelect()) + publication("", "nowhere", b"x" * 40, expiration="10"),
        call(methods.TxSelect()) + publication("", "jobs", b"x") + call(methods.TxCommit()),
        call(methods.BasicQos(prefetch_count=1)) + call(methods.BasicConsume(queue="jobs", consumer_tag="c"))
        + publication("", "jobs", b"1") + publication("", "jobs", b"2")
        + call(methods.BasicNack(delivery_tag=1, requeue=False)) + call(methods.BasicAck(2, True)),
        call(methods.BasicConsume(queue="amq.rabbitmq.reply-to", no_ack=True))
        + publication("", "jobs", b"?", reply_to="amq.rabbitmq.reply-to"),
        publication("", "jobs", b"1") + call(methods.BasicGet(queue="jobs")) + call(methods.ChannelClose(200))
        + call(methods.ChannelOpen()) + call(methods.QueueDelete(queue="jobs")),
        call(methods.BasicPublish(routing_key="jobs")) + frame(2, 1, bytes(14)) + frame(8, 0, b""),
        call(methods.ConnectionClose(200, "bye"), 0),
    ]  # fmt: skip
    every = list(methods.METHODS.values())
    for _ in range(8):
        chosen = random.sample(every, 12)
        deeds.append(b"".join(call(method(), 0 if method.class_id == 10 else 1) for method in chosen))
    # As bytes after login, whole and in pieces; and as frames after login.
    raw = [bytes((mode,)) + deed for deed in deeds for mode in (6, 34)]
    return [*raw, b"\x04" + HANDSHAKE, b"\x10" + HANDSHAKE, *[b"\x07" + unframed(deed) for deed in deeds]]


def unframed(data: bytes) -> bytes:
    """What `framed` makes `data` of, for frames of fewer than 256 bytes on channel 1 or 0."""
    out = b""
    at = 0
    while at < len(data):
        kind, channel, size = data[at], data[at + 2], data[at + 6]
        head = {1: 0, 2: 4, 3: 5, 8: 6}[kind] + (0 if channel else 24)
        out += bytes((head, size)) + data[at + 7 : at + 7 + size]
        at += size + 8
    return out


def hear(connection: Connection, data: bytes) -> None:
    """Hand `data` over, for as many turns as they take."""
    connection.receive(data)
    while connection.has_more:
        connection.process_more()
