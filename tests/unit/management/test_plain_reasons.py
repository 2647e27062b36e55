"""Translation of reasons with Erlang terms into English."""

import re
from pathlib import Path

import pytest

from warren.management import plain_reasons
from warren.management.plain_reasons import plain


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (
            'Validation failed\n\n[{<<"max-lenght">>,5}] are not recognised policy settings\n',
            "unknown policy setting: max-lenght (did you mean max-length?)",
        ),
        (
            'Validation failed\n\n[{<<"federation-upstream">>,<<"a">>}] are not recognised policy settings\n',
            "unknown policy setting: federation-upstream (not in an operator policy)",
        ),
        (
            'Validation failed\n\n[{<<"a">>,#{<<"b">> => [1,{<<"c">>,2}]}},{<<"x">>,<<"y">>}] '
            "are not recognised policy settings\n",
            "unknown policy setting: a, x",
        ),
        (
            "Validation failed\n\npattern should be regular expression but is invalid: "
            '{"unterminated character set",3}\n',
            "pattern should be regular expression but is invalid: unterminated character set, at position 3",
        ),
        (
            'Validation failed\n\n[{&lt;&lt;"a"&gt;&gt;,"&amp;"}] are not recognised policy settings\n',
            "unknown policy setting: a",
        ),
        ('Validation failed\n\n<<"x">> is not a valid maximum length\n', "'x' is not a valid maximum length"),
        ("Validation failed\n\na\nb\n", "a; b"),
        (
            "PRECONDITION_FAILED - invalid arg 'x-expires' for queue 'q' in vhost '/': {value_negative,-1}",
            "PRECONDITION_FAILED - invalid arg 'x-expires' for queue 'q' in vhost '/': "
            "must not be negative, but is -1",
        ),
        ("invalid arg: {unacceptable_type,longstr}", "invalid arg: a value of type longstr is not allowed"),
        ("[{key_missing,pattern},\n {key_missing,definition}]", "pattern is missing, definition is missing"),
        ('{no_such_vhost,<<"shop">>}', "there is no virtual host 'shop'"),
        ("{something_new,<<104,105>>,3}", "something new: hi, 3"),
        (
            ["invalid_regexp", [94, 91], [[98, 97, 100], 1]],
            "'^[' is not a regular expression: bad, at position 1",
        ),
        (["no_such_user", "ann"], "there is no user 'ann'"),
        (["not_tags", 5], "5 is not a list of tags"),
        ("not_json", "the request body is not JSON"),
        ("unsupported", "the feature flag is not supported"),
    ],
)
def test_an_erlang_term_is_translated(reason: object, message: str) -> None:
    assert plain(reason) == message


@pytest.mark.parametrize(
    "reason",
    [
        "no queue 'q' in vhost '/'",
        "not a term: ^[a-z]{2,3}$",
        "not a term: {a, or [{b",
        "not a term: <<nothing",
        "not a term: #{x}",
        'not a term: {"a" b}',
        "[{" * 5_000,
        '{<<"' * 5_000,
        '[{<<"a">>,1}' + ',{<<"a">>,1}' * 100_000,
    ],
)
def test_text_that_is_not_an_erlang_term_is_unchanged(reason: str) -> None:
    assert plain(reason) == reason


# A reason that the API returns verbatim: an Erlang atom, alone or followed by a value.
ATOMS = re.compile(r'bad_request\(\[?"([a-z]+(?:_[a-z]+)*)"')


def test_every_atom_that_the_api_returns_as_a_reason_is_translated() -> None:
    sources = Path(plain_reasons.__file__).parent.rglob("*.py")
    atoms = {atom for source in sources for atom in ATOMS.findall(source.read_text())}
    assert len(atoms) > 20
    assert {atom for atom in atoms if "_" in plain(atom)} == set()
    assert {atom for atom in atoms if plain(atom) == atom} <= {"unknown"}
