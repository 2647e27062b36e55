"""The links of federated exchanges: one for each exchange and each of its upstreams, as policies say.

What exists follows the metadata: exchanges, policies, upstreams and sets. A link whose upstream has other
settings is replaced, and continues with the queue it has there; a link that shall not exist any more removes
what it has declared.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from warren.federation.exchange_link import ExchangeLink, FederatedExchange
from warren.federation.upstream_settings import link_settings, targets_of
from warren.limits import POLICIES_PER_TURN
from warren.limits_metadata import POLICIES_MATCHED_PER_TURN
from warren.limits_relay import FEDERATION_LINKS_MAX
from warren.metadata.events import (
    BindingAdded,
    BindingRemoved,
    Event,
    ExchangeDeclared,
    ExchangeDeleted,
    ParameterChanged,
    PoliciesChanged,
    VhostRemoved,
)
from warren.metadata.federation_definition import UPSTREAM, UPSTREAM_SET, Upstream
from warren.metadata.federation_upstreams import is_federated, upstreams_of_exchange
from warren.metadata.machine import Metadata
from warren.metadata.records import BindingRecord, ExchangeRecord
from warren.metadata.vhosts import VhostMetadata
from warren.model.coroutine_driver import Later, NextTurn, drive
from warren.relay.link import Link, LinkDependencies
from warren.relay.links import Links
from warren.relay.status import LinkKey, LinkKind

_COMPONENTS = (UPSTREAM, UPSTREAM_SET)


class FederationDependencies(Struct, frozen=True, kw_only=True):
    """What the links of federated exchanges need."""

    metadata: Metadata
    links: Links
    link: LinkDependencies
    later: Later
    # The name of the cluster of this broker.
    cluster_name: Callable[[], str]


class _Entry(Struct, frozen=True):
    """A link, and what it was made of."""

    record: ExchangeRecord
    upstream: Upstream
    policy: str
    plan: ExchangeLink


class FederatedExchanges:
    """Starts, replaces and stops the links."""

    __slots__ = ("_checks", "_count", "_dependencies", "_entries")

    def __init__(self, dependencies: FederationDependencies) -> None:
        self._dependencies = dependencies
        # By vhost, exchange and key.
        self._entries: dict[str, dict[str, dict[LinkKey, _Entry]]] = {}
        self._count = 0
        # By vhost, how often all its exchanges were checked: a later check supersedes an earlier one.
        self._checks: dict[str, int] = {}

    def start(self) -> None:
        """Start the links there are, and follow the metadata from here on."""
        metadata = self._dependencies.metadata
        metadata.listen(self._on_event)
        for vhost in list(metadata.vhosts.by_name):
            self._check_vhost(vhost)

    def stop(self) -> None:
        """Follow the metadata no more; the links go on."""
        self._dependencies.metadata.ignore(self._on_event)
        self._checks.clear()

    def _on_event(self, event: Event) -> None:
        match event:
            case BindingAdded(vhost=vhost, binding=binding):
                for entry in self._entries_of(vhost, binding):
                    entry.plan.bound(binding)
            case BindingRemoved(vhost=vhost, binding=binding):
                for entry in self._entries_of(vhost, binding):
                    entry.plan.unbound(binding)
            case ExchangeDeclared(vhost=vhost, exchange=exchange):
                metadata = self._dependencies.metadata.vhost(vhost)
                if metadata is not None:
                    self._check(metadata, exchange)
            case ExchangeDeleted(vhost=vhost, exchange=exchange):
                self._keep(vhost, exchange.name, {})
            case PoliciesChanged(vhost=vhost):
                self._check_vhost(vhost)
            case ParameterChanged(vhost=vhost, component=component) if component in _COMPONENTS:
                self._check_vhost(vhost)
            case VhostRemoved(vhost=vhost):
                self._checks.pop(vhost, None)
                for name in list(self._entries.get(vhost, ())):
                    self._keep(vhost, name, {})
            case _:
                pass

    def _entries_of(self, vhost: str, binding: BindingRecord) -> list[_Entry]:
        """The links of the source of `binding`."""
        return list(self._entries.get(vhost, {}).get(binding.source, {}).values())

    # --- which links exist --------------------------------------------------------------------------

    def _check_vhost(self, vhost: str) -> None:
        """Check all exchanges of `vhost`, over several turns if there are many."""
        number = self._checks[vhost] = self._checks.get(vhost, 0) + 1
        drive(self._check_all(vhost, number))

    async def _check_all(self, name: str, number: int) -> None:
        vhost = self._dependencies.metadata.vhost(name)
        if vhost is None:
            return
        policies = vhost.policies.by_name.values()
        if not any(is_federated(policy) for policy in policies):
            # The usual case: there is nothing to look for, so only what exists is visited.
            for exchange in list(self._entries.get(name, ())):
                self._keep(name, exchange, {})
            return
        exchanges = list(vhost.topology.exchanges)
        per_turn = max(1, min(POLICIES_PER_TURN, POLICIES_MATCHED_PER_TURN // len(policies)))
        for at in range(0, len(exchanges), per_turn):
            if at:
                await NextTurn(self._dependencies.later)
            if self._checks.get(name) != number:
                return
            for exchange in exchanges[at : at + per_turn]:
                # It may have been deleted or replaced since.
                record = vhost.topology.exchanges.get(exchange)
                if record is not None:
                    self._check(vhost, record)

    def _check(self, vhost: VhostMetadata, record: ExchangeRecord) -> None:
        """Have the links of the exchange `record` that its policy asks for, and no others."""
        wanted: dict[LinkKey, Upstream] = {}
        for upstream in upstreams_of_exchange(vhost, record):
            key = LinkKey(LinkKind.EXCHANGE, vhost.name, record.name, upstream.name, upstream.exchange)
            wanted.setdefault(key, upstream)
        if wanted or self._entries.get(vhost.name, {}).get(record.name):
            self._keep(vhost.name, record.name, wanted)
        if not wanted:
            return
        policy, _ = vhost.policies_of(record.name, "exchange")
        assert policy is not None
        entries = self._entries.setdefault(vhost.name, {}).setdefault(record.name, {})
        for key, upstream in wanted.items():
            entry = entries.get(key)
            if entry is None or (entry.record, entry.upstream, entry.policy) != (
                record,
                upstream,
                policy.name,
            ):
                self._put(entries, key, (record, upstream, policy.name))

    def _put(
        self, entries: dict[LinkKey, _Entry], key: LinkKey, made_of: tuple[ExchangeRecord, Upstream, str]
    ) -> None:
        """Start the link `key`, in place of the one there is."""
        dependencies = self._dependencies
        record, upstream, policy = made_of
        if key not in entries:
            if self._count == FEDERATION_LINKS_MAX:
                text = f"exchange {key.name!r} of vhost {key.vhost!r} is not federated with upstream"
                text += f" {key.upstream!r}: there are {FEDERATION_LINKS_MAX} links already"
                dependencies.link.log("error", text, {})
                return
            self._count += 1
        uris = targets_of(upstream, key.vhost)
        plan = ExchangeLink(
            FederatedExchange(
                vhost=key.vhost,
                record=record,
                upstream=upstream,
                cluster_name=dependencies.cluster_name(),
                bindings=lambda: self._bindings(key),
                uris=uris,
            )
        )
        entries[key] = _Entry(record, upstream, policy, plan)
        settings = link_settings(upstream, policy, vhost=key.vhost, targets=tuple(uris))
        dependencies.links.put(Link(key, plan, settings, dependencies.link))

    def _keep(self, vhost: str, exchange: str, wanted: Mapping[LinkKey, Upstream]) -> None:
        """Remove the links of `exchange` that are not `wanted`."""
        entries = self._entries.get(vhost, {}).get(exchange, {})
        for key in [key for key in entries if key not in wanted]:
            entries.pop(key).plan.is_removed = True
            self._count -= 1
            self._dependencies.links.remove(key)
        if not entries and exchange in self._entries.get(vhost, {}):
            del self._entries[vhost][exchange]
            if not self._entries[vhost]:
                del self._entries[vhost]

    def _bindings(self, key: LinkKey) -> list[BindingRecord]:
        """The bindings of the exchange of `key`."""
        vhost = self._dependencies.metadata.vhost(key.vhost)
        return [] if vhost is None else vhost.topology.bindings_from(key.name)
