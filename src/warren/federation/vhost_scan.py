"""Checks all exchanges or queues of a virtual host after a change that may concern each of them.

Policies, upstreams and sets of upstreams apply to any of them. A vhost may have very many, so that a scan
takes several turns.
"""

from collections.abc import Callable, Iterable

from warren.limits import POLICIES_PER_TURN
from warren.limits_metadata import POLICIES_MATCHED_PER_TURN
from warren.metadata.events import Event, ParameterChanged, PoliciesChanged, VhostRemoved
from warren.metadata.federation_definition import UPSTREAM, UPSTREAM_SET
from warren.metadata.federation_upstreams import is_federated
from warren.metadata.machine import Metadata
from warren.metadata.vhosts import VhostMetadata
from warren.model.coroutine_driver import Later, NextTurn, drive

_COMPONENTS = (UPSTREAM, UPSTREAM_SET)


class VhostScan:
    """Runs the scans that the metadata asks for; a later one of a vhost supersedes an earlier one."""

    __slots__ = ("_check", "_known", "_later", "_metadata", "_names", "_numbers")

    def __init__(
        self,
        metadata: Metadata,
        later: Later,
        *,
        names: Callable[[VhostMetadata], Iterable[str]],
        known: Callable[[str], Iterable[str]],
        check: Callable[[str, str], None],
    ) -> None:
        """`check` is called with a vhost and each of its `names`; some may have been deleted meanwhile.

        If no policy of the vhost names upstreams, or the vhost was removed, it is called with those `known`
        to have links.
        """
        self._metadata = metadata
        self._later = later
        self._names = names
        self._known = known
        self._check = check
        # By vhost, how often it was scanned.
        self._numbers: dict[str, int] = {}

    def start(self) -> None:
        """Scan all vhosts, and follow the metadata from here on."""
        self._metadata.listen(self._on_event, (PoliciesChanged, ParameterChanged, VhostRemoved))
        for vhost in list(self._metadata.vhosts.by_name):
            self.scan(vhost)

    def stop(self) -> None:
        """Follow the metadata no more, and end all scans."""
        self._metadata.ignore(self._on_event)
        self._numbers.clear()

    def scan(self, vhost: str) -> None:
        """Scan `vhost`."""
        number = self._numbers[vhost] = self._numbers.get(vhost, 0) + 1
        drive(self._scan(vhost, number))

    def _on_event(self, event: Event) -> None:
        match event:
            case PoliciesChanged(vhost=vhost):
                self.scan(vhost)
            case ParameterChanged(vhost=vhost, component=component) if component in _COMPONENTS:
                self.scan(vhost)
            case VhostRemoved(vhost=vhost):
                self._numbers.pop(vhost, None)
                self._check_known(vhost)
            case _:
                pass

    def _check_known(self, vhost: str) -> None:
        for name in list(self._known(vhost)):
            self._check(vhost, name)

    async def _scan(self, name: str, number: int) -> None:
        vhost = self._metadata.vhost(name)
        if vhost is None:
            return
        if not may_federate(vhost):
            self._check_known(name)
            return
        names = list(self._names(vhost))
        per_turn = max(1, min(POLICIES_PER_TURN, POLICIES_MATCHED_PER_TURN // len(vhost.policies.by_name)))
        for at in range(0, len(names), per_turn):
            if at:
                await NextTurn(self._later)
            if self._numbers.get(name) != number:
                return
            for each in names[at : at + per_turn]:
                self._check(name, each)


def may_federate(vhost: VhostMetadata) -> bool:
    """True if a policy of `vhost` names upstreams, which is seldom."""
    return any(is_federated(policy) for policy in vhost.policies.by_name.values())
