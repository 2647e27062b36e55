"""Events of shovels and federation links, with RabbitMQ's routing keys and headers; restarts are audited."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import cast

from warren.management.views.relays import (
    federation_facts,
    link_identity,
    parameter,
    shovel_facts,
    shovel_state,
)
from warren.metadata.commands import Json
from warren.metadata.machine import Metadata
from warren.metadata.shovel_definition import SHOVEL
from warren.relay.status import LinkKey, LinkKind, LinkState, LinkStatus
from warren.session.events.event_publisher import EventPublisher
from warren.wire.table import Table, Value

logger = logging.getLogger("warren.audit")


class LinkEvents:
    """Publishes each change of the state of a link; a stopped link counts as removed."""

    def __init__(
        self,
        metadata: Metadata,
        publisher: EventPublisher,
        static_shovels: Mapping[str, Mapping[str, Json]] = {},
    ) -> None:
        """`static_shovels` are the definitions of the shovels in the configuration, by name."""
        self._metadata = metadata
        self._publisher = publisher
        self._static_shovels = static_shovels

    def changed(self, ask_status: Callable[[], LinkStatus]) -> None:
        """`shovel.worker.status` or `federation.link.status`, or `….removed` if the link was stopped."""
        if not self._publisher.is_heard():
            return
        status = ask_status()
        if status.key.kind is LinkKind.SHOVEL:
            self._shovel(status)
        else:
            self._link(status)

    def restarted(self, key: LinkKey, user: str) -> None:
        """Log and publish that `user` has asked for a new start; RabbitMQ has no such event."""
        if key.kind is LinkKind.SHOVEL:
            event, facts = "shovel.worker.restarted", _table({"name": key.name, "vhost": key.vhost})
        else:
            event, facts = "federation.link.restarted", _table(link_identity(self._metadata, key))
        said = ", ".join(f"{name} {value!r}" for name, value in facts.items())
        fields = {"event": event, "user": user, "result": "done", "facts": facts}
        logger.info("user '%s': %s: %s", user, event, said, extra={"fields": fields})
        if self._publisher.is_heard():
            self._publisher.publish(event, user, facts)

    def _shovel(self, status: LinkStatus) -> None:
        key = status.key
        facts: Table = {"name": key.name, **({"vhost": key.vhost} if key.vhost else {})}
        if status.state is LinkState.STOPPED:
            self._publisher.publish("shovel.worker.removed", None, facts)
            return
        if key.vhost:
            definition = parameter(self._metadata, SHOVEL, key.vhost, key.name)
        else:
            definition = self._static_shovels.get(key.name, {})
        facts["status"] = shovel_state(status.state)
        self._publisher.publish(
            "shovel.worker.status", None, facts | _table(shovel_facts(definition, status))
        )

    def _link(self, status: LinkStatus) -> None:
        if status.state is LinkState.STOPPED:
            facts = _table(link_identity(self._metadata, status.key))
            self._publisher.publish("federation.link.removed", None, facts)
            return
        facts = _table(federation_facts(self._metadata, status))
        facts["timestamp"] = _printed_time(status.since)
        self._publisher.publish("federation.link.status", None, facts)


def _table(facts: Mapping[str, object]) -> Table:
    """`facts`, whose values are all texts."""
    return {name: cast(Value, value) for name, value in facts.items()}


def _printed_time(time: int) -> str:
    """`time` (Unix time, ms) as a local time of Erlang: {{2026,11,23},{13,0,6}}."""
    at = datetime.fromtimestamp(time / 1000).astimezone()
    date = f"{{{at.year},{at.month},{at.day}}}"
    return f"{{{date},{{{at.hour},{at.minute},{at.second}}}}}"
