"""Parsers of setting values: numbers, sizes, addresses, in the notation of rabbitmq.conf."""

import re
from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

from msgspec import Struct

from warren.limits import NAME_SIZE_MAX
from warren.node.log_file import is_rotation_date

Choice = TypeVar("Choice")

# Decimal and binary units as RabbitMQ reads them: kB is 1,000 and k or KiB 1,024.
_UNITS = {
    "": 1, "b": 1,
    "k": 2**10, "kib": 2**10, "kb": 10**3,
    "m": 2**20, "mib": 2**20, "mb": 10**6,
    "g": 2**30, "gib": 2**30, "gb": 10**9,
    "t": 2**40, "tib": 2**40, "tb": 10**12,
}  # fmt: skip
_SIZE = re.compile(r"(\d{1,19})\s*([a-z]*)", re.IGNORECASE)
_BOOLEANS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


# Log levels by name; the values are the names that the log uses.
LEVELS = {
    "debug": "DEBUG", "info": "INFO", "notice": "INFO", "warning": "WARNING", "error": "ERROR",
    "critical": "CRITICAL", "alert": "CRITICAL", "emergency": "CRITICAL", "none": "NONE",
}  # fmt: skip
_NODE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(@[A-Za-z0-9_.:-]+)?")


class InvalidValue(Exception):
    """The text is not a valid value of the setting; the message says what is valid."""


class Address(Struct, frozen=True):
    """An address to listen on; an empty host means every interface, and a path is a Unix socket's."""

    host: str
    port: int


def text(value: str) -> str:
    """Accept any text."""
    return value


def text_or_none(value: str) -> str:
    """Accept any text; `none` becomes None."""
    return "" if value.lower() == "none" else value


def node_name(value: str) -> str:
    """Accept the name of a node: `name@host`, `name`, or nothing."""
    if value and (len(value) > NAME_SIZE_MAX or not _NODE_NAME.fullmatch(value)):
        raise InvalidValue(
            "must be a name such as 'warren@host1', of letters, digits and '_', '-' or '.', "
            f"with at most {NAME_SIZE_MAX} characters"
        )
    return value


def boolean(value: str) -> bool:
    """Parse true or false."""
    try:
        return _BOOLEANS[value.lower()]
    except KeyError:
        raise InvalidValue("must be true or false") from None


def integer(minimum: int, maximum: int = 2**63 - 1) -> Callable[[str], int]:
    """Return a parser of integers between two bounds."""

    def parse(value: str) -> int:
        if not re.fullmatch(r"-?\d{1,19}", value) or not minimum <= int(value) <= maximum:
            raise InvalidValue(f"must be a number from {minimum} to {maximum}")
        return int(value)

    return parse


def fraction(value: str) -> float:
    """Parse a number that is not negative."""
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise InvalidValue("must be a number such as 0.4")
    return number


def size(value: str) -> int:
    """Parse a size in bytes, with or without a unit: 67108864, 64MiB, 1GB."""
    match = _SIZE.fullmatch(value)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise InvalidValue("must be a size such as 64MB or 1GiB")
    return int(match[1]) * unit


class OneOf(Struct, Generic[Choice], frozen=True):
    """A parser of one of a few words."""

    choices: dict[str, Choice]

    def __call__(self, value: str) -> Choice:
        """Return the value of the word `value`."""
        try:
            return self.choices[value.lower()]
        except KeyError:
            raise InvalidValue(f"must be one of {', '.join(self.choices)}") from None


def choice(choices: dict[str, Choice]) -> OneOf[Choice]:
    """Return a parser of one of a few words."""
    return OneOf(choices)


def unless(words: tuple[str, ...], parse: Callable[[str], int]) -> Callable[[str], int | None]:
    """Return a parser of a number, or of one of `words` for None."""

    def parse_optional(value: str) -> int | None:
        return None if value.lower() in words else parse(value)

    return parse_optional


def rotation_date(value: str) -> str:
    """Parse the date at which a log file is rotated: `$D0`, `$W5D16`, `$M1D2`."""
    if not is_rotation_date(value):
        raise InvalidValue("must be a date such as $D0 (at midnight), $W5D16 (Fridays at 16:00) or $M1D2")
    return value


def address(value: str) -> Address:
    """Parse a port, or a host and a port: 5672, 127.0.0.1:5672, ::1:5672, [::1]:5672."""
    host, _, port = value.rpartition(":")
    if not re.fullmatch(r"\d{1,5}", port) or int(port) > 65_535:
        raise InvalidValue("must be a port, or an address and a port such as 127.0.0.1:5672")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def client_address(value: str) -> Address:
    """Parse an address, or the path of a Unix socket in RabbitMQ 4.4's form: unix:/run/warren/amqp.sock:0."""
    kind, _, rest = value.partition(":")
    if kind not in ("unix", "local"):
        return address(value)
    path = rest.removesuffix(":0")
    if not path.startswith("/") or path == rest:
        raise InvalidValue("must be an absolute path with port 0, such as unix:/run/warren/amqp.sock:0")
    return Address(path, 0)


class FileMode(int):
    """Permissions of a file, printed in octal digits."""

    def __str__(self) -> str:
        return f"{self:o}"


def file_mode(value: str) -> FileMode:
    """Parse the permissions of a file: three octal digits."""
    if not re.fullmatch("0?[0-7]{3}", value):
        raise InvalidValue("must be three octal digits such as 660")
    return FileMode(value, 8)


def format_value(value: object) -> str:
    """Format a value as in a configuration file; empty for None."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case Enum():
            return str(value.value)
        case Address(host="", port=port):
            return str(port)
        case Address(host=host) if host.startswith("/"):
            return f"unix:{host}:0"
        case Address(host=host, port=port):
            return f"{host}:{port}"
        case _:
            return str(value)
