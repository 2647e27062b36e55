"""Definitions of federation: the parameters `federation-upstream` and `federation-upstream-set`.

Keys, order and texts are RabbitMQ 3.10.8's, measured. `queue-type`, which later versions added, is accepted.
"""

from collections.abc import Mapping

from msgspec import Struct

from warren.limits import NAME_SIZE_MAX
from warren.limits_relay import LINK_NUMBER_MAX, UPSTREAM_SET_SIZE_MAX
from warren.metadata import validation
from warren.metadata.commands import INTERNAL_USER, Json
from warren.metadata.definition_reader import ACK_MODES, ON_CONFIRM, DefinitionReader
from warren.metadata.uri_check import VhostAccess, uri_check, uris_of
from warren.metadata.validation import Check
from warren.model.erlang_terms import printed_json

UPSTREAM = "federation-upstream"
UPSTREAM_SET = "federation-upstream-set"

_DEFAULT = "default"
_MULTIPLE = "multiple"
_PREFETCH_COUNT = 1000
_RECONNECT_DELAY_S = 5
_MAX_HOPS = 1
_SHARED: Mapping[str, Check] = {
    "exchange": validation.short_string,
    "queue": validation.short_string,
    "consumer-tag": validation.short_string,
    "prefetch-count": validation.number,
    "reconnect-delay": validation.number,
    "max-hops": validation.natural(LINK_NUMBER_MAX),
    "expires": validation.natural(LINK_NUMBER_MAX),
    "message-ttl": validation.natural(LINK_NUMBER_MAX),
    "trust-user-id": validation.boolean,
    "ack-mode": validation.one_of(*ACK_MODES),
    "resource-cleanup-mode": validation.one_of(_DEFAULT, "never"),
    # Mirrored queues were removed in RabbitMQ 4, which has the type of queue instead.
    "ha-policy": validation.string,
    "queue-type": validation.one_of("classic", "quorum"),
    "bind-nowait": validation.boolean,
    "channel-use-mode": validation.one_of(_MULTIPLE, "single"),
}
_MEMBER_CHECKS: Mapping[str, Check] = {"upstream": validation.string, **_SHARED}


class Upstream(Struct, frozen=True, kw_only=True):
    """An upstream for one exchange or queue, with the overrides of a set, and defaults filled in."""

    name: str
    # Tried in turn; they may contain passwords.
    uris: tuple[str, ...] = ()
    # The names at the upstream of the federated exchange, or of the federated queue.
    exchange: str = ""
    queue: str = ""
    consumer_tag: str = ""
    # 0 is no limit.
    prefetch_count: int = _PREFETCH_COUNT
    # 0: as soon as the back-off permits.
    reconnect_delay_s: int = _RECONNECT_DELAY_S
    max_hops: int = _MAX_HOPS
    # Arguments of the queue that a federated exchange has at the upstream, in ms; None leaves them out.
    expires: int | None = None
    message_ttl: int | None = None
    ha_policy: str | None = None
    # None: the default of the virtual host at the upstream, which RabbitMQ 3.10 takes for classic.
    queue_type: str | None = None
    # True to keep the property user-id of messages.
    trusts_user_id: bool = False
    # on-confirm, on-publish or no-ack.
    ack_mode: str = ON_CONFIRM
    bind_nowait: bool = False
    # False if the exchange and the queue at the upstream stay when the link is removed.
    is_cleaned_up: bool = True
    # True if one channel has the consumer and the commands.
    uses_one_channel: bool = False
    # The user who made it, with whose rights the link uses this node.
    user: str = INTERNAL_USER
    # What is wrong with the definition; if it is not empty, the link cannot be started.
    error: str = ""

    def __repr__(self) -> str:
        """Show no addresses, since a repr can end up in a traceback."""
        return f"Upstream(name={self.name!r}, exchange={self.exchange!r}, queue={self.queue!r})"


class UpstreamSetMember(Struct, frozen=True):
    """A member of a set: the name of an upstream, and settings that replace those of the upstream."""

    upstream: str
    overrides: Mapping[str, Json] = {}


