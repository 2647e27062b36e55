"""The server properties of connection.start (RabbitMQ 3.10.8, measured)."""

import platform

from warren import __version__
from warren.model.message_position import POSITIONS_CAPABILITY

# Clients and their test suites choose features by these two: docs/decisions/0030-product-and-version.md.
PRODUCT = "RabbitMQ"
COMPATIBLE_VERSION = "3.10.8"

CAPABILITIES = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
    # RabbitMQ 4.3: a client may answer the basic.cancel of the server, and some do only if they are told so.
    "accept_consumer_cancel_ok",
)


def server_properties(cluster_name: str) -> dict[str, object]:
    """The server-properties table for clients of AMQP 0-9 and later."""
    return {
        "capabilities": dict.fromkeys(CAPABILITIES, True),
        "cluster_name": cluster_name,
        "copyright": "Copyright (c) the Warren contributors",
        "information": "Licensed under the Apache License 2.0",
        "platform": f"Python {platform.python_version()}",
        "product": PRODUCT,
        "version": COMPATIBLE_VERSION,
        "warren": __version__,
        POSITIONS_CAPABILITY: True,
    }
