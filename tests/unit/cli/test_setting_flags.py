"""The command line flag of each setting: its name, its value and its precedence."""

import json
from collections import Counter
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner, Result

from warren.cli.config import config
from warren.cli.main import main
from warren.cli.server import serve
from warren.cli.setting_flags import FLAGS
from warren.node import settings, values
from warren.node.all_settings import ALL
from warren.node.setting_types import Family, Setting


def show(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(config, ["show", "--json", *arguments], env=environment)


def rows(*arguments: str, **environment: str) -> dict[str, tuple[str | None, str]]:
    result = show(*arguments, **environment)
    assert result.exit_code == 0, result.output
    return {row["key"]: (row["value"], row["origin"]) for row in json.loads(result.stdout)}


def member(family: Family[object]) -> str:
    """A name in `family`, with the first attribute of a group that is text."""
    attribute = next((name for name, parse in family.attributes.items() if parse is values.text), "")
    return f"1.{attribute}" if attribute else "1"


def sample(setting: Setting[object] | Family[object]) -> str:
    """A valid value of the setting."""
    for text in (
        "$D0",
        "true",
        "7",
        "0.5",
        "5672",
        "debug",
        "tlsv1.2",
        "PLAIN",
        "internal",
        "x",
        "common_name",
        "dns",
        "warren@host1",
        "600",
    ):
        try:
            setting.parse(text)
        except Exception:
            continue
        return text
    choices = getattr(setting.parse, "choices", None)
    return next(iter(choices)) if choices else "10MB"


def test_every_setting_has_a_flag_of_its_own() -> None:
    keys = {setting.key for setting in FLAGS.values()}
    assert keys | {settings.DATA_DIRECTORY.key} == {setting.key for setting in ALL}
    for command in (serve, config.commands["show"]):
        names = Counter(name for option in command.params for name in option.opts)
        assert [name for name, count in names.items() if count > 1] == []
        assert set(FLAGS) <= set(names)
        parameters = Counter(option.name for option in command.params)
        assert max(parameters.values()) == 1


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_is_named_after_its_setting_and_sets_it(flag: str) -> None:
    setting = FLAGS[flag]
    value = sample(setting)
    if isinstance(setting, Family):
        name = member(setting)
        found = rows(flag, f"{name}={value}")
        assert found[f"{setting.key}.{name}"][1] == flag
    else:
        found = rows(flag, value)
        assert found[setting.key][1] == flag
        if setting.is_secret:
            assert found[setting.key][0] == "********"


def test_the_source_of_highest_precedence_wins(tmp_path: Path) -> None:
    file = tmp_path / "warren.conf"
    file.write_text("heartbeat = 10\nchannel_max = 10\nframe_max = 8192\n")
    found = rows(
        "--config", str(file), "--heartbeat", "30", WARREN_HEARTBEAT="20", WARREN_CHANNEL_MAX="20"
    )  # fmt: skip
    assert found["heartbeat"] == ("30", "--heartbeat")
    assert found["channel_max"] == ("20", "WARREN_CHANNEL_MAX")
    assert found["frame_max"] == ("8192", f"{file}:3")
    assert found["handshake_timeout"][1] == "default"


def test_a_boolean_flag_without_a_value_is_true() -> None:
    assert rows("--log-exchange")["log.exchange"] == ("true", "--log-exchange")
    assert rows("--log-exchange=false")["log.exchange"] == ("false", "--log-exchange")
    assert rows("--log-exchange", "--heartbeat", "5")["heartbeat"] == ("5", "--heartbeat")


def test_the_port_for_other_nodes_has_the_address_of_all_listeners() -> None:
    found = rows("--cluster-port", "0", "--host", "127.0.0.1", WARREN_CLUSTER_LISTENERS_TCP_OTHER="7")
    assert found["cluster.listeners.tcp.default"] == ("127.0.0.1:0", "--cluster-port")
    assert "cluster.listeners.tcp.other" not in found
    assert found["distribution.listener.interface"] == ("127.0.0.1", "--host")
    assert rows("--host", "::1")["cluster.listeners.tcp"] == ("none", "default")


def test_members_of_a_family_are_named_individually() -> None:
    found = rows("--listeners-tcp", "a=5673", "--listeners-tcp", "b=127.0.0.1:5674")
    assert found["listeners.tcp.a"] == ("5673", "--listeners-tcp")
    assert found["listeners.tcp.b"] == ("127.0.0.1:5674", "--listeners-tcp")
    assert rows("--auth-mechanisms", "none")["auth_mechanisms"] == ("none", "--auth-mechanisms")
    dn = "cn=a,dc=b"
    assert rows("--auth-ldap-tags", f"administrator={dn}")["auth_ldap.tags.administrator"][0] == dn


def test_an_invalid_value_of_a_flag_is_reported() -> None:
    for arguments, text in (
        (("--heartbeat", "often"), "--heartbeat: heartbeat must be a number from 0 to 65535, not 'often'"),
        (("--listeners-tcp", "5673"), "--listeners-tcp: must be NAME=VALUE, or none, not '5673'"),
        (("--listeners-tcp", "=5673"), "--listeners-tcp: must be NAME=VALUE, or none, not '=5673'"),
    ):
        result = show(*arguments)
        assert result.exit_code == 1
        assert result.stderr == f"warren: {text}\n"


def test_the_short_help_leaves_out_flags_and_the_full_help_lists_all() -> None:
    short = CliRunner().invoke(serve, ["--help"]).output
    assert "--auth-ldap-port" not in short
    assert "--help-all" in short
    whole = CliRunner().invoke(serve, ["--help-all"], terminal_width=400)
    assert whole.exit_code == 0
    assert [flag for flag in FLAGS if f"{flag} " not in whole.output] == []
    assert "auth_ldap:" in whole.output


@pytest.mark.parametrize(
    ("words", "begun", "expected"),
    [
        (["serve"], "--auth-ldap-use-", ["--auth-ldap-use-ssl", "--auth-ldap-use-starttls"]),
        (["serve", "--log-exchange-formatter"], "", ["plaintext", "json"]),
        (["serve", "--auth-backends"], "1=o", ["1=oauth2"]),
        (["serve", "--log-exchange"], "t", ["true"]),
        (["config", "show"], "--heart", ["--heartbeat"]),
    ],
)
def test_flags_and_their_values_are_completed(words: list[str], begun: str, expected: list[str]) -> None:
    assert isinstance(main, click.Group)
    found = BashComplete(main, {}, "warren", "_WARREN_COMPLETE").get_completions(words, begun)
    assert [item.value for item in found] == expected


def test_a_renamed_setting_keeps_its_old_flag_which_help_does_not_list() -> None:
    result = show("--login-failures-free", "3")
    row = {row["key"]: row for row in json.loads(result.stdout)}["login_failures.allowed"]
    assert (row["value"], row["origin"]) == ("3", "--login-failures-free")
    assert "--login-failures-free" not in CliRunner().invoke(serve, ["--help-all"]).output
