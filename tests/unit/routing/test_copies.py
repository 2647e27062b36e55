"""The CC and BCC headers: their keys, and what a consumer receives of them."""

from decimal import Decimal

import pytest
from tests.unit.routing.samples import sent

from warren.errors import PreconditionFailed
from warren.routing.copies import carbon_copies, has_copies
from warren.wire.table import Float32, Int8, Int16, Int32, Timestamp, UInt8, UInt16, UInt32


def test_the_keys_of_cc_precede_those_of_bcc() -> None:
    assert carbon_copies({"BCC": ["c"], "CC": ["a", "b"]}) == ["a", "b", "c"]
    assert carbon_copies({}) == []


def test_members_that_are_not_strings_are_skipped() -> None:
    assert carbon_copies({"CC": ["a", 5, None, b"octets", ["b"]]}) == ["a"]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (Int8(1), "byte"),
        (UInt8(1), "unsignedbyte"),
        (Int16(1), "short"),
        (UInt16(1), "unsignedshort"),
        (Int32(1), "signedint"),
        (UInt32(1), "unsignedint"),
        (1, "long"),
        (Float32(1), "float"),
        (1.0, "double"),
        (Decimal(1), "decimal"),
        (Timestamp(1), "timestamp"),
        (True, "bool"),
        ("a", "longstr"),
        (b"a", "binary"),
        (None, "void"),
        ({}, "table"),
    ],
)
def test_a_value_that_is_not_an_array_is_refused_with_the_text_of_rabbitmq(value: object, kind: str) -> None:
    for name in ("CC", "BCC"):
        with pytest.raises(PreconditionFailed) as refusal:
            carbon_copies({name: value})
        expected = f'invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}'
        assert refusal.value.message == expected


def test_headers_with_similar_names_are_not_decoded() -> None:
    assert not has_copies(sent({"ACCOUNT": 1}).property_list)
    assert not has_copies(sent({"CCC": 1}).property_list)
    assert has_copies(sent({"CC": 1}).property_list)
    assert has_copies(sent({"BCC": 1}).property_list)
