"""Tries the commands of a document before any of them is applied, so that a refusal leaves nothing behind.

They are applied to metadata of their own, which have what a refusal can depend on: virtual hosts, users,
permissions, policies and parameters, and no exchanges, queues and bindings, of which there may be very many.
"""

from warren.metadata.commands import (
    DONE,
    Bind,
    CommandContext,
    DeclareExchange,
    DeclareQueue,
    MetadataCommand,
    Outcome,
    Reply,
    SetGlobalParameter,
    SetParameter,
)
from warren.metadata.machine import Metadata
from warren.metadata.restoring_commands import (
    put_user,
    put_vhost,
    set_permissions,
    set_policy,
    set_topic_permissions,
)
from warren.metadata.vhosts import VhostMetadata

_TOPOLOGY = (DeclareExchange, DeclareQueue, Bind)


class ImportRehearsal:
    """The metadata as an import would find them; it may be used in a thread of its own."""

    __slots__ = ("_metadata",)

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = Metadata()
        for vhost in list(metadata.vhosts.by_name.values()):
            self._restore(put_vhost(vhost))
            self._restore_settings(vhost)
        for user in list(metadata.users.by_name.values()):
            self._restore(put_user(user))
        permissions = metadata.permissions
        for (user_name, name), permission in list(permissions.by_user_and_vhost.items()):
            self._restore(set_permissions(user_name, name, permission))
        for (user_name, name), topics in list(permissions.topics_by_user_and_vhost.items()):
            for exchange, topic in list(topics.items()):
                self._restore(set_topic_permissions(user_name, name, exchange, topic))
        for parameter, value in list(metadata.global_parameters.by_name.items()):
            self._restore(SetGlobalParameter(name=parameter, value=value))

    def apply(self, command: MetadataCommand) -> Reply:
        """The reply that `command` would get, behind all that were tried before."""
        if isinstance(command, _TOPOLOGY):
            if self._metadata.vhost(command.vhost) is None:
                return Reply(Outcome.MISSING, f"no such vhost '{command.vhost}'")
            return DONE
        return self._metadata.apply(command, CommandContext(index=self._metadata.index + 1, now=0))

    def _restore_settings(self, vhost: VhostMetadata) -> None:
        for policies, is_operator in ((vhost.policies, False), (vhost.operator_policies, True)):
            for policy in list(policies.by_name.values()):
                self._restore(set_policy(vhost.name, policy, is_operator=is_operator))
        for (component, name), value in list(vhost.parameters.by_key.items()):
            # Those of other components, too, and by whom: a hidden password stands for the stored one.
            user = vhost.parameters.user_of(component, name)
            self._restore(
                SetParameter(vhost=vhost.name, component=component, name=name, value=value, user=user)
            )

    def _restore(self, command: MetadataCommand) -> None:
        context = CommandContext(index=self._metadata.index + 1, now=0, is_accepted=True)
        self._metadata.apply(command, context)
