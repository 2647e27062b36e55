"""LDAP messages: requests encoded as in RFC 4511, and decoding of responses."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from warren.wire import ldap
from warren.wire.ldap import EqualityFilter, LdapEntry, LdapResult, LdapSyntaxError


def test_a_bind_contains_version_name_and_password() -> None:
    assert ldap.bind(1, "cn=a", "pw") == bytes.fromhex("30 12 02 01 01 60 0d 02 01 03 04 04") + (
        b"cn=a" + bytes.fromhex("80 02") + b"pw"
    )


def test_a_search_has_a_subtree_scope_and_requests_no_attributes() -> None:
    assert ldap.search(2, "o=x", [EqualityFilter("uid", "*)(uid=")], count_max=2, time_s_max=5) == (
        bytes.fromhex("30 30 02 01 02 63 2b 04 03") + b"o=x"
        # Subtree, no dereferencing of aliases, two entries, five seconds, types and values.
        + bytes.fromhex("0a 01 02 0a 01 00 02 01 02 02 01 05 01 01 00")
        # Special characters of the filter syntax are part of the value.
        + bytes.fromhex("a3 0e 04 03") + b"uid" + bytes.fromhex("04 07") + b"*)(uid="
        + bytes.fromhex("30 05 04 03") + b"1.1"
    )  # fmt: skip


def test_several_filters_are_alternatives_and_a_matching_rule_is_encoded() -> None:
    data = ldap.search(
        3, "", [EqualityFilter("a", "1"), EqualityFilter("member", "x", "1.2")], count_max=1, time_s_max=1
    )
    assert bytes.fromhex("a1 1a a3 06 04 01 61 04 01 31 a9 10 81 03") + b"1.2" in data
    assert bytes.fromhex("82 06") + b"member" + bytes.fromhex("83 01 78") in data


def test_a_number_with_the_sign_bit_set_has_a_leading_zero() -> None:
    assert ldap.unbind(128) == bytes.fromhex("30 06 02 02 00 80 42 00")
    assert ldap.unbind(2**31 - 1) == bytes.fromhex("30 08 02 04 7f ff ff ff 42 00")


def test_a_long_value_has_a_long_length() -> None:
    data = ldap.bind(1, "n" * 300, "")
    assert data[:4] == bytes.fromhex("30 82 01 3c")
    assert bytes.fromhex("04 82 01 2c") + b"n" * 300 in data


def test_start_tls_is_requested_by_its_number() -> None:
    assert ldap.start_tls(1) == bytes.fromhex("30 1d 02 01 01 77 18 80 16") + b"1.3.6.1.4.1.1466.20037"


def message(operation: str, *, number: str = "02 01 07") -> bytes:
    return bytes.fromhex(f"{number} {operation}")


def test_a_result_contains_code_and_message() -> None:
    number, found = ldap.decoded(message("61 0c 0a 01 31 04 00 04 05") + b"no\nyo")
    assert number == 7
    assert found == LdapResult(49, "no yo")
    assert str(found) == "invalidCredentials (no yo)"
    assert isinstance(found, LdapResult)
    assert found.is_of_credentials
    assert not LdapResult(51, "").is_of_credentials
    assert str(LdapResult(51, "")) == "busy"
    assert str(LdapResult(4711, "")) == "code 4711"


def test_an_entry_has_a_name_and_a_reference_is_skipped() -> None:
    assert ldap.decoded(message("64 08 04 04") + b"cn=a" + b"\x30\x00") == (7, LdapEntry("cn=a"))
    assert ldap.decoded(message("73 02 04 00")) == (7, None)


def test_controls_after_an_operation_are_ignored() -> None:
    assert ldap.decoded(message("65 07 0a 01 00 04 00 04 00 a0 02 30 00")) == (7, LdapResult(0, ""))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes.fromhex("02 01"),
        bytes.fromhex("02 01 07"),
        bytes.fromhex("04 01 07 61 00"),
        message("61 00"),
        message("61 05 0a 01 00 04 00"),
        message("61 07 02 01 00 04 00 04 00"),
        message("61 09 0a 01 00 04 00 04 00"),
        message("61 80 0a 01 00 00 00"),
        message("61 85 00 00 00 00 07 0a 01 00 04 00 04 00"),
        message("64 04 04 84 ff ff"),
        message("42 00"),
    ],
)
def test_a_message_that_is_not_ldap_is_an_error(data: bytes) -> None:
    with pytest.raises(LdapSyntaxError):
        ldap.decoded(data)


@given(some.binary(max_size=60))
def test_any_bytes_are_decoded_or_an_error(data: bytes) -> None:
    try:
        number, _ = ldap.decoded(data)
    except LdapSyntaxError:
        return
    assert isinstance(number, int)
