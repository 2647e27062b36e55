"""Logging in: PLAIN, AMQPLAIN and EXTERNAL, and one answer to whatever is wrong."""

from dataclasses import dataclass, replace

import pytest
from tests.unit.access.world import Imagined, finished

from warren.access.authenticate import AuthenticationSettings, Authenticator, Backend, BackendKind
from warren.access.directory import (
    Directory,
    DirectoryEntry,
    DirectoryRefused,
    DirectoryRules,
    DirectoryUnavailable,
)
from warren.access.login_throttle import LoginThrottleSettings
from warren.access.passwords import SALT_SIZE, SHA256, hash_password
from warren.errors import AmqpSyntaxError, CommandInvalid, LoginRefused
from warren.metadata.commands import PutUser
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.wire.table import encode_table

REFUSED = "Login was refused using authentication mechanism {}. For details see the broker logfile."
ALL = AuthenticationSettings(
    mechanisms=("EXTERNAL", "AMQPLAIN", "PLAIN"), login_throttle=LoginThrottleSettings(failures_free=2)
)


@dataclass
class FakePeer:
    host: str = "127.0.0.1"
    certificate_login: str | None = None

    @property
    def is_loopback(self) -> bool:
        return self.host == "127.0.0.1"


HERE = FakePeer()
ELSEWHERE = FakePeer("192.0.2.1")


@dataclass
class Entrance:
    """An authenticator, and the world in which it is."""

    imagined: Imagined
    authenticator: Authenticator

    def authenticate(self, mechanism: str, response: bytes, peer: FakePeer) -> str:
        return finished(self.authenticator.authenticate(mechanism, response, peer)).name

    def mechanisms(self, peer: FakePeer) -> tuple[str, ...]:
        return self.authenticator.mechanisms(peer)


def entrance(settings: AuthenticationSettings = ALL) -> Entrance:
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    for name, password in (("guest", "guest"), ("u", "pass"), ("blank", "")):
        stored = hash_password(password, bytes(SALT_SIZE), SHA256)
        local.apply(PutUser(name=name, password_hash=stored.octets, hashing_algorithm=stored.algorithm))
    local.apply(PutUser(name="empty", password_hash=b"", hashing_algorithm=SHA256))
    imagined = Imagined()
    return Entrance(imagined, Authenticator(metadata, settings, imagined.world()))


@pytest.fixture
def authenticator() -> Entrance:
    return entrance()


def plain(name: str, password: str) -> bytes:
    return f"\0{name}\0{password}".encode()


def amqplain(table: dict[str, object]) -> bytes:
    return encode_table(table)[4:]


def test_plain_and_amqplain_let_a_user_in(authenticator: Entrance) -> None:
    assert authenticator.authenticate("PLAIN", plain("u", "pass"), ELSEWHERE) == "u"
    response = amqplain({"LOGIN": "u", "PASSWORD": "pass"})
    assert authenticator.authenticate("AMQPLAIN", response, ELSEWHERE) == "u"


@pytest.mark.parametrize(
    ("name", "password"), [("u", "wrong"), ("nobody", "pass"), ("nobody", ""), ("empty", ""), ("blank", "")]
)
def test_wrong_credentials_have_one_answer(authenticator: Entrance, name: str, password: str) -> None:
    with pytest.raises(LoginRefused) as caught:
        authenticator.authenticate("PLAIN", plain(name, password), HERE)
    assert caught.value.message == REFUSED.format("PLAIN")
    assert caught.value.method_index == 0


def test_guest_is_let_in_from_this_machine_only(authenticator: Entrance) -> None:
    assert authenticator.authenticate("PLAIN", plain("guest", "guest"), HERE) == "guest"
    with pytest.raises(LoginRefused) as caught:
        authenticator.authenticate("AMQPLAIN", amqplain({"LOGIN": "guest", "PASSWORD": "guest"}), ELSEWHERE)
    assert caught.value.message == REFUSED.format("AMQPLAIN")


def test_external_lets_in_whom_the_certificate_names(authenticator: Entrance) -> None:
    with_certificate = FakePeer(certificate_login="u")
    assert authenticator.mechanisms(with_certificate) == ("EXTERNAL", "AMQPLAIN", "PLAIN")
    assert authenticator.authenticate("EXTERNAL", b"", with_certificate) == "u"
    with pytest.raises(LoginRefused):
        authenticator.authenticate("EXTERNAL", b"", FakePeer(certificate_login="CN=nobody"))


def test_external_is_not_offered_without_a_certificate(authenticator: Entrance) -> None:
    assert authenticator.mechanisms(HERE) == ("AMQPLAIN", "PLAIN")
    with pytest.raises(CommandInvalid):
        authenticator.authenticate("EXTERNAL", b"", HERE)


def test_an_unknown_mechanism_is_named(authenticator: Entrance) -> None:
    with pytest.raises(CommandInvalid) as caught:
        authenticator.authenticate("CRAM-MD5", b"", HERE)
    assert caught.value.message == "unknown authentication mechanism 'CRAM-MD5'"


@pytest.mark.parametrize(("mechanism", "response"), [("PLAIN", b"u"), ("AMQPLAIN", b"u")])
def test_a_malformed_response_is_an_error_of_its_own(
    authenticator: Entrance, mechanism: str, response: bytes
) -> None:
    with pytest.raises(AmqpSyntaxError):
        authenticator.authenticate(mechanism, response, HERE)


def guess(entrance: Entrance, peer: FakePeer, count: int) -> None:
    for _ in range(count):
        with pytest.raises(LoginRefused):
            entrance.authenticate("PLAIN", plain("u", "wrong"), peer)


