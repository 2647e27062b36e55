"""One connection from its first byte to its last, with bytes as input and output."""

import gc

import pytest
from tests.unit.session.client import Broker, Client, call, frame, parse, publication

from warren import limits
from warren.errors import ConnectionForced
from warren.framing.heartbeat import HEARTBEAT_FRAME
from warren.limits import REMOVED_PER_TURN
from warren.session.base_connection import ConnectionState
from warren.wire import methods
from warren.wire.properties import BasicProperties


def opened(queue: str = "q") -> tuple[Broker, Client]:
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue=queue))
    return broker, client


def closed_with(client: Client) -> methods.ConnectionClose:
    [received] = client.hear()
    assert isinstance(received.method, methods.ConnectionClose)
    assert received.channel == 0
    return received.method


def test_a_client_opens_publishes_consumes_and_acknowledges() -> None:
    broker, client = opened()
    client.send(call(methods.ConfirmSelect()), publication("q", b"hello", app_id="me"))
    select, ack = client.hear()
    assert (select.method, ack.method) == (methods.ConfirmSelectOk(), methods.BasicAck(1, False))
    ok, delivered = client.ask(methods.BasicConsume(queue="q", consumer_tag="c"))
    assert ok.method == methods.BasicConsumeOk("c")
    assert delivered.method == methods.BasicDeliver("c", 1, False, "", "q")
    assert (delivered.properties, delivered.body) == (BasicProperties(app_id="me"), b"hello")
    assert client.ask(methods.BasicAck(1)) == []
    assert broker.services.vhost.queues["q"].unacked_count == 0


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_the_answers_do_not_depend_on_how_the_input_is_cut(size: int) -> None:
    script = b"".join(
        (
            b"AMQP\x00\x00\x09\x01",
            call(methods.ConnectionStartOk(mechanism="PLAIN", response="\0guest\0guest"), 0),
            call(methods.ConnectionTuneOk(channel_max=8, frame_max=4096, heartbeat=0), 0),
            call(methods.ConnectionOpen("/"), 0),
            call(methods.ChannelOpen()),
            call(methods.QueueDeclare(queue="q")),
            publication("q", b"x" * 100),
            publication("q", b""),
            call(methods.BasicGet(queue="q")),
            call(methods.BasicGet(queue="q", no_ack=True)),
            call(methods.BasicAck(1)),
            call(methods.BasicAck(9)),
        )
    )
    said = []
    for step in (len(script), size):
        client = Broker().connect()
        for at in range(0, len(script), step):
            client.send(script[at : at + step])
        said.append(b"".join(client.connection.take_output()))
    assert said[0] == said[1]
    assert parse(said[0])[-1].method.reply_text == "PRECONDITION_FAILED - unknown delivery tag 9"


def test_an_unsupported_protocol_header_is_answered_and_closed() -> None:
    client = Broker().connect()
    client.send(b"GET / HT")
    assert b"".join(client.connection.take_output()) == b"AMQP\x00\x00\x09\x01"
    assert client.connection.is_finished


def test_a_channel_error_does_not_affect_other_channels() -> None:
    _, client = opened()
    client.ask(methods.ChannelOpen(), channel=2)
    client.send(call(methods.BasicAck(7), 2), publication("q", b"x"), call(methods.BasicGet(queue="q")))
    close, got = client.hear()
    assert (close.channel, close.method.reply_code, got.body) == (2, 406, b"x")
    assert (close.method.failed_class_id, close.method.failed_method_id) == (60, 80)
    assert client.ask(methods.ChannelCloseOk(), methods.ChannelOpen(), channel=2)[0].method.name == (
        "channel.open-ok"
    )


def test_a_failed_channel_ignores_frames_until_it_is_closed() -> None:
    broker, client = opened()
    client.send(call(methods.BasicAck(7)), publication("q", b"x"), call(methods.QueueDelete(queue="q")))
    assert client.names() == ["channel.close"]
    assert broker.services.vhost.queues["q"].message_count == 0
    assert [one.method.name for one in client.ask(methods.ChannelClose())] == ["channel.close-ok"]


def test_a_connection_error_closes_it_and_releases_its_resources() -> None:
    broker, client = opened()
    client.send(publication("q", b"x"), call(methods.BasicGet(queue="q")), call(methods.BasicAck(1), 5))
    assert [received.method.name for received in client.hear()] == ["basic.get-ok", "connection.close"]
    assert client.connection.state is ConnectionState.CLOSING
    assert client.connection not in broker.server.connections
    assert broker.services.vhost.queues["q"].message_count == 1
    client.send(call(methods.ConnectionCloseOk(), 0))
    assert client.connection.is_finished


