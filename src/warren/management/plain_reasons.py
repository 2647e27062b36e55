"""RabbitMQ's error reasons in plain words, with the Erlang terms in them translated.

    [{<<"max-lenght">>,5}] are not recognised policy settings      reason, as in RabbitMQ
    unknown policy setting: max-lenght (did you mean max-length?)  message, for people

Programs compare reasons, so these are unchanged; the message is added beside a reason that it differs from.
"""

import json
import re
from difflib import get_close_matches
from html import unescape

from warren.limits_http import REASON_LENGTH_MAX
from warren.metadata.policies import SETTING_NAMES

# The beginning of an Erlang term in a reason. A number or a bracket in a pattern does not begin a term.
_TERM = re.compile(r'\[\{|\{"|\{<<|\{[a-z]\w*,|<<|#\{')
_TOKEN = re.compile(
    r'\s*(?:<<(?:"(?P<binary>(?:[^"\\]|\\.)*)"(?:/utf8)?|(?P<octets>[\d,\s]*))>>|"(?P<string>(?:[^"\\]|\\.)*)"'
    r"|(?P<number>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)|(?P<atom>[a-z]\w*)|'(?P<quoted>[^']*)'|(?P<sign>#\{|=>|[\[\]{},]))"
)
# A reason that is one atom of several words.
_ATOM = re.compile(r"[a-z]+(?:_[a-z]+)+")
_ESCAPED = re.compile(r"\\(.)")
_NOT_POLICY_SETTINGS = "are not recognised policy settings"
_HEADING = "Validation failed\n\n"
_NESTED_MAX = 20
# The text for a tuple, by the atom that it begins with.
_WORDS = {
    "value_negative": "must not be negative, but is {}",
    "value_zero": "it must not be 0",
    "value_too_large": "{} is too large",
    "max_value_exceeded": "{} is too large",
    "unacceptable_type": "a value of type {} is not allowed",
    "unacceptable_type_in_header": "the header {} must not be a {}",
    "key_missing": "{} is missing",
    "leftover_string": "the number is followed by '{}'",
    "delivery_mode_unknown": "unknown delivery mode {}",
    "no_such_vhost": "there is no virtual host '{}'",
    "no_such_user": "there is no user '{}'",
    "not_list": "{} must be a list",
    "not_object": "{} must be an object",
    "not_base64": "{} is not base64",
    "not_tags": "{} is not a list of tags",
    "unknown_ackmode": "unknown ackmode {}",
    "unknown_hashing_algorithm": "unknown hashing algorithm {}",
    "unsupported_encoding": "unknown encoding {}",
    "negative_truncate": "truncate must not be negative, but is {}",
    "not_int": "{} must be a whole number",
    "not_string": "{} must be a string",
    "too_long": "{} is too long",
    "rejected Unable to publish message. Check queue limits.": (
        "not published: a queue rejected the message, because it is full or cannot write to disk"
    ),
    "not_json": "the request body is not JSON",
    "failed_to_parse_json": "the file is not JSON",
    "failed_to_parse_form": "the form is malformed",
    "name_too_long": "the name is too long",
    "routing_key_too_long": "the routing key is too long",
    "payload_not_string": "the payload must be a string",
    "tags_not_present": "tags are missing",
    "both_password_and_password_hash_are_provided": "give either a password or its hash, not both",
    "vhost_or_user_not_found": "the virtual host or user does not exist",
    "not_affordable": "checking the hash {} would take too long",
    "not_boolean": "{} must be true or false",
    "not_integer": "{} must be a whole number",
    "unsupported": "the feature flag is not supported",
    "vhost_not_found": "the virtual host does not exist",
}


class _Atom(str):
    """An Erlang atom, as opposed to a text."""

    __slots__ = ()


class _NotATerm(Exception):
    """The text only resembles an Erlang term."""


def plain(reason: object) -> str:
    """`reason` in plain words; unchanged if it has nothing to translate."""
    if isinstance(reason, list):
        return _listed(reason)
    if isinstance(reason, str) and len(reason) > REASON_LENGTH_MAX:
        return reason
    if not isinstance(reason, str):
        return json.dumps(reason, ensure_ascii=False)
    if reason in _WORDS or _ATOM.fullmatch(reason):
        return _said(_Atom(reason), ())
    if reason.startswith(_HEADING):
        # RabbitMQ escapes these reasons for HTML.
        lines = unescape(reason).removeprefix(_HEADING).strip().split("\n")
        return "; ".join(_translated(line) for line in lines)
    return _translated(reason)


def _listed(reason: list[object]) -> str:
    """The text for a term in the form of a JSON list: an atom and its operands."""
    match reason:
        case ["invalid_regexp", shown, [message, place]]:
            return f"'{_text(shown)}' is not a regular expression: {_text(message)}, at position {place}"
        case [str(name), *rest]:
            return _said(_Atom(name), tuple(rest))
    return json.dumps(reason, ensure_ascii=False)


