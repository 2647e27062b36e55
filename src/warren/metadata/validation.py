"""Checks of parameters, whose texts RabbitMQ's HTTP API and command line show (3.10.8, measured).

A check returns the error in a value, of several lines if the value is itself a table; None if there is none.
"""

from collections.abc import Callable, Iterable, Mapping

from warren.limits import NAME_SIZE_MAX
from warren.model.erlang_terms import printed_json, printed_pairs
from warren.model.patterns import pattern_error

Check = Callable[[str, object], str | None]


def failed(errors: list[str]) -> str:
    """The text of a refusal because of `errors`."""
    return "Validation failed\n\n" + "".join(error + "\n" for error in errors)


def fields(
    name: str, term: object, checks: Mapping[str, Check], *, mandatory: tuple[str, ...] = ()
) -> list[str]:
    """The errors in the fields of `term`, the parameter called `name`.

    The last ones first, as in RabbitMQ, to which an empty list is a table, and a list one without known keys.
    """
    if not isinstance(term, Mapping | list):
        return [f"{name} not a list {printed_json(term)}"]
    table: Mapping[str, object] = term if isinstance(term, Mapping) else {}
    errors: list[str] = []
    for key, check in checks.items():
        if key in table:
            error = check(key, table[key])
        else:
            error = f'Key "{key}" not found in {name}' if key in mandatory else None
        if error is not None:
            errors.insert(0, error)
    # Erlang sorts the keys of a small map.
    unknown = {key: table[key] for key in sorted(table) if key not in checks}
    if unknown or (isinstance(term, list) and term):
        shown = printed_pairs(unknown) if unknown else printed_json(term)
        errors.insert(0, f"Unrecognised terms {shown} in {name}")
    return errors


def table(checks: Mapping[str, Check]) -> Check:
    """A check of a table with optional keys."""
    return lambda name, term: "\n".join(fields(name, term, checks)) or None


def any_table(name: str, term: object) -> str | None:
    """The error if `term` is not a table whose values a frame can express; None if it is one."""
    keys: Iterable[str] = term if isinstance(term, Mapping) else ()
    return table(dict.fromkeys(keys, expressible))(name, term)


def expressible(name: str, term: object) -> str | None:
    """The error if `term` has a number that no field of a table has room for; None if it has none."""
    if isinstance(term, list | Mapping):
        items = term.values() if isinstance(term, Mapping) else term
        return next((error for item in items if (error := expressible(name, item)) is not None), None)
    if isinstance(term, int) and not -(2**63) <= term < 2**63:
        return f"{name} should be a number of 64 bits, actually was {printed_json(term)}"
    return None


def natural(most: int) -> Check:
    """A check of an integer from 0 to `most`, which may be written as a float."""

    def check(name: str, term: object) -> str | None:
        error = number(name, term)
        if error is not None:
            return error
        assert isinstance(term, int | float)
        if 0 <= term <= most and int(term) == term:
            return None
        return f"{name} should be an integer from 0 to {most}, actually was {printed_json(term)}"

    return check


def anything(_name: str, _term: object) -> None:
    """Accept any value."""


def string(name: str, term: object) -> str | None:
    """The error if `term` is not a string; None if it is one."""
    return None if isinstance(term, str) else f"{name} should be binary, actually was {printed_json(term)}"


def short_string(name: str, term: object) -> str | None:
    """The error if `term` is not a string, or too long for the name of a queue; None if it is not."""
    error = string(name, term)
    size = len(str(term).encode("utf-8", "surrogatepass"))
    if error is None and size > NAME_SIZE_MAX:
        return f"{name} should be less than {NAME_SIZE_MAX} bytes, actually was {size}"
    return error


def boolean(name: str, term: object) -> str | None:
    """The error if `term` is not a boolean; None if it is one."""
    if isinstance(term, bool):
        return None
    return f"{name} should be boolean, actually was {printed_json(term)}"


def one_of(*allowed: str) -> Check:
    """A check of a string that must be one of `allowed`."""

    def check(name: str, term: object) -> str | None:
        if isinstance(term, str) and term not in allowed:
            options, actual = printed_json(allowed), printed_json(term)
            return f"{name} should be one of {options}, actually was {actual}"
        return string(name, term)

    return check


def number(name: str, term: object) -> str | None:
    """The error if `term` is not a number; None if it is one."""
    if isinstance(term, int | float) and not isinstance(term, bool):
        return None
    return f"{name} should be a number, actually was {printed_json(term)}"


def integer(name: str, term: object) -> str | None:
    """The error if `term` is not a number; None if it is one. Used where RabbitMQ expects an integer."""
    if isinstance(term, int) and not isinstance(term, bool):
        return None
    return f"{name} should be a number, actually was {printed_json(term)}"


def pattern(name: str, term: object) -> str | None:
    """The error if `term` is not a regular expression; None if it is one."""
    if not isinstance(term, str):
        return f"{name} should be a binary but was {printed_json(term)}"
    error = pattern_error(term)
    if error is None:
        return None
    return invalid_pattern(name, *error)


def invalid_pattern(name: str, message: str, place: int) -> str:
    """The error for an invalid regular expression."""
    return f'{name} should be regular expression but is invalid: {{"{message}",{place}}}'
