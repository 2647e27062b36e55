"""The expiry time of certificates."""

from datetime import UTC, datetime

import pytest
import trustme

from warren.transport.certificate_expiry import expiry_ms


def pem(expires: datetime) -> str:
    certificate = trustme.CA().issue_cert("localhost", not_after=expires)
    return certificate.cert_chain_pems[0].bytes().decode()


@pytest.mark.parametrize("year", [2030, 2049, 2060])
def test_the_end_is_read_in_both_formats_of_time(year: int) -> None:
    expires = datetime(year, 2, 28, 12, 30, 45, tzinfo=UTC)
    assert expiry_ms(pem(expires)) == int(expires.timestamp() * 1000)


def test_of_several_certificates_the_first_to_expire_counts() -> None:
    early, late = datetime(2031, 1, 1, tzinfo=UTC), datetime(2041, 1, 1, tzinfo=UTC)
    assert expiry_ms(pem(late) + "\n" + pem(early)) == int(early.timestamp() * 1000)


def test_a_file_without_a_certificate_has_no_expiry() -> None:
    assert expiry_ms("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----") is None
    with pytest.raises(ValueError, match="cut short"):
        expiry_ms("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----")
