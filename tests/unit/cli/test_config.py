"""`warren config`: each setting with its source, and the check of a file."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.cli.test_setting_flags import member

from warren.cli.config import config
from warren.node import cluster_settings, settings, vhost_settings
from warren.node.all_settings import ALL
from warren.node.setting_types import Family, Setting
from warren.node.values import InvalidValue, OneOf

# Each file has every sixteenth setting: a file for each of them takes seconds.
GROUPS = 16
# Which have several keys, and values that depend on each other.
DEPENDENT = [
    settings.STATIC_SHOVELS,
    *(
        one
        for module in (cluster_settings, vhost_settings)
        for one in vars(module).values()
        if isinstance(one, (Setting, Family))
    ),
]


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


def test_each_value_is_shown_with_its_source(file: str) -> None:
    shown = run("show", "--config", file, "--json", WARREN_CHANNEL_MAX="7")
    rows = {row["key"]: (row["value"], row["origin"]) for row in json.loads(shown.stdout)}
    assert rows["heartbeat"] == ("30", f"{file}:1")
    assert rows["listeners.tcp.internal"] == ("127.0.0.1:1", f"{file}:2")
    assert rows["channel_max"] == ("7", "WARREN_CHANNEL_MAX")
    assert rows["frame_max"] == ("131072", "default")
    assert rows["listeners.ssl"] == ("none", "default")
    assert rows["default_pass"] == ("********", f"{file}:3")
    assert "s3cret-marker" not in shown.output
    assert set(rows) >= {setting.key for setting in ALL if not isinstance(setting, Family)}


def test_show_can_be_limited_to_changed_settings(file: str) -> None:
    lines = run("show", "--config", file, "--changed").stdout.splitlines()
    assert lines == [
        f"listeners.tcp.internal = 127.0.0.1:1  # {file}:2",
        f"heartbeat = 30                        # {file}:1",
        f"# default_pass = ********             # {file}:3",
    ]


def chosen(setting: Setting[object] | Family[object]) -> str:
    """A value other than the default."""
    parse = setting.parse
    if isinstance(parse, OneOf):
        words = parse.choices
        return next((word for word in words if words[word] != setting.default), next(iter(words)))
    for written in ("true", "false", "5", "20000", "0.5", "127.0.0.1:7", "$W5D16", "a # b", "600"):
        try:
            if parse(written) != setting.default:
                return written
        except InvalidValue:
            continue
    raise AssertionError(setting.key)


def passes(tmp_path: Path, shown: Result) -> dict[str, str]:
    """The settings that result from the shown file, which must be valid."""
    path = tmp_path / "shown.conf"
    path.write_text(shown.stdout)
    checked = run("check", str(path))
    assert (checked.exit_code, checked.stderr) == (0, ""), checked.output
    again = json.loads(run("show", "--config", str(path), "--json").stdout)
    return {row["key"]: row["value"] for row in again}


def test_shown_defaults_are_a_valid_file(tmp_path: Path) -> None:
    rows = json.loads(run("show", "--json").stdout)
    expected = {row["key"]: row["value"] for row in rows}
    assert passes(tmp_path, run("show")) == expected


@pytest.mark.parametrize("group", range(GROUPS))
def test_shown_settings_are_a_valid_file(tmp_path: Path, group: int) -> None:
    changed = {
        setting.key + (f".{member(setting)}" if isinstance(setting, Family) else ""): setting
        for setting in ALL[group::GROUPS]
        if setting not in DEPENDENT
    }
    path = tmp_path / "warren.conf"
    path.write_text("".join(f'{key} = "{chosen(setting)}"\n' for key, setting in changed.items()))
    rows = json.loads(run("show", "--config", str(path), "--json").stdout)
    before = {row["key"]: row["value"] for row in rows}
    assert changed.keys() <= before.keys()
    after = passes(tmp_path, run("show", "--config", str(path)))
    secret = {key for key, one in changed.items() if isinstance(one, Setting) and one.is_secret}
    assert {key: value for key, value in after.items() if key not in secret} == {
        key: value for key, value in before.items() if key not in secret
    }


def test_shown_settings_of_a_cluster_are_a_valid_file(tmp_path: Path) -> None:
    path = tmp_path / "warren.conf"
    path.write_text(
        "".join(
            f"{key} = {value}\n"
            for key, value in {
                "node.name": "w1@h1", "cluster.listeners.tcp.internal": "10.0.0.1:7",
                "distribution.listener.interface": "10.0.0.2", "distribution.listener.port_range.min": "8",
                "cluster.advertised_host": "h1.example", "cluster.advertised_port": "9",
                "cluster.ssl_options.cacertfile": "ca.pem", "cluster.ssl_options.certfile": "node.pem",
                "cluster.ssl_options.keyfile": "node.key",
                "cluster_formation.peer_discovery_backend": "rabbit_peer_discovery_classic_config",
                "cluster_formation.classic_config.nodes.1": "w1@h1",
                "cluster_formation.classic_config.nodes.2": "w2@h2:25673",
                "cluster_formation.seed": "w2@h2", "cluster_formation.target_cluster_size_hint": "2",
                "cluster_formation.discovery_retry_limit": "5",
                "cluster_formation.discovery_retry_interval": "700",
                "cluster_partition_handling": "pause_if_all_down",
                "cluster_partition_handling.pause_if_all_down.nodes.1": "w2@h2",
            }.items()
        )
    )  # fmt: skip
    before = {
        row["key"]: row["value"] for row in json.loads(run("show", "--config", str(path), "--json").stdout)
    }
    assert passes(tmp_path, run("show", "--config", str(path))) == before


def test_settings_of_a_cluster_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "warren.conf"
    path.write_text("cluster_formation.peer_discovery_backend = dns\ncluster_partition_handling = autoheal\n")
    checked = run("check", str(path))
    assert checked.exit_code == 1
    assert "is dns, but cluster_formation.dns.hostname is not set" in checked.stderr
    path.write_text("cluster_partition_handling = autoheal\n")
    checked = run("check", str(path))
    assert checked.exit_code == 0
    assert "cluster_partition_handling: autoheal has the effect of ignore" in checked.stderr


def test_without_configuration_nothing_is_changed() -> None:
    assert run("show", "--changed").stdout == ""


def test_a_check_says_of_each_key_whether_it_has_an_effect(tmp_path: Path) -> None:
    path = tmp_path / "warren.conf"
    path.write_text("heartbeat = 30\nhipe_compile = true\nmax_connections = 5\nheartbeat = 40\n")
    checked = run("check", str(path))
    assert checked.exit_code == 0
    assert checked.stdout.splitlines() == [
        f"{path}:1: heartbeat has no effect: {path}:4 overrides it",
        f"{path}:2: hipe_compile has no effect: it configures Erlang, which Warren does not use",
        f"{path}:3: max_connections has an effect",
        f"{path}:4: heartbeat has an effect",
        f"{path}: valid; 2 of 4 keys have an effect",
    ]
    assert checked.stderr == ""


def test_an_invalid_file_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "warren.conf"
    path.write_text("\nheartbeet = 30\n")
    checked = run("check", str(path))
    assert checked.exit_code == 1
    assert f"warren: {path}:2: unknown key 'heartbeet' (did you mean 'heartbeat'?)" in checked.output
