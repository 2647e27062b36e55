"""Password hashes that RabbitMQ made, and that it could have made."""

from base64 import b64decode
from hashlib import md5, sha512

import pytest

from warren.access.passwords import DEFAULT_ALGORITHM, hash_password, is_password

# As RabbitMQ 3.10.8 exported the user `low` with the password `low`.
EXPORTED = "UyUVJpRZR6sAIQD2r4q5VISgbphywMkm2zx7PyPoNq6qMIgZ"


def test_a_hash_that_rabbitmq_made_is_matched_by_its_password_alone() -> None:
    assert is_password("low", b64decode(EXPORTED), "rabbit_password_hashing_sha256")
    assert not is_password("Low", b64decode(EXPORTED), "rabbit_password_hashing_sha256")


def test_a_hash_begins_with_its_salt() -> None:
    stored = hash_password("geheim", b"salt")
    assert stored[:4] == b"salt"
    assert len(stored) == 36
    assert is_password("geheim", stored, DEFAULT_ALGORITHM)


@pytest.mark.parametrize(
    ("algorithm", "digest"),
    [
        ("rabbit_password_hashing_sha512", sha512(b"saltpass").digest()),
        ("rabbit_password_hashing_md5", md5(b"saltpass", usedforsecurity=False).digest()),
    ],
)
def test_other_algorithms_of_rabbitmq_are_known(algorithm: str, digest: bytes) -> None:
    assert is_password("pass", b"salt" + digest, algorithm)
    assert not is_password("pass!", b"salt" + digest, algorithm)


def test_no_password_matches_an_empty_hash_or_an_unknown_algorithm() -> None:
    assert not is_password("", b"", DEFAULT_ALGORITHM)
    assert not is_password("", b"salt", DEFAULT_ALGORITHM)
    assert not is_password("pass", hash_password("pass", b"salt"), "rot13")


def test_a_password_may_hold_any_text() -> None:
    assert is_password("päss\udcff", hash_password("päss\udcff", b"salt"), DEFAULT_ALGORITHM)
