"""Logging in: PLAIN, AMQPLAIN and EXTERNAL, and one answer to whatever is wrong."""

from dataclasses import dataclass

import pytest

from warren.access.authenticate import AuthenticationSettings, Authenticator
from warren.access.passwords import DEFAULT_ALGORITHM, hash_password
from warren.errors import AmqpSyntaxError, CommandInvalid, LoginRefused
from warren.metadata.commands import PutUser
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.wire.table import encode_table

REFUSED = "Login was refused using authentication mechanism {}. For details see the broker logfile."
ALL = AuthenticationSettings(mechanisms=("EXTERNAL", "AMQPLAIN", "PLAIN"))


@dataclass
class FakePeer:
    is_loopback: bool = True
    certificate_login: str | None = None


HERE = FakePeer()
ELSEWHERE = FakePeer(is_loopback=False)


@pytest.fixture
def authenticator() -> Authenticator:
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    for name, password in (("guest", "guest"), ("u", "pass")):
        stored = hash_password(password, b"salt")
        local.apply(PutUser(name=name, password_hash=stored, hashing_algorithm=DEFAULT_ALGORITHM))
    local.apply(PutUser(name="empty", password_hash=b"", hashing_algorithm=DEFAULT_ALGORITHM))
    stored = hash_password("", b"salt")
    local.apply(PutUser(name="blank", password_hash=stored, hashing_algorithm=DEFAULT_ALGORITHM))
    return Authenticator(metadata, ALL)


def plain(name: str, password: str) -> bytes:
    return f"\0{name}\0{password}".encode()


def amqplain(table: dict[str, object]) -> bytes:
    return encode_table(table)[4:]


def test_plain_and_amqplain_let_a_user_in(authenticator: Authenticator) -> None:
    assert authenticator.authenticate("PLAIN", plain("u", "pass"), ELSEWHERE) == "u"
    response = amqplain({"LOGIN": "u", "PASSWORD": "pass"})
    assert authenticator.authenticate("AMQPLAIN", response, ELSEWHERE) == "u"


@pytest.mark.parametrize(
    ("name", "password"), [("u", "wrong"), ("nobody", "pass"), ("nobody", ""), ("empty", ""), ("blank", "")]
)
def test_wrong_credentials_have_one_answer(authenticator: Authenticator, name: str, password: str) -> None:
    with pytest.raises(LoginRefused) as caught:
        authenticator.authenticate("PLAIN", plain(name, password), HERE)
    assert caught.value.message == REFUSED.format("PLAIN")
    assert caught.value.method_index == 0


def test_guest_is_let_in_from_this_machine_only(authenticator: Authenticator) -> None:
    assert authenticator.authenticate("PLAIN", plain("guest", "guest"), HERE) == "guest"
    with pytest.raises(LoginRefused) as caught:
        authenticator.authenticate("AMQPLAIN", amqplain({"LOGIN": "guest", "PASSWORD": "guest"}), ELSEWHERE)
    assert caught.value.message == REFUSED.format("AMQPLAIN")


def test_external_lets_in_whom_the_certificate_names(authenticator: Authenticator) -> None:
    with_certificate = FakePeer(certificate_login="u")
    assert authenticator.mechanisms(with_certificate) == ("EXTERNAL", "AMQPLAIN", "PLAIN")
    assert authenticator.authenticate("EXTERNAL", b"", with_certificate) == "u"
    with pytest.raises(LoginRefused):
        authenticator.authenticate("EXTERNAL", b"", FakePeer(certificate_login="CN=nobody"))


def test_external_is_not_offered_without_a_certificate(authenticator: Authenticator) -> None:
    assert authenticator.mechanisms(HERE) == ("AMQPLAIN", "PLAIN")
    with pytest.raises(CommandInvalid):
        authenticator.authenticate("EXTERNAL", b"", HERE)


def test_an_unknown_mechanism_is_named(authenticator: Authenticator) -> None:
    with pytest.raises(CommandInvalid) as caught:
        authenticator.authenticate("CRAM-MD5", b"", HERE)
    assert caught.value.message == "unknown authentication mechanism 'CRAM-MD5'"


@pytest.mark.parametrize(
    "response", [b"", b"guest guest", b"\0guest", b"\0guest\0guest\0", b"admin\0guest\0guest"]
)
def test_a_malformed_plain_response_is_a_syntax_error(authenticator: Authenticator, response: bytes) -> None:
    with pytest.raises(AmqpSyntaxError, match=r"response <<.*>> invalid"):
        authenticator.authenticate("PLAIN", response, HERE)


@pytest.mark.parametrize(
    "response",
    [b"", b"\xff\xff\xff", amqplain({"LOGIN": "u"}), amqplain({"LOGIN": "u", "PASSWORD": 5}), amqplain({})],
)
def test_malformed_amqplain_is_a_syntax_error(authenticator: Authenticator, response: bytes) -> None:
    with pytest.raises(AmqpSyntaxError):
        authenticator.authenticate("AMQPLAIN", response, HERE)


def test_by_default_external_is_not_offered() -> None:
    authenticator = Authenticator(Metadata(), AuthenticationSettings())
    assert authenticator.mechanisms(FakePeer(certificate_login="u")) == ("AMQPLAIN", "PLAIN")
