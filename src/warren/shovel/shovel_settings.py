"""What one shovel does, whether a parameter or a configuration file has defined it."""

from msgspec import Struct

from warren.metadata.shovel_definition import ShovelDefinition
from warren.wire.method import Method

# The virtual host in the key of a static shovel, which belongs to none: a name that no virtual host has.
STATIC_VHOST = ""


class ShovelSettings(Struct, frozen=True, kw_only=True):
    """One shovel."""

    name: str
    # STATIC_VHOST: it is static, that is, defined by a configuration file.
    vhost: str
    # The user whose rights its connections to this node have.
    user: str
    definition: ShovelDefinition
    # Called in order at each end instead of declaring its queue; None: the queue is declared.
    source_declarations: tuple[Method, ...] | None = None
    destination_declarations: tuple[Method, ...] | None = None

    @property
    def is_static(self) -> bool:
        """True if it is defined by a configuration file."""
        return self.vhost == STATIC_VHOST
