"""The lock of the data directory."""

import os
from pathlib import Path

import pytest

from warren.runtime.locked_directory import DirectoryUnusable, LockedDirectory, make_directory


def test_the_directory_is_created_and_locked_until_it_is_closed(tmp_path: Path) -> None:
    name = str(tmp_path / "a" / "b")
    first = LockedDirectory(name)
    assert first.path.is_dir()
    with pytest.raises(
        DirectoryUnusable, match=rf"the data directory '{name}' is in use by process {os.getpid()}"
    ):
        LockedDirectory(name)
    first.close()
    LockedDirectory(name).close()


def test_a_new_directory_is_accessible_by_its_owner_only(tmp_path: Path) -> None:
    LockedDirectory(str(tmp_path / "a" / "b")).close()
    assert [(tmp_path / "a" / name).stat().st_mode & 0o777 for name in ("", "b", "b/warren.lock")] == [
        0o700, 0o700, 0o600,
    ]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), [(0o755, 0o750), (0o2777, 0o2770), (0o700, 0o700)])
def test_write_access_of_others_to_an_existing_directory_is_removed(
    tmp_path: Path, before: int, after: int
) -> None:
    path = tmp_path / "old"
    path.mkdir()
    path.chmod(before)
    LockedDirectory(str(path)).close()
    assert path.stat().st_mode & 0o7777 == after


def test_a_file_instead_of_a_directory_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DirectoryUnusable, match=r"cannot use the data directory '.*file'"):
        LockedDirectory(str(tmp_path / "file"))


def test_a_lock_that_is_not_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "warren.lock")
    with pytest.raises(DirectoryUnusable, match=r"warren\.lock': it is not a regular file"):
        LockedDirectory(str(tmp_path))
    (tmp_path / "warren.lock").unlink()
    (tmp_path / "warren.lock").symlink_to(tmp_path / "nowhere" / "at all")
    with pytest.raises(DirectoryUnusable, match=r"warren\.lock': No such file"):
        LockedDirectory(str(tmp_path))


@pytest.mark.parametrize("is_there", [False, True])
def test_all_parent_directories_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(
        "warren.runtime.locked_directory.os.fsync",
        lambda file: synced.append(Path(os.readlink(f"/proc/self/fd/{file}"))),
    )
    path = tmp_path / "a" / "b"
    if is_there:
        path.mkdir(parents=True)
    make_directory(path)
    assert path.is_dir()
    assert synced == ([] if is_there else [tmp_path]) + [tmp_path / "a"]
