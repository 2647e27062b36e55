"""Password hashes of RabbitMQ, measured and constructed, and argon2id."""

from base64 import b64decode
from hashlib import md5, pbkdf2_hmac, sha512

import pytest
from argon2 import Type, extract_parameters
from argon2.low_level import hash_secret

from warren.access.passwords import (
    ARGON2ID,
    DECOY_SIZE,
    PBKDF2_SHA256,
    PUBLISHED_PASSWORD,
    PUBLISHED_PASSWORD_HASH,
    SHA256,
    decoy_hash,
    hash_password,
    is_affordable,
    is_password,
    is_quick,
)
from warren.metadata.users import PasswordHash

# As RabbitMQ 3.10.8 exported the user `low` with the password `low`.
EXPORTED = PasswordHash(b64decode("UyUVJpRZR6sAIQD2r4q5VISgbphywMkm2zx7PyPoNq6qMIgZ"), SHA256)
SALT = b"sixteen octets !"


def test_a_hash_made_by_rabbitmq_matches_only_its_password() -> None:
    assert is_password("low", EXPORTED)
    assert not is_password("Low", EXPORTED)
    assert is_quick(EXPORTED)


def test_a_new_hash_is_argon2id_with_its_parameters() -> None:
    stored = hash_password("geheim", SALT)
    assert stored.algorithm == ARGON2ID
    assert stored.salted_hash.startswith(b"$argon2id$v=19$m=19456,t=2,p=1$")
    assert is_password("geheim", stored)
    assert not is_password("Geheim", stored)
    assert not is_quick(stored)


def test_the_decoy_hash_has_the_parameters_of_a_new_hash_and_matches_nothing() -> None:
    decoy, stored = decoy_hash(bytes(range(DECOY_SIZE))), hash_password("geheim", SALT)
    assert (decoy.algorithm, len(decoy.salted_hash)) == (stored.algorithm, len(stored.salted_hash))
    parameters = [extract_parameters(found.salted_hash.decode()) for found in (decoy, stored)]
    assert parameters[0] == parameters[1]
    assert is_affordable(decoy)
    assert not is_quick(decoy)
    assert not is_password("", decoy)


def test_the_hash_of_the_published_password_is_one_that_would_be_made_now() -> None:
    assert is_password(PUBLISHED_PASSWORD, PUBLISHED_PASSWORD_HASH)
    made = hash_password(PUBLISHED_PASSWORD, SALT)
    assert PUBLISHED_PASSWORD_HASH.algorithm == made.algorithm
    published, now = (
        extract_parameters(each.salted_hash.decode()) for each in (PUBLISHED_PASSWORD_HASH, made)
    )
    assert published == now


def test_a_hash_of_rabbitmq_begins_with_four_bytes_of_salt() -> None:
    stored = hash_password("geheim", SALT, SHA256)
    assert stored.salted_hash[:4] == SALT[:4]
    assert len(stored.salted_hash) == 36
    assert is_password("geheim", stored)


@pytest.mark.parametrize(
    ("algorithm", "digest"),
    [
        ("rabbit_password_hashing_sha512", sha512(b"saltpass").digest()),
        ("rabbit_password_hashing_md5", md5(b"saltpass", usedforsecurity=False).digest()),
    ],
)
def test_the_other_hash_algorithms_of_rabbitmq_are_supported(algorithm: str, digest: bytes) -> None:
    assert is_password("pass", PasswordHash(b"salt" + digest, algorithm))
    assert not is_password("pass!", PasswordHash(b"salt" + digest, algorithm))


def test_a_pbkdf2_hash_of_rabbitmq_4_4_matches_only_its_password() -> None:
    # 210,000 rounds of HMAC-SHA-256, with a salt of 16 bytes; before the release of RabbitMQ 4.4 it had four.
    for salt in (SALT, SALT[:4]):
        stored = PasswordHash(salt + pbkdf2_hmac("sha256", b"geheim", salt, 210_000), PBKDF2_SHA256)
        assert is_password("geheim", stored)
        assert not is_password("Geheim", stored)
        assert not is_quick(stored)
    assert hash_password("geheim", SALT, PBKDF2_SHA256).salted_hash[:16] == SALT
    assert not is_password("", PasswordHash(b"", PBKDF2_SHA256))


def test_no_password_matches_an_empty_hash_or_an_unknown_algorithm() -> None:
    assert not is_password("", PasswordHash(b"", SHA256))
    assert not is_password("", PasswordHash(b"salt", SHA256))
    assert not is_password("", PasswordHash(b"", ARGON2ID))
    assert not is_password("pass", PasswordHash(hash_password("pass", SALT, SHA256).salted_hash, "rot13"))


@pytest.mark.parametrize("algorithm", [SHA256, ARGON2ID])
def test_a_password_may_hold_any_text(algorithm: str) -> None:
    assert is_password("päss\udcff", hash_password("päss\udcff", SALT, algorithm))


@pytest.mark.parametrize(
    ("memory_kib", "passes", "lanes", "kind", "is_taken"),
    [
        (65_536, 3, 4, Type.ID, True),
        (65_544, 1, 1, Type.ID, False),
        (8, 11, 1, Type.ID, False),
        (72, 1, 9, Type.ID, False),
        (64, 1, 1, Type.I, False),
    ],
)
def test_an_imported_hash_may_not_require_too_much_memory(
    memory_kib: int, passes: int, lanes: int, kind: Type, is_taken: bool
) -> None:
    stored = PasswordHash(hash_secret(b"pass", SALT, passes, memory_kib, lanes, 32, kind), ARGON2ID)
    assert is_affordable(stored) is is_taken
    assert is_password("pass", stored) is is_taken


@pytest.mark.parametrize(
    "data", [b"$argon2id$", b"\xff\xfe", b"salt and a digest", b"$argon2id$v=19$m=8,t=1,p=1$$"]
)
def test_a_malformed_argon2_hash_is_refused(data: bytes) -> None:
    stored = PasswordHash(data, ARGON2ID)
    assert not is_password("pass", stored)


def test_hashes_of_rabbitmq_are_always_within_the_bounds() -> None:
    assert is_affordable(EXPORTED)
    assert is_affordable(PasswordHash(b"", ARGON2ID))