class UpstreamSet(Struct, frozen=True):
    """Upstreams that a policy names together."""

    members: tuple[UpstreamSetMember, ...]


def upstream_errors(name: str, value: Json, access: VhostAccess | None = None) -> list[str]:
    """The errors in `value`, the parameter of the upstream `name`, in RabbitMQ's order.

    With `access`, an address of this node must be in a virtual host that it allows, as in RabbitMQ 4.
    """
    checks = {"uri": uri_check(access), **_SHARED}
    return validation.fields(name, value, checks, mandatory=("uri",))


def upstream_set_errors(name: str, value: Json) -> list[str]:
    """The errors in `value`, the parameter of the set `name`, in RabbitMQ's order."""
    if value == {}:
        return []
    if not isinstance(value, list):
        return [f"{name} not a list {printed_json(value)}"]
    if len(value) > UPSTREAM_SET_SIZE_MAX:
        return [f"{name} should be at most {UPSTREAM_SET_SIZE_MAX} upstreams, actually was {len(value)}"]
    return [
        error
        for member in value
        for error in validation.fields(name, member, _MEMBER_CHECKS, mandatory=("upstream",))
    ]


def parse_upstream_set(value: Json) -> UpstreamSet:
    """The set that the stored `value` describes; members that cannot be read are left out."""
    members = value if isinstance(value, list) else ()
    return UpstreamSet(
        tuple(
            UpstreamSetMember(member["upstream"], member)
            for member in members
            if isinstance(member, Mapping) and isinstance(member.get("upstream"), str)
        )
    )


def parse_upstream(
    name: str, value: Json, member: UpstreamSetMember | None = None, *, federated: str = ""
) -> Upstream:
    """The upstream `name` that the stored `value` describes, as a `member` of a set, for the exchange or
    queue `federated`.

    A value that was accepted may be wrong nevertheless, as RabbitMQ accepts a prefetch count of -1: the
    upstream has a text then that says what is wrong.
    """
    overrides = {} if member is None else member.overrides
    errors = upstream_errors(name, value)
    if member is not None:
        errors += validation.fields(name, overrides, _MEMBER_CHECKS)
    if errors or not isinstance(value, Mapping):
        return Upstream(name=name, exchange=federated, queue=federated, error="; ".join(errors))
    settings = DefinitionReader(overrides, value)
    uris = uris_of(value["uri"])
    prefetch_count = settings.prefetch_count("prefetch-count", default=_PREFETCH_COUNT)
    max_hops = settings.natural("max-hops", default=_MAX_HOPS, most=LINK_NUMBER_MAX)
    expires = settings.optional_natural("expires", most=LINK_NUMBER_MAX)
    message_ttl = settings.optional_natural("message-ttl", most=LINK_NUMBER_MAX)
    if not uris:
        settings.errors.append("uri has no address")
    return Upstream(
        name=name,
        uris=uris,
        # Clients that send every field leave these empty; the default exchange cannot be federated.
        exchange=settings.text("exchange") or federated,
        queue=settings.text("queue") or federated,
        # A tag that the upstream chooses could not be cancelled in the same write.
        consumer_tag=settings.text("consumer-tag") or _tag(name),
        prefetch_count=prefetch_count,
        reconnect_delay_s=settings.reconnect_delay_s(_RECONNECT_DELAY_S),
        max_hops=max_hops,
        expires=expires,
        message_ttl=message_ttl,
        ha_policy=settings.optional_text("ha-policy"),
        queue_type=settings.optional_text("queue-type"),
        trusts_user_id=settings.is_set("trust-user-id"),
        ack_mode=settings.text("ack-mode", ON_CONFIRM),
        bind_nowait=settings.is_set("bind-nowait"),
        is_cleaned_up=settings.text("resource-cleanup-mode", _DEFAULT) == _DEFAULT,
        uses_one_channel=settings.text("channel-use-mode", _MULTIPLE) != _MULTIPLE,
        error="; ".join(settings.errors),
    )


def _tag(name: str) -> str:
    """The consumer tag of the link to the upstream `name`, cut to what a short string has room for."""
    return f"federation-link-{name}".encode()[:NAME_SIZE_MAX].decode("utf-8", "ignore")
