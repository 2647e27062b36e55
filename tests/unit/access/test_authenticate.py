"""Authentication with PLAIN, AMQPLAIN and EXTERNAL: every wrong credential has one and the same answer."""

from dataclasses import dataclass

import pytest
from msgspec.structs import replace
from tests.unit.access.dependencies import FakeDependencies, finished
from tests.unit.metadata.late_proposals import LateProposals

from warren.access.authenticate import AuthenticationSettings, Authenticator, Backend, BackendKind
from warren.access.directory import (
    Directory,
    DirectoryEntry,
    DirectoryRefused,
    DirectoryRules,
    DirectoryUnavailable,
)
from warren.access.grants import ExternalUser
from warren.access.login_throttle import LoginThrottleSettings
from warren.access.passwords import SALT_SIZE, SHA256, hash_password
from warren.access.web_grants import WebDecision, WebQuestion, WebUser
from warren.errors import AmqpSyntaxError, CommandInvalid, LoginRefused, Undecided
from warren.metadata.commands import MetadataCommand, PutUser
from warren.metadata.machine import Metadata
from warren.metadata.permissions import Permission
from warren.metadata.proposals import LocalProposals
from warren.metadata.refusal_check import RefusalCheck
from warren.wire.table import encode_table

REFUSED = "Login was refused using authentication mechanism {}. For details see the broker logfile."
ALL = AuthenticationSettings(
    mechanisms=("EXTERNAL", "AMQPLAIN", "PLAIN"), login_throttle=LoginThrottleSettings(failures_free=2)
)


@dataclass
class FakePeer:
    host: str = "127.0.0.1"
    certificate_login: str | None = None
    local_user: str = ""
    is_operator: bool = False

    @property
    def is_loopback(self) -> bool:
        return self.host == "127.0.0.1"


HERE = FakePeer()
ELSEWHERE = FakePeer("192.0.2.1")


@dataclass
class AuthenticatorHarness:
    """An authenticator with the fake dependencies that it was given."""

    fake: FakeDependencies
    authenticator: Authenticator

    def authenticate(self, mechanism: str, response: bytes, peer: FakePeer) -> str:
        return finished(self.authenticator.authenticate(mechanism, response, peer)).name

    def mechanisms(self, peer: FakePeer) -> tuple[str, ...]:
        return self.authenticator.mechanisms(peer)


def make_authenticator(settings: AuthenticationSettings = ALL) -> AuthenticatorHarness:
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    for name, password in (("guest", "guest"), ("u", "pass"), ("blank", "")):
        stored = hash_password(password, bytes(SALT_SIZE), SHA256)
        local.apply(PutUser(name=name, password_hash=stored.salted_hash, hashing_algorithm=stored.algorithm))
    local.apply(PutUser(name="empty", password_hash=b"", hashing_algorithm=SHA256))
    fake = FakeDependencies()
    return AuthenticatorHarness(fake, Authenticator(metadata, settings, fake.authentication()))


@pytest.fixture
def authenticator() -> AuthenticatorHarness:
    return make_authenticator()


def plain(name: str, password: str) -> bytes:
    return f"\0{name}\0{password}".encode()


def amqplain(table: dict[str, object]) -> bytes:
    return encode_table(table)[4:]


def test_plain_and_amqplain_authenticate_a_user(authenticator: AuthenticatorHarness) -> None:
    assert authenticator.authenticate("PLAIN", plain("u", "pass"), ELSEWHERE) == "u"
    response = amqplain({"LOGIN": "u", "PASSWORD": "pass"})
    assert authenticator.authenticate("AMQPLAIN", response, ELSEWHERE) == "u"


@pytest.mark.parametrize(
    ("name", "password"), [("u", "wrong"), ("nobody", "pass"), ("nobody", ""), ("empty", ""), ("blank", "")]
)
def test_all_wrong_credentials_have_one_answer(
    authenticator: AuthenticatorHarness, name: str, password: str
) -> None:
    with pytest.raises(LoginRefused) as caught:
        authenticator.authenticate("PLAIN", plain(name, password), HERE)
    assert caught.value.message == REFUSED.format("PLAIN")
    assert caught.value.method_index == 0


