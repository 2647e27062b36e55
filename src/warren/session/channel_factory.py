"""Creates the components of a channel when it is opened."""

from warren.errors import NotAllowed
from warren.session.amqp_connection import AmqpConnection
from warren.session.channel import Channel, ChannelParts
from warren.session.channel_origin import ChannelOrigin
from warren.session.consume_handler import ConsumeContext, ConsumeHandler
from warren.session.declare_handler import DeclareHandler
from warren.session.publisher import ChannelPublisher
from warren.session.server import Server
from warren.session.subscriber import Subscriber
from warren.vhost.requester import Requester


def open_channel(server: Server, connection: AmqpConnection, number: int) -> Channel:
    """Create channel `number` of an open connection. NotAllowed if a channel limit is reached."""
    services, login = connection.services, connection.login
    assert services is not None
    assert login is not None
    _check_limits(server, connection)
    vhost = services.vhost
    outbox = connection.outbox
    authorizer = services.authorizer(login.account)
    requester = Requester(authorizer, connection.owner)
    rules = services.rules(login.account, authorizer, is_link=bool(connection.peer.local_user))
    subscriber = Subscriber(
        vhost, outbox, number, sends_cancel="consumer_cancel_notify" in login.capabilities
    )
    context = ConsumeContext(
        queue_service=services.queue_service,
        refusal_check=services.refusal_check,
        requester=requester,
        random_bytes=server.random_bytes,
        check_timeouts=connection.check_timeouts,
        consumers_max=server.settings.consumers_per_channel_max,
    )
    publisher = ChannelPublisher(vhost, outbox, number, rules.admit)
    origin = ChannelOrigin(connection.peer, number, login.user, server.event_publisher)
    origin.pid = (connection.owner.serial, server.channels_opened_count + 1)
    origin.channel_opened(vhost.name)
    publisher.origin = subscriber.origin = origin
    parts = ChannelParts(
        host=vhost,
        outbox=outbox,
        throttle=connection.throttle,
        publisher=publisher,
        subscriber=subscriber,
        rules=rules,
        consume_handler=ConsumeHandler(vhost, subscriber, rules, context=context),
        refusal_check=services.refusal_check,
        declare_handler=DeclareHandler(services, requester, subscriber, rules),
        run_in_channel=connection.run_in_channel,
        failed=lambda error, index: server.connection_log.channel_failed(connection, number, error, index),
        message_size_max=server.settings.message_size_max,
        transaction_publishes_max=server.settings.transaction_publishes_max,
    )
    return Channel(number, parts)


def _check_limits(server: Server, connection: AmqpConnection) -> None:
    """Raise NotAllowed if channel_max, or the limit of the user or node, is reached (RabbitMQ's texts)."""
    services, login = connection.services, connection.login
    assert services is not None
    assert login is not None
    count = len(connection.channels)
    if login.channels_max and count >= login.channels_max:
        raise NotAllowed(
            f"number of channels opened ({count}) has reached the negotiated channel_max "
            f"({login.channels_max})",
            method_index=0,
        )
    limit = services.channels_max_of(login.identity)
    if limit is not None and 0 <= limit <= server.channels_of(login.identity):
        raise NotAllowed(
            f"number of channels opened for user '{login.user}' has reached the maximum allowed user limit "
            f"of ({limit})",
            method_index=0,
        )
    limit = server.settings.channels_max
    if limit is not None and server.channel_count >= limit:
        node_name = server.event_publisher.node_name
        raise NotAllowed(
            f"number of channels opened on node '{node_name}' has reached the maximum allowed limit of "
            f"({limit})",
            method_index=0,
        )
