"""Data that the metadata do not name is quarantined and reported; data of deleted objects is removed."""

import os
from pathlib import Path

import pytest

from warren.metadata.commands import (
    CommandContext,
    DeclareQueue,
    DeleteQueue,
    DoubtNumbers,
    PutVhost,
    RemoveVhost,
    SettleNumbers,
)
from warren.metadata.machine import Metadata
from warren.node.quarantine import Quarantine, finish_removals
from warren.node.vhost_folders import directory_name
from warren.store.streams.segment import segment_name


def known(*names: str) -> Metadata:
    metadata = Metadata()
    for index, name in enumerate(names, 1):
        metadata.apply(PutVhost(name=name), CommandContext(index=index, now=0))
    return metadata


def left_behind(data: Path, name: str) -> Path:
    path = data / "vhosts" / directory_name(name)
    path.mkdir(parents=True)
    (path / "name").write_text(f"{name}\n")
    (path / "00000001.segment").write_bytes(b"x")
    return path


def test_the_data_of_an_unknown_vhost_is_quarantined_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    quarantine = Quarantine(tmp_path, known("v"))
    mine, other = left_behind(tmp_path, "v"), left_behind(tmp_path, "other")
    quarantine.reconcile_vhosts(["v"])
    assert mine.exists()
    assert not other.exists()
    [item] = quarantine.items()
    assert (item.kind, item.vhost, item.messages) == ("vhost", "other", 0)
    assert (Path(item.path) / "00000001.segment").read_bytes() == b"x"
    assert "vhost 'other' is not in the metadata" in caplog.text
    assert item.id in caplog.text


def test_quarantined_data_is_listed_after_a_restart_and_restored_with_its_vhost(tmp_path: Path) -> None:
    path = left_behind(tmp_path, "other")
    Quarantine(tmp_path, known()).reconcile_vhosts([])
    again = Quarantine(tmp_path, known())
    again.begin()
    again.reconcile_vhosts([])
    assert [item.vhost for item in again.items()] == ["other"]
    restored = Quarantine(tmp_path, known("other"))
    restored.begin()
    restored.reconcile_vhosts(["other"])
    assert (path / "00000001.segment").exists()
    assert restored.items() == []


def test_two_directories_of_one_name_are_both_kept(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path, known())
    for _ in range(2):
        left_behind(tmp_path, "other")
        quarantine.reconcile_vhosts([])
    assert [item.vhost for item in quarantine.items()] == ["other", "other"]
    assert len({item.path for item in quarantine.items()}) == 2


def test_data_quarantined_by_an_older_version_is_kept(tmp_path: Path) -> None:
    path = left_behind(tmp_path, "other")
    path.rename(f"{path}.lost")
    quarantine = Quarantine(tmp_path, known())
    quarantine.reconcile_vhosts([])
    assert [item.vhost for item in quarantine.items()] == ["other"]


def test_an_interrupted_deletion_is_completed_from_the_journal(tmp_path: Path) -> None:
    metadata = known("v")
    path = left_behind(tmp_path, "v")
    metadata.apply(RemoveVhost(name="v"), CommandContext(index=2, now=0))
    finish_removals(tmp_path, metadata)
    assert not path.exists()
    assert not metadata.vhosts.removed
    quarantine = Quarantine(tmp_path, metadata)
    quarantine.reconcile_vhosts([])
    assert quarantine.items() == []
    assert list((tmp_path / "vhosts").iterdir()) == []


def test_the_data_of_a_recreated_vhost_is_not_removed(tmp_path: Path) -> None:
    metadata = known("v")
    metadata.apply(RemoveVhost(name="v"), CommandContext(index=2, now=0))
    metadata.apply(PutVhost(name="v"), CommandContext(index=3, now=0))
    path = left_behind(tmp_path, "v")
    finish_removals(tmp_path, metadata)
    assert path.exists()


def test_streams_not_deleted_by_a_command_are_quarantined_and_restored(tmp_path: Path) -> None:
    metadata = known("v")
    folder = tmp_path / "vhosts" / directory_name("v") / "streams"
    folder.mkdir(parents=True)
    for number in (1, 7):
        (folder / segment_name(number, 0)).write_bytes(b"x")
    metadata.next_number = 6
    quarantine = Quarantine(tmp_path, metadata)
    quarantine.reconcile_streams("v", folder, set())
    # Number 1 was deleted before queue 6 was declared; number 7 is unknown.
    assert os.listdir(folder) == [segment_name(1, 0)]
    [item] = quarantine.items()
    assert (item.kind, item.vhost, item.number, item.byte_count) == ("stream", "v", 7, 1)
    assert quarantine.number_max == 7
    again = Quarantine(tmp_path, metadata)
    again.begin()
    assert again.items() == [item]
    again.reconcile_streams("v", folder, {7})
    assert sorted(os.listdir(folder)) == [segment_name(1, 0), segment_name(7, 0)]
    assert again.items() == []


def test_removed_data_is_gone(tmp_path: Path) -> None:
    left_behind(tmp_path, "other")
    quarantine = Quarantine(tmp_path, known())
    quarantine.reconcile_vhosts([])
    [item] = quarantine.items()
    removal = quarantine.remove(item.id)
    assert removal is not None
    removal()
    assert not Path(item.path).exists()
    assert quarantine.items() == []
    assert quarantine.remove(item.id) is None


def test_a_number_is_deleted_by_a_command_unless_it_is_in_doubt() -> None:
    metadata = known("v")
    for index, name in ((2, "a"), (3, "b"), (4, "c")):
        metadata.apply(DeclareQueue(vhost="v", name=name, durable=True), CommandContext(index=index, now=0))
    metadata.apply(DeleteQueue(vhost="v", name="a"), CommandContext(index=5, now=0))
    assert [number for number in range(9) if metadata.was_deleted(number)] == [0, 1, 2, 3]
    metadata.apply(DoubtNumbers(until=100), CommandContext(index=6, now=0))
    assert metadata.next_number == 101
    assert not any(metadata.was_deleted(number) for number in range(1, 101))
    for name in ("d", "e"):
        metadata.apply(DeclareQueue(vhost="v", name=name, durable=True), CommandContext(index=7, now=0))
        metadata.apply(DeleteQueue(vhost="v", name=name), CommandContext(index=8, now=0))
    metadata.apply(DeleteQueue(vhost="v", name="b"), CommandContext(index=101, now=0))
    metadata.apply(SettleNumbers(numbers=(77,)), CommandContext(index=102, now=0))
    assert [number for number in range(1, 104) if metadata.was_deleted(number)] == [2, 77, 101, 102]
    metadata.apply(RemoveVhost(name="v"), CommandContext(index=103, now=0))
    assert metadata.was_deleted(3)