def test_input_after_the_cause_of_a_close_is_parsed_as_frames() -> None:
    _, client = opened()
    later = publication("q", b"x" * 100)
    client.send(call(methods.BasicGet(), 0), later[:50])
    assert closed_with(client).reply_code == 504
    client.send(later[50:], call(methods.ConnectionCloseOk(), 0))
    assert client.connection.is_finished


def test_a_close_after_the_cause_of_a_close_is_answered() -> None:
    _, client = opened()
    client.send(call(methods.BasicGet(), 0), call(methods.ConnectionClose(200, "bye"), 0))
    assert client.names() == ["connection.close", "connection.close-ok"]


def test_a_closing_client_has_thirty_seconds_and_after_a_framing_error_one() -> None:
    for data, wait in ((call(methods.BasicGet(), 0), 30_000), (b"\x01" + bytes(7), 1_000)):
        _, client = opened()
        client.now = 5
        client.send(data)
        closed_with(client)
        assert client.connection.deadline() == 5 + wait
        client.expire(4 + wait)
        assert not client.connection.is_finished
        client.expire(5 + wait)
        assert client.connection.is_finished
        assert client.connection.deadline() is None


def test_after_a_framing_error_only_close_ok_is_recognised() -> None:
    _, client = opened()
    client.send(b"\x01" + bytes(7))
    assert closed_with(client).reply_code == 501
    client.send(b"nonsense" * 3)
    assert not client.connection.is_finished
    client.send(b"more" + call(methods.ConnectionCloseOk(), 0))
    assert client.connection.is_finished
    assert client.hear() == []


def test_a_close_by_the_client_is_answered_even_when_repeated() -> None:
    broker, client = opened()
    client.send(publication("q", b"x"), call(methods.ConnectionClose(200, "bye"), 0), publication("q", b"y"))
    assert client.names() == ["connection.close-ok"]
    assert broker.services.vhost.queues["q"].message_count == 1
    assert broker.server.connections == {}
    client.send(call(methods.ConnectionClose(200, "bye"), 0))
    assert client.names() == ["connection.close-ok"]


def test_a_lost_socket_leaves_no_objects_behind() -> None:
    broker, client = opened()
    client.ask(methods.QueueDeclare(queue="mine", exclusive=True), methods.BasicConsume(queue="q"))
    client.connection.lost()
    assert client.connection.is_finished
    assert list(broker.services.vhost.queues) == ["q"]
    assert broker.services.vhost.queues["q"].consumer_count == 0
    assert (broker.server.channels_of("guest"), broker.server.connections_of("guest")) == (0, 0)


def declared(broker: Broker, count: int) -> Client:
    """A client with `count` exclusive queues."""
    client = broker.client()
    client.ask(*(methods.QueueDeclare(queue=f"q{number}", exclusive=True) for number in range(count)))
    return client


def test_many_exclusive_queues_are_deleted_in_turns_before_close_ok() -> None:
    broker = Broker()
    client, other = declared(broker, 3 * REMOVED_PER_TURN), broker.client()
    assert client.ask(methods.ConnectionClose(), channel=0) == []
    last = f"q{3 * REMOVED_PER_TURN - 1}"
    lefts = []
    while broker.turns:
        lefts.append(len(broker.services.vhost.queues))
        [refused] = other.ask(methods.QueueDeclare(queue=last, passive=True))
        assert refused.method.reply_code == 405
        other.ask(methods.ChannelCloseOk(), methods.ChannelOpen())
        assert client.ask(methods.ConnectionClose(), channel=0) == []
        broker.turn()
    assert lefts == [2 * REMOVED_PER_TURN, REMOVED_PER_TURN]
    assert not broker.services.vhost.queues
    assert client.names() == ["connection.close-ok"]
    [refused] = other.ask(methods.QueueDeclare(queue=last, passive=True))
    assert refused.method.reply_code == 404


def test_a_few_exclusive_queues_are_deleted_before_close_ok() -> None:
    broker = Broker()
    client = declared(broker, REMOVED_PER_TURN - 1)
    [received] = client.ask(methods.ConnectionClose(), channel=0)
    assert received.method == methods.ConnectionCloseOk()
    assert not broker.services.vhost.queues


def test_frames_received_before_the_socket_was_lost_are_processed_in_turns() -> None:
    broker = Broker()
    client = broker.client()
    declares = [call(methods.QueueDeclare(queue=f"q{number}")) for number in range(3)]
    client.connection.receive(b"".join(declares))
    client.connection.lost()
    counts = [len(broker.services.vhost.queues)]
    while broker.turns:
        broker.turn()
        counts.append(len(broker.services.vhost.queues))
    assert counts == [2, 3]
    assert client.connection.is_finished
    assert not broker.server.connections


