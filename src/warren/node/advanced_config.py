"""RabbitMQ's file `advanced.config`: Erlang terms, of which static shovels are read and the rest is named.

    [{rabbitmq_shovel, [{shovels, [{name, […]}, …]}]},
     {rabbit, […]}].

The file is the one in RABBITMQ_ADVANCED_CONFIG_FILE, or the one beside the configuration.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from warren.limits_relay import CONFIG_TERMS_SIZE_MAX
from warren.model.erlang_terms import Atom
from warren.node.config_file import ConfigError
from warren.node.erlang_reader import Term, TermError, read_terms
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
    # Sections and keys that have no effect.
    warnings: tuple[str, ...] = ()


def find(files: Sequence[str], environment: Mapping[str, str]) -> AdvancedConfig:
    """Read the file of the environment, or the one beside the files of the configuration.

    Raises ConfigError.
    """
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
    warnings: list[str] = []
    for application, section in pairs("the file", term).items():
        if application == _SHOVEL:
            shovels = pairs(_SHOVEL, section).get(_SHOVELS, [])
            _refuse_encrypted(shovels)
        keys = [_key(item) for item in items(application, section)]
        others = [key for key in keys if (application, key) != (_SHOVEL, _SHOVELS)]
        warnings.extend(
            f"{file}: {application}.{key} has no effect: of this file static shovels are read; "
            "other settings are keys of the configuration"
            for key in others
        )
    return AdvancedConfig(file=file, shovels=shovels, warnings=tuple(warnings))


def _key(term: Term) -> str:
    """How a setting of a section is called."""
    key = term[0] if isinstance(term, tuple) and term else term
    return str(key) if isinstance(key, Atom) else shown(key)


def _refuse_encrypted(term: Term) -> None:
    """Raise InvalidTerm for a value that RabbitMQ has encrypted: {encrypted, <<"…">>}."""
    if isinstance(term, tuple) and term and isinstance(term[0], Atom) and term[0] == _ENCRYPTED:
        raise InvalidTerm(
            "a value is encrypted by RabbitMQ, whose key Warren does not have: write it in clear"
        )
    if isinstance(term, tuple | list):
        for item in term:
            _refuse_encrypted(item)
