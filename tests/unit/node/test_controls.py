"""Operations on a running node, and their refusals."""

import asyncio
import logging
from pathlib import Path

import pytest

from warren.management.controls import ControlRefused
from warren.node.config import Config
from warren.node.config_file import ConfigEntry
from warren.node.controls import NodeControls
from warren.node.monitors import Monitors
from warren.node.node_log import NodeLog


def controls(**entries: str) -> tuple[NodeControls, NodeLog]:
    given = {"log.console": "false", **{key.replace("__", "."): value for key, value in entries.items()}}
    config = Config([ConfigEntry(key, value, "here") for key, value in given.items()])
    log = NodeLog(config)
    return NodeControls(config, Monitors([]), log), log


@pytest.mark.parametrize(
    ("absolute", "relative", "text"),
    [
        (None, None, "give either absolute"),
        ("1GB", 0.4, "give either absolute"),
        ("much", None, "absolute must be a size"),
        (None, "much", "relative must be a number"),
        (None, -1, "relative must be a number"),
        ({}, None, "absolute must be a size"),
        ("1GB", None, "there is no disk alarm"),
    ],
)
def test_an_invalid_limit_is_refused(absolute: object, relative: object, text: str) -> None:
    found, log = controls()
    with pytest.raises(ControlRefused, match=text):
        found.set_limit("guest", "disk", absolute=absolute, relative=relative)
    log.stop()


def test_a_memory_limit_above_all_memory_is_refused_but_not_a_disk_limit() -> None:
    found, log = controls()
    for resource, text in (("memory", "between 0.0 and 1.0, not 1.5"), ("disk", "there is no disk alarm")):
        with pytest.raises(ControlRefused, match=text):
            found.set_limit("guest", resource, absolute=None, relative=1.5)
    log.stop()


def test_rotating_the_log_without_a_log_file_is_refused() -> None:
    found, log = controls()
    with pytest.raises(ControlRefused, match="there is no log file"):
        found.rotate_log("guest")
    view = found.log()
    assert (view.file, view.console, view.exchange) == ("", False, False)
    log.stop()


def test_unknown_log_levels_and_categories_are_named() -> None:
    found, log = controls()
    with pytest.raises(ControlRefused, match="no such level 'loud'"):
        found.set_log_level("guest", "loud", "")
    with pytest.raises(ControlRefused, match="no such category 'x': it must be one of connection"):
        found.set_log_level("guest", "info", "x")
    log.stop()


def test_the_user_who_changed_something_is_logged(tmp_path: Path) -> None:
    found, log = controls(log__file="log", log__dir=str(tmp_path), log__file__rotation__count="1")
    found.set_log_level("alice", "debug", "")
    assert found.log().levels == {"default": "debug"}

    async def work() -> None:
        assert found.rotate_log("bob") == str(tmp_path / "log")

    asyncio.run(work())
    log.stop()
    lines = (tmp_path / "log.0").read_text() if (tmp_path / "log.0").exists() else ""
    lines += (tmp_path / "log").read_text()
    assert "user 'alice': log level of all categories set to debug" in lines
    assert "user 'bob': log file rotated" in lines
    assert logging.getLogger("warren").handlers == []


def test_settings_are_shown_with_their_source() -> None:
    found, log = controls(default_pass="secret")
    rows = {row.key: row for row in found.settings()}
    assert (rows["default_pass"].value, rows["default_pass"].origin) == ("********", "here")
    assert rows["heartbeat"].origin == "default"
    log.stop()
