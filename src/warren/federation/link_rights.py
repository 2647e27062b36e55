"""Links publish here with the rights of the user who set the upstream, also when these change.

A broker checks a publish when it comes, and a link may wait for hours for the next message. Therefore the
right to publish is checked at the start of a link, and after each change of the rights of its user: a link
whose user may not publish any more stops with that reason, and one whose user may again starts at once.
Topic permissions depend on the message, and are checked by the connection that publishes it.
"""

from warren.access.authorize import Authorizer
from warren.access.grants import UserGrants
from warren.client.errors import BrokerRefused
from warren.errors import AccessRefused
from warren.metadata.events import Event, PermissionsChanged, UserChanged, UserRemoved
from warren.metadata.machine import Metadata
from warren.model.coroutine_driver import Later
from warren.relay.link import Link
from warren.relay.links import Links
from warren.relay.status import LinkKey, LinkKind, LinkState


def check_publish(metadata: Metadata, user: str, key: LinkKey) -> None:
    """Raise BrokerRefused if `user` may not publish here what the link `key` brings.

    A user who is not in the metadata is checked by the connection.
    """
    if user not in metadata.users.by_name:
        return
    # A federated queue is published to through the default exchange.
    exchange = key.name if key.kind is LinkKind.EXCHANGE else ""
    try:
        Authorizer(UserGrants(metadata.permissions, user), user, key.vhost).check_write_exchange(exchange)
    except AccessRefused as refused:
        text = f"destination: {refused.code} {refused.reply_text}"
        raise BrokerRefused(text, refused.code) from None


class LinkRights:
    """Follows the rights of the users of all federation links."""

    __slots__ = ("_changed", "_later", "_links", "_metadata")

    def __init__(self, metadata: Metadata, links: Links, later: Later) -> None:
        self._metadata = metadata
        self._links = links
        self._later = later
        # Users whose rights have changed in this turn.
        self._changed: set[str] = set()

    def start(self) -> None:
        """Follow the metadata from here on."""
        self._metadata.listen(self._on_event, (PermissionsChanged, UserChanged, UserRemoved))

    def stop(self) -> None:
        """Follow the metadata no more."""
        self._metadata.ignore(self._on_event)

    def _on_event(self, event: Event) -> None:
        assert isinstance(event, PermissionsChanged | UserChanged | UserRemoved)
        if not self._changed:
            self._later(lambda _: self._check())
        self._changed.add(event.user)

    def _check(self) -> None:
        """Check the links of the users whose rights have changed."""
        changed, self._changed = self._changed, set()
        for link in self._links.all(lambda key: key.kind is not LinkKind.SHOVEL):
            if link.user in changed:
                self._follow(link)

    def _follow(self, link: Link) -> None:
        try:
            check_publish(self._metadata, link.user, link.key)
        except BrokerRefused as refused:
            link.fail(refused)
            return
        if link.state is LinkState.TERMINATED and link.user in self._metadata.users.by_name:
            link.restart()
