"""What a channel is put together from, when it is opened."""

from typing import TYPE_CHECKING

from warren.errors import NotAllowed
from warren.session.channel import Channel, ChannelParts
from warren.session.consuming import ConsumeContext, Consuming
from warren.session.declarations import Declarations
from warren.session.origin import Origin
from warren.session.publisher import Publisher
from warren.session.subscriber import Subscriber
from warren.session.telling import channel_failed
from warren.vhost.requester import Requester

if TYPE_CHECKING:
    from warren.session.connection import Connection


def open_channel(connection: "Connection", number: int) -> Channel:
    """A new channel of an open connection. NotAllowed over a limit."""
    domain, login = connection.domain, connection.login
    assert domain is not None
    assert login is not None
    _check_limits(connection)
    vhost = domain.vhost
    outbox = connection.outbox
    authorizer = domain.authorizer(login.account)
    requester = Requester(authorizer, connection.owner)
    rules = domain.rules(login.account, authorizer)
    subscriber = Subscriber(
        vhost, outbox, number, sends_cancel="consumer_cancel_notify" in login.capabilities
    )
    context = ConsumeContext(
        declaring=domain.declaring,
        requester=requester,
        random_octets=connection.server.random_octets,
        check_timeouts=connection.check_timeouts,
        consumers_max=connection.server.settings.consumers_per_channel_max,
    )
    publisher = Publisher(vhost, outbox, number, rules.admit)
    server = connection.server
    origin = Origin(connection.peer, number, login.user, server.announcer)
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
        consuming=Consuming(vhost, subscriber, rules, context=context),
        declarations=Declarations(domain, requester, subscriber, rules),
        attend=connection.attend,
        failed=lambda error, index: channel_failed(connection, number, error, index),
        message_size_max=connection.server.settings.message_size_max,
    )
    return Channel(number, parts)


def _check_limits(connection: "Connection") -> None:
    """NotAllowed for one channel more than was negotiated, or than the user may have (RabbitMQ's texts)."""
    domain, login = connection.domain, connection.login
    assert domain is not None
    assert login is not None
    count = len(connection.channels)
    if login.channels_max and count >= login.channels_max:
        raise NotAllowed(
            f"number of channels opened ({count}) has reached the negotiated channel_max "
            f"({login.channels_max})",
            method_index=0,
        )
    limit = domain.channels_max_of(login.user)
    if limit is not None and 0 <= limit <= connection.server.channels_of(login.user):
        raise NotAllowed(
            f"number of channels opened for user '{login.user}' has reached the maximum allowed user limit "
            f"of ({limit})",
            method_index=0,
        )
