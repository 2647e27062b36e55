"""All settings, of the modules that declare them, in the order of their declaration."""

from warren.node import (
    access_settings,
    cluster_settings,
    definition_settings,
    http_login_settings,
    limit_settings,
    log_settings,
    oauth2_settings,
    oauth_login_settings,
    queue_settings,
    revocation_settings,
    settings,
    vhost_settings,
)
from warren.node.log_settings import CategoryKeys
from warren.node.setting_types import Family, HttpPortKeys, Setting, SocketKeys, TlsKeys

# Each setting once, although some have two names in their module.
ALL: tuple[Setting[object] | Family[object], ...] = tuple(
    {
        one.key: one
        for module in (
            settings,
            revocation_settings,
            oauth2_settings,
            oauth_login_settings,
            http_login_settings,
            definition_settings,
            log_settings,
            access_settings,
            vhost_settings,
            limit_settings,
            cluster_settings,
            queue_settings,
        )
        for value in vars(module).values()
        for one in (
            value.all if isinstance(value, (TlsKeys, HttpPortKeys, SocketKeys, CategoryKeys)) else (value,)
        )
        if isinstance(one, (Setting, Family))
    }.values()
)
BY_KEY: dict[str, Setting[object] | Family[object]] = {setting.key: setting for setting in ALL}
FAMILIES = tuple(setting for setting in ALL if isinstance(setting, Family))


def family_of(key: str) -> Family[object] | None:
    """The family of `key`, such as `listeners.tcp` of `listeners.tcp.default`; None if it has none."""
    return next((family for family in FAMILIES if key.startswith(family.key + ".")), None)
