"""One client from its first octet to its last, with octets in and octets out."""

import gc

import pytest
from tests.unit.session.client import Broker, Client, call, frame, parse, publication

from warren import limits
from warren.errors import ConnectionForced
from warren.limits import REMOVED_PER_TURN
from warren.session.connection import ConnectionState
from warren.session.heartbeat import HEARTBEAT_FRAME
from warren.wire import methods
from warren.wire.properties import BasicProperties


def opened(queue: str = "q") -> tuple[Broker, Client]:
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue=queue))
    return broker, client


def closed_with(client: Client) -> methods.ConnectionClose:
    [heard] = client.hear()
    assert isinstance(heard.method, methods.ConnectionClose)
    assert heard.channel == 0
    return heard.method


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
def test_the_same_octets_in_any_pieces_have_the_same_answers(size: int) -> None:
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


def test_another_protocol_is_answered_with_ours_and_closed() -> None:
    client = Broker().connect()
    client.send(b"GET / HT")
    assert b"".join(client.connection.take_output()) == b"AMQP\x00\x00\x09\x01"
    assert client.connection.is_finished


def test_an_error_of_one_channel_leaves_the_others_alone() -> None:
    _, client = opened()
    client.ask(methods.ChannelOpen(), channel=2)
    client.send(call(methods.BasicAck(7), 2), publication("q", b"x"), call(methods.BasicGet(queue="q")))
    close, got = client.hear()
    assert (close.channel, close.method.reply_code, got.body) == (2, 406, b"x")
    assert (close.method.failed_class_id, close.method.failed_method_id) == (60, 80)
    assert client.ask(methods.ChannelCloseOk(), methods.ChannelOpen(), channel=2)[0].method.name == (
        "channel.open-ok"
    )


def test_a_failed_channel_passes_over_everything_until_it_is_closed() -> None:
    broker, client = opened()
    client.send(call(methods.BasicAck(7)), publication("q", b"x"), call(methods.QueueDelete(queue="q")))
    assert client.names() == ["channel.close"]
    assert broker.services.vhost.queues["q"].message_count == 0
    assert [one.method.name for one in client.ask(methods.ChannelClose())] == ["channel.close-ok"]


def test_an_error_of_the_connection_closes_it_and_releases_what_it_had() -> None:
    broker, client = opened()
    client.send(publication("q", b"x"), call(methods.BasicGet(queue="q")), call(methods.BasicAck(1), 5))
    assert [heard.method.name for heard in client.hear()] == ["basic.get-ok", "connection.close"]
    assert client.connection.state is ConnectionState.CLOSING
    assert client.connection not in broker.server.connections
    assert broker.services.vhost.queues["q"].message_count == 1
    client.send(call(methods.ConnectionCloseOk(), 0))
    assert client.connection.is_finished


def test_what_lies_behind_the_cause_of_a_close_is_read_as_frames() -> None:
    _, client = opened()
    later = publication("q", b"x" * 100)
    client.send(call(methods.BasicGet(), 0), later[:50])
    assert closed_with(client).reply_code == 504
    client.send(later[50:], call(methods.ConnectionCloseOk(), 0))
    assert client.connection.is_finished


def test_a_close_behind_the_cause_of_a_close_is_answered() -> None:
    _, client = opened()
    client.send(call(methods.BasicGet(), 0), call(methods.ConnectionClose(200, "bye"), 0))
    assert client.names() == ["connection.close", "connection.close-ok"]


def test_a_closing_client_has_half_a_minute_and_one_with_broken_frames_a_second() -> None:
    for octets, wait in ((call(methods.BasicGet(), 0), 30_000), (b"\x01" + bytes(7), 1_000)):
        _, client = opened()
        client.now = 5
        client.send(octets)
        closed_with(client)
        assert client.connection.deadline() == 5 + wait
        client.expire(4 + wait)
        assert not client.connection.is_finished
        client.expire(5 + wait)
        assert client.connection.is_finished
        assert client.connection.deadline() is None


def test_after_a_broken_frame_only_a_close_ok_is_looked_for() -> None:
    _, client = opened()
    client.send(b"\x01" + bytes(7))
    assert closed_with(client).reply_code == 501
    client.send(b"nonsense" * 3)
    assert not client.connection.is_finished
    client.send(b"more" + call(methods.ConnectionCloseOk(), 0))
    assert client.connection.is_finished
    assert client.hear() == []


def test_a_client_that_says_goodbye_is_answered_and_may_say_it_again() -> None:
    broker, client = opened()
    client.send(publication("q", b"x"), call(methods.ConnectionClose(200, "bye"), 0), publication("q", b"y"))
    assert client.names() == ["connection.close-ok"]
    assert broker.services.vhost.queues["q"].message_count == 1
    assert broker.server.connections == {}
    client.send(call(methods.ConnectionClose(200, "bye"), 0))
    assert client.names() == ["connection.close-ok"]


