"""The settings of OAuth 2, each declared once, as in `settings`: tokens, providers and resource servers."""

from warren import limits
from warren.access.scopes import ScopeSyntax
from warren.access.tokens import ALGORITHMS, SHARED_ALGORITHMS
from warren.node.setting_types import Family, NoEffect, Setting
from warren.node.values import boolean, choice, integer, text, unless

_ALGORITHM = choice({name.lower(): name for name in (*ALGORITHMS, *SHARED_ALGORITHMS)})
_SYNTAX = choice({syntax.value: syntax for syntax in ScopeSyntax})
_VERIFY = choice({"verify_peer": True, "verify_none": False})
# What is so whatever is set.
_NO_EFFECT = {
    "https.crl_check": NoEffect("lists of revoked certificates are not read for servers that the node asks"),
    "https.depth": NoEffect("OpenSSL limits the length of a chain of certificates"),
    "https.hostname_verification": NoEffect("wildcards in certificates are always matched"),
}

RESOURCE_SERVER_ID = Setting(
    "auth_oauth2.resource_server_id", "", text,
    "identifier of this broker, such as `rabbitmq`: the audience (`aud`) of tokens and the default prefix "
    "of scopes",
)  # fmt: skip
SCOPE_PREFIX = Setting(
    "auth_oauth2.scope_prefix", "", text,
    "prefix of scopes of this broker, such as `rabbitmq.`; unset: `auth_oauth2.resource_server_id` and `.`",
)  # fmt: skip
VERIFY_AUDIENCE = Setting(
    "auth_oauth2.verify_aud", True, boolean,
    "require that the audience (`aud`) of a token contains `auth_oauth2.resource_server_id`",
)  # fmt: skip
LIFETIME: Setting[int | None] = Setting(
    "auth_oauth2.token_lifetime_max", limits.TOKEN_LIFETIME_S, unless(("infinity",), integer(1)),
    "seconds for which a token without an expiry (`exp`) is valid from its issue (`iat`), or without that "
    "from the login; `infinity`: for ever",
)  # fmt: skip
NAME_CLAIMS: Family[str] = Family(
    "auth_oauth2.preferred_username_claims", {}, text,
    "claims of a token that have the user name, tried before `sub` and `client_id`: "
    "`auth_oauth2.preferred_username_claims.1 = email`",
)  # fmt: skip
ADDITIONAL_SCOPES = Setting(
    "auth_oauth2.additional_scopes_key", "", text,
    "claims of a token with further scopes, separated by spaces, such as `roles realm_access.roles`",
)  # fmt: skip
SCOPE_ALIASES: Family[str] = Family(
    "auth_oauth2.scope_aliases", {}, text,
    "scopes, separated by spaces, that another scope stands for: "
    "`auth_oauth2.scope_aliases.boss = rabbitmq.tag:administrator rabbitmq.read:*/*`",
)  # fmt: skip
SIGNATURE_ALGORITHMS: Family[str] = Family(
    "auth_oauth2.algorithms", {}, _ALGORITHM,
    "accepted signature algorithms of tokens: `auth_oauth2.algorithms.1 = RS256`; "
    "unset: all that use public keys",
)  # fmt: skip
KEYS: Family[str] = Family(
    "auth_oauth2.signing_keys", {}, text,
    "PEM files of public keys by key id: `auth_oauth2.signing_keys.legacy = /etc/warren/legacy.pem`",
)  # fmt: skip
DEFAULT_KEY = Setting(
    "auth_oauth2.default_key", "", text,
    "id of the key of `auth_oauth2.signing_keys` that verifies tokens without a key id (`kid`)",
)  # fmt: skip
JWKS_URL = Setting(
    "auth_oauth2.jwks_url", "", text,
    "HTTPS address of the JSON Web Key Set of the identity provider, such as `https://id.example.org/keys`",
)  # fmt: skip
JWKS_URI = Setting(
    "auth_oauth2.jwks_uri", "", text,
    "RabbitMQ 4's name of `auth_oauth2.jwks_url`, which it overrides",
)  # fmt: skip
AUTHORITY_FILE = Setting(
    "auth_oauth2.https.cacertfile", "", text,
    "PEM file with the CA certificates that the servers of the provider are verified against; "
    "unset: those of the system",
)  # fmt: skip
VERIFY = Setting(
    "auth_oauth2.https.peer_verification", True, _VERIFY,
    "`verify_peer` verifies the certificates of the servers of the provider; `verify_none` does not",
)  # fmt: skip
RESOURCE_SERVER_TYPE = Setting(
    "auth_oauth2.resource_server_type", "", text,
    "type of the details of authorization (`authorization_details`) in tokens that are read as scopes, such "
    "as `rabbitmq`; unset: none are",
)  # fmt: skip
REQUIRE_EXPIRY = Setting(
    "auth_oauth2.require_exp", False, boolean,
    "refuse tokens without an expiry (`exp`), which else live for `auth_oauth2.token_lifetime_max`",
)  # fmt: skip
SCOPE_SYNTAX = Setting(
    "auth_oauth2.scope_pattern_syntax", ScopeSyntax.WILDCARD, _SYNTAX,
    "syntax of the parts of a scope: `wildcard`, or `regex` for regular expressions of the whole text",
)  # fmt: skip
ISSUER = Setting(
    "auth_oauth2.issuer", "", text,
    "HTTPS address of the OpenID provider, such as `https://id.example.org/realms/main`, which tells the "
    "address of its key set unless `auth_oauth2.jwks_uri` is set",
)  # fmt: skip
DISCOVERY_PATH = Setting(
    "auth_oauth2.discovery_endpoint_path", ".well-known/openid-configuration", text,
    "path below `auth_oauth2.issuer` of the description of the OpenID provider",
)  # fmt: skip
DISCOVERY_PARAMETERS: Family[str] = Family(
    "auth_oauth2.discovery_endpoint_params", {}, text,
    "parameters of the request for the description of the OpenID provider: "
    "`auth_oauth2.discovery_endpoint_params.appid = broker`",
)  # fmt: skip
AUTHORIZATION_ENDPOINT = Setting(
    "auth_oauth2.authorization_endpoint", "", text,
    "HTTPS address at which users of the web interface log in; unset: as `auth_oauth2.issuer` tells",
)  # fmt: skip
TOKEN_ENDPOINT = Setting(
    "auth_oauth2.token_endpoint", "", text,
    "HTTPS address at which the node gets the tokens of users of the web interface; unset: as "
    "`auth_oauth2.issuer` tells",
)  # fmt: skip
END_SESSION_ENDPOINT = Setting(
    "auth_oauth2.end_session_endpoint", "", text,
    "HTTPS address at which users who sign out of the web interface end their session at the provider; "
    "unset: as `auth_oauth2.issuer` tells",
)  # fmt: skip
DEFAULT_PROVIDER = Setting(
    "auth_oauth2.default_oauth_provider", "", text,
    "name of the provider in `auth_oauth2.oauth_providers` of all resource servers that name none; unset: "
    "the one that is set without a name",
)  # fmt: skip
PROVIDERS: Family[str] = Family(
    "auth_oauth2.oauth_providers", {}, text,
    "further OAuth 2 providers by name: `auth_oauth2.oauth_providers.NAME.issuer`, `.jwks_uri`, "
    "`.signing_keys.ID`, `.default_key`, `.algorithms.N`, `.https.cacertfile`, `.https.verify`, "
    "`.discovery_endpoint_path`, `.discovery_endpoint_params.NAME`, `.authorization_endpoint`, "
    "`.token_endpoint` and `.end_session_endpoint`, each as the key of `auth_oauth2` of that name",
    attributes={
        "authorization_endpoint": text, "end_session_endpoint": text, "token_endpoint": text,
        "algorithms.": _ALGORITHM, "default_key": text, "discovery_endpoint_params.": text,
        "discovery_endpoint_path": text,
        "https.cacertfile": text, "https.verify": _VERIFY, "https.peer_verification": _VERIFY, **_NO_EFFECT,
        "issuer": text, "jwks_uri": text, "jwks_url": text, "signing_keys.": text,
    },
)  # fmt: skip
RESOURCE_SERVERS: Family[str] = Family(
    "auth_oauth2.resource_servers", {}, text,
    "further identifiers of this broker: `auth_oauth2.resource_servers.NAME.id` (unset: the name), "
    "`.oauth_provider_id`, `.scope_prefix`, `.scope_pattern_syntax`, `.scope_aliases.ALIAS`, "
    "`.additional_scopes_key`, `.preferred_username_claims.N`, `.resource_server_type`, `.require_exp` and "
    "`.verify_aud`; unset: as the key of `auth_oauth2` of that name",
    attributes={
        "additional_scopes_key": text, "id": text, "oauth_provider_id": text,
        "preferred_username_claims.": text, "require_exp": boolean, "resource_server_type": text,
        "scope_aliases.": text, "scope_pattern_syntax": _SYNTAX, "scope_prefix": text, "verify_aud": boolean,
    },
)  # fmt: skip