def test_guest_can_log_in_from_this_machine_only(authenticator: AuthenticatorHarness) -> None:
    assert authenticator.authenticate("PLAIN", plain("guest", "guest"), HERE) == "guest"
    with pytest.raises(LoginRefused) as caught:
        authenticator.authenticate("AMQPLAIN", amqplain({"LOGIN": "guest", "PASSWORD": "guest"}), ELSEWHERE)
    assert caught.value.message == REFUSED.format("AMQPLAIN")


def test_external_authenticates_the_user_that_the_certificate_names(
    authenticator: AuthenticatorHarness,
) -> None:
    with_certificate = FakePeer(certificate_login="u")
    assert authenticator.mechanisms(with_certificate) == ("EXTERNAL", "AMQPLAIN", "PLAIN")
    assert authenticator.authenticate("EXTERNAL", b"", with_certificate) == "u"
    with pytest.raises(LoginRefused):
        authenticator.authenticate("EXTERNAL", b"", FakePeer(certificate_login="CN=nobody"))


def test_external_is_not_offered_without_a_certificate(authenticator: AuthenticatorHarness) -> None:
    assert authenticator.mechanisms(HERE) == ("AMQPLAIN", "PLAIN")
    with pytest.raises(CommandInvalid):
        authenticator.authenticate("EXTERNAL", b"", HERE)


def test_an_unknown_mechanism_is_refused_by_name(authenticator: AuthenticatorHarness) -> None:
    with pytest.raises(CommandInvalid) as caught:
        authenticator.authenticate("CRAM-MD5", b"", HERE)
    assert caught.value.message == "unknown authentication mechanism 'CRAM-MD5'"


@pytest.mark.parametrize(("mechanism", "response"), [("PLAIN", b"u"), ("AMQPLAIN", b"u")])
def test_a_malformed_response_is_a_syntax_error(
    authenticator: AuthenticatorHarness, mechanism: str, response: bytes
) -> None:
    with pytest.raises(AmqpSyntaxError):
        authenticator.authenticate(mechanism, response, HERE)


def guess(harness: AuthenticatorHarness, peer: FakePeer, count: int) -> None:
    for _ in range(count):
        with pytest.raises(LoginRefused):
            harness.authenticate("PLAIN", plain("u", "wrong"), peer)


def test_a_user_with_many_failed_logins_is_delayed_but_can_log_in(
    authenticator: AuthenticatorHarness,
) -> None:
    guess(authenticator, ELSEWHERE, 3)
    assert authenticator.fake.waits == []
    assert authenticator.fake.reports == [
        "too many failed logins from 192.0.2.1: further attempts are delayed"
    ]
    assert authenticator.authenticate("PLAIN", plain("u", "pass"), ELSEWHERE) == "u"
    assert [wait > 100 for wait in authenticator.fake.waits] == [True]
    assert authenticator.authenticate("PLAIN", plain("u", "pass"), ELSEWHERE) == "u"
    assert len(authenticator.fake.waits) == 1


def test_an_address_with_too_many_waiting_logins_is_refused_without_computing_a_hash(
    authenticator: AuthenticatorHarness,
) -> None:
    guess(authenticator, ELSEWHERE, 30)
    looked_at = len(authenticator.fake.jobs)
    # The logins do not wait for each other: all arrive at one time.
    authenticator.fake.now = 0
    guess(authenticator, ELSEWHERE, 5)
    assert len(authenticator.fake.jobs) < looked_at + 5
    assert authenticator.authenticate("PLAIN", plain("u", "pass"), FakePeer("192.0.2.9")) == "u"


def test_external_is_not_delayed_by_failed_passwords(authenticator: AuthenticatorHarness) -> None:
    guess(authenticator, ELSEWHERE, 30)
    waits = list(authenticator.fake.waits)
    with_certificate = FakePeer("192.0.2.1", certificate_login="u")
    assert authenticator.authenticate("EXTERNAL", b"", with_certificate) == "u"
    assert authenticator.fake.waits == waits


