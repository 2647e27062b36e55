"""Parses the address of the HTTP API and the user of its requests."""

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from warren.blocking.http_target import HttpTarget
from warren.cli.operator.failures import USAGE, Failure

DEFAULT_URI = "http://127.0.0.1:15672"
_PORTS = {"http": 15672, "https": 15671}
_SHAPE = "--uri is http://USER:PASSWORD@HOST:PORT or https://…, with %40 for an @ in a name or password"


def target_of(uri: str, environment: Mapping[str, str], ask_password: Callable[[str], str]) -> HttpTarget:
    """Parse `uri`; missing credentials come from the environment, then `guest`, then `ask_password`.

    RABBITMQ_DEFAULT_USER and its password are those of a container, whose health checks have no others.
    """
    # Error texts never contain the URI, which may contain a password.
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        raise Failure(_SHAPE, USAGE) from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment:
        raise Failure(_SHAPE, USAGE)
    if parts.username is None:
        user = environment.get("WARREN_USER") or _default(environment, "USER") or "guest"
        password = None
    else:
        user, password = unquote(parts.username), parts.password
    if password is None:
        password = environment.get("WARREN_PASSWORD")
        if password is None and user == _default(environment, "USER"):
            password = _default(environment, "PASS") or None
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


def _default(environment: Mapping[str, str], name: str) -> str:
    """Return what a container calls its default user, or the password of that user; empty if neither."""
    value = environment.get(f"RABBITMQ_DEFAULT_{name}", "")
    file = environment.get(f"RABBITMQ_DEFAULT_{name}_FILE", "")
    if value or not file:
        return value
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError):
        raise Failure(f"RABBITMQ_DEFAULT_{name}_FILE: cannot read {file!r}", USAGE) from None
