"""A missing store is detected: its directory, or the catalogs that list its files."""

import shutil
from pathlib import Path

import pytest

from warren.node.known_stores import KnownStores
from warren.node.vhost_folders import directory_name


def made(tmp_path: Path) -> Path:
    """The directory of a store, with a catalog and a stream catalog."""
    path = tmp_path / directory_name("v")
    (path / "streams").mkdir(parents=True)
    (path / "catalog").touch()
    (path / "streams" / "00000000-00000000000000000000.catalog").touch()
    return path


def known(tmp_path: Path, *vhosts: str) -> KnownStores:
    return KnownStores(tmp_path, vhosts or ("v",))


def test_a_complete_store_is_not_reported_missing(tmp_path: Path) -> None:
    path = made(tmp_path)
    known(tmp_path).add("v")
    assert known(tmp_path).missing("v", path, [1]) == []


def test_a_store_that_never_existed_is_not_reported_missing(tmp_path: Path) -> None:
    assert known(tmp_path).missing("v", tmp_path / "x", [1]) == []
    known(tmp_path).add("v")
    assert known(tmp_path, "v", "w").missing("w", tmp_path / "x", [1]) == []


def test_a_missing_directory_is_reported_with_its_queues(tmp_path: Path) -> None:
    known(tmp_path).add("v")
    [error] = known(tmp_path).missing("v", tmp_path / directory_name("v"), {7, 3})
    assert str(error) == f"{directory_name('v')}, byte 0: the directory of the virtual host is missing"
    assert (error.messages, error.queues) == (None, (3, 7))


@pytest.mark.parametrize("part", ["catalog", "streams", "streams/00000000-00000000000000000000.catalog"])
def test_a_missing_catalog_is_reported(tmp_path: Path, part: str) -> None:
    path = made(tmp_path)
    known(tmp_path).add("v")
    lost = path / part
    shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
    [error] = known(tmp_path).missing("v", path, [1])
    assert error.name.endswith("catalog")
    assert error.messages is None


def test_the_store_of_a_deleted_vhost_is_not_reported_missing(tmp_path: Path) -> None:
    stores = known(tmp_path)
    stores.add("v")
    stores.forget("v")
    assert known(tmp_path).missing("v", tmp_path / "x", []) == []
    # Also if the node was killed before the vhost was removed from the list.
    stores.add("v")
    known(tmp_path, "w").add("w")
    assert known(tmp_path, "v", "w").missing("v", tmp_path / "x", []) == []


@pytest.mark.parametrize("data", [b"", b"\xff", b"[1]", b"null", b'{"a": 1', b"[" * 100_000])
def test_an_unreadable_list_is_reported_and_written_anew(
    tmp_path: Path, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "stores").write_bytes(data)
    stores = known(tmp_path)
    assert "cannot read" in caplog.text
    stores.add("v")
    assert len(known(tmp_path).missing("v", tmp_path / "x", [])) == 1


def test_a_store_whose_record_could_not_be_written_is_recorded_by_the_next_attempt(tmp_path: Path) -> None:
    folder = tmp_path / "metadata"
    known = KnownStores(folder, ["v"])
    with pytest.raises(FileNotFoundError):
        known.add("v")
    folder.mkdir()
    known.add("v")
    assert KnownStores(folder, ["v"]).missing("v", tmp_path / "gone", [])