def test_external_is_not_offered_by_default() -> None:
    by_default = make_authenticator(AuthenticationSettings())
    assert by_default.mechanisms(FakePeer(certificate_login="u")) == ("AMQPLAIN", "PLAIN")


class FakeDirectory:
    """A directory that knows every name, or raises `end`; it records the passwords that it was given."""

    def __init__(self, end: Exception | None = None) -> None:
        self.end = end
        self.passwords: list[str] = []

    async def find(self, name: str, password: str) -> DirectoryEntry:
        self.passwords.append(password)
        if self.end is not None:
            raise self.end
        return DirectoryEntry(name, f"uid={name}", frozenset())


def with_directory(asked: FakeDirectory, *backends: Backend) -> AuthenticatorHarness:
    metadata = Metadata()
    stored = hash_password("pass", bytes(SALT_SIZE), SHA256)
    user = PutUser(
        name="u",
        password_hash=stored.salted_hash,
        hashing_algorithm=stored.algorithm,
        tags=("administrator",),
    )
    LocalProposals(metadata, lambda: 0).apply(user)
    fake = FakeDependencies()
    settings = AuthenticationSettings(
        backends=backends, login_throttle=LoginThrottleSettings(failures_free=2)
    )
    rules = DirectoryRules(tags=(("monitoring", ""),))
    dependencies = replace(fake.authentication(), directory=Directory(asked.find, rules, metadata))
    return AuthenticatorHarness(fake, Authenticator(metadata, settings, dependencies))


LDAP = Backend(BackendKind.LDAP, BackendKind.LDAP)
INTERNAL = Backend()


def test_a_user_refused_by_the_first_backend_can_log_in_by_the_second() -> None:
    for backends in ((LDAP, INTERNAL), (INTERNAL, LDAP)):
        found = with_directory(FakeDirectory(), *backends)
        assert found.authenticate("PLAIN", plain("stranger", "pw"), HERE) == "stranger"
        refusing = with_directory(FakeDirectory(DirectoryRefused("so")), *backends)
        assert refusing.authenticate("PLAIN", plain("u", "pass"), HERE) == "u"


def test_a_password_that_one_backend_accepted_is_not_sent_to_the_next() -> None:
    asked = FakeDirectory()
    assert with_directory(asked, INTERNAL, LDAP).authenticate("PLAIN", plain("u", "pass"), HERE) == "u"
    assert asked.passwords == []


def test_tags_come_from_the_authorization_backend() -> None:
    split = with_directory(FakeDirectory(), Backend(BackendKind.LDAP, BackendKind.INTERNAL))
    user = finished(split.authenticator.authenticate("PLAIN", plain("u", "any"), HERE))
    assert user.tags == ("administrator",)
    with pytest.raises(LoginRefused):
        split.authenticate("PLAIN", plain("stranger", "any"), HERE)
    whole = with_directory(FakeDirectory(), LDAP)
    assert finished(whole.authenticator.authenticate("PLAIN", plain("u", "any"), HERE)).tags == (
        "monitoring",
    )


@pytest.mark.parametrize(
    ("name", "password", "is_in"),
    [("u", "right", True), ("u", "wrong", False), ("stranger", "right", False), ("u", "", False)],
)
def test_a_web_server_decides_the_logins_of_users_of_the_broker(
    name: str, password: str, is_in: bool
) -> None:
    async def tags_of(name: str, password: str | None) -> tuple[str, ...] | None:
        return () if password == "right" else None

    harness = with_directory(FakeDirectory(), Backend(BackendKind.HTTP, BackendKind.INTERNAL))
    dependencies = replace(harness.authenticator._dependencies, web_login=tags_of)
    found = Authenticator(harness.authenticator._metadata, harness.authenticator._settings, dependencies)
    response = plain(name, password)
    if is_in:
        assert finished(found.authenticate("PLAIN", response, HERE)).tags == ("administrator",)
    else:
        with pytest.raises(LoginRefused):
            finished(found.authenticate("PLAIN", response, HERE))


