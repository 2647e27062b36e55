"""Reads Erlang terms from text, as the files that `file:consult` of Erlang reads: terms that end with a dot.

    %% comment
    [{rabbitmq_shovel, [{shovels, [{name, [{queue, <<"q">>}, {uris, ["amqp://"]}]}]}]}].

An atom becomes an `Atom`, a string a `str`, a binary `bytes`, a tuple a tuple, a list a list, and a map a
`MapTerm`. Errors name line and column. Text is bounded in size and depth.
"""

import re
from typing import NoReturn, TypeAlias

from msgspec import Struct

from warren.limits_relay import CONFIG_TERMS_DEPTH_MAX, CONFIG_TERMS_SIZE_MAX
from warren.model.erlang_terms import Atom

Term: TypeAlias = "Atom | str | bytes | int | float | tuple[Term, ...] | list[Term] | MapTerm"

_SPACE = re.compile(r"(?:\s|%[^\n]*)*")
_ATOM = re.compile(r"[a-z\u00df-\u00f6\u00f8-\u00ff][\w@]*")
_FLOAT = re.compile(r"[+-]?\d[\d_]*\.\d+(?:[eE][+-]?\d+)?")
_BASED = re.compile(r"([+-]?)(\d{1,2})#([0-9a-zA-Z]+)")
_INTEGER = re.compile(r"[+-]?\d+(?:_\d+)*")
# As many as Python reads without a limit on its own.
_DIGITS_MAX = 4_000
# The dot at the end of a term, which is not the one of a number.
_END = re.compile(r"\.(?=\s|%|$)")
_BASES = range(2, 37)
_BYTE_MAX = 255
_CODE_POINT_MAX = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_ESCAPES = {
    "b": "\b", "d": "\x7f", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "s": " ", "t": "\t", "v": "\v",
}  # fmt: skip
_HEXADECIMAL = re.compile(r"x(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2}))")
_OCTAL = re.compile(r"[0-7]{1,3}")


class MapTerm(Struct, frozen=True):
    """A map, whose keys can be any terms."""

    pairs: tuple[tuple[Term, Term], ...]


class TermError(Exception):
    """The text cannot be read; `line` and `column` count from 1."""

    def __init__(self, line: int, column: int, text: str) -> None:
        super().__init__(f"{line}:{column}: {text}")


def read_terms(text: str) -> list[Term]:
    """The terms in `text`. Raises TermError."""
    if len(text) > CONFIG_TERMS_SIZE_MAX:
        raise TermError(1, 1, f"more than {CONFIG_TERMS_SIZE_MAX} characters")
    return _Reader(text).terms()


