"""Limits on channels, over all nodes of a cluster."""

from tests.unit.session.client import Broker

from warren.access.client_counts import ClientCountKind
from warren.metadata.commands import SetUserLimits
from warren.wire import methods


def test_channels_on_other_nodes_count_for_the_limit_of_a_user() -> None:
    broker = Broker()
    client = broker.client()
    broker.proposals.apply(SetUserLimits(name="guest", limits={"max-channels": 3}))
    channels = {(ClientCountKind.USER_CHANNELS, "guest"): 1}
    broker.server.client_counts.elsewhere[2] = channels
    assert broker.server.channel_count == 1
    assert client.ask(methods.ChannelOpen(), channel=2)[0].method.name == "channel.open-ok"
    [refusal] = client.ask(methods.ChannelOpen(), channel=3)
    assert isinstance(refusal.method, methods.ConnectionClose)
    assert refusal.method.reply_text == (
        "NOT_ALLOWED - number of channels opened for user 'guest' has reached the maximum allowed "
        "user limit of (3)"
    )


def test_channels_beyond_the_limit_of_the_node_are_refused() -> None:
    broker = Broker(channels_max=2)
    first, second = broker.client(), broker.client()
    [refusal] = second.ask(methods.ChannelOpen(), channel=2)
    assert isinstance(refusal.method, methods.ConnectionClose)
    assert refusal.method.reply_text == (
        "NOT_ALLOWED - number of channels opened on node 'n' has reached the maximum allowed limit of (2)"
    )
    assert first.ask(methods.ChannelOpen(), channel=2)[0].method.name == "channel.open-ok"


def test_connections_on_other_nodes_are_counted() -> None:
    broker = Broker()
    broker.client()
    broker.server.client_counts.elsewhere[2] = {
        (ClientCountKind.USER_CONNECTIONS, "guest"): 2,
        (ClientCountKind.VHOST_CONNECTIONS, "/"): 3,
    }
    assert (broker.server.connections_of("guest"), broker.server.connections_to("/")) == (3, 4)
    del broker.server.client_counts.elsewhere[2]
    assert (broker.server.connections_of("guest"), broker.server.connections_to("/")) == (1, 1)
