"""connection.update-secret: another token for the one with which a client came in."""

from dataclasses import replace
from typing import TYPE_CHECKING

from warren.access.authorize import Authorizer
from warren.access.grants import TokenUser
from warren.errors import AccessRefused, AmqpError
from warren.wire import methods

if TYPE_CHECKING:
    from warren.session.connection import Connection


async def update_secret(connection: "Connection", secret: str) -> None:
    """Let `connection` go on with `secret`; an AmqpError ends it if that is not its user's.

    What the new token does not grant is gone at once, also for channels that are open.
    """
    login, services = connection.login, connection.services
    assert login is not None
    assert services is not None
    try:
        account = await connection.server.admission_control.renewed(login.account, secret)
    except AmqpError as error:
        connection.close(error)
        return
    if not connection.is_open:
        return
    if isinstance(account, TokenUser) and isinstance(login.account, TokenUser):
        # The channels hold the grants of the first token.
        login.account.grants.renew(account.grants)
        account = replace(account, grants=login.account.grants)
        services.vhost.permission_generation += 1
        _cancel_unreadable(connection, services.authorizer(account))
    connection.login = replace(login, account=account)
    connection.outbox.method(0, methods.ConnectionUpdateSecretOk())
    connection.changes += 1


def _cancel_unreadable(connection: "Connection", authorizer: Authorizer) -> None:
    """End the consumers of queues that may not be read any more, and tell the client."""
    for channel in connection.channels.values():
        for consumer in list(channel.subscriber.consumers):
            try:
                authorizer.check_read_queue(consumer.queue.name)
            except AccessRefused:
                channel.subscriber.cancel_by_server(consumer)
