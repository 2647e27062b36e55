"""Links publish here with the rights of the user who set the upstream.

A broker checks a publish when it comes. The right to publish is checked at the start of a link, and when
`relay/link_rights` hears that the rights of its user have changed. Topic permissions depend on the message,
and are checked by the connection that publishes it.
"""

from warren.access.authorize import Authorizer
from warren.access.grants import UserGrants
from warren.client.errors import BrokerRefused
from warren.errors import AccessRefused
from warren.metadata.machine import Metadata
from warren.relay.link_rights import check_user
from warren.relay.status import LinkKey, LinkKind


def check_publish(metadata: Metadata, user: str, key: LinkKey) -> None:
    """Raise BrokerRefused if `user` may not publish here what the link `key` brings.

    A user who is not in the metadata is checked by the connection.
    """
    check_user(metadata, user)
    known = metadata.users.by_name.get(user)
    if known is None:
        return
    # A federated queue is published to through the default exchange.
    exchange = key.name if key.kind is LinkKind.EXCHANGE else ""
    try:
        Authorizer(UserGrants(metadata.permissions, user), known, key.vhost).check_write_exchange(exchange)
    except AccessRefused as refused:
        text = f"destination: {refused.code} {refused.reply_text}"
        raise BrokerRefused(text, refused.code) from None