def test_a_lost_socket_leaves_nothing_behind() -> None:
    broker, client = opened()
    client.ask(methods.QueueDeclare(queue="mine", exclusive=True), methods.BasicConsume(queue="q"))
    client.connection.lost(1)
    assert client.connection.is_finished
    assert list(broker.services.vhost.queues) == ["q"]
    assert broker.services.vhost.queues["q"].consumer_count == 0
    assert (broker.server.channels_of("guest"), broker.server.connections_of("guest")) == (0, 0)


def declared(broker: Broker, count: int) -> Client:
    """A client with so many exclusive queues."""
    client = broker.client()
    client.ask(*(methods.QueueDeclare(queue=f"q{number}", exclusive=True) for number in range(count)))
    return client


def test_many_exclusive_queues_go_turn_by_turn_before_the_close_is_answered() -> None:
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


def test_a_few_exclusive_queues_are_gone_when_the_close_is_answered() -> None:
    broker = Broker()
    client = declared(broker, REMOVED_PER_TURN - 1)
    [heard] = client.ask(methods.ConnectionClose(), channel=0)
    assert heard.method == methods.ConnectionCloseOk()
    assert not broker.services.vhost.queues


def test_what_a_lost_client_had_sent_is_obeyed_turn_by_turn() -> None:
    broker = Broker()
    client = broker.client()
    declares = [call(methods.QueueDeclare(queue=f"q{number}")) for number in range(3)]
    client.connection.receive(b"".join(declares), 0)
    client.connection.lost(0)
    counts = [len(broker.services.vhost.queues)]
    while broker.turns:
        broker.turn()
        counts.append(len(broker.services.vhost.queues))
    assert counts == [2, 3]
    assert client.connection.is_finished
    assert not broker.server.connections


@pytest.mark.parametrize("has_consumer", [False, True])
def test_what_is_lost_is_freed_without_a_search_for_cycles(has_consumer: bool) -> None:
    broker = Broker()

    def come_and_go() -> None:
        client = broker.client()
        if has_consumer:
            client.ask(methods.QueueDeclare(queue="q", exclusive=True))
            client.ask(methods.QueueBind(queue="q", exchange="amq.topic", routing_key="a.*"))
            client.ask(methods.BasicConsume(queue="q", consumer_tag="c"))
            client.send(publication("q", b"hello"))
            client.hear()
        client.connection.lost(1)

    come_and_go()
    gc.collect()
    gc.disable()
    try:
        come_and_go()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_what_ends_with_the_connection_is_not_handed_from_one_channel_to_the_next() -> None:
    broker, client = opened()
    for number in (2, 3):
        client.ask(methods.ChannelOpen(), methods.BasicConsume(queue="q"), channel=number)
    client.send(publication("q", b"x"))
    client.connection.lost(1)
    assert broker.services.vhost.queues["q"].get().attempts == 1


def test_an_unexpected_exception_ends_this_connection_and_no_other() -> None:
    broker, client = opened()
    other = broker.client()

    def fail(octets_count: int) -> bytes:
        raise ZeroDivisionError

    broker.server.random_octets = fail
    client.ask(methods.ChannelOpen(), channel=3)
    client.send(call(methods.BasicConsume(queue="q"), 3))
    close = closed_with(client)
    assert (close.reply_code, close.reply_text) == (541, "INTERNAL_ERROR")
    assert broker.reports == ["unexpected ZeroDivisionError in connection 127.0.0.1:1 -> 127.0.0.1:5672"]
    assert other.ask(methods.BasicGet(queue="q"))[0].method.name == "basic.get-empty"


def test_the_broker_may_end_a_connection() -> None:
    _, client = opened()
    client.connection.close(ConnectionForced("broker forced connection closure with reason 'shutdown'"))
    assert closed_with(client).reply_code == 320


def test_a_frame_for_a_channel_that_is_not_open_must_be_its_open() -> None:
    _, client = opened()
    client.send(call(methods.BasicGet(queue="q"), 4))
    close = closed_with(client)
    assert close.reply_text == "CHANNEL_ERROR - expected 'channel.open'"
    assert (close.failed_class_id, close.failed_method_id) == (60, 70)


def test_frames_of_other_channels_and_heartbeats_may_lie_between_those_of_a_message() -> None:
    broker, client = opened()
    client.ask(methods.ChannelOpen(), channel=2)
    one, body = publication("q", b"hello")[:-13], publication("q", b"hello")[-13:]
    client.send(one, publication("q", b"other", channel=2), HEARTBEAT_FRAME, body)
    queue = broker.services.vhost.queues["q"]
    assert [queue.get().message.body for _ in range(2)] == [b"other", b"hello"]
    assert queue.unacked_octets == 10


def test_heartbeats_go_out_and_their_absence_ends_the_connection() -> None:
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
    assert broker.told[-1][1] == "error"
    assert broker.told[-1][2].endswith(": missed heartbeats from client, timeout: 2s")
    assert broker.server.connections == {}


