"""A client's connection: its handshake, heartbeats, alarms, and its end."""

import pytest
from tests.unit.client.broker_pair import BrokerPair, RecordedChannel
from tests.unit.session.client import Broker, call, frame

from warren.client.errors import BrokerRefused
from warren.client.login import ClientLogin
from warren.limits_relay import CLIENT_CLOSING_MS, CLIENT_HANDSHAKE_MS
from warren.model.coroutine_driver import drive
from warren.model.message import Message, encode_address
from warren.wire import methods
from warren.wire.properties import BasicProperties


def opened(login: ClientLogin | None = None, broker: Broker | None = None) -> BrokerPair:
    pair = BrokerPair(broker or Broker(), login)
    drive(pair.client.open())
    pair.exchange()
    return pair


class Outcome:
    """How a coroutine has ended."""

    def __init__(self, coroutine: object) -> None:
        self.error: BrokerRefused | None = None
        self.is_over = False
        drive(self._run(coroutine))

    async def _run(self, coroutine: object) -> None:
        try:
            await coroutine  # type: ignore[misc]
        except BrokerRefused as error:
            self.error = error
        self.is_over = True


def test_a_handshake_opens_the_virtual_host() -> None:
    pair = opened(ClientLogin(user="guest", password="guest", vhost="/", connection_name="Shovel s"))
    assert pair.client.is_open
    assert pair.server.is_open
    assert pair.server.vhost_name == "/"
    assert pair.server.login is not None
    assert pair.server.login.client_properties["connection_name"] == "Shovel s"


@pytest.mark.parametrize(("wanted", "agreed"), [(None, 60), (0, 0), (7, 7)])
def test_the_heartbeat_is_that_of_the_broker_unless_the_client_wants_another(
    wanted: int | None, agreed: int
) -> None:
    pair = opened(ClientLogin(user="guest", password="guest", vhost="/", heartbeat_s=wanted))
    assert pair.server.login is not None
    assert pair.server.login.heartbeat_s == agreed


def test_a_smaller_frame_size_of_the_client_is_used() -> None:
    pair = opened(ClientLogin(user="guest", password="guest", vhost="/", frame_size_max=8192))
    assert pair.client.outbox.frame_size_max == pair.server.frame_size_max == 8192


def test_a_login_that_the_broker_does_not_offer_is_refused_with_what_it_offers() -> None:
    pair = BrokerPair(Broker(), ClientLogin(user="", password="", vhost="/", mechanisms=("EXTERNAL",)))
    outcome = Outcome(pair.client.open())
    pair.exchange()
    assert "offers no login with EXTERNAL, but PLAIN" in str(outcome.error)
    assert pair.client.is_finished


def test_a_broker_that_closes_the_connection_in_the_handshake_is_named_with_its_reason() -> None:
    pair = BrokerPair(Broker())
    outcome = Outcome(pair.client.open())
    pair.client.receive(call(methods.ConnectionClose(reply_code=403, reply_text="ACCESS_REFUSED - no"), 0))
    assert outcome.error is not None
    assert (str(outcome.error), outcome.error.code) == ("403 ACCESS_REFUSED - no", 403)


def test_the_listener_is_not_told_of_a_connection_that_was_never_open() -> None:
    pair = BrokerPair(Broker())
    outcome = Outcome(pair.client.open())
    pair.client.lost()
    assert str(outcome.error) == "the connection to the broker was lost"
    assert pair.listener.errors == []


def test_a_handshake_that_takes_too_long_ends() -> None:
    pair = BrokerPair(Broker())
    outcome = Outcome(pair.client.open())
    assert pair.client.deadline() == pair.broker.clock.now + CLIENT_HANDSHAKE_MS
    pair.broker.clock.now += CLIENT_HANDSHAKE_MS
    pair.client.expire()
    assert "no connection within 60000 ms" in str(outcome.error)


def test_heartbeats_are_sent_and_a_silent_broker_is_left() -> None:
    pair = opened(ClientLogin(user="guest", password="guest", vhost="/", heartbeat_s=10))
    sent = 0
    for _ in range(6):
        due = pair.client.deadline()
        assert due is not None
        pair.broker.clock.now = due
        pair.client.expire()
        sent += b"".join(map(bytes, pair.client.take_output())) == frame(8, 0, b"")
        if pair.client.is_finished:
            break
    assert sent >= 2
    assert "sent nothing for two heartbeat intervals" in str(pair.client.error)


def test_a_paused_connection_does_not_count_the_silence_of_the_broker() -> None:
    pair = opened(ClientLogin(user="guest", password="guest", vhost="/", heartbeat_s=10))
    pair.client.pause_reading(True)
    for _ in range(12):
        due = pair.client.deadline()
        assert due is not None
        pair.broker.clock.now = due
        pair.client.expire()
    assert pair.client.is_open


def test_alarms_are_reported_with_their_reason_and_their_end() -> None:
    pair = opened()
    channel = Outcome(_publish_something(pair))
    pair.exchange()
    assert channel.is_over
    pair.broker.block("low on memory")
    drive(_publish_something(pair))
    pair.exchange()
    pair.broker.block("")
    pair.exchange()
    assert pair.listener.reasons == ["low on memory", ""]


async def _publish_something(pair: BrokerPair) -> None:
    channel = await pair.client.open_channel(RecordedChannel())
    channel.publish(Message.compose(encode_address("", "q"), BasicProperties(), b"x\xce", now=0))


def test_a_close_waits_for_the_answer_of_the_broker() -> None:
    pair = opened()
    outcome = Outcome(pair.client.close())
    assert not outcome.is_over
    pair.exchange()
    assert outcome.is_over
    assert pair.client.is_finished
    assert pair.listener.errors == [None]


def test_a_close_that_is_not_answered_ends_after_a_while() -> None:
    pair = opened()
    outcome = Outcome(pair.client.close())
    pair.broker.clock.now += CLIENT_CLOSING_MS
    pair.client.expire()
    assert outcome.is_over
    assert pair.client.is_finished


def test_a_lost_connection_fails_the_calls_that_wait() -> None:
    pair = opened()
    outcome = Outcome(pair.client.open_channel(RecordedChannel()))
    pair.client.lost()
    assert "was lost" in str(outcome.error)
    assert pair.client.is_finished


def test_an_operator_who_closes_the_connection_is_quoted() -> None:
    pair = opened()
    pair.server.disconnect("Closed via management plugin")
    pair.exchange()
    assert pair.client.error is not None
    assert (str(pair.client.error), pair.client.error.code) == (
        "320 CONNECTION_FORCED - Closed via management plugin", 320,
    )  # fmt: skip


def test_more_frames_than_a_turn_may_process_wait_for_the_next() -> None:
    pair = opened()
    pair.client.receive(frame(8, 0, b"") * 10, 4)
    assert pair.client.has_more
    pair.client.process_more(4)
    assert pair.client.has_more
    pair.client.process_more(4)
    assert not pair.client.has_more
