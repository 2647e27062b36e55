"""Verdicts: whether a binding matches a message, with a reason for people to read."""

from typing import NamedTuple

# The maximum length of a value in a reason.
_SHOWN_MAX = 80


class Verdict(NamedTuple):
    """Whether a binding matches the message, and why."""

    is_match: bool
    reason: str
    # For a mismatch: how nearly it matches, from 0 to below 1.
    nearness: float = 1.0
    # For a match: how often it is chosen among several.
    chance: float = 1.0


def shown(value: object) -> str:
    """`value` as text for a reason, shortened, since it may be as large as a message."""
    if isinstance(value, bytes):
        value = value[: _SHOWN_MAX + 1].decode("utf-8", "replace")
    if isinstance(value, str):
        return f"'{value}'" if len(value) <= _SHOWN_MAX else f"'{value[:_SHOWN_MAX]}…'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return f"{'a table' if isinstance(value, dict) else 'an array'} of {len(value)}"
    return "nothing" if value is None else str(value)


def likeness(one: str, other: str) -> float:
    """How much of the beginning and the end two different texts have in common: from 0 to below 1."""
    longest, shortest = max(len(one), len(other)), min(len(one), len(other))
    begin = 0
    while begin < shortest and one[begin] == other[begin]:
        begin += 1
    end = 0
    while end < shortest - begin and one[-1 - end] == other[-1 - end]:
        end += 1
    return (begin + end) / (longest + 1)
