"""The initial metadata of a new broker: a vhost, and a user with all permissions in it."""

from msgspec import Struct

from warren.metadata.commands import MetadataCommand, PutUser, PutVhost, SetPermissions
from warren.metadata.definitions_import import PasswordHasher

DEFAULT_VHOST_DESCRIPTION = "Default virtual host"


class DefaultsSettings(Struct, frozen=True, kw_only=True):
    """The settings `default_vhost`, `default_user` and so on, as in RabbitMQ."""

    vhost: str = "/"
    user: str = "guest"
    password: str = "guest"
    tags: tuple[str, ...] = ("administrator",)
    configure: str = ".*"
    write: str = ".*"
    read: str = ".*"


def initial_commands(settings: DefaultsSettings, hash_password: PasswordHasher) -> list[MetadataCommand]:
    """The commands for a broker without any vhost or user."""
    hashed = hash_password(settings.password)
    return [
        PutVhost(name=settings.vhost, description=DEFAULT_VHOST_DESCRIPTION),
        PutUser(
            name=settings.user,
            password_hash=hashed.salted_hash,
            hashing_algorithm=hashed.algorithm,
            tags=settings.tags,
        ),
        SetPermissions(
            user=settings.user,
            vhost=settings.vhost,
            configure=settings.configure,
            write=settings.write,
            read=settings.read,
        ),
    ]
