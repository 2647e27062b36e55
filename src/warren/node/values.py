"""How the values of settings are written: numbers, sizes, addresses, as rabbitmq.conf has them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

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


class InvalidValue(Exception):
    """The text is no value of this setting; the message says what would be."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; an empty host is every interface."""

    host: str
    port: int


def text(value: str) -> str:
    """Any text."""
    return value


def text_or_none(value: str) -> str:
    """Any text but `none`, which is none."""
    return "" if value.lower() == "none" else value


def boolean(value: str) -> bool:
    """true or false."""
    try:
        return _BOOLEANS[value.lower()]
    except KeyError:
        raise InvalidValue("must be true or false") from None


def integer(minimum: int, maximum: int = 2**63 - 1) -> Callable[[str], int]:
    """A whole number between two bounds."""

    def parse(value: str) -> int:
        if not re.fullmatch(r"-?\d{1,19}", value) or not minimum <= int(value) <= maximum:
            raise InvalidValue(f"must be a number from {minimum} to {maximum}")
        return int(value)

    return parse


def fraction(value: str) -> float:
    """A number from 0 up."""
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise InvalidValue("must be a number such as 0.4")
    return number


def size(value: str) -> int:
    """Octets, with or without a unit: 67108864, 64MiB, 1GB."""
    match = _SIZE.fullmatch(value)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise InvalidValue("must be a size such as 64MB or 1GiB")
    return int(match[1]) * unit


@dataclass(frozen=True, slots=True)
class OneOf(Generic[Choice]):
    """Reads one of a few words."""

    choices: dict[str, Choice]

    def __call__(self, value: str) -> Choice:
        """What `value` stands for."""
        try:
            return self.choices[value.lower()]
        except KeyError:
            raise InvalidValue(f"must be one of {', '.join(self.choices)}") from None


def choice(choices: dict[str, Choice]) -> OneOf[Choice]:
    """One of a few words."""
    return OneOf(choices)


def unless(words: tuple[str, ...], parse: Callable[[str], int]) -> Callable[[str], int | None]:
    """A number, or one of `words` for none."""

    def parse_optional(value: str) -> int | None:
        return None if value.lower() in words else parse(value)

    return parse_optional


def rotation_date(value: str) -> str:
    """When a log file begins anew: `$D0`, `$W5D16`, `$M1D2`."""
    if not is_rotation_date(value):
        raise InvalidValue("must be a date such as $D0 (at midnight), $W5D16 (Fridays at 16:00) or $M1D2")
    return value


def address(value: str) -> Address:
    """A port, or a host and a port: 5672, 127.0.0.1:5672, ::1:5672, [::1]:5672."""
    host, _, port = value.rpartition(":")
    if not re.fullmatch(r"\d{1,5}", port) or int(port) > 65_535:
        raise InvalidValue("must be a port, or an address and a port such as 127.0.0.1:5672")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def format_value(value: object) -> str:
    """A value as it would stand in the file; nothing for none."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case Enum():
            return str(value.value)
        case Address(host="", port=port):
            return str(port)
        case Address(host=host, port=port):
            return f"{host}:{port}"
        case _:
            return str(value)
