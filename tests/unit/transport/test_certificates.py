"""User names from certificates."""

from warren.transport.certificates import LoginFrom, distinguished_name, is_issued_for, login_name

CERTIFICATE: dict[str, object] = {
    "subject": (
        (("countryName", "SE"),),
        (("organizationName", "Ex, Inc."),),
        (("commonName", "client"),),
    ),
    "subjectAltName": (("DNS", "a.example"), ("DNS", "b.example"), ("email", "c@example")),
}


def test_the_distinguished_name_has_the_last_part_of_the_subject_first() -> None:
    assert distinguished_name(CERTIFICATE) == r"CN=client,O=Ex\, Inc.,C=SE"
    assert login_name(CERTIFICATE, LoginFrom.DISTINGUISHED_NAME) == r"CN=client,O=Ex\, Inc.,C=SE"


def test_the_common_name_can_be_the_user_name() -> None:
    assert login_name(CERTIFICATE, LoginFrom.COMMON_NAME) == "client"


def test_a_subject_alternative_name_is_chosen_by_type_and_index() -> None:
    source = LoginFrom.SUBJECT_ALTERNATIVE_NAME
    assert login_name(CERTIFICATE, source) == "a.example"
    assert login_name(CERTIFICATE, source, "dns", 1) == "b.example"
    assert login_name(CERTIFICATE, source, "email") == "c@example"
    assert login_name(CERTIFICATE, source, "uri") is None
    assert login_name(CERTIFICATE, source, "dns", 2) is None


def test_a_certificate_without_the_part_has_no_user_name() -> None:
    assert login_name({}, LoginFrom.DISTINGUISHED_NAME) is None
    assert login_name({}, LoginFrom.COMMON_NAME) is None


def test_a_certificate_is_for_the_hosts_among_its_alternative_names() -> None:
    certificate: dict[str, object] = {
        "subject": ((("commonName", "c.example"),),),
        "subjectAltName": (
            ("DNS", "A.example"), ("DNS", "*.b.example"), ("IP Address", "10.0.0.1"), ("IP Address", "::1"),
            ("IP Address", "unusual"), ("email", "d.example"),
        ),
    }  # fmt: skip
    for host in ("a.example", "A.EXAMPLE.", "node.b.example", "10.0.0.1", "0:0::1"):
        assert is_issued_for(certificate, host)
    for host in ("b.example", "x.y.b.example", "c.example", "d.example", "10.0.0.2", "*.b.example.org", ""):
        assert not is_issued_for(certificate, host)
    assert not is_issued_for({}, "a.example")
