"""The nesting depth of JSON values, which are traversed by recursion."""

from collections.abc import Iterable


def is_deeper(value: object, levels: int) -> bool:
    """True if `value`, decoded from JSON, has more than `levels` nested lists and objects."""
    found = _nested([value])
    for _ in range(levels):
        inner: list[object] = []
        for one in found:
            if isinstance(one, dict):
                inner += _nested(one.values())
            elif isinstance(one, list):
                inner += _nested(one)
        found = inner
        if not found:
            return False
    return bool(found)


def _nested(values: Iterable[object]) -> list[object]:
    return [value for value in values if isinstance(value, dict | list)]