def with_web_server(asked: list[WebQuestion], *backends: Backend) -> AuthenticatorHarness:
    """An authenticator whose web server knows `u` by `right` or a certificate, and allows everything."""

    async def tags_of(name: str, password: str | None) -> tuple[str, ...] | None:
        return ("monitoring",) if name == "u" and password in ("right", None) else None

    async def ask(question: WebQuestion) -> WebDecision:
        asked.append(question)
        return WebDecision(True)

    harness = with_directory(FakeDirectory(), *backends)
    dependencies = replace(harness.authenticator._dependencies, web_login=tags_of, ask_web_server=ask)
    settings = replace(harness.authenticator._settings, mechanisms=ALL.mechanisms)
    found = Authenticator(harness.authenticator._metadata, settings, dependencies)
    return AuthenticatorHarness(harness.fake, found)


def test_a_user_of_the_web_server_has_its_tags_and_is_nobody_else() -> None:
    asked: list[WebQuestion] = []
    harness = with_web_server(asked, Backend(BackendKind.HTTP, BackendKind.HTTP))
    user = finished(harness.authenticator.authenticate("PLAIN", plain("u", "right"), ELSEWHERE))
    assert isinstance(user, WebUser)
    assert (user.name, user.tags, user.identity) == ("u", ("monitoring",), "\0http\0u")
    with pytest.raises(Undecided) as undecided:
        user.grants.permission("/")
    finished(undecided.value.decide())
    assert user.grants.permission("/") is not None
    assert dict(asked[0].fields) == {
        "username": "u", "vhost": "/", "ip": ELSEWHERE.host, "tags": "monitoring",
    }  # fmt: skip
    with pytest.raises(LoginRefused):
        harness.authenticate("PLAIN", plain("u", "wrong"), HERE)


def test_a_user_of_another_backend_stays_who_they_are_if_the_web_server_knows_them_too() -> None:
    harness = with_web_server([], Backend(BackendKind.LDAP, BackendKind.HTTP))
    user = finished(harness.authenticator.authenticate("PLAIN", plain("u", "right"), HERE))
    assert isinstance(user, WebUser)
    assert user.identity == "\0ldap\0u"
    with pytest.raises(LoginRefused):
        harness.authenticate("PLAIN", plain("u", "wrong"), HERE)


def test_the_web_server_is_asked_for_the_name_of_a_certificate() -> None:
    harness = with_web_server([], Backend(BackendKind.HTTP, BackendKind.HTTP))
    assert harness.authenticate("EXTERNAL", b"", FakePeer(certificate_login="u")) == "u"
    with pytest.raises(LoginRefused):
        harness.authenticate("EXTERNAL", b"", FakePeer(certificate_login="empty"))
    known = finished(harness.authenticator.authenticate("EXTERNAL", b"", FakePeer(local_user="u")))
    assert not isinstance(known, WebUser)


def test_an_unavailable_directory_refuses_logins_without_delaying_them() -> None:
    asked = FakeDirectory(DirectoryUnavailable("it is down"))
    harness = with_directory(asked, LDAP, INTERNAL)
    for _ in range(10):
        with pytest.raises(LoginRefused):
            harness.authenticate("PLAIN", plain("stranger", "a secret"), ELSEWHERE)
    assert harness.fake.waits == []
    assert harness.fake.reports == ["cannot authenticate user 'stranger': it is down"] * 10
    assert harness.authenticate("PLAIN", plain("u", "pass"), ELSEWHERE) == "u"


def test_logins_refused_by_a_directory_are_throttled() -> None:
    harness = with_directory(FakeDirectory(DirectoryRefused("wrong")), LDAP)
    guess(harness, ELSEWHERE, 4)
    assert harness.fake.waits
    assert harness.fake.reports[0] == "LDAP refused user 'u': wrong"


