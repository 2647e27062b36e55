"""Headers in which each broker that a message or a binding passes puts its entry in front of the others."""

from collections.abc import Mapping

from warren.wire.table import Table, Value

# Values that were in the place of such an array, by the name of the header.
INVALID_HEADERS = "x-invalid-headers"


def prepended(headers: Mapping[str, Value], name: str, entry: Table) -> Table:
    """Copy `headers` with `entry` as the first of the array `name`.

    As in RabbitMQ 3.10.8, a value that is no array is moved to the header `x-invalid-headers`.
    """
    changed = dict(headers)
    entries = changed.get(name, [])
    if not isinstance(entries, list):
        invalid = changed.get(INVALID_HEADERS, {})
        if not isinstance(invalid, dict):
            invalid = {INVALID_HEADERS: [invalid]}
        prior = invalid.get(name)
        changed[INVALID_HEADERS] = {**invalid, name: [entries, *(prior if isinstance(prior, list) else ())]}
        entries = []
    changed[name] = [entry, *entries]
    return changed
