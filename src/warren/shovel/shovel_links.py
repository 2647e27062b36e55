"""The shovels of a node: one link for each shovel in the metadata or in the configuration.

A parameter that is set, changed or cleared starts, replaces or stops its link; so does a virtual host that is
removed. The links themselves never touch the metadata, except that a completed shovel deletes its parameter.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from warren.client.errors import BrokerRefused
from warren.client.rabbitmq_uri import parse_target, uri_without_credentials
from warren.metadata.commands import ClearParameter, Json
from warren.metadata.events import Event, ParameterChanged, VhostRemoved
from warren.metadata.machine import Metadata
from warren.metadata.proposals import Proposals
from warren.metadata.shovel_definition import NEVER, SHOVEL, ShovelDefinition, parse_shovel
from warren.model.coroutine_driver import Later, drive
from warren.model.message import Message
from warren.relay.endpoint import Endpoint
from warren.relay.forwarder import AckMode
from warren.relay.link import Link, LinkDependencies
from warren.relay.link_filter import LinkFilter
from warren.relay.link_rights import check_user
from warren.relay.link_run import LinkPlan, LinkRun, LinkSettings
from warren.relay.links import Links
from warren.relay.status import LinkKey, LinkKind
from warren.shovel.shovel_plan import RUN_BEFORE, ShovelPlan
from warren.shovel.shovel_settings import ShovelSettings

# RabbitMQ's name for a shovel as the user who deletes its parameter.
_SHOVEL_USER = "rmq-shovel"


class ShovelDependencies(Struct, frozen=True):
    """What the shovels of a node need."""

    metadata: Metadata
    proposals: Proposals
    links: Links
    link_dependencies: LinkDependencies
    # Calls an action in a later turn.
    later: Later
    cluster_name: Callable[[], str]
    # Keys of shovels that do not have them in their parameter.
    defaults: Mapping[str, Json] = {}


class ShovelLinks:
    """Keeps the links of shovels in step with the metadata."""

    __slots__ = ("_dependencies", "_static")

    def __init__(self, dependencies: ShovelDependencies, static: Iterable[ShovelSettings] = ()) -> None:
        self._dependencies = dependencies
        self._static = tuple(static)

    def start(self) -> None:
        """Start all shovels there are, and follow the metadata from here on."""
        metadata = self._dependencies.metadata
        for settings in self._static:
            self._put(settings)
        for vhost in metadata.vhosts.by_name.values():
            for component, name in list(vhost.parameters.by_key):
                if component == SHOVEL:
                    self._follow_later(vhost.name, name, is_set_before=True)
        metadata.listen(self._changed, (ParameterChanged, VhostRemoved))

    def _changed(self, event: Event) -> None:
        """Follow an event in a later turn, because stopping a shovel can change metadata itself."""
        if isinstance(event, ParameterChanged) and event.component == SHOVEL:
            self._follow_later(event.vhost, event.name)
        elif isinstance(event, VhostRemoved):
            removed = event.vhost
            self._dependencies.later(lambda _: self._remove(removed))

    def _remove(self, vhost: str) -> None:
        """Stop the shovels of a virtual host that was removed, unless it was made again meanwhile."""
        links = self._dependencies.links
        for link in links.all():
            if link.key.kind is LinkKind.SHOVEL and link.key.vhost == vhost:
                self._follow(vhost, link.key.name)

    def _follow_later(self, vhost: str, name: str, *, is_set_before: bool = False) -> None:
        """Follow a parameter in a turn of its own, so that a failure concerns no other shovel."""
        self._dependencies.later(lambda _: self._follow(vhost, name, is_set_before=is_set_before))

    def _follow(self, vhost: str, name: str, *, is_set_before: bool = False) -> None:
        """Start, replace or stop the link of a shovel, as its parameter is now.

        `is_set_before` is True if the parameter was set before the start of the node.
        """
        dependencies = self._dependencies
        key = LinkKey(LinkKind.SHOVEL, vhost, name)
        metadata = dependencies.metadata.vhost(vhost)
        if metadata is None or (SHOVEL, name) not in metadata.parameters.by_key:
            dependencies.links.remove(key)
            return
        value = metadata.parameters.by_key[SHOVEL, name]
        definition = parse_shovel({**dependencies.defaults, **value} if isinstance(value, Mapping) else value)
        refusal = None
        if isinstance(definition, str):
            # It was accepted nevertheless, as RabbitMQ accepts it, or by an older version.
            refusal = definition
        elif definition.is_single_run and is_set_before:
            refusal = RUN_BEFORE
        if refusal is not None:
            plan = _ImpossiblePlan(refusal)
            dependencies.links.put(Link(key, plan, _NO_ATTEMPT, dependencies.link_dependencies))
            return
        assert not isinstance(definition, str)
        user = metadata.parameters.user_of(SHOVEL, name)
        self._put(ShovelSettings(name=name, vhost=vhost, user=user, definition=definition))

    def _put(self, settings: ShovelSettings) -> None:
        dependencies = self._dependencies
        link_dependencies = dependencies.link_dependencies
        key = LinkKey(LinkKind.SHOVEL, settings.vhost, settings.name)
        plan = ShovelPlan(
            settings,
            link_dependencies.turn,
            dependencies.cluster_name,
            lambda: self._complete(settings),
            check_rights=lambda: check_user(dependencies.metadata, settings.user),
        )
        link = Link(key, plan, link_settings(settings), link_dependencies)
        dependencies.links.put(link)
        if settings.definition.source.delete_after_s:
            delay_ms = settings.definition.source.delete_after_s * 1000
            link_dependencies.after(delay_ms, lambda: self._expire(settings, link))

    def _expire(self, settings: ShovelSettings, link: Link) -> None:
        """Delete the parameter of a shovel whose time is over, unless `link` was replaced or has stopped."""
        if self._dependencies.links.get(link.key) is link:
            drive(self._clear(settings))

    def _complete(self, settings: ShovelSettings) -> None:
        """Delete the parameter of a shovel that has moved all that it had to; a static one begins anew."""
        if not settings.is_static:
            drive(self._clear(settings))
        elif settings.definition.reconnect_delay_s:
            # As in RabbitMQ, after the same pause as after an error.
            key = LinkKey(LinkKind.SHOVEL, settings.vhost, settings.name)
            delay_ms = settings.definition.reconnect_delay_s * 1000
            self._dependencies.link_dependencies.after(delay_ms, lambda: self._begin_anew(key))

    def _begin_anew(self, key: LinkKey) -> None:
        """Start the link of a static shovel again, unless the node is stopping."""
        link = self._dependencies.links.get(key)
        if link is not None:
            link.start()

    async def _clear(self, settings: ShovelSettings) -> None:
        command = ClearParameter(vhost=settings.vhost, component=SHOVEL, name=settings.name)
        await self._dependencies.proposals.propose(command, _SHOVEL_USER)


class _ImpossiblePlan(LinkPlan):
    """A shovel that cannot run, and is shown as terminated with the reason until it is changed."""

    __slots__ = ("_reason",)

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def set_up(self, run: LinkRun) -> None:
        """Refuse the run."""
        raise BrokerRefused(self._reason)

    async def tear_down(self, run: LinkRun) -> None:
        """Nothing was made."""

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        """Return the message as it is; there is none."""
        return message

    def completed(self) -> None:
        """It never completes."""


_NOWHERE = Endpoint(targets=(), name="", user="")
_NO_ATTEMPT = LinkSettings(source=_NOWHERE, destination=_NOWHERE, reconnect_delay_ms=0)


def link_settings(settings: ShovelSettings) -> LinkSettings:
    """Return how the link of a shovel forwards and reconnects."""
    definition = settings.definition
    source, destination = definition.source, definition.destination
    return LinkSettings(
        source=_endpoint(source.uris, settings),
        destination=_endpoint(destination.uris, settings),
        ack_mode=_ack_mode(definition),
        prefetch_count=source.prefetch_count,
        reconnect_delay_ms=0 if definition.is_single_run else definition.reconnect_delay_s * 1000,
        rate_max=definition.rate_limit,
        message_filter=_message_filter(definition),
        is_exactly_once=definition.is_exactly_once,
    )


def _ack_mode(definition: ShovelDefinition) -> AckMode:
    """Return the ack mode.

    Without acknowledgements what arrives after the last message would be lost, and a stream cannot be
    consumed, which RabbitMQ's protocol `local` can.
    """
    mode, source = AckMode(definition.ack_mode), definition.source
    if mode is AckMode.NO_ACK and (source.delete_after != NEVER or source.is_local):
        return AckMode.ON_PUBLISH
    return mode


def _message_filter(definition: ShovelDefinition) -> LinkFilter | None:
    headers: Mapping[str, Json] = definition.filter_headers
    pattern = definition.filter_routing_key
    return LinkFilter(pattern, headers) if headers or pattern is not None else None


def _endpoint(uris: tuple[str, ...], settings: ShovelSettings) -> Endpoint:
    """Return an end of a shovel; RabbitMQ calls both of its connections the same."""
    return Endpoint(
        targets=tuple(map(parse_target, uris)),
        uris=tuple(map(uri_without_credentials, uris)),
        name=f"Shovel {settings.name}",
        user=settings.user,
    )
