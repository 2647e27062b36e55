"""All links of a node, by key: started and stopped as the parameters and policies say."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from warren.model.coroutine_driver import drive
from warren.relay.link import Link
from warren.relay.status import LinkKey, LinkState, LinkStatus


def owner(key: LinkKey, node_name: str) -> str:
    """Return the name of the node that runs the link `key`: the only one there is."""
    return node_name


class Links:
    """The links that this node runs.

    The owner of a kind of links (shovels, federated exchanges) calls `put` with every link that shall exist,
    and `remove` for one that shall not; a changed link is put again, and begins after the old one has ended.
    """

    __slots__ = ("_links", "_node_name", "_stopping")

    def __init__(self, node_name: str) -> None:
        self._node_name = node_name
        self._links: dict[LinkKey, Link] = {}
        # Links that are being stopped, by key; a new one with the same key starts after it.
        self._stopping: dict[LinkKey, Link] = {}

    def put(self, link: Link) -> None:
        """Run `link`, in place of the one with the same key, if this node is its owner."""
        key = link.key
        self.remove(key)
        if owner(key, self._node_name) != self._node_name:
            return
        self._links[key] = link
        if key not in self._stopping:
            link.start()

    def remove(self, key: LinkKey) -> None:
        """Stop the link with `key`, if there is one, and forget it."""
        link = self._links.pop(key, None)
        if link is not None and key not in self._stopping:
            self._stopping[key] = link
            drive(self._stop(link))

    def restart(self, key: LinkKey) -> bool:
        """Restart the link with `key`; False if this node does not run it.

        One that waits for the end of the link it replaces begins after that anyway: two consumers of one link
        never run side by side.
        """
        link = self._links.get(key)
        if link is not None and key not in self._stopping:
            link.restart()
        return link is not None

    def get(self, key: LinkKey) -> Link | None:
        """Return the link with `key`; None if this node does not run it."""
        return self._links.get(key)

    def __iter__(self) -> Iterator[Link]:
        """Iterate over the present links, in any order."""
        return iter(list(self._links.values()))

    def all(self, is_wanted: Callable[[LinkKey], bool] = lambda key: True) -> list[Link]:
        """Return the links whose key `is_wanted` accepts, sorted by key."""
        return [self._links[key] for key in sorted(self._links) if is_wanted(key)]

    def state(self, key: LinkKey) -> LinkState | None:
        """Return the state of the link with `key`; None if this node does not run it."""
        link = self._links.get(key)
        if link is None:
            return None
        return LinkState.STARTING if key in self._stopping else link.state

    def status(self, key: LinkKey) -> LinkStatus | None:
        """Return the status of the link with `key`; None if this node does not run it."""
        link = self._links.get(key)
        return None if link is None else self._status(link)

    def statuses(self) -> Mapping[LinkKey, LinkStatus]:
        """Return the status of every link, sorted by key."""
        return {link.key: self._status(link) for link in self.all()}

    async def stop(self) -> None:
        """Stop all links at once, and wait until they have stopped, each within a bounded time."""
        links = [*self._links.values(), *self._stopping.values()]
        self._links.clear()
        for link in links:
            drive(link.stop())
        for link in links:
            await link.stop()

    def _status(self, link: Link) -> LinkStatus:
        """Return the status of `link`; one that waits for the end of the link it replaces is starting."""
        status = link.status()
        if link.key in self._stopping:
            return msgspec.structs.replace(status, state=LinkState.STARTING)
        return status

    async def _stop(self, link: Link) -> None:
        await link.stop()
        del self._stopping[link.key]
        successor = self._links.get(link.key)
        if successor is not None:
            successor.start()
