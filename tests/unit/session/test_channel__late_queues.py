"""Methods that wait for the answer of a queue: order, errors, and ends while one waits."""

import pytest
from tests.unit.session.client import Broker, Client, call, parse, publication
from tests.unit.session.late_queue import LateQueue

from warren.errors import InternalError
from warren.metadata.commands import DeleteQueue
from warren.session import vhost_services
from warren.wire import methods
from warren.wire.method import Method

GONE = "NOT_FOUND - no queue 'q' in vhost '/'"
ASKING: list[Method] = [
    methods.BasicGet(queue="q"),
    methods.BasicGet(queue="q", no_ack=True),
    methods.BasicConsume(queue="q", consumer_tag="t"),
    methods.QueueDeclare(queue="q"),
    methods.QueueDeclare(queue="q", passive=True),
    methods.QueuePurge(queue="q"),
    methods.QueueDelete(queue="q"),
    methods.QueueDelete(queue="q", if_empty=True),
]


class Late:
    """A client of a broker with the queue q, whose answers come late; it has 3 messages."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.client = self.broker.client()
        self.client.ask(methods.QueueDeclare(queue="q"))
        self.client.send(*(publication("q", body) for body in (b"1", b"2", b"3")))
        queue = self.broker.services.vhost.queues["q"]
        assert isinstance(queue, LateQueue)
        self.queue = queue
        self.queue.later = self.broker.turns.append
        self.queue.is_late = True

    def bodies(self) -> list[bytes]:
        """The bodies of the messages that are ready."""
        return [peeked.message.body for peeked in self.queue.peek(0, 9)]

    def turns(self) -> None:
        """Run everything that waits for a turn."""
        while self.broker.turns:
            self.broker.turn()

    def other(self) -> Client:
        """Another client, with channel 1 open."""
        return self.broker.client()


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Late:
    monkeypatch.setattr(vhost_services, "ClassicQueue", LateQueue)
    return Late()


def heard(client: Client) -> list[str]:
    """What the client has heard, as text."""
    return [f"{one.channel} {one.method}{' ' + repr(one.body) if one.body else ''}" for one in client.hear()]


# --- order --------------------------------------------------------------------------------------


def test_frames_behind_a_waiting_get_are_held_and_answered_in_order(late: Late) -> None:
    late.client.send(
        call(methods.BasicGet(queue="q", no_ack=True)),
        call(methods.QueuePurge(queue="q")),
        call(methods.BasicGet(queue="q")),
        call(methods.QueueDeclare(queue="q", passive=True)),
    )
    assert heard(late.client) == []
    late.queue.arrive()
    assert heard(late.client) == [
        "1 BasicGetOk(delivery_tag=1, redelivered=False, exchange='', routing_key='q', message_count=2) b'1'"
    ]
    late.queue.arrive()
    assert heard(late.client) == ["1 QueuePurgeOk(message_count=2)"]
    late.queue.arrive()
    assert heard(late.client) == ["1 BasicGetEmpty(reserved_1='')"]
    late.queue.arrive()
    assert heard(late.client) == ["1 QueueDeclareOk(queue='q', message_count=0, consumer_count=0)"]


def test_the_octets_of_a_late_answer_are_those_of_an_answer_at_once(late: Late) -> None:
    asked = [
        methods.BasicGet(queue="q"),
        methods.QueueDeclare(queue="q"),
        methods.BasicConsume(queue="q", consumer_tag="t"),
        methods.QueueDelete(queue="q", if_unused=True),
    ]
    late.client.send(*(call(method) for method in asked))
    while late.queue.questions:
        late.queue.arrive()
    said = b"".join(late.client.connection.take_output())
    broker = Broker()
    local = broker.client()
    local.ask(methods.QueueDeclare(queue="q"))
    local.send(*(publication("q", body) for body in (b"1", b"2", b"3")))
    local.connection.take_output()
    local.send(*(call(method) for method in asked))
    assert said == b"".join(local.connection.take_output())
    assert [one.method.name for one in parse(said)] == [
        "basic.get-ok",
        "queue.declare-ok",
        "basic.consume-ok",
        "basic.deliver",
        "basic.deliver",
        "channel.close",
    ]


def test_another_channel_of_the_connection_does_not_wait(late: Late) -> None:
    late.client.ask(methods.ChannelOpen(), channel=2)
    late.client.ask(methods.QueueDeclare(queue="near"), channel=2)
    late.client.send(call(methods.BasicGet(queue="q")))
    late.client.send(call(methods.QueueDeclare(queue="other"), 2))
    assert heard(late.client) == ["2 QueueDeclareOk(queue='other', message_count=0, consumer_count=0)"]
    late.queue.arrive()
    assert late.client.names() == ["basic.get-ok"]


def test_deliveries_go_on_while_a_method_of_the_channel_waits(late: Late) -> None:
    late.client.ask(methods.QueueDeclare(queue="near"))
    late.client.ask(methods.BasicConsume(queue="near", consumer_tag="n"))
    near = late.broker.services.vhost.queues["near"]
    assert isinstance(near, LateQueue)
    late.client.send(call(methods.BasicGet(queue="q")))
    late.other().send(publication("near", b"x"))
    assert late.client.names() == ["basic.deliver"]
    late.queue.arrive()
    [got] = late.client.hear()
    assert isinstance(got.method, methods.BasicGetOk)
    assert got.method.delivery_tag == 2


def test_a_consumer_gets_nothing_before_consume_ok(late: Late) -> None:
    late.client.send(call(methods.BasicConsume(queue="q", consumer_tag="t")))
    late.queue.questions[0].obey()
    assert (late.queue.admitted_count, late.client.names()) == (1, [])
    late.queue.arrive()
    assert late.client.names() == ["basic.consume-ok", "basic.deliver", "basic.deliver", "basic.deliver"]
    assert late.queue.admitted_count == 0


def test_of_two_exclusive_consumers_that_wait_the_first_is_admitted(late: Late) -> None:
    clients = [late.client, late.other()]
    for client in clients:
        client.send(call(methods.BasicConsume(queue="q", consumer_tag="t", exclusive=True)))
    first, second = late.queue.questions
    first.obey()
    second.obey()
    second.arrive()
    assert heard(clients[1]) == [
        "1 ChannelClose(reply_code=403, reply_text=\"ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive"
        ' use", failed_class_id=60, failed_method_id=20)'
    ]
    first.arrive()
    assert clients[0].names()[0] == "basic.consume-ok"


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ASKING, ids=str)
def test_an_error_of_the_queue_names_the_method_that_waited(late: Late, method: Method) -> None:
    late.client.send(call(method), publication("q", b"behind"))
    late.queue.questions.pop().fail(InternalError("the home does not answer"))
    [close] = late.client.hear()
    assert isinstance(close.method, methods.ConnectionClose)
    assert close.method.reply_text == "INTERNAL_ERROR - the home does not answer"
    index = close.method.failed_class_id << 16 | close.method.failed_method_id
    assert index == type(method).index
    assert late.bodies() == [b"1", b"2", b"3"]


@pytest.mark.parametrize("method", ASKING[:3] + ASKING[4:6], ids=str)
def test_a_method_whose_queue_is_deleted_meanwhile_closes_the_channel_with_404(
    late: Late, method: Method
) -> None:
    late.client.send(call(method), publication("q", b"behind"))
    late.broker.proposals.apply(DeleteQueue(vhost="/", name="q"))
    assert heard(late.client) == []
    late.turns()
    [close] = late.client.hear()
    assert isinstance(close.method, methods.ChannelClose)
    assert (close.method.reply_code, close.method.reply_text) == (404, GONE)
    assert close.method.failed_class_id << 16 | close.method.failed_method_id == type(method).index


def test_a_queue_that_is_deleted_while_it_is_redeclared_is_declared_anew(late: Late) -> None:
    late.client.send(call(methods.QueueDeclare(queue="q")))
    late.broker.proposals.apply(DeleteQueue(vhost="/", name="q"))
    late.turns()
    assert heard(late.client) == ["1 QueueDeclareOk(queue='q', message_count=0, consumer_count=0)"]
    assert late.broker.services.vhost.queues["q"] is not late.queue


@pytest.mark.parametrize("is_passive", [False, True], ids=["active", "passive"])
def test_counts_of_a_queue_that_is_deleted_before_they_arrive_are_not_told(
    late: Late, is_passive: bool
) -> None:
    late.client.send(call(methods.QueueDeclare(queue="q", passive=is_passive)))
    question = late.queue.questions.pop()
    question.obey()
    late.broker.proposals.apply(DeleteQueue(vhost="/", name="q"))
    question.arrive()
    [answer] = late.client.hear()
    if is_passive:
        assert isinstance(answer.method, methods.ChannelClose)
        assert answer.method.reply_text == GONE
    else:
        assert answer.method == methods.QueueDeclareOk("q", 0, 0)


@pytest.mark.parametrize("conditions", [{}, {"if_empty": True}, {"if_unused": True}], ids=str)
def test_a_queue_that_is_deleted_while_it_is_deleted_had_no_messages(
    late: Late, conditions: dict[str, bool]
) -> None:
    late.client.send(call(methods.QueueDelete(queue="q", **conditions)))
    late.broker.proposals.apply(DeleteQueue(vhost="/", name="q"))
    late.turns()
    assert heard(late.client) == ["1 QueueDeleteOk(message_count=0)"]


def test_conditions_of_a_deletion_are_those_of_the_late_answer(late: Late) -> None:
    late.client.send(call(methods.QueueDelete(queue="q", if_empty=True)))
    late.queue.clear()
    late.queue.arrive()
    assert heard(late.client) == ["1 QueueDeleteOk(message_count=0)"]


# --- ends ---------------------------------------------------------------------------------------


def test_a_message_fetched_for_a_lost_connection_is_put_back_in_its_place(late: Late) -> None:
    late.client.send(call(methods.BasicGet(queue="q")))
    [question] = late.queue.questions
    question.obey()
    assert late.bodies() == [b"2", b"3"]
    late.client.connection.lost()
    assert late.bodies() == [b"1", b"2", b"3"]
    question.arrive()
    assert (late.bodies(), late.queue.unacked_count) == ([b"1", b"2", b"3"], 0)
    other = late.other()
    other.send(call(methods.BasicGet(queue="q")))
    late.queue.questions[-1].arrive()
    [got] = other.hear()
    assert isinstance(got.method, methods.BasicGetOk)
    assert not got.method.redelivered


@pytest.mark.parametrize("is_obeyed", [False, True], ids=["asked", "obeyed"])
@pytest.mark.parametrize("method", ASKING[:3], ids=str)
def test_nothing_remains_of_a_method_that_waited_when_its_connection_ended(
    late: Late, method: Method, is_obeyed: bool
) -> None:
    late.client.send(call(method))
    [question] = late.queue.questions
    if is_obeyed:
        question.obey()
    late.client.send(call(methods.ConnectionClose(200, "", 0, 0), 0))
    late.turns()
    question.arrive()
    late.turns()
    assert late.bodies() == [b"1", b"2", b"3"]
    assert (late.queue.unacked_count, late.queue.consumer_count, late.queue.admitted_count) == (0, 0, 0)


def test_close_ok_waits_for_the_frames_behind_a_waiting_method(late: Late) -> None:
    late.client.send(call(methods.BasicGet(queue="q", no_ack=True)), publication("q", b"4"))
    late.client.send(call(methods.ConnectionClose(200, "", 0, 0), 0))
    assert heard(late.client) == []
    late.queue.arrive()
    assert late.client.names() == ["basic.get-ok", "connection.close-ok"]
    assert late.bodies() == [b"2", b"3", b"4"]


def test_a_channel_that_is_closed_behind_a_waiting_get_puts_its_message_back(late: Late) -> None:
    late.client.send(call(methods.BasicGet(queue="q")), call(methods.ChannelClose(200, "", 0, 0)))
    assert heard(late.client) == []
    late.queue.arrive()
    assert late.client.names() == ["basic.get-ok", "channel.close-ok"]
    assert (late.bodies(), late.queue.unacked_count) == ([b"1", b"2", b"3"], 0)
    late.client.ask(methods.ChannelOpen())
    late.client.send(call(methods.QueuePurge(queue="q")))
    late.queue.arrive()
    assert heard(late.client) == ["1 QueuePurgeOk(message_count=3)"]


def test_a_client_that_is_disconnected_by_an_operator_hears_no_late_answer(late: Late) -> None:
    late.client.send(call(methods.BasicGet(queue="q")))
    [question] = late.queue.questions
    late.client.connection.disconnect("enough")
    assert late.client.names() == ["connection.close"]
    question.arrive()
    assert (late.client.names(), late.bodies()) == ([], [b"1", b"2", b"3"])


@pytest.mark.parametrize("method", ASKING, ids=str)
@pytest.mark.parametrize("is_disconnected_first", [True, False], ids=["connections", "queues"])
def test_a_virtual_host_that_stops_leaves_nobody_waiting(
    late: Late, method: Method, is_disconnected_first: bool
) -> None:
    late.client.send(call(method))
    [question] = late.queue.questions
    if is_disconnected_first:
        late.client.connection.disconnect("vhost '/' is down")
        late.broker.services.close()
    else:
        late.broker.services.close()
        late.turns()
        late.client.connection.disconnect("vhost '/' is down")
    late.turns()
    question.arrive()
    late.turns()
    assert late.client.names()[-1] == "connection.close"
    assert (late.queue.is_deleted, late.queue.unacked_count, late.queue.admitted_count) == (True, 0, 0)
    assert late.broker.reports == []
