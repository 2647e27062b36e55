"""The choice of the data directory from configuration and environment."""

from itertools import pairwise
from pathlib import Path

import pytest

from warren.node.config import Config, load
from warren.node.config_file import ConfigEntry
from warren.node.data_directory import chosen_directory
from warren.node.errors import BootRefused

HOME = {"HOME": "/people/ann"}
USER, ROOT = 1000, 0


def test_the_default_is_a_directory_in_the_home_of_the_user() -> None:
    assert chosen_directory(Config(), HOME, USER) == Path("/people/ann/.local/share/warren")


def test_the_xdg_variable_changes_the_default() -> None:
    for user in (USER, ROOT):
        found = chosen_directory(Config(), HOME | {"XDG_DATA_HOME": "/srv/ann"}, user)
        assert found == Path("/srv/ann/warren")
    # The XDG specification requires that relative paths are ignored.
    assert chosen_directory(Config(), HOME | {"XDG_DATA_HOME": "srv"}, ROOT) == Path("/var/lib/warren")


def test_root_uses_the_directory_of_services() -> None:
    assert chosen_directory(Config(), {"HOME": "/people/root"}, ROOT) == Path("/var/lib/warren")


@pytest.mark.parametrize("environment", [{}, {"HOME": ""}, {"HOME": "ann"}])
def test_without_a_home_directory_the_setting_is_required(environment: dict[str, str]) -> None:
    with pytest.raises(BootRefused, match="--data-dir, or choose --in-memory"):
        chosen_directory(Config(), environment, USER)


def test_a_configured_directory_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert chosen_directory(load("", {"WARREN_DATA_DIR": "data"}), HOME, USER) == tmp_path / "data"


def test_memory_can_be_chosen() -> None:
    assert chosen_directory(load("", {"WARREN_IN_MEMORY": "true"}), HOME, USER) is None
    assert chosen_directory(Config([ConfigEntry("in_memory", "true", "warren.conf:1")]), {}, USER) is None


def test_of_memory_and_a_directory_the_source_of_higher_precedence_counts() -> None:
    places = ["warren.conf:3", "WARREN_…", "--…"]
    for lower, higher in pairwise(places):
        memory, directory = ConfigEntry("in_memory", "true", higher), ConfigEntry("data_dir", "/data", lower)
        assert chosen_directory(Config([directory, memory]), HOME, USER) is None
        memory, directory = ConfigEntry("in_memory", "true", lower), ConfigEntry("data_dir", "/data", higher)
        assert chosen_directory(Config([memory, directory]), HOME, USER) == Path("/data")


def test_both_from_one_source_are_refused() -> None:
    for place in ("warren.conf:3", "WARREN_…", "--…"):
        config = Config([ConfigEntry("in_memory", "true", place), ConfigEntry("data_dir", "/data", place)])
        with pytest.raises(BootRefused, match="data_dir and in_memory are both set"):
            chosen_directory(config, HOME, USER)
