"""The key of a node, and encryption with it."""

import stat
from pathlib import Path

import pytest

from warren.runtime.secret_key import KEY_SIZE, SecretKey, read_or_create_key


def test_a_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    # Left by a power cut before the key was complete.
    (tmp_path / "secret.key.new").write_bytes(b"torn")
    key = read_or_create_key(path)
    assert len(key) == KEY_SIZE
    assert read_or_create_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["secret.key"]


def test_a_key_of_another_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    path.write_bytes(b"short")
    with pytest.raises(OSError, match="it has 5 bytes instead of 64"):
        read_or_create_key(path)


def test_data_are_decrypted_with_their_key_only() -> None:
    one, other = SecretKey(bytes(KEY_SIZE)), SecretKey(b"\x01" * KEY_SIZE)
    data = one.encrypt(b"data")
    assert data != b"data"
    assert (one.decrypt(data), other.decrypt(data), one.decrypt(data[:-1]), one.decrypt(b"")) == (
        b"data",
        None,
        None,
        None,
    )
