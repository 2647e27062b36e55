"""The settings of logins to the web interface at OAuth 2 providers, each declared once, as in `settings`."""

from warren.node.setting_types import Family, Setting
from warren.node.values import boolean, choice, text

# The only flow that OAuth 2.1 leaves, and that RabbitMQ has since 3.11.
_RESPONSE_TYPE = choice({"code": "code"})
_LOGON_TYPE = choice({"sp_initiated": False, "idp_initiated": True})

ENABLED = Setting(
    "management.oauth_enabled", False, boolean,
    "users log in to the web interface at an OAuth 2 provider, that of `auth_oauth2`",
)  # fmt: skip
IS_PASSWORD_REFUSED = Setting(
    "management.oauth_disable_basic_auth", True, boolean,
    "with `management.oauth_enabled`, no login to the web interface with a name and password",
)  # fmt: skip
IS_BASIC_AUTH_REFUSED = Setting(
    "management.disable_basic_auth", False, boolean,
    "refuse requests of the HTTP API with a name and password (HTTP basic authentication)",
)  # fmt: skip
CLIENT_ID = Setting(
    "management.oauth_client_id", "", text,
    "id of the web interface as a client of the OAuth 2 provider, which has to permit the redirection to "
    "`/js/oidc-oauth/login-callback.html`",
)  # fmt: skip
CLIENT_SECRET = Setting(
    "management.oauth_client_secret", "", text,
    "secret of `management.oauth_client_id`; unset: a public client", is_secret=True,
)  # fmt: skip
PROVIDER_URL = Setting(
    "management.oauth_provider_url", "", text,
    "HTTPS address of the OAuth 2 provider of the web interface; unset: the issuer in `auth_oauth2`",
)  # fmt: skip
METADATA_URL = Setting(
    "management.oauth_metadata_url", "", text,
    "HTTPS address of the description of the provider; unset: `.well-known/openid-configuration` below "
    "`management.oauth_provider_url`, or that of the issuer in `auth_oauth2`",
)  # fmt: skip
SCOPES = Setting(
    "management.oauth_scopes", "openid profile", text,
    "scopes that the web interface requests from the provider, separated by spaces",
)  # fmt: skip
RESPONSE_TYPE = Setting(
    "management.oauth_response_type", "code", _RESPONSE_TYPE,
    "flow of logins to the web interface: `code`, the authorization code flow with PKCE",
)  # fmt: skip
IS_IDP_INITIATED = Setting(
    "management.oauth_initiated_logon_type", False, _LOGON_TYPE,
    "`sp_initiated`: users begin at the web interface; `idp_initiated`: at the provider, which sends their "
    "token to `/login`",
)  # fmt: skip
AUTHORIZATION_PARAMETERS: Family[str] = Family(
    "management.oauth_authorization_endpoint_params", {}, text,
    "further parameters of requests to the authorization endpoint: "
    "`management.oauth_authorization_endpoint_params.resource = broker`",
)  # fmt: skip
TOKEN_PARAMETERS: Family[str] = Family(
    "management.oauth_token_endpoint_params", {}, text,
    "further parameters of requests to the token endpoint: "
    "`management.oauth_token_endpoint_params.audience = broker`",
)  # fmt: skip
RESOURCE_SERVERS: Family[str] = Family(
    "management.oauth_resource_servers", {}, text,
    "logins for each resource server of `auth_oauth2`: `management.oauth_resource_servers.NAME.id` (unset: "
    "the name), `.label` of its button, `.disabled`, `.oauth_client_id`, `.oauth_client_secret`, "
    "`.oauth_provider_url`, `.oauth_metadata_url`, `.oauth_scopes`, `.oauth_response_type`, "
    "`.oauth_initiated_logon_type`, `.oauth_authorization_endpoint_params.PARAMETER` and "
    "`.oauth_token_endpoint_params.PARAMETER`; unset: as the key of `management` of that name",
    attributes={
        "disabled": boolean, "id": text, "label": text,
        "oauth_authorization_endpoint_params.": text, "oauth_client_id": text, "oauth_client_secret": text,
        "oauth_initiated_logon_type": _LOGON_TYPE, "oauth_metadata_url": text, "oauth_provider_url": text,
        "oauth_response_type": _RESPONSE_TYPE, "oauth_scopes": text, "oauth_token_endpoint_params.": text,
    },
    secrets=frozenset(("oauth_client_secret",)),
)  # fmt: skip
