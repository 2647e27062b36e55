"""The file of a Unix socket."""

import socket
import stat
from pathlib import Path

import pytest

from warren.transport.unix_sockets import bind_unix, file_number, remove_unix


def test_a_file_that_nobody_listens_on_is_replaced_with_the_permissions_asked_for(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    bind_unix(path, 0o600, 1).close()
    assert stat.S_ISSOCK(Path(path).stat().st_mode)
    with bind_unix(path, 0o666, 1):
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o666


def test_a_socket_that_somebody_listens_on_stays_also_if_its_backlog_is_full(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with bind_unix(path, 0o600, 0), socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(path)
        for _ in range(2):
            with pytest.raises(OSError, match="somebody listens"):
                bind_unix(path, 0o600, 1)


def test_another_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match="no socket"):
        bind_unix(str(path), 0o600, 1)
    target = tmp_path / "target"
    path.unlink()
    path.symlink_to(target)
    with pytest.raises(FileExistsError, match="no socket"):
        bind_unix(str(path), 0o600, 1)
    assert path.is_symlink()


def test_only_the_own_file_is_removed(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with bind_unix(path, 0o600, 1):
        number = file_number(path)
        Path(path).rename(tmp_path / "moved")
        with bind_unix(path, 0o600, 1):
            remove_unix(path, number)
            assert Path(path).exists()
            remove_unix(path, file_number(path))
            assert not Path(path).exists()
    remove_unix(path, number)
