"""Parses the address of the HTTP API and the user of its requests."""

from collections.abc import Callable, Mapping
from urllib.parse import unquote, urlsplit

from warren.blocking.http_target import HttpTarget
from warren.cli.operator.failures import USAGE, Failure

DEFAULT_URI = "http://127.0.0.1:15672"
_PORTS = {"http": 15672, "https": 15671}
_SHAPE = "--uri is http://USER:PASSWORD@HOST:PORT or https://…, with %40 for an @ in a name or password"


def target_of(uri: str, environment: Mapping[str, str], ask_password: Callable[[str], str]) -> HttpTarget:
    """Parse `uri`; missing credentials come from the environment, then `guest`, then `ask_password`."""
    # Error texts never contain the URI, which may contain a password.
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        raise Failure(_SHAPE, USAGE) from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment:
        raise Failure(_SHAPE, USAGE)
    if parts.username is None:
        user, password = environment.get("WARREN_USER", "guest"), None
    else:
        user, password = unquote(parts.username), parts.password
    if password is None:
        password = environment.get("WARREN_PASSWORD")
        if password is None:
            password = "guest" if user == "guest" else ask_password(f"Password of {user}")
    else:
        password = unquote(password)
    return HttpTarget(
        host=parts.hostname,
        port=port or _PORTS[parts.scheme],
        prefix=parts.path.rstrip("/"),
        user=user,
        password=password,
        is_tls=parts.scheme == "https",
    )
