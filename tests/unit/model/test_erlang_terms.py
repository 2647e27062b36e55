"""Formatting of values as Erlang prints terms."""

from warren.model.erlang_terms import printed_atom, printed_json, printed_pairs, printed_value


def test_json_values_are_printed_as_erlang_terms() -> None:
    assert printed_json({"a": [1, 1.5, "x", None, True]}) == '#{<<"a">> => [1,1.5,<<"x">>,null,true]}'
    assert printed_json("") == "<<>>"
    assert printed_pairs({"nonsense": 1, "b": "c"}) == '[{<<"nonsense">>,1},{<<"b">>,<<"c">>}]'


def test_strings_that_are_not_printable_are_shown_as_bytes() -> None:
    assert printed_value("\x01") == "<<1>>"
    assert printed_value(b"\xff\x00") == "<<255,0>>"


def test_an_atom_is_quoted_unless_it_is_a_plain_name() -> None:
    assert printed_atom("topic") == "topic"
    assert printed_atom("x-consistent-hash") == "'x-consistent-hash'"
