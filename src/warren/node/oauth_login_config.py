"""Builds the logins to the web interface at OAuth 2 providers from the settings."""

import logging
from collections.abc import Mapping
from typing import cast

from warren.access.authenticate import BackendKind
from warren.access.authorization_code import AuthorizationClient
from warren.management.oauth_logins import LoginServer, OAuthSettings
from warren.node import oauth2_settings
from warren.node import oauth_login_settings as settings
from warren.node.authentication import is_backend_configured
from warren.node.config import Config
from warren.node.oauth2_config import ProviderSettings, provider_settings, resource_servers
from warren.node.setting_types import Family
from warren.runtime.clock import Clock

logger = logging.getLogger("warren.login")

_WELL_KNOWN = oauth2_settings.DISCOVERY_PATH.default


def oauth_settings(config: Config, clock: Clock) -> OAuthSettings:
    """Read how users log in to the web interface; raises BootRefused for an address without TLS.

    As in RabbitMQ, resource servers without a client id or a provider are not offered, and without any the
    logins are those without OAuth 2.
    """
    if not config.get(settings.ENABLED):
        return OAuthSettings()
    if not is_backend_configured(config, BackendKind.OAUTH2):
        logger.warning("management.oauth_enabled is set, but no token is accepted: oauth2 is no backend")
    own = {
        cast(str, group.get("id", name)): group
        for name, group in config.groups(settings.RESOURCE_SERVERS).items()
    }
    servers: dict[str, LoginServer] = {}
    described: dict[str, Mapping[str, object]] = {}
    for provider, token_settings in resource_servers(config):
        id = token_settings.resource_server_id
        group = own.get(id, {})
        if not id or group.get("disabled"):
            continue
        server = _LoginServerSettings(config, id, group, provider_settings(config, provider))
        if not server.is_usable:
            logger.warning("users cannot log in with resource server %r: it has no client id or provider", id)
            continue
        servers[id], described[id] = server.built(clock), server.described()
    if not servers:
        logger.warning("management.oauth_enabled has no effect: no resource server is usable for logins")
        return OAuthSettings()
    is_password_refused = config.get(settings.IS_PASSWORD_REFUSED)
    return OAuthSettings(
        servers=servers,
        is_password_refused=is_password_refused,
        described={
            "oauth_enabled": True,
            "oauth_resource_servers": described,
            "oauth_disable_basic_auth": is_password_refused,
            **_described(config),
        },
    )


def _described(config: Config) -> dict[str, object]:
    """The settings of all resource servers that are set, in RabbitMQ's form."""
    found: dict[str, object] = {
        one.key.removeprefix("management."): config.get(one)
        for one in (
            settings.CLIENT_ID,
            settings.SCOPES,
            settings.PROVIDER_URL,
            settings.METADATA_URL,
            settings.RESPONSE_TYPE,
        )
        if config.is_set(one)
    }
    for family in (settings.AUTHORIZATION_PARAMETERS, settings.TOKEN_PARAMETERS):
        if config.is_set(family):
            found[family.key.removeprefix("management.")] = config.family(family)
    if config.get(settings.IS_IDP_INITIATED):
        found["oauth_initiated_logon_type"] = "idp_initiated"
    return found


class _LoginServerSettings:
    """The settings of one resource server: its own, those of all, and what is known of its provider."""

    def __init__(
        self, config: Config, id: str, group: Mapping[str, object], provider: ProviderSettings
    ) -> None:
        self._config = config
        self._id = id
        self._group = group
        self._provider = provider

    @property
    def is_usable(self) -> bool:
        """True if it has a provider, and a client id unless users come with a token."""
        has_client = self._is_idp_initiated or bool(self._client_id)
        return has_client and bool(self._provider_url)

    def built(self, clock: Clock) -> LoginServer:
        """The resource server, with a client of its provider."""
        # The client of HTTP is loaded only by brokers that use it (decision 0194).
        from warren.node.bounded_fetch import checked_url, verifying_context
        from warren.node.identity_provider import HttpIdentityProvider, ProviderAddresses

        provider = self._provider
        tls = verifying_context(provider.authority_file, is_verified=provider.verifies_server)
        addresses = ProviderAddresses(
            metadata_url=checked_url("management.oauth_metadata_url", self._metadata_url),
            authorization=checked_url("auth_oauth2.authorization_endpoint", provider.authorization_endpoint),
            token=checked_url("auth_oauth2.token_endpoint", provider.token_endpoint),
            end_session=checked_url("auth_oauth2.end_session_endpoint", provider.end_session_endpoint),
        )
        return LoginServer(
            id=self._id,
            label=cast(str, self._group.get("label", self._id)),
            client=AuthorizationClient(
                client_id=self._client_id,
                client_secret=self._text("oauth_client_secret", self._config.get(settings.CLIENT_SECRET)),
                scopes=self._text("oauth_scopes", self._config.get(settings.SCOPES)),
                authorization_parameters=self._authorization_parameters,
                token_parameters=self._token_parameters,
            ),
            provider=HttpIdentityProvider(addresses, tls, clock),
            provider_url=checked_url("management.oauth_provider_url", self._provider_url),
            is_idp_initiated=self._is_idp_initiated,
        )

    def described(self) -> dict[str, object]:
        """What RabbitMQ tells its page of the resource server, without the secret."""
        group = self._group
        told: dict[str, object] = {"id": self._id}
        for name in ("label", "oauth_client_id", "oauth_scopes", "oauth_response_type"):
            if name in group:
                told[name] = group[name]
        told["oauth_provider_url"] = self._provider_url
        told["oauth_metadata_url"] = self._metadata_url
        if self._provider.end_session_endpoint:
            told["end_session_endpoint"] = self._provider.end_session_endpoint
        if "oauth_initiated_logon_type" in group:
            told["oauth_initiated_logon_type"] = "idp_initiated" if self._is_idp_initiated else "sp_initiated"
        parameters = {
            "oauth_authorization_endpoint_params": self._authorization_parameters,
            "oauth_token_endpoint_params": self._token_parameters,
        }
        return told | {name: values for name, values in parameters.items() if values}

    @property
    def _client_id(self) -> str:
        return self._text("oauth_client_id", self._config.get(settings.CLIENT_ID))

    @property
    def _is_idp_initiated(self) -> bool:
        of_all = self._config.get(settings.IS_IDP_INITIATED)
        return cast(bool, self._group.get("oauth_initiated_logon_type", of_all))

    @property
    def _provider_url(self) -> str:
        of_all = self._config.get(settings.PROVIDER_URL) or self._provider.issuer
        return self._text("oauth_provider_url", of_all)

    @property
    def _metadata_url(self) -> str:
        of_all = (
            self._config.get(settings.METADATA_URL)
            or self._provider.discovery_url
            or f"{self._provider_url.rstrip('/')}/{_WELL_KNOWN}"
        )
        return self._text("oauth_metadata_url", of_all)

    @property
    def _authorization_parameters(self) -> Mapping[str, str]:
        return self._parameters(settings.AUTHORIZATION_PARAMETERS)

    @property
    def _token_parameters(self) -> Mapping[str, str]:
        return self._parameters(settings.TOKEN_PARAMETERS)

    def _parameters(self, family: Family[str]) -> Mapping[str, str]:
        own = self._group.get(family.key.removeprefix("management.") + ".")
        return self._config.family(family) if own is None else cast(Mapping[str, str], own)

    def _text(self, attribute: str, of_all: str) -> str:
        return cast(str, self._group.get(attribute, of_all))