@pytest.mark.parametrize("has_consumer", [False, True])
def test_a_lost_connection_is_freed_without_garbage_collection(has_consumer: bool) -> None:
    broker = Broker()

    def come_and_go() -> None:
        client = broker.client()
        if has_consumer:
            client.ask(methods.QueueDeclare(queue="q", exclusive=True))
            client.ask(methods.QueueBind(queue="q", exchange="amq.topic", routing_key="a.*"))
            client.ask(methods.BasicConsume(queue="q", consumer_tag="c"))
            client.send(publication("q", b"hello"))
            client.hear()
        client.connection.lost()

    come_and_go()
    gc.collect()
    gc.disable()
    try:
        come_and_go()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_messages_of_a_lost_connection_are_not_delivered_to_its_other_channels() -> None:
    broker, client = opened()
    for number in (2, 3):
        client.ask(methods.ChannelOpen(), methods.BasicConsume(queue="q"), channel=number)
    client.send(publication("q", b"x"))
    client.connection.lost()
    assert broker.services.vhost.queues["q"].get().attempts == 1


def test_an_unexpected_exception_closes_one_connection_only() -> None:
    broker, client = opened()
    other = broker.client()

    def fail(bytes_count: int) -> bytes:
        raise ZeroDivisionError

    broker.server.random_bytes = fail
    client.ask(methods.ChannelOpen(), channel=3)
    client.send(call(methods.BasicConsume(queue="q"), 3))
    close = closed_with(client)
    assert (close.reply_code, close.reply_text) == (541, "INTERNAL_ERROR")
    assert broker.reports == ["unexpected ZeroDivisionError in connection 127.0.0.1:1 -> 127.0.0.1:5672"]
    assert other.ask(methods.BasicGet(queue="q"))[0].method.name == "basic.get-empty"


def test_the_broker_can_close_a_connection() -> None:
    _, client = opened()
    client.connection.close(ConnectionForced("broker forced connection closure with reason 'shutdown'"))
    assert closed_with(client).reply_code == 320


def test_a_frame_on_a_closed_channel_must_be_channel_open() -> None:
    _, client = opened()
    client.send(call(methods.BasicGet(queue="q"), 4))
    close = closed_with(client)
    assert close.reply_text == "CHANNEL_ERROR - expected 'channel.open'"
    assert (close.failed_class_id, close.failed_method_id) == (60, 70)


def test_frames_of_other_channels_and_heartbeats_may_interrupt_a_message() -> None:
    broker, client = opened()
    client.ask(methods.ChannelOpen(), channel=2)
    one, body = publication("q", b"hello")[:-13], publication("q", b"hello")[-13:]
    client.send(one, publication("q", b"other", channel=2), HEARTBEAT_FRAME, body)
    queue = broker.services.vhost.queues["q"]
    assert [queue.get().message.body for _ in range(2)] == [b"other", b"hello"]
    assert queue.unacked_bytes == 10


def test_heartbeats_are_sent_and_missing_ones_close_the_connection() -> None:
    broker = Broker()
    client = broker.client(heartbeat=2)
    assert client.connection.deadline() == 1000
    for now in (1000, 2000, 3000):
        client.expire(now)
        client.connection.take_output()
    client.send(HEARTBEAT_FRAME)
    sent = b""
    for now in (4000, 5000, 6000):
        client.expire(now)
        sent += b"".join(client.connection.take_output())
        assert not client.connection.is_finished
    assert sent == 3 * HEARTBEAT_FRAME
    for now in (7000, 8000):
        client.expire(now)
    assert client.connection.is_finished
    assert client.connection.deadline() is None
    assert broker.reported[-1][1] == "error"
    assert broker.reported[-1][2].endswith(": missed heartbeats from client, timeout: 2s")
    assert broker.server.connections == {}


@pytest.mark.parametrize(("channel", "payload", "code"), [(1, b"", 505), (0, b"x", 501)])
def test_a_heartbeat_is_empty_and_on_channel_0(channel: int, payload: bytes, code: int) -> None:
    _, client = opened()
    client.send(frame(8, channel, payload))
    assert closed_with(client).reply_code == code


def test_a_handshake_timeout_closes_the_socket_without_a_frame() -> None:
    client = Broker().connect()
    client.send(b"AMQP")
    due = client.connection.deadline()
    assert due == 10_000
    client.expire(due)
    assert client.connection.is_finished
    assert client.hear() == []


def test_a_slow_socket_pauses_the_consumers() -> None:
    _, client = opened()
    client.ask(methods.BasicConsume(queue="q", no_ack=True))
    client.connection.pause_output()
    client.send(publication("q", b"x"))
    assert client.connection.take_output() == []
    client.connection.resume_output()
    assert client.bodies() == [b"x"]


def test_pending_output_is_announced_once() -> None:
    _, client = opened()
    client.hear()
    before = client.output_listener.count
    client.send(call(methods.BasicGet(queue="q")), call(methods.BasicGet(queue="q")))
    assert client.output_listener.count == before + 1
    assert client.names() == ["basic.get-empty", "basic.get-empty"]
    client.send(call(methods.BasicGet(queue="q")))
    assert client.output_listener.count == before + 2


