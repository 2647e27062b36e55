"""Lets amqpstorm's functional tests reach any port.

The suite has the ports 5672 and 5671 in its code. It deletes the queues and exchanges of a test over HTTP,
for which a broker may have no port: so this plugin deletes them over AMQP.
"""

import os

from amqpstorm import AMQPError, Connection, UriConnection
from amqpstorm.tests.functional import utility

URI = os.environ["AMQP_URI"]
PORT = int(os.environ["WARREN_CLIENTS_PORT"])
TLS_PORT = int(os.environ["WARREN_CLIENTS_TLS_PORT"] or 1)
connect = Connection.__init__


def connect_anywhere(self, hostname, *login, port=PORT, **settings):
    """Connect like `Connection.__init__`, with the broker's own port for TLS."""
    user, password, *positional = login
    port = positional[0] if positional else port
    connect(self, hostname, user, password, TLS_PORT if port == 5671 else port, **settings)


def clean(names, queue=False, exchange=False):
    """Replace the function `clean` of the suite, over AMQP; deleting a missing object is no error."""
    if not queue and not exchange:
        return
    with UriConnection(URI) as connection:
        for name in names:
            if queue:
                delete(connection, name, "queue")
            if exchange:
                delete(connection, name, "exchange")


def delete(connection, name, kind):
    """Delete one object on a channel of its own, since a refusal closes the channel."""
    try:
        with connection.channel() as channel:
            getattr(channel, kind).delete(name)
    except AMQPError:
        pass


utility.clean = clean
Connection.__init__ = connect_anywhere
