"""Builds the verifier of tokens from the settings of OAuth 2: resource servers, providers and their keys."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from warren.access.tokens import ALGORITHMS, ResourceServer, TokenSettings, TokenVerifier
from warren.node import oauth2_settings as settings
from warren.node.client_listeners import numbered_values
from warren.node.config import Config
from warren.node.errors import BootRefused
from warren.runtime.clock import Clock

if TYPE_CHECKING:
    from warren.node.keyring import KeyringSettings

# The provider that is set without a name.
_ROOT = ""
_ALIAS, _SCOPE = ".alias", ".scope"
# Whether the certificate of a provider is verified, in the order of precedence.
_VERIFY = ("https.verify", "https.peer_verification")


def token_verifier(config: Config, clock: Clock) -> TokenVerifier:
    """Create the verifier; raises BootRefused if the settings contradict each other."""
    # joserfc and cryptography are loaded only by brokers that accept tokens (decision 0194).
    from warren.node.keyring import Keyring

    keyrings: dict[str, Keyring] = {}
    servers = []
    for provider, token_settings in resource_servers(config):
        if provider not in keyrings:
            keyrings[provider] = Keyring(_keyring_settings(config, provider), clock)
        own = replace(token_settings, algorithms=_algorithms(config, provider))
        servers.append(ResourceServer(own, keyrings[provider].key))
    return TokenVerifier(servers, clock.now)


def resource_servers(config: Config) -> list[tuple[str, TokenSettings]]:
    """The settings of each resource server, and the name of its provider."""
    provider = config.get(settings.DEFAULT_PROVIDER)
    prefix = config.get(settings.SCOPE_PREFIX) if config.is_set(settings.SCOPE_PREFIX) else None
    root = TokenSettings(
        resource_server_id=config.get(settings.RESOURCE_SERVER_ID),
        scope_prefix=prefix,
        scope_syntax=config.get(settings.SCOPE_SYNTAX),
        verifies_audience=config.get(settings.VERIFY_AUDIENCE),
        requires_expiry=config.get(settings.REQUIRE_EXPIRY),
        lifetime_s=config.get(settings.LIFETIME),
        name_claims=numbered_values(config.family(settings.NAME_CLAIMS)),
        additional_scopes_key=config.get(settings.ADDITIONAL_SCOPES),
        scope_aliases=_aliases(config.family(settings.SCOPE_ALIASES)),
        resource_server_type=config.get(settings.RESOURCE_SERVER_TYPE),
    )
    named = config.groups(settings.RESOURCE_SERVERS)
    found = [(provider, root)] if root.resource_server_id or not named else []
    for name, group in named.items():
        server = _derived(root, name, group)
        if any(server.resource_server_id == other.resource_server_id for _, other in found):
            raise BootRefused(f"two resource servers have the id {server.resource_server_id!r}")
        found.append((cast(str, group.get("oauth_provider_id", provider)), server))
    return found


def _derived(root: TokenSettings, name: str, group: Mapping[str, object]) -> TokenSettings:
    """The settings of a resource server: its own, and those of `root`."""
    claims, aliases = group.get("preferred_username_claims."), group.get("scope_aliases.")
    return replace(
        root,
        resource_server_id=group.get("id", name),
        scope_prefix=group.get("scope_prefix", root.scope_prefix),
        scope_syntax=group.get("scope_pattern_syntax", root.scope_syntax),
        verifies_audience=group.get("verify_aud", root.verifies_audience),
        requires_expiry=group.get("require_exp", root.requires_expiry),
        additional_scopes_key=group.get("additional_scopes_key", root.additional_scopes_key),
        resource_server_type=group.get("resource_server_type", root.resource_server_type),
        name_claims=root.name_claims if claims is None else numbered_values(cast(dict[str, str], claims)),
        scope_aliases=root.scope_aliases if aliases is None else _aliases(cast(dict[str, str], aliases)),
    )


def _aliases(written: Mapping[str, str]) -> dict[str, str]:
    """The scopes of each alias: `ALIAS = SCOPES`, or `N.alias = ALIAS` with `N.scope = SCOPES`."""
    found = dict(written)
    for key in written:
        number = key.removesuffix(_ALIAS)
        if number != key and number + _SCOPE in written:
            found[found.pop(key)] = found.pop(number + _SCOPE)
    return found


class ProviderSettings(Struct, frozen=True, kw_only=True):
    """The addresses of a provider, and how its servers are verified."""

    issuer: str
    # Where the provider describes itself; empty without an issuer.
    discovery_url: str
    authority_file: str
    verifies_server: bool
    authorization_endpoint: str
    token_endpoint: str
    end_session_endpoint: str


def provider_settings(config: Config, provider: str) -> ProviderSettings:
    """The settings of `provider`; raises BootRefused if there is none of that name."""
    group = _provider(config, provider)
    issuer, path = _text(group, "issuer"), _text(group, "discovery_endpoint_path")
    parameters = cast(dict[str, str], group.get("discovery_endpoint_params.", {}))
    query = f"?{urlencode(parameters)}" if parameters else ""
    return ProviderSettings(
        issuer=issuer,
        discovery_url=f"{issuer.rstrip('/')}/{path.lstrip('/')}{query}" if issuer else "",
        authority_file=_text(group, "https.cacertfile"),
        verifies_server=next((bool(group[key]) for key in _VERIFY if key in group), True),
        authorization_endpoint=_text(group, "authorization_endpoint"),
        token_endpoint=_text(group, "token_endpoint"),
        end_session_endpoint=_text(group, "end_session_endpoint"),
    )


def _keyring_settings(config: Config, provider: str) -> "KeyringSettings":
    from warren.node.keyring import KeyringSettings

    group, shared = _provider(config, provider), provider_settings(config, provider)
    return KeyringSettings(
        files=cast(dict[str, str], group.get("signing_keys.", {})),
        default=_text(group, "default_key"),
        url=_text(group, "jwks_uri") or _text(group, "jwks_url"),
        discovery_url=shared.discovery_url,
        authority_file=shared.authority_file,
        verifies_server=shared.verifies_server,
    )


def _algorithms(config: Config, provider: str) -> tuple[str, ...]:
    return (
        numbered_values(cast(dict[str, str], _provider(config, provider).get("algorithms.", {})))
        or ALGORITHMS
    )


def _provider(config: Config, name: str) -> dict[str, object]:
    """The attributes of the provider `name`; raises BootRefused if there is none."""
    if name == _ROOT:
        return {
            "issuer": config.get(settings.ISSUER),
            "discovery_endpoint_path": config.get(settings.DISCOVERY_PATH),
            "discovery_endpoint_params.": config.family(settings.DISCOVERY_PARAMETERS),
            "jwks_url": config.get(settings.JWKS_URL),
            "jwks_uri": config.get(settings.JWKS_URI),
            "signing_keys.": config.family(settings.KEYS),
            "default_key": config.get(settings.DEFAULT_KEY),
            "algorithms.": config.family(settings.SIGNATURE_ALGORITHMS),
            "https.cacertfile": config.get(settings.AUTHORITY_FILE),
            "https.verify": config.get(settings.VERIFY),
            "authorization_endpoint": config.get(settings.AUTHORIZATION_ENDPOINT),
            "token_endpoint": config.get(settings.TOKEN_ENDPOINT),
            "end_session_endpoint": config.get(settings.END_SESSION_ENDPOINT),
        }
    groups = config.groups(settings.PROVIDERS)
    if name not in groups:
        raise BootRefused(f"auth_oauth2.oauth_providers.{name} is not set, but a resource server uses it")
    return {"discovery_endpoint_path": settings.DISCOVERY_PATH.default, **groups[name]}


def _text(group: Mapping[str, object], attribute: str) -> str:
    return cast(str, group.get(attribute, ""))
