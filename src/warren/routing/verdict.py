"""What a binding says to a message, in words: for people who ask why one came, or did not."""

from typing import NamedTuple

# As much of a value as one reads.
_SHOWN_MAX = 80


class Verdict(NamedTuple):
    """Whether the message goes along, and why."""

    is_match: bool
    reason: str
    # Of one that does not match: how little is missing, from 0 to below 1.
    nearness: float = 1.0
    # Of one that matches: how often it is chosen among such.
    chance: float = 1.0


def shown(value: object) -> str:
    """`value` for a reason, no longer than one reads; it may be as large as a message."""
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
    """How much of two different texts is the same at their begin and at their end: from 0 to below 1."""
    longest, shortest = max(len(one), len(other)), min(len(one), len(other))
    begin = 0
    while begin < shortest and one[begin] == other[begin]:
        begin += 1
    end = 0
    while end < shortest - begin and one[-1 - end] == other[-1 - end]:
        end += 1
    return (begin + end) / (longest + 1)
