"""Settings from files, environment and command line."""

import re
from pathlib import Path

import pytest

from warren.node import settings
from warren.node.all_settings import ALL
from warren.node.config import DEPRECATED_KEYS, Config, load
from warren.node.config_file import ConfigEntry, ConfigError
from warren.node.values import Address
from warren.transport.certificates import LoginFrom

RABBITMQ_CONF = r"""
# an ordinary file
listeners.tcp.default = 5673   ## a comment
listeners.tcp.1 = ::1:5674
listeners.ssl.2 = 127.0.0.1:5671
heartbeat=30
default_user = bob
default_pass = 'p#ss "word"'
default_user_tags.administrator = true
default_user_tags.monitoring = true
loopback_users.guest = false
ssl_options.certfile = /etc/warren/a certificate.pem
ssl_options.verify = verify_peer
ssl_options.versions.1 = tlsv1.3
ssl_cert_login_from = common_name
consumer_timeout = undefined
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 64MiB
auth_mechanisms.1 = EXTERNAL
auth_mechanisms.2 = PLAIN
num_acceptors.tcp = 10
queue_index_embed_msgs_below = 4kB
management.tcp.port = 15673
"""


def write(folder: Path, text: str, name: str = "rabbitmq.conf") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_rabbitmq_conf_is_read(tmp_path: Path) -> None:
    config = load(write(tmp_path, RABBITMQ_CONF), {})
    assert config.family(settings.TCP) == {"default": Address("", 5673), "1": Address("::1", 5674)}
    assert config.family(settings.TLS) == {"2": Address("127.0.0.1", 5671)}
    assert config.get(settings.HEARTBEAT) == 30
    assert config.get(settings.DEFAULT_USER) == "bob"
    assert config.get(settings.DEFAULT_PASSWORD) == 'p#ss "word"'
    assert config.family(settings.DEFAULT_TAGS) == {"administrator": True, "monitoring": True}
    assert config.family(settings.LOOPBACK_USERS) == {"guest": False}
    assert config.get(settings.LISTENER_TLS.certificate_file) == "/etc/warren/a certificate.pem"
    assert config.get(settings.LISTENER_TLS.is_peer_verified) is True
    assert config.family(settings.LISTENER_TLS.versions) == {"1": "tlsv1.3"}
    assert config.get(settings.LOGIN_FROM) is LoginFrom.COMMON_NAME
    assert config.get(settings.CONSUMER_TIMEOUT) is None
    assert config.get(settings.MEMORY_ABSOLUTE) == 10**9
    assert config.get(settings.DISK_ABSOLUTE) == 64 * 2**20
    assert list(config.family(settings.MECHANISMS).values()) == ["EXTERNAL", "PLAIN"]
    assert config.get(settings.MANAGEMENT_PORT) == 15673
    assert config.get(settings.FRAME_SIZE) == 131_072


def test_names_that_rabbitmq_4_gave_to_settings_are_read(tmp_path: Path) -> None:
    config = load(write(tmp_path, "max_connections = 5\nmax_channels_per_connection = 7\n"), {})
    assert (config.get(settings.CONNECTIONS_MAX), config.get(settings.CHANNELS)) == (5, 7)


def test_a_setting_without_effect_is_named_in_a_warning(tmp_path: Path) -> None:
    warnings = load(write(tmp_path, RABBITMQ_CONF), {}).warnings
    assert [warning.split(": ")[1] for warning in warnings] == [
        "num_acceptors.tcp has no effect",
        "queue_index_embed_msgs_below has no effect",
    ]
    assert [warning.split(": ")[2] for warning in warnings] == [
        "it configures Erlang, which Warren does not use",
        "the message store is a different one",
    ]


def test_a_toml_file_is_read(tmp_path: Path) -> None:
    text = """
    heartbeat = 30
    auth_mechanisms = ["EXTERNAL", "PLAIN"]
    [listeners]
    tcp = {default = 5673, 1 = "::1:5674"}
    [ssl_options]
    fail_if_no_peer_cert = true
    """
    config = load(write(tmp_path, text, "warren.toml"), {})
    assert config.family(settings.TCP) == {"default": Address("", 5673), "1": Address("::1", 5674)}
    assert config.family(settings.MECHANISMS) == {"1": "EXTERNAL", "2": "PLAIN"}
    assert config.get(settings.HEARTBEAT) == 30
    assert config.get(settings.LISTENER_TLS.is_certificate_required) is True