def _text(value: object) -> str:
    """`value` as text: a string, or a list of character codes, which is Erlang's string."""
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return "".join(map(chr, value))
    return str(value)


def _translated(text: str) -> str:
    found, done = [], 0
    while (begun := _TERM.search(text, done)) is not None:
        try:
            value, end = _parsed(text, begun.start(), 0)
        except _NotATerm:
            found.append(text[done : begun.end()])
            done = begun.end()
            continue
        found.append(text[done : begun.start()])
        if text[end:].strip() == _NOT_POLICY_SETTINGS and isinstance(value, list):
            found.append(_unknown_settings(value))
            end = len(text)
        else:
            found.append(_shown(value))
        done = end
    return "".join((*found, text[done:]))


def _unknown_settings(pairs: list[object]) -> str:
    names = [str(pair[0]) for pair in pairs if isinstance(pair, tuple) and pair]
    said = []
    for name in names:
        if name in SETTING_NAMES:
            said.append(f"{name} (not in an operator policy)")
            continue
        close = get_close_matches(name, SETTING_NAMES, n=1)
        said.append(f"{name} (did you mean {close[0]}?)" if close else name)
    return f"unknown policy setting: {', '.join(said)}"


def _said(name: _Atom, rest: tuple[object, ...]) -> str:
    words = _WORDS.get(name, "")
    if words.count("{}") != len(rest) or not words:
        words = name.replace("_", " ") + (": " + ", ".join(["{}"] * len(rest)) if rest else "")
    return words.format(*map(_inner, rest))


def _inner(value: object) -> str:
    """`value` inside a sentence: a text without quotes."""
    if isinstance(value, _Atom):
        return value.replace("_", " ")
    return value if isinstance(value, str) else _shown(value)


def _shown(value: object) -> str:
    match value:
        case _Atom():
            return str(value)
        case str():
            return f"'{value}'"
        case tuple((_Atom() as name, *rest)):
            return _said(name, tuple(rest))
        case tuple((str() as message, int(place))):
            return f"{message}, at position {place}"
        case tuple((str() as name, _Atom(), what)):
            return f"{name} = {_inner(what)}"
        case list() if value and all(_is_pair(item) for item in value):
            return ", ".join(f"{item[0]} = {_inner(item[-1])}" for item in value)
        case list() | tuple():
            return ", ".join(map(_shown, value))
        case dict():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _is_pair(item: object) -> bool:
    return (
        isinstance(item, tuple) and len(item) in (2, 3)
        and isinstance(item[0], str) and not isinstance(item[0], _Atom)
    )  # fmt: skip


def _parsed(text: str, at: int, depth: int) -> tuple[object, int]:
    """The term at the place `at` of `text`, and the place after it."""
    token = _TOKEN.match(text, at)
    if token is None or depth > _NESTED_MAX:
        raise _NotATerm
    end = token.end()
    match token.lastgroup:
        case "binary" | "string":
            return _ESCAPED.sub(r"\1", token[token.lastgroup]), end
        case "octets":
            numbers = [int(number) for number in token["octets"].split(",") if number.strip()]
            if any(number > 255 for number in numbers):
                raise _NotATerm
            return bytes(numbers).decode("utf-8", "replace"), end
        case "number":
            return json.loads(token["number"]), end
        case "atom" | "quoted":
            return _Atom(token[token.lastgroup]), end
    opened = token["sign"]
    if opened == "#{":
        return _parsed_map(text, end, depth)
    if opened not in ("[", "{"):
        raise _NotATerm
    items, end = _parsed_items(text, end, "]" if opened == "[" else "}", depth)
    return (items if opened == "[" else tuple(items)), end


def _parsed_items(text: str, at: int, closing: str, depth: int) -> tuple[list[object], int]:
    items: list[object] = []
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            raise _NotATerm
        if token["sign"] == closing:
            return items, token.end()
        if items:
            if token["sign"] != ",":
                raise _NotATerm
            at = token.end()
        item, at = _parsed(text, at, depth + 1)
        items.append(item)


def _parsed_map(text: str, at: int, depth: int) -> tuple[object, int]:
    found: dict[str, object] = {}
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            raise _NotATerm
        if token["sign"] == "}":
            return found, token.end()
        if found:
            if token["sign"] != ",":
                raise _NotATerm
            at = token.end()
        key, at = _parsed(text, at, depth + 1)
        arrow = _TOKEN.match(text, at)
        if arrow is None or arrow["sign"] != "=>":
            raise _NotATerm
        found[str(key)], at = _parsed(text, arrow.end(), depth + 1)
