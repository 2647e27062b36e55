"""Reads the settings in RabbitMQ's Erlang terms as keys of the configuration.

    {rabbit, [{heartbeat, 30}, {tcp_listeners, [5672, {"::1", 5673}]}]}        heartbeat = 30
                                                                               listeners.tcp.1 = 5672
                                                                               listeners.tcp.2 = ::1:5673

The path of a term is its application and the names on the way to it: `rabbitmq_management.tcp_config.port`.
Most keys of the configuration are named like it; the others are in a table. What has no key is a warning.
"""

from collections.abc import Callable, Mapping

from warren.model.erlang_reader import Term
from warren.model.erlang_terms import Atom
from warren.node import no_effect
from warren.node.all_settings import BY_KEY, family_of
from warren.node.config_file import ConfigEntry
from warren.node.setting_types import Setting
from warren.node.term_values import InvalidTerm, items, shown

# The beginnings of paths whose keys are called differently, longer ones first.
_NAMES: tuple[tuple[str, str], ...] = (
    ("rabbit.cluster_formation.peer_discovery_dns.", "cluster_formation.dns."),
    ("rabbit.definitions.local_path", "definitions.local.path"),
    ("rabbit.log.categories.", "log."),
    ("rabbit.log.console.enabled", "log.console"),
    ("rabbit.log.exchange.enabled", "log.exchange"),
    ("rabbit.log.file.file", "log.file"),
    ("rabbit.log.file.count", "log.file.rotation.count"),
    ("rabbit.log.file.date", "log.file.rotation.date"),
    ("rabbit.log.file.size", "log.file.rotation.size"),
    ("rabbit.log_root", "log.dir"),
    ("rabbit.quorum_cluster_size", "quorum_queue.initial_cluster_size"),
    ("rabbit.ssl_listeners", "listeners.ssl"),
    ("rabbit.tcp_listeners", "listeners.tcp"),
    ("rabbit.", ""),
    ("rabbitmq_auth_backend_cache.", "auth_cache."),
    ("rabbitmq_auth_backend_http.", "auth_http."),
    ("rabbitmq_auth_backend_ldap.pool_size", "auth_ldap.connection_pool_size"),
    ("rabbitmq_auth_backend_ldap.", "auth_ldap."),
    ("rabbitmq_auth_backend_oauth2.extra_scopes_source", "auth_oauth2.additional_scopes_key"),
    ("rabbitmq_auth_backend_oauth2.key_config.cacertfile", "auth_oauth2.https.cacertfile"),
    ("rabbitmq_auth_backend_oauth2.key_config.peer_verification", "auth_oauth2.https.peer_verification"),
    ("rabbitmq_auth_backend_oauth2.key_config.", "auth_oauth2."),
    ("rabbitmq_auth_backend_oauth2.", "auth_oauth2."),
    ("rabbitmq_event_exchange.", "event_exchange."),
    ("rabbitmq_management.content_security_policy", "management.csp.policy"),
    ("rabbitmq_management.cors_allow_origins", "management.cors.allow_origins"),
    ("rabbitmq_management.cors_max_age", "management.cors.max_age"),
    ("rabbitmq_management.strict_transport_security", "management.hsts.policy"),
    ("rabbitmq_management.ssl_config.cowboy_opts.", "management.ssl."),
    ("rabbitmq_management.ssl_config.", "management.ssl."),
    ("rabbitmq_management.tcp_config.cowboy_opts.", "management.tcp."),
    ("rabbitmq_management.tcp_config.", "management.tcp."),
    ("rabbitmq_management.", "management."),
    ("rabbitmq_prometheus.ssl_config.cowboy_opts.", "prometheus.ssl."),
    ("rabbitmq_prometheus.ssl_config.ssl_opts.", "prometheus.ssl."),
    ("rabbitmq_prometheus.ssl_config.", "prometheus.ssl."),
    ("rabbitmq_prometheus.tcp_config.cowboy_opts.", "prometheus.tcp."),
    ("rabbitmq_prometheus.tcp_config.", "prometheus.tcp."),
    ("rabbitmq_prometheus.", "prometheus."),
    ("rabbitmq_stream.ssl_listeners", "stream.listeners.ssl"),
    ("rabbitmq_stream.tcp_listeners", "stream.listeners.tcp"),
    ("rabbitmq_stream.", "stream."),
)
_NO_KEY = "no key of the configuration stands for it"
_LISTENER = "rabbitmq_management.listener"
# Families whose entries are no single values: they are written as keys.
_STRUCTURED = (
    "auth_oauth2.discovery_endpoint_params", "auth_oauth2.oauth_providers", "auth_oauth2.resource_servers",
    "auth_oauth2.scope_aliases", "auth_oauth2.signing_keys", "default_limits", "default_policies",
    "default_users", "management.oauth_authorization_endpoint_params", "management.oauth_resource_servers",
    "management.oauth_token_endpoint_params", "shovel",
)  # fmt: skip
# Families that list names, each with the value `true`.
_SETS = ("loopback_users", "default_user_tags")
# A value that RabbitMQ has encrypted, as rabbitmq.conf writes it.
_ENCRYPTED = "encrypted:"


