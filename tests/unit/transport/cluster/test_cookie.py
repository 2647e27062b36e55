"""The cookie: where it is looked for, and what is refused without telling any of it."""

import stat
from pathlib import Path

import pytest

from warren.limits_cluster import CLUSTER_COOKIE_SIZE_MAX
from warren.runtime.randomness import random_bytes
from warren.transport.cluster.cookie import COOKIE_VARIABLE, CookieError, find_cookie


def written(path: Path, content: bytes, mode: int = 0o600) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_the_setting_comes_first_then_the_variable_the_home_and_the_data_directory(tmp_path: Path) -> None:
    home, data = tmp_path / "home", tmp_path / "data"
    written(home / ".erlang.cookie", b"of the home\n", 0o400)
    written(data / "cookie", b"of the data\n")
    environment = {"HOME": str(home), COOKIE_VARIABLE: "of the environment"}
    assert find_cookie("of the setting", environment, data, bytes) == b"of the setting"
    assert find_cookie("", environment, data, bytes) == b"of the environment"
    assert find_cookie("", {"HOME": str(home)}, data, bytes) == b"of the home"
    assert find_cookie("", {"HOME": str(tmp_path)}, data, bytes) == b"of the data"


def test_a_cookie_is_generated_once_in_a_file_that_only_the_broker_can_read(tmp_path: Path) -> None:
    first = find_cookie("", {}, tmp_path, random_bytes)
    assert len(first) == 32
    assert first.isalnum()
    assert find_cookie("", {}, tmp_path, random_bytes) == first
    assert stat.S_IMODE((tmp_path / "cookie").stat().st_mode) == 0o600


def test_a_node_in_memory_has_another_cookie_each_time() -> None:
    assert find_cookie("", {}, None, random_bytes) != find_cookie("", {}, None, random_bytes)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path / "cookie", b"secret", mode)
    with pytest.raises(CookieError, match="set its mode to 0600") as refused:
        find_cookie("", {}, tmp_path, bytes)
    assert str(path) in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b" \n", "is empty"), (b"x" * (CLUSTER_COOKIE_SIZE_MAX + 1), "has more than 255 bytes")],
)
def test_a_cookie_of_a_wrong_size_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    written(tmp_path / "cookie", content)
    with pytest.raises(CookieError, match=reason):
        find_cookie("", {}, tmp_path, bytes)
    with pytest.raises(CookieError, match=reason):
        find_cookie(content.decode(), {}, None, bytes)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cookie").mkdir(0o700)
    with pytest.raises(CookieError, match="cookie"):
        find_cookie("", {}, tmp_path, bytes)


def test_a_directory_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CookieError, match="cannot write the cookie"):
        find_cookie("", {}, tmp_path / "missing", bytes)