def test_loopback_users_are_restricted_in_a_directory_as_well() -> None:
    harness = with_directory(FakeDirectory(), LDAP)
    assert harness.authenticate("PLAIN", plain("guest", "pw"), HERE) == "guest"
    with pytest.raises(LoginRefused):
        harness.authenticate("PLAIN", plain("guest", "pw"), ELSEWHERE)


def test_a_client_in_memory_is_its_user_without_a_password(authenticator: AuthenticatorHarness) -> None:
    local = FakePeer(local_user="u")
    assert authenticator.mechanisms(local) == ("EXTERNAL",)
    assert authenticator.authenticate("EXTERNAL", b"", local) == "u"
    with pytest.raises(LoginRefused):
        authenticator.authenticate("EXTERNAL", b"", FakePeer(local_user="nobody"))


def test_a_client_in_memory_that_acts_for_the_operator_may_do_everything() -> None:
    peer = FakePeer(is_operator=True)
    by_default = make_authenticator(AuthenticationSettings())
    assert by_default.mechanisms(peer) == ("EXTERNAL",)
    user = finished(by_default.authenticator.authenticate("EXTERNAL", b"", peer))
    assert isinstance(user, ExternalUser)
    assert (user.name, user.grants.permission("anything")) == ("none", Permission(".*", ".*", ".*"))


def test_a_client_in_memory_is_offered_external_although_no_other_client_is() -> None:
    by_default = make_authenticator(AuthenticationSettings())
    assert by_default.mechanisms(FakePeer(local_user="guest")) == ("EXTERNAL",)
    assert by_default.mechanisms(FakePeer(certificate_login="guest")) == ("AMQPLAIN", "PLAIN")


class LateAuthenticator:
    """An authenticator of a node that has not applied yet what the others have agreed on."""

    def __init__(self, *others: MetadataCommand) -> None:
        metadata = Metadata()
        self.proposals = LateProposals(metadata)
        finished(self.proposals.propose(user_with("guest", "guest")))
        self.proposals.others = list(others)
        self.fake = FakeDependencies()
        dependencies = self.fake.authentication(RefusalCheck(metadata, self.proposals))
        self.authenticator = Authenticator(metadata, ALL, dependencies)

    def log_in(self, name: str, password: str, peer: FakePeer = ELSEWHERE) -> str:
        return finished(self.authenticator.authenticate("PLAIN", plain(name, password), peer)).name


def user_with(name: str, password: str) -> PutUser:
    stored = hash_password(password, bytes(SALT_SIZE), SHA256)
    return PutUser(name=name, password_hash=stored.salted_hash, hashing_algorithm=stored.algorithm)


def test_a_user_whom_another_node_has_just_created_can_log_in() -> None:
    assert LateAuthenticator(user_with("u", "new")).log_in("u", "new") == "u"


def test_a_password_that_another_node_has_just_changed_is_accepted() -> None:
    late = LateAuthenticator(user_with("u", "new"))
    finished(late.proposals.propose(user_with("u", "old")))
    assert late.log_in("u", "new") == "u"


def test_a_certificate_of_a_user_whom_another_node_has_just_created_is_accepted() -> None:
    late = LateAuthenticator(user_with("u", "new"))
    peer = FakePeer(certificate_login="u")
    assert finished(late.authenticator.authenticate("EXTERNAL", b"", peer)).name == "u"


def test_a_wrong_password_is_compared_once_if_others_have_changed_something_else() -> None:
    late = LateAuthenticator(user_with("other", "x"))
    with pytest.raises(LoginRefused):
        late.log_in("u", "wrong")
    assert len(late.fake.jobs) == 1
    assert late.proposals.count == 1


def test_an_accepted_password_waits_for_no_other_node() -> None:
    late = LateAuthenticator(user_with("u", "new"))
    assert late.log_in("guest", "guest", HERE) == "guest"
    assert late.proposals.count == 0


def test_without_a_majority_a_wrong_password_is_refused() -> None:
    late = LateAuthenticator(user_with("u", "new"))
    late.proposals.has_majority = False
    with pytest.raises(LoginRefused):
        late.log_in("u", "new")