class ClassicSettings:
    """The settings of one file, and warnings about those that have no effect."""

    def __init__(self, file: str) -> None:
        self.entries: list[ConfigEntry] = []
        self.warnings: list[str] = []
        self._file = file

    def read(self, path: str, term: Term) -> None:
        """Read the setting `path`, or those below it."""
        before = len(self.entries)
        try:
            self._read(path, term)
        except InvalidTerm as error:
            del self.entries[before:]
            self.warnings.append(f"{self._file}: {path} has no effect: {error}")

    def _read(self, path: str, term: Term) -> None:
        if path == _LISTENER:
            self._read_listener(term)
            return
        key = _key(path)
        special = _SPECIAL.get(key)
        if special is not None:
            for name, value in special(path, term).items():
                self._add(f"{key}.{name}" if name else key, path, value)
        elif isinstance(BY_KEY.get(key), Setting):
            self._add(key, path, term)
        elif key in BY_KEY and key not in _STRUCTURED:
            self._read_family(key, path, term)
        elif properties := _properties(term):
            for name, value in properties:
                self.read(f"{path}.{name}", value)
        else:
            reason = no_effect.reason_of(key) or _NO_KEY
            self.warnings.append(f"{self._file}: {path} has no effect: {reason}")

    def _read_listener(self, term: Term) -> None:
        """Read the only port of the management plugin before 3.7: plain, or with TLS."""
        found = dict(_properties(term))
        kind = "ssl" if found.pop("ssl", "") == "true" else "tcp"
        for name, value in [*_properties(found.pop("ssl_opts", [])), *found.items()]:
            self.read(f"rabbitmq_management.{kind}_config.{name}", value)

    def _read_family(self, key: str, path: str, term: Term) -> None:
        """Read a list, whose entries are numbered."""
        found = items(path, term)
        if not found:
            self.entries.append(ConfigEntry(key, "none", self._file))
        for number, item in enumerate(found, 1):
            if key in _SETS:
                self._add(f"{key}.{_text(path, item)}", path, Atom("true"))
            elif isinstance(item, tuple) and key == "auth_backends" and len(item) == 2:
                self._add(f"{key}.{number}.authn", path, item[0])
                self._add(f"{key}.{number}.authz", path, item[1])
            elif isinstance(item, tuple) and len(item) == 2:
                self._add(f"{key}.{number}", path, ":".join(_text(path, part) for part in item))
            else:
                self._add(f"{key}.{number}", path, item)

    def _add(self, key: str, path: str, term: Term) -> None:
        if BY_KEY.get(key) is None and family_of(key) is None:
            self.warnings.append(f"{self._file}: {path} has no effect: {_NO_KEY}")
            return
        self.entries.append(ConfigEntry(key, _text(path, term), self._file))


def _key(path: str) -> str:
    """The key of the configuration for `path`."""
    for beginning, key in _NAMES:
        if path.startswith(beginning):
            return key + path.removeprefix(beginning)
    return path


def _properties(term: Term) -> list[tuple[str, Term]]:
    """The pairs of a list, each with a name; a name alone stands for true. Empty if it is another list."""
    found: list[tuple[str, Term]] = []
    for item in term if isinstance(term, list) else ():
        name, value = item if isinstance(item, tuple) and len(item) == 2 else (item, Atom("true"))
        if not isinstance(name, Atom):
            return []
        found.append((str(name), value))
    return found


def _text(path: str, term: Term) -> str:
    """The value of a setting as rabbitmq.conf writes it."""
    if isinstance(term, tuple) and len(term) == 2 and term[0] == "encrypted":
        return _ENCRYPTED
    if isinstance(term, bytes):
        return term.decode("utf-8", "surrogateescape")
    if isinstance(term, str | int | float):
        return str(term)
    raise InvalidTerm(f"{path}: {shown(term)} cannot be read as a value")


def _watermark(path: str, term: Term) -> Mapping[str, Term]:
    """A fraction of the memory, {absolute, "1GB"} or {relative, 0.4}."""
    if isinstance(term, tuple) and len(term) == 2 and term[0] in ("absolute", "relative"):
        return {str(term[0]): term[1]}
    return {"relative": term}


def _disk_limit(path: str, term: Term) -> Mapping[str, Term]:
    """A size, or {mem_relative, 1.0}."""
    if isinstance(term, tuple) and len(term) == 2 and term[0] in ("mem_relative", "absolute"):
        return {"relative" if term[0] == "mem_relative" else "absolute": term[1]}
    return {"absolute": term}


def _permissions(path: str, term: Term) -> Mapping[str, Term]:
    """The three patterns of the first user."""
    found = items(path, term)
    if len(found) != 3:
        raise InvalidTerm(f"{path} has to be the three patterns to configure, write and read")
    return dict(zip(("configure", "write", "read"), found, strict=True))


def _linger(path: str, term: Term) -> Mapping[str, Term]:
    """{true, 5}: whether, and for how many seconds."""
    if not isinstance(term, tuple) or len(term) != 2:
        raise InvalidTerm(f"{path} has to be such as {{true, 0}}, not {shown(term)}")
    return {"on": term[0], "timeout": term[1]}


def _bind(path: str, term: Term) -> Mapping[str, Term]:
    """`as_user` or `anon`, or the name and the password of an account."""
    if isinstance(term, tuple) and len(term) == 2:
        return {"user_dn": term[0], "password": term[1]}
    return {"": term}


# The keys whose terms stand for several keys below them.
_SPECIAL: dict[str, Callable[[str, Term], Mapping[str, Term]]] = {
    "vm_memory_high_watermark": _watermark,
    "disk_free_limit": _disk_limit,
    "default_permissions": _permissions,
    "auth_ldap.dn_lookup_bind": _bind,
    "auth_ldap.other_bind": _bind,
    "tcp_listen_options.linger": _linger,
    "stream.tcp_listen_options.linger": _linger,
}
