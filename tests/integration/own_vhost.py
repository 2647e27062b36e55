"""A virtual host for one test, which isolates it from others."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess


@contextmanager
def channel_in_vhost(node: BrokerProcess, client: HttpClient, name: str) -> Iterator[Any]:
    """A channel of guest in the virtual host `name`, closed at the end of the block."""
    client.ask(f"PUT /vhosts/{name}")
    client.ask(f"PUT /permissions/{name}/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port, name)) as connection:
        yield connection.channel()
    client.ask(f"DELETE /vhosts/{name}")
