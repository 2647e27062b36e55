"""The file advanced.config: where it is looked for, and what becomes of each of its sections."""

from pathlib import Path

import pytest

from warren.metadata.commands import OPERATOR
from warren.node import advanced_config
from warren.node.config import Config, load
from warren.node.config_file import ConfigError
from warren.node.static_shovels import static_shovels

SHOVEL = """[{source, [{uris, ["amqp://u:secret@a"]}, {queue, <<"q">>}]},
    {destination, [{uris, ["amqp://"]}]}]"""
FILE = f"""%% RabbitMQ's file
[{{rabbit, [{{tcp_listeners, [5673]}}, {{loopback_users, []}}]}},
 {{rabbitmq_shovel, [{{shovels, [{{classic, {SHOVEL}}}]}}]}},
 {{kernel, [something]}}].
"""


def written(tmp_path: Path, text: str, name: str = "advanced.config") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_the_file_in_the_environment_is_read(tmp_path: Path) -> None:
    file = written(tmp_path, FILE, "other.config")
    config = load("", {"RABBITMQ_ADVANCED_CONFIG_FILE": file})
    static = static_shovels(config)
    assert [(shovel.name, shovel.user, shovel.is_static) for shovel in static.shovels] == [
        ("classic", OPERATOR, True)
    ]
    assert static.shovels[0].source_declarations == ()
    assert static.definitions["classic"]["src-queue"] == "q"


def test_the_file_beside_the_configuration_is_read(tmp_path: Path) -> None:
    file = written(tmp_path, FILE)
    conf = written(tmp_path, "heartbeat = 30\n", "rabbitmq.conf")
    for environment in ({"RABBITMQ_CONFIG_FILE": conf}, {"WARREN_CONFIG": conf}):
        assert load("", environment).advanced.file == file
    assert load(conf, {}).advanced.file == file
    folder = tmp_path / "conf.d"
    folder.mkdir()
    assert load("", {"RABBITMQ_CONFIG_FILES": str(folder)}).advanced.file == file


def test_without_the_file_there_is_nothing() -> None:
    assert load("", {}).advanced == advanced_config.AdvancedConfig()
    assert static_shovels(Config()).shovels == ()


def test_a_file_in_the_environment_that_does_not_exist_is_a_warning() -> None:
    config = load("", {"RABBITMQ_ADVANCED_CONFIG_FILE": "/nosuch/advanced.config"})
    assert config.warnings == ["RABBITMQ_ADVANCED_CONFIG_FILE: there is no file '/nosuch/advanced.config'"]


def test_every_other_setting_is_named_in_a_warning(tmp_path: Path) -> None:
    file = written(tmp_path, FILE)
    found = advanced_config.read(file)
    assert [warning.partition(" has no effect")[0] for warning in found.warnings] == [
        f"{file}: rabbit.tcp_listeners",
        f"{file}: rabbit.loopback_users",
        f"{file}: kernel.something",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[{rabbit, [}].", ":1:12: a term cannot begin with '}'"),
        ("[].\n[].", ": it has to be one list of sections, not 2 terms"),
        ("{rabbit, []}.", ": the file has to be a list"),
        ('["other.config"].', ": the file: each entry has to be {key, value}"),
        ("[{rabbitmq_shovel, shovels}].", ": rabbitmq_shovel has to be a list"),
        ("[{rabbit, 1}].", ": rabbit has to be a list, not 1"),
        (
            '[{rabbitmq_shovel, [{shovels, [{s, [{queue, {encrypted, <<"abc">>}}]}]}]}].',
            ": a value is encrypted by RabbitMQ, whose key Warren does not have: write it in clear",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_place(tmp_path: Path, text: str, error: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        advanced_config.read(file)
    assert str(caught.value).startswith(f"{file}{error}")


def test_a_wrong_shovel_is_refused_with_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, FILE.replace("{queue", "{prefetch_count, many}, {queue"))
    with pytest.raises(ConfigError) as caught:
        static_shovels(load("", {"RABBITMQ_ADVANCED_CONFIG_FILE": file}))
    assert str(caught.value).startswith(f"{file}: shovel 'classic': source: prefetch_count has to be")


def test_a_shovel_of_both_configurations_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, FILE)
    keys = ("src-uri = amqp://", "src-queue = q", "dest-uri = amqp://")
    conf = written(tmp_path, "".join(f"shovel.classic.{key}\n" for key in keys), "rabbitmq.conf")
    with pytest.raises(ConfigError) as caught:
        static_shovels(load(conf, {}))
    assert str(caught.value) == f"{file}: shovel 'classic' is defined in {conf}:1 as well"


def test_a_large_file_is_refused_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = written(tmp_path, " " * 2_000_000)
    with pytest.raises(ConfigError, match="larger than"):
        advanced_config.read(file)
    Path(file).write_bytes(b"[\xff].")
    with pytest.raises(ConfigError, match="not UTF-8"):
        advanced_config.read(file)
