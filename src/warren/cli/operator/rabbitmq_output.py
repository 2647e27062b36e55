"""Tables in the formats of rabbitmqctl: lines that scripts split at tabs, CSV, a drawn table, and JSON.

user<TAB>tags                    [
guest<TAB>[administrator]        {"user":"guest","tags":["administrator"]}
                                 ]
"""

import csv
import io
import json
from collections.abc import Sequence
from ipaddress import ip_address

from warren.cli.operator.text import cell_text, width

# Columns whose values are tables of AMQP.
_TABLES = frozenset(("arguments", "client_properties"))
# Columns whose values are objects also in JSON, where others are strings with JSON.
_OBJECTS = frozenset(("cluster_state",))
# Columns whose values are addresses, which are a list of their numbers in JSON.
_ADDRESSES = frozenset(("host", "peer_host"))
_PROTOCOL = "protocol"
# The version of a protocol as a tuple of Erlang has it, by its name in the HTTP API.
_VERSIONS = {"AMQP 0-9-1": [0, 9, 1], "AMQP 0-9": [0, 9], "AMQP 0-8": [0, 8]}
# What a table of arguments tells of the type of a value, which the HTTP API does not have.
_TYPES = {bool: "bool", int: "long", float: "double", str: "longstr", list: "array", dict: "table"}


def rabbitmq_lines(
    formatter: str, names: Sequence[str], rows: Sequence[Sequence[object]], *, has_headers: bool
) -> list[str]:
    """Format `rows` with the columns `names`."""
    if formatter == "json":
        told = [
            _json({name: _plain(name, value) for name, value in zip(names, row, strict=True)}) for row in rows
        ]
        return ["[", *told[:1], *("," + line for line in told[1:]), "]"] if told else ["[]"]
    heads = [list(names)] if has_headers and rows else []
    cells = [*heads, *([_cell(name, value) for name, value in zip(names, row, strict=True)] for row in rows)]
    if formatter == "csv":
        return _csv(cells)
    if formatter == "pretty_table":
        return _drawn(cells)
    return ["\t".join(line) for line in cells]


def _json(value: object) -> str:
    # ASCII, since names may contain control characters of terminals.
    return json.dumps(value, separators=(",", ":"))


def _plain(name: str, value: object) -> object:
    """Return the `value` of column `name` as rabbitmqctl encodes it: a definition is a string with JSON."""
    if value is None:
        return ""
    if name in _ADDRESSES and isinstance(value, str):
        return _address(value)
    if name == _PROTOCOL and value in _VERSIONS:
        return _VERSIONS[str(value)]
    if name in _TABLES:
        return _typed(value)
    return _json(value) if isinstance(value, dict) and name not in _OBJECTS else value


def _address(text: str) -> object:
    """Return the numbers of an address of IPv4 or IPv6; any other text is kept."""
    try:
        found = ip_address(text)
    except ValueError:
        return text
    data = found.packed
    return list(data) if found.version == 4 else [data[at] << 8 | data[at + 1] for at in range(0, 16, 2)]


def _typed(value: object) -> object:
    """Return a table of AMQP as a list of names, types and values."""
    if isinstance(value, dict):
        return [[name, _TYPES.get(type(item), "void"), _typed(item)] for name, item in value.items()]
    return [_typed(item) for item in value] if isinstance(value, list) else value


def _cell(name: str, value: object) -> str:
    """Return the `value` of column `name` as text, without control characters."""
    if name == _PROTOCOL and value in _VERSIONS:
        return "{" + ",".join(map(str, _VERSIONS[str(value)])) + "}"
    return cell_text(value) if isinstance(value, dict) and name not in _TABLES else _term(value)


def _term(value: object) -> str:
    """Return `value` as a term of Erlang."""
    if isinstance(value, dict):
        return f"[{', '.join(f'{{{_quoted(name)},{_quoted(item)}}}' for name, item in value.items())}]"
    if isinstance(value, list):
        return f"[{', '.join(map(_term, value))}]"
    return cell_text(value)


def _quoted(value: object) -> str:
    return json.dumps(cell_text(value), ensure_ascii=False) if isinstance(value, str) else _term(value)


def _csv(cells: Sequence[Sequence[str]]) -> list[str]:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(cells)
    return written.getvalue().splitlines()


def _drawn(cells: Sequence[Sequence[str]]) -> list[str]:
    if not cells:
        return []
    widths = [max(width(row[column]) for row in cells) for column in range(len(cells[0]))]

    def rule(left: str, between: str, right: str) -> str:
        return left + between.join("─" * (places + 2) for places in widths) + right

    lines = [
        "│"
        + "│".join(
            f" {text}{' ' * (places - width(text))} " for text, places in zip(row, widths, strict=True)
        )
        + "│"
        for row in cells
    ]
    # A rule below every row, as rabbitmqctl draws.
    drawn = [line for row in lines for line in (row, rule("├", "┼", "┤"))]
    return [rule("┌", "┬", "┐"), *drawn[:-1], rule("└", "┴", "┘")]
