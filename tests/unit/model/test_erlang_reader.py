"""Erlang terms of a configuration file: each kind of term, what is refused and where, and bounds."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.limits_relay import CONFIG_TERMS_DEPTH_MAX, CONFIG_TERMS_SIZE_MAX
from warren.model.erlang_reader import MapTerm, TermError, read_terms
from warren.model.erlang_terms import Atom


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("on_confirm.", "on_confirm"),
        ("'queue.declare'.", "queue.declare"),
        (r"'it\'s'.", "it's"),
        ("on@host.", "on@host"),
        ('"amqp://localhost".', "amqp://localhost"),
        ('"one" "\n" "two".', "one\ntwo"),
        (r'"\"\\\t\x41\x{20ac}\101\s".', '"\\\tA€A '),
        ('<<"queue">>.', b"queue"),
        ("<<>>.", b""),
        ('<<"é">>.', b"\xe9"),
        ('<<"é€"/utf8>>.', "é€".encode()),
        ('<<"a", 0, 255, "b">>.', b"a\x00\xffb"),
        ("42.", 42),
        ("-5.", -5),
        ("1_000.", 1000),
        ("16#ff.", 255),
        ("$a.", 97),
        (r"$\n.", 10),
        ("1.5.", 1.5),
        ("-2.5e-3.", -0.0025),
        ("{}.", ()),
        ("[].", []),
        ("{a, [1, {b}]}.", ("a", [1, ("b",)])),
        ("#{}.", MapTerm(())),
        ("#{a => 1, <<\"b\">> => [2]}.", MapTerm((("a", 1), (b"b", [2])))),
        ("% first\n [ % second\n 1 %% third ]\n ].%end", [1]),
    ],
)  # fmt: skip
def test_a_term_is_read(text: str, term: object) -> None:
    assert read_terms(text) == [term]


def test_atoms_and_strings_can_be_told_apart() -> None:
    [(atom, quoted, string)] = read_terms("{a, 'b c', \"a\"}.")  # type: ignore[misc]
    assert isinstance(atom, Atom)
    assert isinstance(quoted, Atom)
    assert not isinstance(string, Atom)


def test_a_file_has_any_number_of_terms() -> None:
    assert read_terms("") == []
    assert read_terms("%% nothing\n") == []
    assert read_terms("a. {b}.\n[].") == ["a", ("b",), []]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[a", "1:3: expected ',' or ']'"),
        ("[a,\n  ", "2:3: the text ends inside a term"),
        ("[\n {a, b)\n].", "2:7: expected ',' or '}'"),
        ("{a}", "1:4: expected '.' at the end of the term"),
        ("{a}.b.", "1:4: expected '.' at the end of the term"),
        ("[a,].", "1:4: a term cannot begin with ']'"),
        ("[a | b].", "1:4: expected ',' or ']'"),
        ("Variable.", "1:1: a term cannot begin with 'V'"),
        ('\n  "open', '2:3: the closing " is missing'),
        ("'open", "1:1: the closing ' is missing"),
        ('<<"a"', "1:6: expected ',' or '>>'"),
        ("<<256>>.", "1:3: a binary contains strings and bytes"),
        ("<<a>>.", "1:3: a binary contains strings and bytes"),
        ('<<"€">>.', '1:3: characters beyond 255 need a binary of the form <<"text"/utf8>>'),
        (r'"\x{d800}".', "1:10: there is no character 0xd800"),
        (r'"\xg".', "1:3: expected hexadecimal digits"),
        ("#{a}.", "1:4: expected '=>'"),
        ("99#1.", "1:1: the base of a number is from 2 to 36"),
        ("2#7.", "1:1: the number is not valid"),
        ("-.", "1:1: expected a number"),
        ("$", "1:2: the text ends inside a term"),
        ('"""a""".', "1:1: a string of several lines with three quotes is not supported"),
    ],
)
def test_an_error_names_line_and_column(text: str, error: str) -> None:
    with pytest.raises(TermError) as caught:
        read_terms(text)
    assert str(caught.value) == error


def test_depth_and_size_and_digits_are_bounded() -> None:
    deepest = CONFIG_TERMS_DEPTH_MAX
    assert read_terms("[" * deepest + "a" + "]" * deepest + ".")
    with pytest.raises(TermError, match="nested deeper"):
        read_terms("[" * (deepest + 1) + "a" + "]" * (deepest + 1) + ".")
    with pytest.raises(TermError, match="more than"):
        read_terms(" " * (CONFIG_TERMS_SIZE_MAX + 1))
    with pytest.raises(TermError, match="too long"):
        read_terms("9" * 10_000 + ".")


@given(st.text(alphabet="[]{}<>#$%'\"\\,.=|abA0129_-+ex /utf8\n é€", max_size=60))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(TermError):
        assert isinstance(read_terms(text), list)
