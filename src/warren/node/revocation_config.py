"""Reads from the configuration what is looked for in lists of revoked certificates, and where these are."""

from collections.abc import Mapping

from msgspec import Struct

from warren.limits_access import REVOCATION_FETCH_MS_MAX
from warren.node.config import Config
from warren.node.revocation_settings import REVOCATION_CHECK, REVOCATION_SOURCES
from warren.transport.revocation import RevocationCheck
from warren.transport.tls import TlsError

_DIRECTORY = "dir"
_SERVER = "http"
# The attributes of a source of either kind, without the number itself. RabbitMQ has no `url`.
_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {_DIRECTORY: ("path",), _SERVER: ("timeout", "url")}
# RabbitMQ's default.
_TIMEOUT_MS = 5_000


class ListServer(Struct, frozen=True):
    """Servers that have lists: at the addresses in the known certificates, or at one address."""

    timeout_ms: int = _TIMEOUT_MS
    url: str = ""


class RevocationSources(Struct, frozen=True, kw_only=True):
    """What is looked for in lists of revoked certificates, and where these are."""

    check: RevocationCheck = RevocationCheck.NONE
    directories: tuple[str, ...] = ()
    servers: tuple[ListServer, ...] = ()


def revocation_sources(config: Config) -> RevocationSources:
    """The settings `ssl_options.crl_…`; raises TlsError for those that cannot be followed."""
    check, sources = config.get(REVOCATION_CHECK), _numbered(config)
    if check is RevocationCheck.BEST_EFFORT:
        if sources:
            raise TlsError(f"{REVOCATION_CHECK.key} = best_effort is not supported: set peer or true")
        # Nothing can be found out without lists, and that is enough.
        return RevocationSources()
    if check is RevocationCheck.NONE:
        return RevocationSources()
    if not sources:
        raise TlsError(f"{REVOCATION_CHECK.key} = {check.value} needs {REVOCATION_SOURCES.key}.1")
    directories, servers = [], []
    for number, attributes in sources.items():
        key = f"{REVOCATION_SOURCES.key}.{number}"
        if _kind(key, attributes) == _SERVER:
            servers.append(_server(key, attributes))
        elif attributes.get("path"):
            directories.append(attributes["path"])
        else:
            raise TlsError(f"{key} = {_DIRECTORY} needs {key}.path")
    return RevocationSources(check=check, directories=tuple(directories), servers=tuple(servers))


def _numbered(config: Config) -> dict[str, dict[str, str]]:
    """The attributes of each source, and its kind under the empty name, by number."""
    sources: dict[str, dict[str, str]] = {}
    for name, value in config.family(REVOCATION_SOURCES).items():
        number, _, attribute = name.partition(".")
        sources.setdefault(number, {})[attribute] = value
    return sources


def _kind(key: str, attributes: Mapping[str, str]) -> str:
    """`dir` or `http`, with attributes of that kind; a source with a path alone is a directory."""
    kind = attributes.get("", _DIRECTORY if "path" in attributes else "")
    if kind not in _ATTRIBUTES:
        raise TlsError(f"{key} must be {_DIRECTORY} or {_SERVER}, not {kind!r}")
    for name in attributes:
        if name and name not in _ATTRIBUTES[kind]:
            allowed = " or ".join(f".{each}" for each in _ATTRIBUTES[kind])
            raise TlsError(f"{key}.{name}: a source {kind} has {allowed} only")
    return kind


def _server(key: str, attributes: Mapping[str, str]) -> ListServer:
    timeout, url = attributes.get("timeout", str(_TIMEOUT_MS)), attributes.get("url", "")
    # A longer one would delay the start of a node whose server does not answer.
    if not timeout.isdecimal() or not 1 <= int(timeout) <= REVOCATION_FETCH_MS_MAX:
        raise TlsError(f"{key}.timeout must be a number of 1 to {REVOCATION_FETCH_MS_MAX}, not {timeout!r}")
    if url and not url.startswith(("http://", "https://")):
        raise TlsError(f"{key}.url must be an http or https address, not {url!r}")
    return ListServer(int(timeout), url)
