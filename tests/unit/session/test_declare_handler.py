"""Permissions required for a declaration."""

import pytest
from tests.unit.session.client import Broker

from warren.metadata.commands import DeclareExchange, SetTopicPermissions
from warren.wire import methods


@pytest.mark.parametrize(
    ("exchange", "key", "code"),
    [
        ("amq.topic", "k", None),
        ("amq.topic", "x", 403),
        ("not.there.yet", "x", 403),
        ("other.type", "x", None),
        ("amq.topic", None, None),
    ],
)
def test_a_dead_letter_routing_key_requires_the_topic_permission(
    exchange: str, key: str | None, code: int | None
) -> None:
    broker = Broker()
    broker.proposals.apply(DeclareExchange(vhost="/", name="other.type", type="direct"))
    for name in ("amq.topic", "not.there.yet", "other.type"):
        topics = SetTopicPermissions(user="guest", vhost="/", exchange=name, write="^k", read=".*")
        broker.proposals.apply(topics)
    arguments = {"x-dead-letter-exchange": exchange}
    if key is not None:
        arguments["x-dead-letter-routing-key"] = key
    [received] = broker.client().ask(methods.QueueDeclare(queue="q", arguments=arguments))
    assert getattr(received.method, "reply_code", None) == code
    if code is not None:
        assert received.method.reply_text == (
            f"ACCESS_REFUSED - access to topic 'x' in exchange '{exchange}' in vhost '/' "
            "refused for user 'guest'"
        )
