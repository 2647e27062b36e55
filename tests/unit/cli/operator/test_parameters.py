"""Parsing of values from command line arguments."""

import pytest

from warren.cli.operator.failures import USAGE, Failure
from warren.cli.operator.parameters import fields, json_of, object_of, pairs_of


def test_the_value_of_a_pair_is_json_where_possible() -> None:
    assert pairs_of(("x-max-length=10", "x-overflow=reject-publish", "a=", "b=true", "c=x=y"), "-a") == {
        "x-max-length": 10,
        "x-overflow": "reject-publish",
        "a": "",
        "b": True,
        "c": "x=y",
    }


@pytest.mark.parametrize("pair", ["alone", "=1", ""])
def test_a_malformed_pair_is_a_usage_error(pair: str) -> None:
    with pytest.raises(Failure) as caught:
        pairs_of((pair,), "--argument")
    assert caught.value.exit_code == USAGE


def test_json_may_be_any_value_and_an_object_must_be_one() -> None:
    assert json_of("1", "it") == 1
    assert object_of('{"a": 1}', "it") == {"a": 1}
    for text in ("{", "[]"):
        with pytest.raises(Failure):
            object_of(text, "it")


def test_fields_are_taken_from_arguments() -> None:
    body = fields("pattern", **{"apply-to": "apply_to"})
    assert body({"pattern": "p", "apply_to": "all", "uri": "u"}) == {"pattern": "p", "apply-to": "all"}
