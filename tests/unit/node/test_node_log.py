"""The destinations of the log and their levels."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from warren.node.config import Config
from warren.node.config_file import ConfigEntry, ConfigError
from warren.node.node_log import NodeLog


@contextmanager
def log(folder: Path, settings: Mapping[str, str]) -> Iterator[NodeLog]:
    """A log in `folder` that is not written to standard error."""
    given = {"log.console": "false", "log.file": "warren.log", "log.dir": str(folder), **settings}
    started = NodeLog(Config([ConfigEntry(key, value, "x") for key, value in given.items()]))
    try:
        yield started
    finally:
        started.stop()


def written(folder: Path) -> list[str]:
    return (folder / "warren.log").read_text().splitlines()


def test_the_file_contains_lines_of_its_level_and_above(tmp_path: Path) -> None:
    with log(tmp_path, {"log.file.level": "error"}):
        logging.getLogger("warren.x").warning("no")
        logging.getLogger("warren.x").error("yes")
    [line] = written(tmp_path)
    assert line.endswith("[error] <warren.x> yes")


def test_a_file_may_have_a_lower_level_and_json(tmp_path: Path) -> None:
    with log(tmp_path, {"log.file.level": "debug", "log.file.formatter": "json"}):
        logging.getLogger("warren.x").debug("yes", extra={"fields": {"user": "guest"}})
    [line] = written(tmp_path)
    found = json.loads(line)
    assert (found["level"], found["msg"], found["user"]) == ("debug", "yes", "guest")


def test_a_category_has_its_own_level(tmp_path: Path) -> None:
    with log(tmp_path, {"log.connection.level": "error", "log.audit.level": "none"}):
        for name in ("connection", "audit", "node"):
            logging.getLogger(f"warren.{name}").info("%s", name)
    assert [line.rpartition(" ")[2] for line in written(tmp_path)] == ["node"]


@pytest.mark.parametrize(
    ("category", "name"),
    [("connection", "connection"), ("user", "login"), ("user", "tokens"), ("federation", "federation")],
)
def test_a_category_may_have_a_file_of_its_own(tmp_path: Path, category: str, name: str) -> None:
    keys = {f"log.{category}.file": "own.log", f"log.{category}.level": "warning"}
    with log(tmp_path, keys) as started:
        logging.getLogger(f"warren.{name}").info("no")
        logging.getLogger(f"warren.{name}").warning("own")
        logging.getLogger("warren.node").info("other")
        (tmp_path / "own.log").rename(tmp_path / "old.log")
        started.reopen()
        logging.getLogger(f"warren.{name}").warning("later")
    assert [line.rpartition(" ")[2] for line in written(tmp_path)] == ["other"]
    lines = [
        *(tmp_path / "old.log").read_text().splitlines(),
        *(tmp_path / "own.log").read_text().splitlines(),
    ]
    assert [line.rpartition(" ")[2] for line in lines] == ["own", "later"]


def test_the_file_of_a_category_follows_the_level_of_all_and_is_rotated(tmp_path: Path) -> None:
    keys = {
        "log.file": "false",
        "log.user.file": "own.log",
        "log.user.rotation.size": "1",
        "log.user.rotation.count": "2",
    }
    with log(tmp_path, keys) as started:
        logging.getLogger("warren.login").debug("no")
        assert started.set_level("debug")
        for text in ("one", "two"):
            logging.getLogger("warren.login").debug("%s", text)
    assert (tmp_path / "own.log").read_text().endswith("two\n")
    assert (tmp_path / "own.log.0").read_text().endswith("one\n")


def test_a_file_is_rotated_as_configured(tmp_path: Path) -> None:
    rotation = {"log.file.rotation.size": "10", "log.file.rotation.count": "1"}
    with log(tmp_path, rotation):
        for text in ("one", "two", "three"):
            logging.getLogger("warren.x").info("%s", text)
    assert [line.rpartition(" ")[2] for line in written(tmp_path)] == ["three"]
    assert (tmp_path / "warren.log.0").read_text().endswith("two\n")


def test_an_unwritable_log_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    entries = [
        ConfigEntry("log.file", str(tmp_path / "file" / "x.log"), "x"),
        ConfigEntry("log.console", "false", "x"),
    ]
    with pytest.raises(ConfigError, match=r"cannot write the log file '.*x\.log'"):
        NodeLog(Config(entries))


def test_a_level_can_be_changed_at_run_time(tmp_path: Path) -> None:
    with log(tmp_path, {}) as started:
        texts = logging.getLogger("warren.x")
        texts.debug("no")
        assert started.levels() == {"default": "info"}
        assert started.set_level("debug")
        texts.debug("yes")
        assert started.set_level("error", "connection")
        logging.getLogger("warren.connection").warning("no")
        assert started.levels() == {"default": "debug", "connection": "error"}
        assert not started.set_level("loud")
    assert [line.rpartition(" ")[2] for line in written(tmp_path)] == ["yes"]


def test_the_level_none_logs_nothing(tmp_path: Path) -> None:
    with log(tmp_path, {}) as started:
        assert started.set_level("none")
        logging.getLogger("warren.x").critical("no")
        assert started.levels() == {"default": "none"}
    assert written(tmp_path) == []


def test_a_file_with_its_own_level_keeps_it(tmp_path: Path) -> None:
    with log(tmp_path, {"log.file.level": "warning"}) as started:
        assert started.set_level("debug")
        logging.getLogger("warren.x").info("no")
        logging.getLogger("warren.x").warning("yes")
    assert [line.rpartition(" ")[2] for line in written(tmp_path)] == ["yes"]
