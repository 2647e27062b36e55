"""What a client did wrong is told in RabbitMQ's words, with where and by whom."""

from tests.unit.session.client import Broker

from warren.errors import ConnectionForced
from warren.wire import methods

PLACE = "127.0.0.1:1 -> 127.0.0.1:5672 (vhost: '/', user: 'guest')"


def test_a_channel_error_says_where_by_whom_and_of_what() -> None:
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="missing", passive=True))
    assert broker.failures == [
        (
            "channel",
            f"Channel error on connection {PLACE}, channel 1: operation queue.declare caused a channel "
            "exception not_found: no queue 'missing' in vhost '/'",
        )
    ]
    assert client.connection.is_open


def test_a_connection_error_says_so_once() -> None:
    broker = Broker()
    broker.client().ask(methods.ChannelOpen(), methods.ChannelOpen())
    ((category, text),) = broker.failures
    assert category == "connection"
    assert text.startswith(
        f"Error on AMQP connection {PLACE}: operation channel.open caused a connection exception"
    )


def test_one_that_the_broker_ends_has_no_operation() -> None:
    broker = Broker()
    broker.client().connection.close(ConnectionForced("enough"))
    assert broker.failures == [
        (
            "connection",
            f"Error on AMQP connection {PLACE}: operation none caused a connection exception "
            "connection_forced: enough",
        )
    ]
