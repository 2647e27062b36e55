"""Checks of parameters, whose texts RabbitMQ's HTTP API and command line show (3.10.8, measured)."""

from collections.abc import Callable, Mapping

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

    The last ones first, as in RabbitMQ.
    """
    if not isinstance(term, Mapping):
        return [f"{name} not a list {printed_json(term)}"]
    errors: list[str] = []
    for key, check in checks.items():
        if key in term:
            error = check(key, term[key])
        else:
            error = f'Key "{key}" not found in {name}' if key in mandatory else None
        if error is not None:
            errors.insert(0, error)
    unknown = {key: value for key, value in term.items() if key not in checks}
    if unknown:
        errors.insert(0, f"Unrecognised terms {printed_pairs(unknown)} in {name}")
    return errors


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