@pytest.mark.parametrize(("channel", "payload", "code"), [(1, b"", 505), (0, b"x", 501)])
def test_a_heartbeat_is_empty_and_on_channel_0(channel: int, payload: bytes, code: int) -> None:
    _, client = opened()
    client.send(frame(8, channel, payload))
    assert closed_with(client).reply_code == code


def test_a_consumer_that_holds_a_delivery_too_long_is_cancelled_and_no_other() -> None:
    broker = Broker(consumer_timeout_ms=10_000)
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"), methods.QueueDeclare(queue="other"))
    client.ask(
        methods.BasicConsume(queue="q", consumer_tag="slow"),
        methods.BasicConsume(queue="other", consumer_tag="fast"),
    )
    client.send(publication("q", b"x"))
    assert client.bodies() == [b"x"]
    client.expire(client.connection.deadline())
    assert client.hear() == []
    client.now = 9_000
    client.send(publication("other", b"y"))
    client.hear()
    for now in (10_000, 12_500):
        client.expire(now)
    assert [heard.method for heard in client.hear()] == [methods.BasicCancel("slow", True)]
    assert broker.services.vhost.queues["q"].message_count == 1
    assert broker.services.vhost.queues["other"].unacked_count == 1
    assert client.connection.is_open


def test_a_handshake_that_hangs_is_dropped_without_a_word() -> None:
    client = Broker().connect()
    client.send(b"AMQP")
    due = client.connection.deadline()
    assert due == 10_000
    client.expire(due)
    assert client.connection.is_finished
    assert client.hear() == []


def test_a_slow_socket_holds_the_consumers_back_until_it_has_room() -> None:
    _, client = opened()
    client.ask(methods.BasicConsume(queue="q", no_ack=True))
    client.connection.pause_output()
    client.send(publication("q", b"x"))
    assert client.connection.take_output() == []
    client.connection.resume_output(1)
    assert client.bodies() == [b"x"]


def test_an_output_is_announced_once_until_it_is_taken() -> None:
    _, client = opened()
    client.hear()
    before = client.output_listener.count
    client.send(call(methods.BasicGet(queue="q")), call(methods.BasicGet(queue="q")))
    assert client.output_listener.count == before + 1
    assert client.names() == ["basic.get-empty", "basic.get-empty"]
    client.send(call(methods.BasicGet(queue="q")))
    assert client.output_listener.count == before + 2


def say_in_turns(client: Client, *reads: bytes) -> None:
    """Read all of `reads` before the first of them is obeyed to its end."""
    for octets in reads:
        client.connection.receive(octets, client.now)
        assert client.connection.has_more
    while client.connection.has_more:
        client.connection.process_more(client.now)


def test_a_turn_that_ends_behind_the_cause_of_a_close_loses_no_frame() -> None:
    _, client = opened()
    later = publication("q", b"x" * 100)
    say_in_turns(
        client,
        call(methods.BasicGet(), 0) + publication("q", b"") * 5_000 + later[:50],
        later[50:] + call(methods.ConnectionCloseOk(), 0),
    )
    assert client.names() == ["connection.close"]
    assert client.connection.is_finished


def test_a_turn_that_ends_in_the_handshake_loses_no_frame() -> None:
    client = Broker().connect()
    start = methods.ConnectionStartOk(mechanism="PLAIN", response="\0guest\0guest")
    say_in_turns(client, b"AMQP\x00\x00\x09\x01" + HEARTBEAT_FRAME * 10_000 + call(start, 0))
    assert client.names() == ["connection.start", "connection.tune"]


def test_turns_keep_the_order_of_what_was_read() -> None:
    broker, client = opened()
    octets = b"".join(publication("q", b"%d" % number) for number in range(3_000))
    say_in_turns(client, octets[:70_001], octets[70_001:])
    queue = broker.services.vhost.queues["q"]
    assert [int(queue.get().message.body) for _ in range(3_000)] == list(range(3_000))


def turns_for(client: Client, octets: bytes) -> int:
    """How many turns it takes to obey `octets`, which came in one read."""
    client.connection.receive(octets, client.now)
    turns = 1
    while client.connection.has_more:
        client.connection.process_more(client.now)
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


def test_a_client_that_is_alone_is_given_more_work_in_a_turn() -> None:
    _, client = opened()
    octets = publication("q", b"x") * (limits.WORK_SOLE_CLIENT_MAX // 5)
    assert turns_for(client, octets) >= 2
    client.connection.receive(octets, client.now, limits.WORK_SOLE_CLIENT_MAX)
    assert not client.connection.has_more


def test_deliveries_settled_at_once_count_as_work_of_the_turn() -> None:
    _, client = opened()
    client.send(call(methods.BasicConsume(queue="q")), publication("q", b"x") * 2_000)
    settle = call(methods.BasicAck(0, True)) + publication("q", b"x")
    assert turns_for(client, settle) == 2


def test_a_turn_has_one_declaration() -> None:
    _, client = opened()
    assert turns_for(client, call(methods.QueueDeclare(queue="q")) * 5) == 5