def say_in_turns(client: Client, *reads: bytes) -> None:
    """Receive all of `reads` before the first of them is fully processed."""
    for data in reads:
        client.connection.receive(data)
        assert client.connection.has_more
    while client.connection.has_more:
        client.connection.process_more()


def test_no_frame_is_lost_if_a_turn_ends_after_the_cause_of_a_close() -> None:
    _, client = opened()
    later = publication("q", b"x" * 100)
    say_in_turns(
        client,
        call(methods.BasicGet(), 0) + publication("q", b"") * 5_000 + later[:50],
        later[50:] + call(methods.ConnectionCloseOk(), 0),
    )
    assert client.names() == ["connection.close"]
    assert client.connection.is_finished


def test_no_frame_is_lost_if_a_turn_ends_during_the_handshake() -> None:
    client = Broker().connect()
    start = methods.ConnectionStartOk(mechanism="PLAIN", response="\0guest\0guest")
    say_in_turns(client, b"AMQP\x00\x00\x09\x01" + HEARTBEAT_FRAME * 10_000 + call(start, 0))
    assert client.names() == ["connection.start", "connection.tune"]


def test_turns_preserve_the_order_of_input() -> None:
    broker, client = opened()
    data = b"".join(publication("q", b"%d" % number) for number in range(3_000))
    say_in_turns(client, data[:70_001], data[70_001:])
    queue = broker.services.vhost.queues["q"]
    assert [int(queue.get().message.body) for _ in range(3_000)] == list(range(3_000))


def turns_for(client: Client, data: bytes) -> int:
    """How many turns it takes to obey `data`, which came in one read."""
    client.connection.receive(data)
    turns = 1
    while client.connection.has_more:
        client.connection.process_more()
        turns += 1
    return turns


def test_copies_for_many_queues_count_as_work_of_the_turn() -> None:
    _, client = opened()
    for number in range(200):
        name = f"q{number}"
        client.send(
            call(methods.QueueDeclare(queue=name)), call(methods.QueueBind(queue=name, exchange="amq.fanout"))
        )
    few = turns_for(client, publication("q", b"x") * 100)
    many = turns_for(client, publication("", b"x", exchange="amq.fanout") * 100)
    assert few == 1
    assert many >= 100 * 200 // (2 * limits.WORK_PER_TURN_MAX)


def test_messages_dropped_from_a_full_queue_count_as_work_of_the_turn() -> None:
    _, client = opened()
    client.send(call(methods.QueueDeclare(queue="full", arguments={"x-max-length": 1})))
    count = limits.WORK_PER_TURN_MAX * 9 // 40  # three frames and a copy each
    assert turns_for(client, publication("q", b"x") * count) == 1
    assert turns_for(client, publication("full", b"x") * count) == 2


def test_a_turn_of_the_only_client_may_do_more_work() -> None:
    _, client = opened()
    data = publication("q", b"x") * (limits.WORK_SOLE_CLIENT_MAX // 5)
    assert turns_for(client, data) >= 2
    client.connection.receive(data, limits.WORK_SOLE_CLIENT_MAX)
    assert not client.connection.has_more


def test_deliveries_acknowledged_at_once_count_as_work_of_the_turn() -> None:
    _, client = opened()
    client.send(call(methods.BasicConsume(queue="q")), publication("q", b"x") * 2_000)
    settle = call(methods.BasicAck(0, True)) + publication("q", b"x")
    assert turns_for(client, settle) == 2


def test_a_turn_has_one_declaration() -> None:
    _, client = opened()
    assert turns_for(client, call(methods.QueueDeclare(queue="q")) * 5) == 5


HOUR_MS = 3_600_000


def test_a_queue_is_unused_from_the_loss_of_its_last_consumer_on_even_after_an_hour_of_silence() -> None:
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q", arguments={"x-expires": 60_000}))
    client.ask(methods.BasicConsume(queue="q"))
    broker.clock.now = HOUR_MS
    client.connection.lost()
    broker.clock.now = HOUR_MS + 59_999
    broker.services.vhost.expire()
    assert "q" in broker.services.vhost.queues
    broker.clock.now = HOUR_MS + 60_000
    broker.services.vhost.expire()
    assert "q" not in broker.services.vhost.queues


def test_a_client_closed_by_an_operator_after_an_hour_of_silence_has_time_to_answer() -> None:
    broker, client = opened()
    broker.clock.now = HOUR_MS
    client.connection.close(ConnectionForced("bye"))
    assert client.connection.deadline() == HOUR_MS + limits.CLOSING_MS
    client.expire(HOUR_MS + limits.CLOSING_MS - 1)
    assert not client.connection.is_finished
