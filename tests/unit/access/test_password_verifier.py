"""Whether a password is a user's, what that costs, and what is remembered of it."""

import pytest
from tests.unit.access.world import Imagined, finished

from warren.access.password_verifier import PasswordVerifier
from warren.access.passwords import ARGON2ID, SALT_SIZE, SHA256, hash_password
from warren.limits import PASSWORD_CACHE_MS
from warren.metadata.commands import PutUser, RemoveUser
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals


class Users:
    """Those who may be asked about."""

    def __init__(self) -> None:
        self.imagined = Imagined()
        metadata = Metadata()
        self.local = LocalProposals(metadata, lambda: 0)
        self.put("new", "pass", ARGON2ID)
        self.put("old", "pass", SHA256)
        self.put("blank", "", ARGON2ID)
        self.local.apply(PutUser(name="none", password_hash=b"", hashing_algorithm=SHA256))
        self.verification = PasswordVerifier(metadata, self.imagined.world())

    def put(self, name: str, password: str, algorithm: str) -> None:
        stored = hash_password(password, bytes(SALT_SIZE), algorithm)
        self.local.apply(PutUser(name=name, password_hash=stored.octets, hashing_algorithm=stored.algorithm))

    def is_let_in(self, name: str, password: str) -> bool:
        return finished(self.verification.is_password_of(name, password))

    @property
    def cost(self) -> int:
        """How often argon2 was computed."""
        return len(self.imagined.jobs)


@pytest.fixture
def users() -> Users:
    return Users()


@pytest.mark.parametrize("name", ["new", "old"])
def test_the_right_password_is_right(users: Users, name: str) -> None:
    assert users.is_let_in(name, "pass")


@pytest.mark.parametrize(
    ("name", "password"),
    [("new", "wrong"), ("old", "wrong"), ("nobody", "pass"), ("nobody", ""), ("blank", ""), ("none", "")],
)
def test_whatever_is_wrong_costs_one_computation(users: Users, name: str, password: str) -> None:
    assert not users.is_let_in(name, password)
    assert users.cost == 1
    assert not users.is_let_in(name, password)
    assert users.cost == 2


def test_what_was_right_is_remembered_for_a_while(users: Users) -> None:
    assert users.is_let_in("new", "pass")
    users.imagined.now = PASSWORD_CACHE_MS - 1
    assert users.is_let_in("new", "pass")
    assert users.cost == 1
    assert not users.is_let_in("new", "wrong")
    assert users.cost == 2
    users.imagined.now = PASSWORD_CACHE_MS
    assert users.is_let_in("new", "pass")
    assert users.cost == 3


def test_what_is_remembered_is_of_one_user_and_one_hash(users: Users) -> None:
    assert users.is_let_in("new", "pass")
    users.put("new", "other", ARGON2ID)
    assert not users.is_let_in("new", "pass")
    assert users.is_let_in("new", "other")
    users.local.apply(RemoveUser(name="new"))
    assert not users.is_let_in("new", "other")
    users.put("new", "third", ARGON2ID)
    assert not users.is_let_in("new", "other")


def test_who_asks_the_same_at_once_has_the_same_answer(users: Users) -> None:
    users.imagined.is_slow = True
    waiting = [users.verification.is_password_of("new", "pass") for _ in range(3)]
    other = users.verification.is_password_of("new", "wrong")
    for coroutine in (*waiting, other):
        coroutine.send(None)
    assert users.cost == 2
    for job in users.imagined.jobs:
        job.arrive()
    assert [finished(coroutine) for coroutine in waiting] == [True] * 3
    assert not finished(other)
    assert users.is_let_in("new", "pass")
    assert users.cost == 2


def test_a_password_that_is_changed_meanwhile_is_not_right(users: Users) -> None:
    users.imagined.is_slow = True
    coroutine = users.verification.is_password_of("new", "pass")
    coroutine.send(None)
    users.put("new", "other", ARGON2ID)
    users.imagined.jobs[0].arrive()
    assert not finished(coroutine)