def test_who_fails_too_often_waits_and_gets_in_all_the_same(authenticator: Entrance) -> None:
    guess(authenticator, ELSEWHERE, 3)
    assert authenticator.imagined.waits == []
    assert authenticator.imagined.reports == [
        "too many failed logins from 192.0.2.1: further attempts are delayed"
    ]
    assert authenticator.authenticate("PLAIN", plain("u", "pass"), ELSEWHERE) == "u"
    assert [wait > 100 for wait in authenticator.imagined.waits] == [True]
    assert authenticator.authenticate("PLAIN", plain("u", "pass"), ELSEWHERE) == "u"
    assert len(authenticator.imagined.waits) == 1


def test_an_address_where_too_many_wait_is_refused_without_a_look(authenticator: Entrance) -> None:
    guess(authenticator, ELSEWHERE, 30)
    looked_at = len(authenticator.imagined.jobs)
    # Nobody waits: all of them come at the same time.
    authenticator.imagined.now = 0
    guess(authenticator, ELSEWHERE, 5)
    assert len(authenticator.imagined.jobs) < looked_at + 5
    assert authenticator.authenticate("PLAIN", plain("u", "pass"), FakePeer("192.0.2.9")) == "u"


def test_a_certificate_is_not_guessed_at(authenticator: Entrance) -> None:
    guess(authenticator, ELSEWHERE, 30)
    waits = list(authenticator.imagined.waits)
    with_certificate = FakePeer("192.0.2.1", certificate_login="u")
    assert authenticator.authenticate("EXTERNAL", b"", with_certificate) == "u"
    assert authenticator.imagined.waits == waits


def test_by_default_external_is_not_offered() -> None:
    by_default = entrance(AuthenticationSettings())
    assert by_default.mechanisms(FakePeer(certificate_login="u")) == ("AMQPLAIN", "PLAIN")


class Asked:
    """A directory that says what it is told to say."""

    def __init__(self, end: Exception | None = None) -> None:
        self.end = end
        self.passwords: list[str] = []

    async def find(self, name: str, password: str) -> DirectoryEntry:
        self.passwords.append(password)
        if self.end is not None:
            raise self.end
        return DirectoryEntry(name, f"uid={name}", frozenset())


def with_directory(asked: Asked, *backends: Backend) -> Entrance:
    metadata = Metadata()
    stored = hash_password("pass", bytes(SALT_SIZE), SHA256)
    user = PutUser(
        name="u", password_hash=stored.octets, hashing_algorithm=stored.algorithm, tags=("administrator",)
    )
    LocalProposals(metadata, lambda: 0).apply(user)
    imagined = Imagined()
    settings = AuthenticationSettings(
        backends=backends, login_throttle=LoginThrottleSettings(failures_free=2)
    )
    rules = DirectoryRules(tags=(("monitoring", ""),))
    world = replace(imagined.world(), directory=Directory(asked.find, rules, metadata))
    return Entrance(imagined, Authenticator(metadata, settings, world))


LDAP = Backend(BackendKind.LDAP, BackendKind.LDAP)
INTERNAL = Backend()


def test_whom_the_first_backend_does_not_know_the_next_may() -> None:
    for backends in ((LDAP, INTERNAL), (INTERNAL, LDAP)):
        found = with_directory(Asked(), *backends)
        assert found.authenticate("PLAIN", plain("stranger", "pw"), HERE) == "stranger"
        refusing = with_directory(Asked(DirectoryRefused("so")), *backends)
        assert refusing.authenticate("PLAIN", plain("u", "pass"), HERE) == "u"


def test_a_password_that_the_first_backend_takes_is_told_to_no_other() -> None:
    asked = Asked()
    assert with_directory(asked, INTERNAL, LDAP).authenticate("PLAIN", plain("u", "pass"), HERE) == "u"
    assert asked.passwords == []


def test_what_they_may_do_is_said_by_whom_the_configuration_names() -> None:
    split = with_directory(Asked(), Backend(BackendKind.LDAP, BackendKind.INTERNAL))
    user = finished(split.authenticator.authenticate("PLAIN", plain("u", "any"), HERE))
    assert user.tags == ("administrator",)
    with pytest.raises(LoginRefused):
        split.authenticate("PLAIN", plain("stranger", "any"), HERE)
    whole = with_directory(Asked(), LDAP)
    assert finished(whole.authenticator.authenticate("PLAIN", plain("u", "any"), HERE)).tags == (
        "monitoring",
    )


def test_a_directory_that_does_not_answer_lets_nobody_in_and_nobody_is_slowed_down_for_it() -> None:
    asked = Asked(DirectoryUnavailable("it is down"))
    entrance = with_directory(asked, LDAP, INTERNAL)
    for _ in range(10):
        with pytest.raises(LoginRefused):
            entrance.authenticate("PLAIN", plain("stranger", "a secret"), ELSEWHERE)
    assert entrance.imagined.waits == []
    assert entrance.imagined.reports == ["cannot authenticate user 'stranger': it is down"] * 10
    assert entrance.authenticate("PLAIN", plain("u", "pass"), ELSEWHERE) == "u"


def test_whom_a_directory_refuses_too_often_waits() -> None:
    entrance = with_directory(Asked(DirectoryRefused("wrong")), LDAP)
    guess(entrance, ELSEWHERE, 4)
    assert entrance.imagined.waits
    assert entrance.imagined.reports[0] == "LDAP refused user 'u': wrong"


def test_users_of_this_machine_are_so_in_a_directory_as_well() -> None:
    entrance = with_directory(Asked(), LDAP)
    assert entrance.authenticate("PLAIN", plain("guest", "pw"), HERE) == "guest"
    with pytest.raises(LoginRefused):
        entrance.authenticate("PLAIN", plain("guest", "pw"), ELSEWHERE)
