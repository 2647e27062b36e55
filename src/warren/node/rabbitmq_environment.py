"""The environment variables of RabbitMQ and of its official image: what each sets, or why it sets nothing.

RabbitMQ 3.10 to 4.4 read them in `rabbitmq-env`, `rabbitmq-server` and `rabbit_env.erl`; the image's own ones
are those of its start script up to 3.8, with `…_FILE` for a file that contains the value. As in RabbitMQ, the
default user, its virtual host, the log levels and the name of the node prevail over the configuration, and
the configuration prevails over addresses and directories.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from warren.limits_relay import CONFIG_TERMS_SIZE_MAX
from warren.model.erlang_reader import TermError, read_terms
from warren.model.erlang_terms import Atom
from warren.node import cluster_settings, log_settings, settings
from warren.node.config_file import ConfigEntry, ConfigError

_PREFIX = "RABBITMQ_"
_FILE = "_FILE"
# Where the data of a node is within the directory that RabbitMQ's variable names, beside RabbitMQ's own data.
_DATA = "warren"
_LOG_FILE = "warren.log"
_AMQP_PORT, _AMQPS_PORT, _HTTPS_PORT = 5672, 5671, 15_671

# Variables that prevail over the files, with their settings.
_PREVAILING = {
    "RABBITMQ_NODENAME": settings.NODE_NAME.key,
    "RABBITMQ_PID_FILE": settings.PID_FILE.key,
    "RABBITMQ_DIST_PORT": cluster_settings.DISTRIBUTION_PORT.key,
    "RABBITMQ_DEFAULT_USER": settings.DEFAULT_USER.key,
    "RABBITMQ_DEFAULT_PASS": settings.DEFAULT_PASSWORD.key,
    "RABBITMQ_DEFAULT_VHOST": settings.DEFAULT_VHOST.key,
    "RABBITMQ_DEFAULT_PERMISSIONS_CONFIGURE": settings.DEFAULT_CONFIGURE.key,
    "RABBITMQ_DEFAULT_PERMISSIONS_WRITE": settings.DEFAULT_WRITE.key,
    "RABBITMQ_DEFAULT_PERMISSIONS_READ": settings.DEFAULT_READ.key,
}
# Those of them for which the image takes a file.
_IN_FILES = ("RABBITMQ_DEFAULT_USER", "RABBITMQ_DEFAULT_PASS", "RABBITMQ_DEFAULT_VHOST")
_TLS_OPTIONS = ("CACERTFILE", "CERTFILE", "KEYFILE", "DEPTH", "FAIL_IF_NO_PEER_CERT", "VERIFY")
# Older names of the image.
_TLS_ALIASES = {"CACERTFILE": "CA_FILE", "CERTFILE": "CERT_FILE", "KEYFILE": "KEY_FILE"}
# Those that other modules read.
_READ_ELSEWHERE = (
    "RABBITMQ_ADVANCED_CONFIG_FILE", "RABBITMQ_CONFIG_FILE", "RABBITMQ_CONFIG_FILES",
    "RABBITMQ_ERLANG_COOKIE",
)  # fmt: skip

_NO_EFFECT: dict[str, tuple[str, ...]] = {
    "Warren does not run on Erlang; settings among Erlang's arguments are keys of rabbitmq.conf": (
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "RABBITMQ_SERVER_ERL_ARGS", "RABBITMQ_SERVER_START_ARGS",
        "RABBITMQ_CTL_ERL_ARGS",
    ),
    "Warren does not run on Erlang": (
        "RABBITMQ_ALLOW_INPUT", "RABBITMQ_BOOT_MODULE", "RABBITMQ_CTL_DIST_PORT_MAX",
        "RABBITMQ_CTL_DIST_PORT_MIN", "RABBITMQ_DBG", "RABBITMQ_DEFAULT_ALLOC_ARGS",
        "RABBITMQ_DISTRIBUTION_BUFFER_SIZE", "RABBITMQ_IGNORE_SIGINT", "RABBITMQ_IO_THREAD_POOL_SIZE",
        "RABBITMQ_LOG_FF_REGISTRY", "RABBITMQ_MAX_NUMBER_OF_ATOMS", "RABBITMQ_MAX_NUMBER_OF_PROCESSES",
        "RABBITMQ_NODE_ONLY", "RABBITMQ_SCHEDULER_BIND_TYPE", "RABBITMQ_SCHEDULER_BUSY_WAIT_THRESHOLD",
        "RABBITMQ_SERVER_CODE_PATH", "ERL_EPMD_ADDRESS", "ERL_EPMD_PORT", "ERL_LIBS", "ERL_MAX_ETS_TABLES",
        "ERL_MAX_PORTS",
    ),
    "all data is in data_dir": ("RABBITMQ_QUORUM_DIR", "RABBITMQ_STREAM_DIR"),
    "Warren has no plugins to load": ("RABBITMQ_PLUGINS_DIR", "RABBITMQ_PLUGINS_EXPAND_DIR"),
    "all feature flags are enabled": ("RABBITMQ_FEATURE_FLAGS", "RABBITMQ_FEATURE_FLAGS_FILE"),
    "the file with the process id is removed at the end": ("RABBITMQ_KEEP_PID_FILE_ON_EXIT",),
    "the product is always Warren": (
        "RABBITMQ_MOTD_FILE", "RABBITMQ_PRODUCT_NAME", "RABBITMQ_PRODUCT_VERSION",
    ),
    "a node is called as RABBITMQ_NODENAME says, with the whole name of the host if it has one": (
        "RABBITMQ_USE_LONGNAME",
    ),
    "the files of RabbitMQ's installation are not read": (
        "RABBITMQ_BASE", "RABBITMQ_HOME", "RABBITMQ_SCRIPTS_DIR", "SYS_PREFIX",
    ),
    "it is a script of the shell: the start script of the image runs it, other services set its variables": (
        "RABBITMQ_CONF_ENV_FILE",
    ),
    "there is one log": ("RABBITMQ_UPGRADE_LOG",),
}  # fmt: skip
_REASONS = {name: reason for reason, names in _NO_EFFECT.items() for name in names}

# Plugins whose work Warren does without one.
BUILT_IN = frozenset((
    "rabbitmq_auth_backend_cache", "rabbitmq_auth_backend_ldap", "rabbitmq_auth_backend_oauth2",
    "rabbitmq_auth_mechanism_ssl", "rabbitmq_consistent_hash_exchange", "rabbitmq_event_exchange",
    "rabbitmq_federation", "rabbitmq_federation_common", "rabbitmq_federation_management",
    "rabbitmq_federation_prometheus", "rabbitmq_exchange_federation", "rabbitmq_queue_federation",
    "rabbitmq_jms_topic_exchange", "rabbitmq_management", "rabbitmq_management_agent",
    "rabbitmq_peer_discovery_common", "rabbitmq_prometheus", "rabbitmq_random_exchange",
    "rabbitmq_recent_history_exchange", "rabbitmq_shovel",
    "rabbitmq_shovel_management", "rabbitmq_shovel_prometheus", "rabbitmq_stream",
    "rabbitmq_stream_management", "rabbitmq_web_dispatch",
))  # fmt: skip

KNOWN = frozenset((
    *_PREVAILING, *(name + _FILE for name in _IN_FILES), *_READ_ELSEWHERE, *_REASONS,
    *(_PREFIX + kind + name for kind in ("SSL_", "MANAGEMENT_SSL_") for name in _TLS_OPTIONS),
    *(f"{_PREFIX}SSL_{name}" for name in _TLS_ALIASES.values()),
    "RABBITMQ_ENABLED_PLUGINS", "RABBITMQ_ENABLED_PLUGINS_FILE", "RABBITMQ_LOG", "RABBITMQ_LOGS",
    "RABBITMQ_LOG_BASE", "RABBITMQ_MNESIA_BASE", "RABBITMQ_MNESIA_DIR", "RABBITMQ_NODE_IP_ADDRESS",
    "RABBITMQ_NODE_PORT", "RABBITMQ_VM_MEMORY_HIGH_WATERMARK",
))  # fmt: skip


class RabbitMQEnvironment(Struct, frozen=True):
    """What the variables set: below the files, above the files, and a warning about the rest."""

    defaults: tuple[ConfigEntry, ...]
    prevailing: tuple[ConfigEntry, ...]
    warnings: tuple[str, ...]


def read(environment: Mapping[str, str], configured: Sequence[ConfigEntry]) -> RabbitMQEnvironment:
    """Read the variables; `configured` is what files, other variables and flags set.

    An empty variable is as one that is not set. Raises ConfigError for a file that cannot be read.
    """
    given = {name: value for name, value in environment.items() if value and name in KNOWN}
    keys = {entry.key for entry in configured}
    reasons = {name: _REASONS[name] for name in given if name in _REASONS}
    address = _address(given)
    if address and any(f"{key}.".startswith(f"{settings.TCP.key}.") for key in keys):
        reasons |= dict.fromkeys(
            (name for name in _ADDRESS if name in given), f"{settings.TCP.key} is set elsewhere"
        )
        address = []
    lost = _unknown_plugins(given)
    if lost:
        named = next(name for name in _PLUGINS if name in given)
        reasons[named] = f"of its plugins Warren lacks {', '.join(lost)}, and has the others built in"
    return RabbitMQEnvironment(
        (*address, *_directories(given)),
        (*_named(given), *_tls(given, keys), *_memory(given), *_log(given)),
        (_warning(reasons),) if reasons else (),
    )


_ADDRESS = ("RABBITMQ_NODE_PORT", "RABBITMQ_NODE_IP_ADDRESS")
_PLUGINS = ("RABBITMQ_ENABLED_PLUGINS", "RABBITMQ_ENABLED_PLUGINS_FILE")


def _warning(reasons: Mapping[str, str]) -> str:
    by_reason: dict[str, list[str]] = {}
    for name, reason in sorted(reasons.items()):
        by_reason.setdefault(reason, []).append(name)
    told = (f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())
    return "environment variables without effect: " + "; ".join(told)


def _named(given: Mapping[str, str]) -> list[ConfigEntry]:
    """The variables that are the value of a setting, or name a file with it."""
    found = [
        ConfigEntry(key, given[variable], variable)
        for variable, key in _PREVAILING.items()
        if variable in given
    ]
    for variable in _IN_FILES:
        if variable + _FILE not in given:
            continue
        if variable in given:
            raise ConfigError(f"{variable} and {variable}{_FILE} are both set: choose one of them")
        value = _content(variable + _FILE, given[variable + _FILE]).rstrip("\n")
        found.append(ConfigEntry(_PREVAILING[variable], value, variable + _FILE))
    return found


def _content(variable: str, file: str) -> str:
    try:
        with Path(file).open(encoding="utf-8") as opened:
            text = opened.read(CONFIG_TERMS_SIZE_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"{variable}: cannot read {file!r}: {reason}") from error
    if len(text) > CONFIG_TERMS_SIZE_MAX:
        raise ConfigError(f"{variable}: {file!r} is larger than {CONFIG_TERMS_SIZE_MAX} characters")
    return text


def _address(given: Mapping[str, str]) -> list[ConfigEntry]:
    """The listener for AMQP without TLS."""
    port, host = (given.get(name, "") for name in _ADDRESS)
    if not port and not host:
        return []
    place = _ADDRESS[0] if port else _ADDRESS[1]
    address = f"{'' if host == 'auto' else host}:{port or _AMQP_PORT}"
    return [ConfigEntry(f"{settings.TCP.key}.default", address, place)]


def _directories(given: Mapping[str, str]) -> list[ConfigEntry]:
    found = []
    for variable in ("RABBITMQ_MNESIA_BASE", "RABBITMQ_MNESIA_DIR"):
        if variable in given:
            where = str(Path(given[variable]) / _DATA)
            found.append(ConfigEntry(settings.DATA_DIRECTORY.key, where, variable))
    if "RABBITMQ_LOG_BASE" in given and "RABBITMQ_LOGS" not in given:
        found += _log_file("RABBITMQ_LOG_BASE", Path(given["RABBITMQ_LOG_BASE"]) / _LOG_FILE)
    return found


def _log_file(variable: str, path: Path) -> list[ConfigEntry]:
    return [
        ConfigEntry(log_settings.DIRECTORY.key, str(path.parent), variable),
        ConfigEntry(log_settings.FILE.key, path.name, variable),
    ]


def _log(given: Mapping[str, str]) -> list[ConfigEntry]:
    """RABBITMQ_LOG=info,connection=debug and RABBITMQ_LOGS, a file or `-` for the console."""
    found = []
    for word in given.get("RABBITMQ_LOG", "").split(","):
        category, _, level = word.rpartition("=")
        # Colours of the console, +color and -color.
        if level and not level.startswith(("+", "-")):
            found.append(ConfigEntry(f"log.{category or 'default'}.level", level, "RABBITMQ_LOG"))
    file = given.get("RABBITMQ_LOGS", "")
    if file in ("-", "-stderr"):
        found.append(ConfigEntry(log_settings.CONSOLE.key, "true", "RABBITMQ_LOGS"))
        found.append(ConfigEntry(log_settings.FILE.key, "false", "RABBITMQ_LOGS"))
    elif file:
        found += _log_file("RABBITMQ_LOGS", Path(file).absolute())
    return found


def _tls(given: Mapping[str, str], keys: set[str]) -> list[ConfigEntry]:
    """The certificates of AMQP, which the HTTP API uses as well unless it has its own, and the ports."""
    amqp = _tls_options(given, "SSL_", "ssl_options")
    found = list(amqp)
    if amqp and not any(key.startswith(f"{settings.TLS.key}.") for key in keys):
        found.append(ConfigEntry(f"{settings.TLS.key}.default", str(_AMQPS_PORT), amqp[0].place))
    management = _tls_options(given, "MANAGEMENT_SSL_", "management.ssl")
    if management:
        own = {entry.key for entry in management}
        names = ("cacertfile", "certfile", "keyfile")
        borrowed = {entry.key.rpartition(".")[2]: entry for entry in amqp}
        found += [
            ConfigEntry(f"management.ssl.{name}", borrowed[name].value, borrowed[name].place)
            for name in names
            if f"management.ssl.{name}" not in own and name in borrowed
        ]
        found += management
        if "management.ssl.port" not in keys:
            found.append(ConfigEntry("management.ssl.port", str(_HTTPS_PORT), management[0].place))
    return found


def _tls_options(given: Mapping[str, str], prefix: str, key: str) -> list[ConfigEntry]:
    found = []
    for name in _TLS_OPTIONS:
        names = (name, _TLS_ALIASES[name]) if name in _TLS_ALIASES else (name,)
        variable = next(
            (f"{_PREFIX}{prefix}{one}" for one in names if f"{_PREFIX}{prefix}{one}" in given), ""
        )
        if variable:
            found.append(ConfigEntry(f"{key}.{name.lower()}", given[variable], variable))
    return found


def _memory(given: Mapping[str, str]) -> list[ConfigEntry]:
    """RABBITMQ_VM_MEMORY_HIGH_WATERMARK: a share such as 0.4 or 40%, or a size."""
    variable = "RABBITMQ_VM_MEMORY_HIGH_WATERMARK"
    value = given.get(variable, "")
    if not value:
        return []
    if value.endswith("%"):
        try:
            value = str(float(value[:-1]) / 100)
        except ValueError:
            raise ConfigError(
                f"{variable} must be a share such as 40% or 0.4, or a size, not {value!r}"
            ) from None
    kind = "relative" if "." in value and value[-1].isdigit() else "absolute"
    return [ConfigEntry(f"vm_memory_high_watermark.{kind}", value, variable)]


def _unknown_plugins(given: Mapping[str, str]) -> list[str]:
    """The plugins that are asked for by name or in a file, and that Warren has no equivalent of."""
    listed = given.get(_PLUGINS[0])
    if listed is not None:
        names = listed.split(",")
    else:
        file = given.get(_PLUGINS[1], "")
        # As RabbitMQ, whose packages set the variable in any case.
        if not file or not Path(file).is_file():
            return []
        try:
            terms = read_terms(_content(_PLUGINS[1], file))
        except TermError as error:
            raise ConfigError(f"{file}:{error}") from None
        names = [
            str(item)
            for term in terms
            for item in (term if isinstance(term, list) else [])
            if isinstance(item, Atom)
        ]
    return [name for name in names if name.strip() and name.strip() not in BUILT_IN]
