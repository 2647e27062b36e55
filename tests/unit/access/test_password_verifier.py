"""Verification of passwords: the answer, how many hashes are computed, and what is cached."""

import pytest
from tests.unit.access.dependencies import FakeDependencies, finished

from warren.access.password_verifier import PasswordVerifier
from warren.access.passwords import ARGON2ID, SALT_SIZE, SHA256, hash_password
from warren.limits import PASSWORD_CACHE_MS
from warren.metadata.commands import PutUser, RemoveUser
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals


class Users:
    """A verifier with users whose passwords are hashed in several ways."""

    def __init__(self) -> None:
        self.fake = FakeDependencies()
        metadata = Metadata()
        self.local = LocalProposals(metadata, lambda: 0)
        self.put("new", "pass", ARGON2ID)
        self.put("old", "pass", SHA256)
        self.put("blank", "", ARGON2ID)
        self.local.apply(PutUser(name="none", password_hash=b"", hashing_algorithm=SHA256))
        self.verification = PasswordVerifier(metadata, self.fake.authentication())

    def put(self, name: str, password: str, algorithm: str) -> None:
        stored = hash_password(password, bytes(SALT_SIZE), algorithm)
        self.local.apply(
            PutUser(name=name, password_hash=stored.salted_hash, hashing_algorithm=stored.algorithm)
        )

    def is_let_in(self, name: str, password: str) -> bool:
        return finished(self.verification.is_password_of(name, password))

    @property
    def cost(self) -> int:
        """The number of argon2 computations so far."""
        return len(self.fake.jobs)


@pytest.fixture
def users() -> Users:
    return Users()


@pytest.mark.parametrize("name", ["new", "old"])
def test_the_correct_password_is_accepted(users: Users, name: str) -> None:
    assert users.is_let_in(name, "pass")


@pytest.mark.parametrize(
    ("name", "password"),
    [("new", "wrong"), ("old", "wrong"), ("nobody", "pass"), ("nobody", ""), ("blank", ""), ("none", "")],
)
def test_every_refusal_costs_one_hash_computation(users: Users, name: str, password: str) -> None:
    assert not users.is_let_in(name, password)
    assert users.cost == 1
    assert not users.is_let_in(name, password)
    assert users.cost == 2


def test_a_successful_verification_is_cached_for_a_while(users: Users) -> None:
    assert users.is_let_in("new", "pass")
    users.fake.now = PASSWORD_CACHE_MS - 1
    assert users.is_let_in("new", "pass")
    assert users.cost == 1
    assert not users.is_let_in("new", "wrong")
    assert users.cost == 2
    users.fake.now = PASSWORD_CACHE_MS
    assert users.is_let_in("new", "pass")
    assert users.cost == 3


def test_a_cache_entry_belongs_to_one_user_and_one_hash(users: Users) -> None:
    assert users.is_let_in("new", "pass")
    users.put("new", "other", ARGON2ID)
    assert not users.is_let_in("new", "pass")
    assert users.is_let_in("new", "other")
    users.local.apply(RemoveUser(name="new"))
    assert not users.is_let_in("new", "other")
    users.put("new", "third", ARGON2ID)
    assert not users.is_let_in("new", "other")


def test_identical_concurrent_verifications_share_one_computation(users: Users) -> None:
    users.fake.is_slow = True
    waiting = [users.verification.is_password_of("new", "pass") for _ in range(3)]
    other = users.verification.is_password_of("new", "wrong")
    for coroutine in (*waiting, other):
        coroutine.send(None)
    assert users.cost == 2
    for job in users.fake.jobs:
        job.arrive()
    assert [finished(coroutine) for coroutine in waiting] == [True] * 3
    assert not finished(other)
    assert users.is_let_in("new", "pass")
    assert users.cost == 2


def test_a_password_that_changes_during_its_verification_is_refused(users: Users) -> None:
    users.fake.is_slow = True
    coroutine = users.verification.is_password_of("new", "pass")
    coroutine.send(None)
    users.put("new", "other", ARGON2ID)
    users.fake.jobs[0].arrive()
    assert not finished(coroutine)
