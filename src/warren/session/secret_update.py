"""connection.update-secret: a client replaces the token with which it logged in."""

from msgspec.structs import replace

from warren.access.authorize import Authorizer
from warren.access.grants import TokenUser
from warren.errors import AccessRefused, AmqpError
from warren.metadata.users import User
from warren.session.admission_control import AdmissionControl
from warren.session.amqp_connection import AmqpConnection
from warren.session.login import Login
from warren.vhost.vhost import VirtualHost


async def update_secret(connection: AmqpConnection, secret: str, admission_control: AdmissionControl) -> None:
    """Replace the token of `connection` by `secret`; close the connection if it belongs to another user.

    Permissions that the new token does not grant end immediately, also for open channels.
    """
    login, services = connection.login, connection.services
    assert login is not None
    assert services is not None
    try:
        account = await admission_control.renewed(login.account, secret)
    except AmqpError as error:
        connection.close(error)
        return
    if not connection.is_open:
        return
    renewed = renewed_login(login, account, services.vhost)
    if renewed.account is not account:
        # The grants were updated.
        _cancel_unreadable(connection, services.authorizer(renewed.account))
    connection.renew(renewed)


def renewed_login(login: Login, account: User, vhost: VirtualHost) -> Login:
    """`login` with the token of `account`.

    What refers to the grants of the first token, which are updated in place, has those of the new one.
    """
    if isinstance(account, TokenUser) and isinstance(login.account, TokenUser):
        login.account.grants.renew(account.grants)
        account = replace(account, grants=login.account.grants)
        vhost.permission_generation += 1
    return replace(login, account=account)


def _cancel_unreadable(connection: AmqpConnection, authorizer: Authorizer) -> None:
    """Cancel the consumers of queues that the user may not read any more, and notify the client."""
    for channel in connection.channels.values():
        for consumer in list(channel.subscriber.consumers):
            try:
                authorizer.check_read_queue(consumer.queue.name)
            except AccessRefused:
                channel.subscriber.cancel_by_server(consumer)