class _Reader:
    """Reads one text from its beginning."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def terms(self) -> list[Term]:
        """All terms, each with the dot behind it."""
        found: list[Term] = []
        while self._skip_space() < len(self._text):
            found.append(self._term(0))
            self._skip_space()
            end = _END.match(self._text, self._at)
            if end is None:
                self._refuse("expected '.' at the end of the term")
            self._at = end.end()
        return found

    def _term(self, depth: int) -> Term:
        """The term that begins here or behind white space."""
        if depth > CONFIG_TERMS_DEPTH_MAX:
            self._refuse(f"nested deeper than {CONFIG_TERMS_DEPTH_MAX} levels")
        self._skip_space()
        text, at = self._text, self._at
        if at == len(text):
            self._refuse("the text ends inside a term")
        first = text[at]
        if first == "{":
            return tuple(self._items("}", depth))
        if first == "[":
            return self._items("]", depth)
        if first == '"':
            return self._string()
        if text.startswith("<<", at):
            return self._binary()
        if text.startswith("#{", at):
            return self._map(depth)
        if first == "'":
            return Atom(self._quoted("'"))
        if first == "$":
            return self._character()
        if first.isascii() and (first.isdigit() or first in "+-"):
            return self._number()
        atom = _ATOM.match(text, at)
        if atom is None:
            self._refuse(f"a term cannot begin with {first!r}")
        self._at = atom.end()
        return Atom(atom[0])

    def _items(self, end: str, depth: int) -> list[Term]:
        """The terms up to the bracket `end`, separated by commas."""
        self._at += 1
        items: list[Term] = []
        self._skip_space()
        if self._takes(end):
            return items
        while True:
            items.append(self._term(depth + 1))
            self._skip_space()
            if self._takes(end):
                return items
            if not self._takes(","):
                self._refuse(f"expected ',' or '{end}'")

    def _map(self, depth: int) -> MapTerm:
        """A map: #{key => value, …}."""
        self._at += 2
        pairs: list[tuple[Term, Term]] = []
        self._skip_space()
        if self._takes("}"):
            return MapTerm(())
        while True:
            key = self._term(depth + 1)
            self._skip_space()
            if not self._takes("=>"):
                self._refuse("expected '=>'")
            pairs.append((key, self._term(depth + 1)))
            self._skip_space()
            if self._takes("}"):
                return MapTerm(tuple(pairs))
            if not self._takes(","):
                self._refuse("expected ',' or '}'")

    def _string(self) -> str:
        """A string; strings that follow each other are one."""
        parts = []
        while self._text.startswith('"', self._at):
            if self._text.startswith('"""', self._at):
                self._refuse("a string of several lines with three quotes is not supported")
            parts.append(self._quoted('"'))
            self._skip_space()
        return "".join(parts)

    def _binary(self) -> bytes:
        """A binary: strings and bytes, such as <<"text">>, <<"text"/utf8>> and <<1,2>>."""
        self._at += 2
        data = bytearray()
        self._skip_space()
        if self._takes(">>"):
            return b""
        while True:
            data += self._segment()
            self._skip_space()
            if self._takes(">>"):
                return bytes(data)
            if not self._takes(","):
                self._refuse("expected ',' or '>>'")

    def _segment(self) -> bytes:
        """A string or a byte in a binary."""
        self._skip_space()
        start = self._at
        if not self._text.startswith('"', start):
            number = self._term(0)
            if not isinstance(number, int) or not 0 <= number <= _BYTE_MAX:
                self._at = start
                self._refuse("a binary contains strings and bytes")
            return bytes((number,))
        text = self._string()
        if self._takes("/utf8"):
            return text.encode("utf-8")
        if any(ord(character) > _BYTE_MAX for character in text):
            self._at = start
            self._refuse('characters beyond 255 need a binary of the form <<"text"/utf8>>')
        return text.encode("latin-1")

    def _quoted(self, quote: str) -> str:
        """The text up to the next `quote`, with its escapes replaced."""
        start = self._at
        self._at += 1
        characters: list[str] = []
        while True:
            if self._at >= len(self._text):
                self._at = start
                self._refuse(f"the closing {quote} is missing")
            character = self._text[self._at]
            self._at += 1
            if character == quote:
                return "".join(characters)
            characters.append(self._escaped() if character == "\\" else character)

    def _escaped(self) -> str:
        r"""The character that an escape means; the backslash has been read."""
        text, at = self._text, self._at
        if at == len(text):
            self._refuse("the text ends inside a term")
        hexadecimal, octal = _HEXADECIMAL.match(text, at), _OCTAL.match(text, at)
        if hexadecimal is not None:
            self._at = hexadecimal.end()
            return self._code_point(int(hexadecimal[1] or hexadecimal[2], 16))
        if octal is not None:
            self._at = octal.end()
            return chr(int(octal[0], 8))
        if text[at] == "x":
            self._refuse("expected hexadecimal digits")
        self._at += 1
        if text[at] == "^" and self._at < len(text):
            self._at += 1
            return chr(ord(text[self._at - 1]) & 31)
        return _ESCAPES.get(text[at], text[at])

    def _code_point(self, number: int) -> str:
        if number > _CODE_POINT_MAX or number in _SURROGATES:
            self._refuse(f"there is no character {number:#x}")
        return chr(number)

    def _character(self) -> int:
        """The code of a character: $a."""
        self._at += 1
        if self._at == len(self._text):
            self._refuse("the text ends inside a term")
        self._at += 1
        character = self._text[self._at - 1]
        return ord(self._escaped() if character == "\\" else character)

    def _number(self) -> int | float:
        text, at = self._text, self._at
        fraction, based, integer = (form.match(text, at) for form in (_FLOAT, _BASED, _INTEGER))
        found = fraction or based or integer
        if found is None:
            self._refuse("expected a number")
        if found.end() - at > _DIGITS_MAX:
            self._refuse("the number is too long")
        try:
            if fraction is not None:
                value: int | float = float(fraction[0])
            elif based is not None:
                value = self._based(based)
            else:
                value = int(found[0])
        except ValueError:
            self._refuse("the number is not valid")
        self._at = found.end()
        return value

    def _based(self, found: re.Match[str]) -> int:
        """A number with its base: 16#ff."""
        if int(found[2]) not in _BASES:
            self._refuse("the base of a number is from 2 to 36")
        return int(found[1] + found[3], int(found[2]))

    def _skip_space(self) -> int:
        """Go to the next character that is neither white space nor in a comment; returns its place."""
        found = _SPACE.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return self._at

    def _takes(self, wanted: str) -> bool:
        """True if `wanted` is here, which is passed then."""
        is_here = self._text.startswith(wanted, self._at)
        if is_here:
            self._at += len(wanted)
        return is_here

    def _refuse(self, text: str) -> NoReturn:
        line = self._text.count("\n", 0, self._at) + 1
        raise TermError(line, self._at - self._text.rfind("\n", 0, self._at), text)
