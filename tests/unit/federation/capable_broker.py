"""A broker that says in the handshake what it is capable of."""

from tests.unit.session.client import Broker

from warren.session.handshake import HandshakeSettings, Offer
from warren.session.server_properties import server_properties


def capable_broker() -> Broker:
    """A broker with the capabilities of Warren, which links ask for."""
    broker = Broker()
    broker.server.offer = Offer(HandshakeSettings(server_properties=server_properties("there")))
    return broker
