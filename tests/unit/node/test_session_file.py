"""The file of sessions of the web interface."""

import asyncio
from pathlib import Path

import pytest
from google_crc32c import value

from warren.management.web_sessions import StoredWebSession
from warren.node.config import Config, ConfigEntry
from warren.node.session_file import SessionFile, SessionFileError, basis_of

BASIS = b"b" * 32
ALICE = StoredWebSession(b"\xff" * 32, "älice", b"\x00" * 32, 1_700_000_000_000, 1_700_000_000_001)


@pytest.fixture
def file(tmp_path: Path) -> SessionFile:
    return SessionFile(tmp_path, BASIS)


def write(file: SessionFile, *sessions: StoredWebSession) -> None:
    asyncio.run(file.write(list(sessions)))


def test_the_file_is_read_as_written_and_readable_by_its_owner_only(
    file: SessionFile, tmp_path: Path
) -> None:
    assert file.read() == []
    write(file, ALICE)
    assert file.read() == [ALICE]
    assert (tmp_path / "sessions").stat().st_mode & 0o777 == 0o600
    write(file)
    assert file.read() == []
    assert [path.name for path in tmp_path.iterdir()] == ["sessions"]


def test_the_format_is_as_the_module_documents(file: SessionFile, tmp_path: Path) -> None:
    write(file, ALICE)
    data = (tmp_path / "sessions").read_bytes()
    assert data[:40] == b"WRNSES\x00\x01" + BASIS
    assert (
        data[40:-4]
        == (
            '[{"token":"' + "/" * 42 + '8=","user":"älice","password":"' + "A" * 43 + '=",'
            '"began_at":1700000000000,"used_at":1700000000001}]'
        ).encode()
    )
    assert data[-4:] == value(data[:-4]).to_bytes(4, "big")


def test_a_file_with_any_changed_byte_invalidates_all_sessions(file: SessionFile, tmp_path: Path) -> None:
    write(file, ALICE)
    path = tmp_path / "sessions"
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(SessionFileError):
            file.read()
        path.write_bytes(data[:at])
        with pytest.raises(SessionFileError, match="damaged"):
            file.read()


@pytest.mark.parametrize("json", [b"", b"{}", b'[{"token":"?"}]', b'[{"token":1}]', b"[null]"])
def test_a_valid_file_with_unexpected_content_invalidates_all_sessions(
    file: SessionFile, tmp_path: Path, json: bytes
) -> None:
    data = b"WRNSES\x00\x01" + BASIS + json
    (tmp_path / "sessions").write_bytes(data + value(data).to_bytes(4, "big"))
    with pytest.raises(SessionFileError, match="damaged"):
        file.read()


def test_a_newer_format_is_named(file: SessionFile, tmp_path: Path) -> None:
    write(file, ALICE)
    path = tmp_path / "sessions"
    path.write_bytes(path.read_bytes()[:6] + b"\x00\x02" + path.read_bytes()[8:])
    with pytest.raises(SessionFileError, match="format 2 is newer than 1"):
        file.read()


def test_changed_authentication_settings_invalidate_all_sessions(file: SessionFile, tmp_path: Path) -> None:
    write(file, ALICE)
    assert SessionFile(tmp_path, b"c" * 32).read() == []
    default = basis_of(Config())
    assert default == basis_of(Config())
    others = [
        {"auth_backends.1": "ldap"},
        {"auth_backends.1": "internal", "auth_backends.2": "oauth2"},
        {"loopback_users.guest": "false"},
    ]
    assert (
        len(
            {
                default,
                *(basis_of(Config(ConfigEntry(*pair, "x") for pair in chosen.items())) for chosen in others),
            }
        )
        == 4
    )


def test_a_write_error_is_reported_and_ended_sessions_are_not_restored(
    file: SessionFile, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(file, ALICE)
    (tmp_path / "sessions.new").mkdir()
    write(file)
    assert file.read() == []
    assert "a restart will end them" in caplog.text
