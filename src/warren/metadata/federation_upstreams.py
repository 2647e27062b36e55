"""The upstreams of an exchange or queue, as its policy names them.

A policy names one upstream, or a set, or a pattern that the names of upstreams match. The set `all` has all
upstreams of the virtual host. Upstreams that do not exist are left out.
"""

from collections.abc import Iterable

import msgspec

from warren.metadata.federation_definition import (
    UPSTREAM,
    UPSTREAM_SET,
    Upstream,
    UpstreamSetMember,
    parse_upstream,
    parse_upstream_set,
)
from warren.metadata.policies import FEDERATION_SETTINGS, UPSTREAM_PATTERN, Policy
from warren.metadata.records import ExchangeRecord, QueueRecord
from warren.metadata.vhosts import VhostMetadata
from warren.model.patterns import matches

# A set that every virtual host has.
ALL = "all"
# The type of exchanges that links declare at an upstream.
UPSTREAM_EXCHANGE_TYPE = "x-federation-upstream"
# An argument of what links declare at an upstream.
INTERNAL_PURPOSE = "x-internal-purpose"


def upstreams_of_exchange(vhost: VhostMetadata, exchange: ExchangeRecord) -> list[Upstream]:
    """The upstreams of `exchange`; none for exchanges that are not federated."""
    if not exchange.name or exchange.internal or exchange.type == UPSTREAM_EXCHANGE_TYPE:
        return []
    policy, _ = vhost.policies_of(exchange.name, "exchange")
    return [] if policy is None else upstreams_of(vhost, policy, exchange.name)


def upstreams_of_queue(vhost: VhostMetadata, queue: QueueRecord) -> list[Upstream]:
    """The upstreams of `queue`; none for queues that are not federated."""
    if isinstance(queue.arguments.get(INTERNAL_PURPOSE), str):
        return []
    policy, _ = vhost.policies_of(queue.name, queue.kind)
    return [] if policy is None else upstreams_of(vhost, policy, queue.name)


def is_federated(policy: Policy | None) -> bool:
    """True if `policy` names upstreams, whether they exist or not."""
    return policy is not None and not FEDERATION_SETTINGS.isdisjoint(policy.definition)


def upstreams_of(vhost: VhostMetadata, policy: Policy, federated: str) -> list[Upstream]:
    """The upstreams that `policy` names for the exchange or queue `federated`."""
    found = []
    for member in _members(vhost, policy):
        value = vhost.parameters.by_key.get((UPSTREAM, member.upstream))
        if value is not None:
            upstream = parse_upstream(member.upstream, value, member, federated=federated)
            user = vhost.parameters.user_of(UPSTREAM, member.upstream)
            found.append(msgspec.structs.replace(upstream, user=user))
    return found


def _members(vhost: VhostMetadata, policy: Policy) -> Iterable[UpstreamSetMember]:
    name, group, pattern = (policy.definition.get(key) for key in (UPSTREAM, UPSTREAM_SET, UPSTREAM_PATTERN))
    if isinstance(name, str):
        return (UpstreamSetMember(name),)
    if group == ALL:
        return map(UpstreamSetMember, _names(vhost))
    if isinstance(group, str):
        return parse_upstream_set(vhost.parameters.by_key.get((UPSTREAM_SET, group))).members
    if isinstance(pattern, str):
        return (UpstreamSetMember(name) for name in _names(vhost) if matches(pattern, name))
    return ()


def _names(vhost: VhostMetadata) -> list[str]:
    """The names of all upstreams, in the same order on every node."""
    return sorted(name for component, name in vhost.parameters.by_key if component == UPSTREAM)
