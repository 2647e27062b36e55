"""RabbitMQ's files `advanced.config` and `rabbitmq.config`: Erlang terms.

Static shovels are read, and each setting that a key of the configuration stands for. The rest is named in a
warning.

    [{rabbitmq_shovel, [{shovels, [{name, […]}, …]}]},
     {rabbit, […]}].

The file is the configuration if that is in the classic format, RabbitMQ's only one before 3.7; or else the
one in RABBITMQ_ADVANCED_CONFIG_FILE, or the one beside the configuration, which it overrides.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from warren.limits_relay import CONFIG_TERMS_SIZE_MAX
from warren.model.erlang_reader import Term, TermError, read_terms
from warren.model.erlang_terms import Atom
from warren.node.classic_settings import ClassicSettings
from warren.node.config_file import CLASSIC, ConfigEntry, ConfigError
from warren.node.term_values import InvalidTerm, items, pairs, shown

VARIABLE = "RABBITMQ_ADVANCED_CONFIG_FILE"
_NAME = "advanced.config"
_SHOVEL, _SHOVELS = "rabbitmq_shovel", "shovels"
_ENCRYPTED = "encrypted"


class AdvancedConfig(Struct, frozen=True, kw_only=True):
    """What the file contains; empty without a file."""

    file: str = ""
    # The list of static shovels.
    shovels: Term = []
    # What has a key of the configuration, under that key.
    entries: tuple[ConfigEntry, ...] = ()
    # Sections and keys that have no effect.
    warnings: tuple[str, ...] = ()


def find(files: Sequence[str], environment: Mapping[str, str]) -> AdvancedConfig:
    """Read the file in the classic format, that of the environment, or the one beside the files of the
    configuration.

    Raises ConfigError.
    """
    classic = next((name for name in files if name.endswith(CLASSIC)), "")
    if classic:
        return read(classic)
    named = environment.get(VARIABLE, "")
    if named:
        if Path(named).is_file():
            return read(named)
        # As RabbitMQ, whose packages and images set the variable in any case.
        return AdvancedConfig(warnings=(f"{VARIABLE}: there is no file {named!r}",))
    for name in files:
        path = Path(name)
        for folder in (path, path.parent) if path.is_dir() else (path.parent,):
            if (folder / _NAME).is_file():
                return read(str(folder / _NAME))
    return AdvancedConfig()


def read(file: str) -> AdvancedConfig:
    """Read the sections in `file`. Raises ConfigError."""
    try:
        data = Path(file).read_bytes()
        if len(data) > CONFIG_TERMS_SIZE_MAX:
            raise ConfigError(f"{file}: larger than {CONFIG_TERMS_SIZE_MAX} bytes")
        terms = read_terms(data.decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"cannot read the configuration file {file!r}: {reason}") from error
    except TermError as error:
        raise ConfigError(f"{file}:{error}") from None
    if len(terms) > 1:
        raise ConfigError(f"{file}: it has to be one list of sections, not {len(terms)} terms")
    try:
        return _sections(file, terms[0] if terms else [])
    except InvalidTerm as error:
        raise ConfigError(f"{file}: {error}") from None


def _sections(file: str, term: Term) -> AdvancedConfig:
    shovels: Term = []
    classic = ClassicSettings(file)
    for application, section in pairs("the file", term).items():
        for item in items(application, section):
            name, value = item if isinstance(item, tuple) and len(item) == 2 else (item, Atom("true"))
            if not isinstance(name, Atom):
                raise InvalidTerm(f"{application}: each entry has to be {{key, value}}, not {shown(item)}")
            if (application, name) == (_SHOVEL, _SHOVELS):
                shovels = value
                _refuse_encrypted(shovels)
            else:
                classic.read(f"{application}.{name}", value)
    return AdvancedConfig(
        file=file, shovels=shovels, entries=tuple(classic.entries), warnings=tuple(classic.warnings)
    )


def _refuse_encrypted(term: Term) -> None:
    """Raise InvalidTerm for a value that RabbitMQ has encrypted: {encrypted, <<"…">>}."""
    if isinstance(term, tuple) and term and isinstance(term[0], Atom) and term[0] == _ENCRYPTED:
        raise InvalidTerm(
            "a value is encrypted by RabbitMQ, whose key Warren does not have: write it in clear"
        )
    if isinstance(term, tuple | list):
        for item in term:
            _refuse_encrypted(item)
