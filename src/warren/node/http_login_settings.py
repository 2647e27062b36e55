"""The settings of logins that a web server decides, each declared once, as in `settings`."""

from warren import limits_access
from warren.node.setting_types import Setting
from warren.node.values import choice, integer, text

_MS = integer(1, 60_000)
_METHODS = {"get": "GET", "post": "POST"}

USER_URL = Setting(
    "auth_http.user_path", "http://localhost:8000/auth/user", text,
    "address that is asked whether the name and password of a user are right, with "
    "`auth_backends.1.authn = http`",
)  # fmt: skip
METHOD = Setting(
    "auth_http.http_method", "GET", choice(_METHODS),
    "method of the requests to `auth_http.user_path`: `get`, or `post`, with which no password is in an "
    "address",
)  # fmt: skip
REQUEST_TIMEOUT = Setting(
    "auth_http.request_timeout", limits_access.HTTP_LOGIN_TIMEOUT_MS, _MS,
    "milliseconds in which `auth_http.user_path` must answer",
)  # fmt: skip
CONNECTION_TIMEOUT = Setting(
    "auth_http.connection_timeout", limits_access.HTTP_LOGIN_TIMEOUT_MS, _MS,
    "milliseconds in which a connection to the server of `auth_http.user_path` must be open",
)  # fmt: skip
AUTHORITY_FILE = Setting(
    "auth_http.ssl_options.cacertfile", "", text,
    "PEM file with the CA certificates that the server of `auth_http.user_path` is verified against; unset: "
    "those of the system",
)  # fmt: skip
CERTIFICATE_FILE = Setting(
    "auth_http.ssl_options.certfile", "", text,
    "PEM file with the client certificate that is sent to the server of `auth_http.user_path`",
)  # fmt: skip
KEY_FILE = Setting(
    "auth_http.ssl_options.keyfile", "", text,
    "PEM file with the private key of `auth_http.ssl_options.certfile`",
)  # fmt: skip
KEY_PASSWORD = Setting(
    "auth_http.ssl_options.password", "", text, "passphrase of `auth_http.ssl_options.keyfile`",
    is_secret=True,
)  # fmt: skip
VERIFY = Setting(
    "auth_http.ssl_options.verify", True, choice({"verify_peer": True, "verify_none": False}),
    "`verify_peer` verifies the certificate of the server of `auth_http.user_path`; `verify_none` does not",
)  # fmt: skip
