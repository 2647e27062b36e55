"""What every setting is, where it comes from, and whether a file is right."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from warren.cli.config import config
from warren.node import settings
from warren.node.settings import Family


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "warren.conf"
    path.write_text(
        "heartbeat = 30\nlisteners.tcp.internal = 127.0.0.1:1\n"
        "default_pass = s3cret-marker\nhipe_compile = true\n"
    )
    return str(path)


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(config, arguments, env=environment)


def test_each_value_is_shown_with_where_it_comes_from(file: str) -> None:
    shown = run("show", "--config", file, "--json", WARREN_CHANNEL_MAX="7")
    rows = {row["key"]: (row["value"], row["origin"]) for row in json.loads(shown.stdout)}
    assert rows["heartbeat"] == ("30", f"{file}:1")
    assert rows["listeners.tcp.internal"] == ("127.0.0.1:1", f"{file}:2")
    assert rows["channel_max"] == ("7", "WARREN_CHANNEL_MAX")
    assert rows["frame_max"] == ("131072", "default")
    assert rows["listeners.ssl.…"] == (None, "default")
    assert rows["default_pass"] == ("********", f"{file}:3")
    assert "s3cret-marker" not in shown.output
    assert {key.removesuffix(".…") for key in rows} >= {
        setting.key for setting in settings.ALL if not isinstance(setting, Family)
    }


def test_only_what_was_changed_is_shown_if_that_is_wanted(file: str) -> None:
    lines = run("show", "--config", file, "--changed").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["listeners.tcp.internal", "heartbeat", "default_pass"]


def test_without_anything_nothing_was_changed() -> None:
    assert run("show", "--changed").stdout == ""


def test_a_file_that_can_be_used_is_checked_with_its_warnings(file: str) -> None:
    checked = run("check", file)
    assert checked.exit_code == 0
    assert f"warning: {file}:4: hipe_compile has no effect yet" in checked.output
    assert f"{file}: can be used; settings in it: 3" in checked.output


def test_a_file_that_cannot_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "warren.conf"
    path.write_text("\nheartbeet = 30\n")
    checked = run("check", str(path))
    assert checked.exit_code == 1
    assert f"warren: {path}:2: unknown key 'heartbeet' (did you mean 'heartbeat'?)" in checked.output
