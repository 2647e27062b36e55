"""The audit log: which user changed what, with which result, as log lines and as events.

Changes of queues, exchanges and bindings, which applications make often, are logged at debug level.
"""

import logging
import re

from warren.management.plain_reasons import plain
from warren.metadata.commands import CommandContext, MetadataCommand, Outcome, Reply
from warren.metadata.events import Event
from warren.metadata.incarnation import NODE_ALONE
from warren.metadata.machine import Metadata
from warren.session.events.audit_events import AuditEvents, is_topology_command
from warren.session.events.event_publisher import EventPublisher

# Values of parameters may contain addresses with passwords; so may `metadata`, the Erlang term of the same
# values.
_LEFT_OUT = ("value", "metadata")

# SetPolicy is logged as "set policy".
_WORD_START = re.compile("(?<!^)(?=[A-Z])")

logger = logging.getLogger("warren.audit")


class AuditLog:
    """Observes every applied metadata command, and logs and publishes those that this node has proposed.

    Each is told once in a cluster, by its proposer; the log of the others has them at debug level.
    """

    def __init__(
        self, metadata: Metadata, event_publisher: EventPublisher, *, node: int = NODE_ALONE
    ) -> None:
        """`node` is the number of this node."""
        self._node = node
        self._event_publisher = event_publisher
        self._changes = AuditEvents(metadata, event_publisher)
        metadata.observer = self.observe

    def observe(
        self, command: MetadataCommand, context: CommandContext, reply: Reply, events: tuple[Event, ...]
    ) -> None:
        """Log and publish the result of `command`, which `context.user` requested."""
        is_own = context.incarnation.node == self._node
        level = logging.DEBUG if is_topology_command(command) or not is_own else logging.INFO
        is_logged = logger.isEnabledFor(level)
        is_heard = is_own and self._event_publisher.is_heard()
        if not (is_logged or is_heard):
            return
        if reply.outcome is Outcome.REFUSED:
            asked = _WORD_START.sub(" ", type(command).__name__).lower()
            refusal: dict[str, object] = {"event": asked, "user": context.user, "result": "refused"}
            text = "user '%s': %s refused: %s"
            logger.log(level, text, context.user, asked, plain(reply.text), extra={"fields": refusal})
        for key, facts in self._changes.audit_events(command, reply, events):
            if is_heard:
                self._event_publisher.publish(key, context.user, facts)
            if is_logged:
                shown = {name: value for name, value in facts.items() if name not in _LEFT_OUT}
                fields = {name: _plainly(value) for name, value in shown.items()}
                said = ", ".join(f"{name} {value!r}" for name, value in fields.items())
                known: dict[str, object] = {
                    "event": key, "user": context.user, "result": "done", "facts": fields,
                }  # fmt: skip
                logger.log(level, "user '%s': %s: %s", context.user, key, said, extra={"fields": known})


def _plainly(value: object) -> object:
    """Return the values of an event with Erlang terms replaced by plain words."""
    if isinstance(value, list):
        return [_plainly(item) for item in value]
    return plain(value) if isinstance(value, str) else value
