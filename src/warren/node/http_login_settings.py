"""The settings of a web server that decides logins and permissions, each declared once, as in `settings`."""

from warren import limits_access
from warren.node.setting_types import Family, Setting
from warren.node.values import boolean, choice, integer, text
from warren.transport.tls import VERSION_NAMES

_MS = integer(1, 60_000)
_METHODS = {"get": "GET", "post": "POST"}


def _server_name(written: str) -> str:
    return "" if written == "none" else written


USER_URL = Setting(
    "auth_http.user_path", "http://localhost:8000/auth/user", text,
    "address that is asked whether the name and password of a user are right, with "
    "`auth_backends.1 = http` or `auth_backends.1.authn = http`",
)  # fmt: skip
VHOST_URL = Setting(
    "auth_http.vhost_path", "http://localhost:8000/auth/vhost", text,
    "address that is asked whether a user may use a virtual host, with `auth_backends.1 = http` or "
    "`auth_backends.1.authz = http`",
)  # fmt: skip
RESOURCE_URL = Setting(
    "auth_http.resource_path", "http://localhost:8000/auth/resource", text,
    "address that is asked whether a user may configure, write to or read from an exchange or queue",
)  # fmt: skip
TOPIC_URL = Setting(
    "auth_http.topic_path", "http://localhost:8000/auth/topic", text,
    "address that is asked whether a user may publish, or bind, to a topic exchange with a routing key",
)  # fmt: skip
DISCLOSURE = Setting(
    "auth_http.authorization_failure_disclosure", False, boolean,
    "tell clients the reason that follows `deny` in the answer about a permission",
)  # fmt: skip
METHOD = Setting(
    "auth_http.http_method", "GET", choice(_METHODS),
    "method of the requests to the addresses of `auth_http`: `get`, or `post`, with which no password is in "
    "an address",
)  # fmt: skip
REQUEST_TIMEOUT = Setting(
    "auth_http.request_timeout", limits_access.HTTP_LOGIN_TIMEOUT_MS, _MS,
    "milliseconds in which the addresses of `auth_http` must answer",
)  # fmt: skip
CONNECTION_TIMEOUT = Setting(
    "auth_http.connection_timeout", limits_access.HTTP_LOGIN_TIMEOUT_MS, _MS,
    "milliseconds in which a connection to the server of `auth_http` must be open",
)  # fmt: skip
AUTHORITY_FILE = Setting(
    "auth_http.ssl_options.cacertfile", "", text,
    "PEM file with the CA certificates that the server of `auth_http` is verified against; unset: "
    "those of the system",
)  # fmt: skip
CERTIFICATE_FILE = Setting(
    "auth_http.ssl_options.certfile", "", text,
    "PEM file with the client certificate that is sent to the server of `auth_http`",
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
    "`verify_peer` verifies the certificate of the server of `auth_http`; `verify_none` does not",
)  # fmt: skip
SERVER_NAME = Setting(
    "auth_http.ssl_options.sni", "", _server_name,
    "name that the certificate of the server of `auth_http` must have, in place of that in the address",
)  # fmt: skip
VERSIONS: Family[str] = Family(
    "auth_http.ssl_options.versions", {"1": "tlsv1.2", "2": "tlsv1.3"},
    choice({name: name for name in VERSION_NAMES}),
    "TLS versions of the requests to `auth_http`: `auth_http.ssl_options.versions.1 = tlsv1.3`",
)  # fmt: skip
CIPHERS: Family[str] = Family(
    "auth_http.ssl_options.ciphers", {}, text,
    "ciphers of TLS 1.2 of the requests to `auth_http` by OpenSSL name: "
    "`auth_http.ssl_options.ciphers.1 = ECDHE-RSA-AES256-GCM-SHA384`",
)  # fmt: skip
