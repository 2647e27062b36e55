"""What is deleted when a node joins or leaves a cluster, and what stays."""

from pathlib import Path

from warren.node.data_erasure import erase


def test_metadata_and_messages_are_deleted_and_what_is_the_nodes_own_stays(tmp_path: Path) -> None:
    for name in ("metadata", "vhosts", "quarantine"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").write_bytes(b"data")
    for name in ("losses", "sessions", "node", "cookie", "secret.key", "warren.lock", "notes.txt"):
        (tmp_path / name).write_bytes(b"data")
    erase(tmp_path)
    erase(tmp_path)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["cookie", "node", "notes.txt", "secret.key", "warren.lock"]


def test_a_link_is_deleted_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_bytes(b"data")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "vhosts").symlink_to(tmp_path / "elsewhere")
    erase(tmp_path / "data")
    assert not (tmp_path / "data" / "vhosts").is_symlink()
    assert (tmp_path / "elsewhere" / "file").exists()