# One key a line, with the first and the last series of releases whose schema has it.
_KEYS = [
    line.split()
    for line in (Path(__file__).parent / "rabbitmq_keys.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(
    "series", ["3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "4.0", "4.1", "4.2", "4.3", "4.4"]
)
def test_every_key_of_rabbitmq_works_or_is_named_in_one_warning(series: str) -> None:
    there = [key for key, first, last in _KEYS if _number(first) <= _number(series) <= _number(last)]
    assert len(there) > 380
    unknown: list[str] = []
    for key in (re.sub(r"\$\w+", "1", key) for key in there):
        try:
            config = Config([ConfigEntry(key, "none", "here")])
        except ConfigError as error:
            # It is a setting, of which `none` is no value.
            unknown.extend([key] * ("unknown" in str(error)))
        else:
            ((_, reason),) = config.effects()
            assert config.warnings == ([f"here: {key} has no effect: {reason}"] if reason else [])
    assert not unknown


def _number(series: str) -> tuple[int, ...]:
    return tuple(map(int, series.split(".")))


def test_the_environment_overrides_the_file_and_the_command_line_overrides_both(tmp_path: Path) -> None:
    file = write(tmp_path, "heartbeat = 30\nlisteners.tcp.default = 1\nchannel_max = 5\n")
    environment = {"WARREN_HEARTBEAT": "40", "WARREN_LISTENERS_TCP_DEFAULT": "2", "PATH": "x"}
    config = load(file, environment)
    assert config.get(settings.HEARTBEAT) == 40
    assert config.get(settings.CHANNELS) == 5
    assert config.family(settings.TCP) == {"default": Address("", 2)}
    flags = [
        ConfigEntry("listeners.tcp", "none", "--port"),
        ConfigEntry("listeners.tcp.default", "3", "--port"),
    ]
    assert load(file, environment, flags).family(settings.TCP) == {"default": Address("", 3)}


def test_an_unknown_variable_is_a_warning_and_those_of_kubernetes_are_ignored() -> None:
    environment = {
        "WARREN_NONSENSE": "1",
        "WARREN_PORT": "tcp://10.0.0.1:5672",
        "WARREN_PORT_5672_TCP": "tcp://10.0.0.1:5672",
        "WARREN_SERVICE_HOST": "10.0.0.1",
    }
    assert load("", environment).warnings == ["WARREN_NONSENSE: unknown setting"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("heartbeet = 60", "unknown key 'heartbeet' (did you mean 'heartbeat'?)"),
        (
            "ssl_options.certifle = x",
            "unknown key 'ssl_options.certifle' (did you mean 'ssl_options.certfile'?)",
        ),
        ("zzz = x", "unknown key 'zzz'\n"),
        # What is alike and means something else is not suggested.
        ("management.path_suffix = /x", "unknown key 'management.path_suffix'\n"),
        ("mqtt_client.ssl_options.cacertfile = x", "unknown key 'mqtt_client.ssl_options.cacertfile'\n"),
        ("prometheus.tcp.path = x", "unknown key 'prometheus.tcp.path'\n"),
        (
            "listeners.tcp = 5672",
            "unknown key 'listeners.tcp', only 'listeners.tcp = none' or keys such as 'listeners.tcp.1'",
        ),
        ("heartbeat = soon", "heartbeat must be a number from 0 to 65535"),
        ("heartbeat = 65536", "heartbeat must be a number from 0 to 65535"),
        ("frame_max = 4095", "frame_max must be a number from 4096 to 268435456"),
        ("listeners.tcp.default = localhost", "listeners.tcp.default must be a port"),
        ("listeners.tcp.default = 65536", "listeners.tcp.default must be a port"),
        ("vm_memory_high_watermark.absolute = 1XB", "vm_memory_high_watermark.absolute must be a size"),
        ("proxy_protocol = maybe", "proxy_protocol must be true or false"),
        ("ssl_options.verify = always", "ssl_options.verify must be one of verify_peer, verify_none"),
        ("no equals sign", "not of the form 'key = value'"),
        ("= 5", "not of the form 'key = value'"),
    ],
)
def test_an_invalid_setting_is_refused_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    file = write(tmp_path, f"# one\n\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        load(file, {})
    assert f"{caught.value}\n".startswith(f"{file}:3: {message}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the configuration file '.*nowhere': No such file"):
        load(str(tmp_path / "nowhere"), {})
    for text in (f"heartbeat = {'9' * 5_000}", f"a = {'[' * 3_000}", f"{'a.' * 900}b = 1"):
        with pytest.raises(ConfigError, match=r"deep\.toml: "):
            load(write(tmp_path, text, "deep.toml"), {})
    with pytest.raises(ConfigError, match=r"warren\.toml: "):
        load(write(tmp_path, "a = = 1", "warren.toml"), {})


def test_the_value_none_empties_a_family() -> None:
    config = Config([ConfigEntry("loopback_users", "none", "x"), ConfigEntry("listeners.tcp", "none", "x")])
    assert config.family(settings.LOOPBACK_USERS) == {}
    assert config.family(settings.TCP) == {}
    config = Config([ConfigEntry(r"loopback_users.a\.b", "true", "x")])
    assert config.family(settings.LOOPBACK_USERS) == {"a.b": True}
    assert config.place("loopback_users.a.b") == "x"


def test_every_setting_has_a_description_and_a_unique_key() -> None:
    keys = [setting.key for setting in ALL]
    assert len(keys) == len(set(keys)) > 50
    # The reference and the help show each description without its neighbours.
    assert not [key.key for key in ALL if len(key.reason) < 20 or "the same" in key.reason]


def test_every_default_in_the_settings_reference_is_valid() -> None:
    page = (Path(__file__).parents[3] / "docs/guide/settings.md").read_text()
    rows = [row.split(" | ", 2)[:2] for row in page.splitlines() if row.startswith("| `")]
    assert len(rows) == len(ALL)
    for key, default in ((key.strip("| `"), default) for key, default in rows):
        for value in [] if default == "none" else default.split("<br>"):
            name, _, of_family = value.strip("`").rpartition(" = ")
            Config([ConfigEntry(key.replace("…", name), of_family, "the page")])


def test_files_of_a_directory_are_read_in_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "20.conf").write_text("heartbeat = 2\n")
    (tmp_path / "10.toml").write_text("heartbeat = 1\nchannel_max = 5\n")
    (tmp_path / "README").write_text("not a setting")
    config = load(str(tmp_path), {})
    assert (config.get(settings.HEARTBEAT), config.get(settings.CHANNELS)) == (2, 5)
    assert config.place("heartbeat") == f"{tmp_path / '20.conf'}:1"
    assert config.place("channel_max") == str(tmp_path / "10.toml")


def test_variables_of_rabbitmq_name_configuration_files(tmp_path: Path) -> None:
    write(tmp_path, "heartbeat = 1\n")
    more = tmp_path / "conf.d"
    more.mkdir()
    (more / "a.conf").write_text("channel_max = 5\n")
    names = {"RABBITMQ_CONFIG_FILE": str(tmp_path / "rabbitmq"), "RABBITMQ_CONFIG_FILES": str(more)}
    config = load("", names)
    assert (config.get(settings.HEARTBEAT), config.get(settings.CHANNELS)) == (1, 5)
    own = {**names, "WARREN_CONFIG": str(more)}
    assert load("", own).files == (str(more),)


def test_values_may_refer_to_environment_variables(tmp_path: Path) -> None:
    file = write(tmp_path, "default_pass = $(SECRET)-$(OTHER)\ncluster_name = $5 $( x\n")
    config = load(file, {"SECRET": "a", "OTHER": "b"})
    assert (config.get(settings.DEFAULT_PASSWORD), config.get(settings.CLUSTER_NAME)) == ("a-b", "$5 $( x")
    with pytest.raises(ConfigError, match=r":1: default_pass: the environment has no variable 'OTHER'"):
        load(file, {"SECRET": "a"})


def test_an_error_shows_the_invalid_value_unless_it_is_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"heartbeat must be a number from 0 to 65535, not 'often'"):
        load(write(tmp_path, "heartbeat = often\n"), {})
    with pytest.raises(ConfigError, match="default_pass is encrypted by RabbitMQ") as refused:
        load(write(tmp_path, "default_pass = encrypted:s3cret\n"), {})
    assert "s3cret" not in str(refused.value)


def test_a_renamed_setting_works_under_its_old_key_with_a_warning(tmp_path: Path) -> None:
    assert DEPRECATED_KEYS == {"login_failures.free": "login_failures.allowed"}
    file = write(tmp_path, "login_failures.free = 3\n")
    config = load(file, {})
    assert config.get(settings.LOGIN_FAILURES) == 3
    assert config.warnings == [f"{file}:1: login_failures.free is deprecated: use login_failures.allowed"]
    config = load(file, {"WARREN_LOGIN_FAILURES_FREE": "4"})
    assert config.get(settings.LOGIN_FAILURES) == 4
    assert config.place("login_failures.allowed") == "WARREN_LOGIN_FAILURES_FREE"
    assert load(write(tmp_path, "login_failures.allowed = 5\n"), {}).warnings == []
