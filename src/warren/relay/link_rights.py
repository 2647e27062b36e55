"""Links end with the rights of the user who has set them, and begin again when these are given back.

A link may wait for hours for its next message, so that what its user may do is checked at its start and after
each change of the user's rights, and not only when a message comes.
"""

from collections.abc import Callable

from warren.client.errors import BrokerRefused
from warren.errors import AccessRefused
from warren.metadata.commands import INTERNAL_USER, OPERATOR
from warren.metadata.events import Event, PermissionsChanged, UserChanged, UserRemoved
from warren.metadata.identity import is_external, issuer_of, shown_name
from warren.metadata.machine import Metadata
from warren.metadata.parameters import DELETED, SETTING_TAGS
from warren.model.coroutine_driver import Later
from warren.relay.link import Link
from warren.relay.links import Links
from warren.relay.status import LinkState


def check_user(metadata: Metadata, user: str) -> None:
    """Raise BrokerRefused if the user with the identity `user` may have no link, or may not any more.

    A user of another issuer has no rights here: its own connections to this node are refused.
    """
    if user in (OPERATOR, INTERNAL_USER):
        return
    known = metadata.users.by_name.get(user)
    if issuer_of(user) == DELETED or (known is None and not is_external(user)):
        reason = "is deleted: it has to be set again"
    elif known is not None and SETTING_TAGS.isdisjoint(known.tags):
        reason = "has none of the tags administrator and policymaker any more"
    else:
        return
    raise BrokerRefused(f"user '{shown_name(user)}', who has set it, {reason}", AccessRefused.code)


class LinkRights:
    """Follows the rights of the users of all links."""

    __slots__ = ("_changed", "_check", "_later", "_links", "_metadata")

    def __init__(self, metadata: Metadata, links: Links, later: Later, check: Callable[[Link], None]) -> None:
        """`check` raises BrokerRefused if the user of a link may not do what the link does."""
        self._metadata = metadata
        self._links = links
        self._later = later
        self._check = check
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
            self._later(lambda _: self._check_changed())
        self._changed.add(event.user)

    def _check_changed(self) -> None:
        """Check the links of the users whose rights have changed."""
        changed, self._changed = self._changed, set()
        for link in self._links.all():
            if link.user in changed:
                self._follow(link)

    def _follow(self, link: Link) -> None:
        try:
            self._check(link)
        except BrokerRefused as refused:
            link.fail(refused)
            return
        if link.state is LinkState.TERMINATED and link.user in self._metadata.users.by_name:
            link.restart()
