"""RabbitMQ's variables: what each sets, what prevails, and that none is ignored in silence."""

import re
from pathlib import Path

import pytest

from warren.node import log_settings, rabbitmq_environment, settings
from warren.node.config import Config, load
from warren.node.config_file import ConfigError
from warren.node.values import Address

SCRIPTS = Path("/usr/lib/rabbitmq/bin")
# What rabbit_env.erl of 3.10.8 and of 4.3 reads.
READ_BY_RABBITMQ = """
    RABBITMQ_ADVANCED_CONFIG_FILE RABBITMQ_ALLOW_INPUT RABBITMQ_BASE RABBITMQ_CONFIG_FILE
    RABBITMQ_CONFIG_FILES RABBITMQ_CONF_ENV_FILE RABBITMQ_DBG RABBITMQ_DEFAULT_PASS RABBITMQ_DEFAULT_USER
    RABBITMQ_DEFAULT_VHOST RABBITMQ_DIST_PORT RABBITMQ_ENABLED_PLUGINS RABBITMQ_ENABLED_PLUGINS_FILE
    RABBITMQ_ERLANG_COOKIE RABBITMQ_FEATURE_FLAGS RABBITMQ_FEATURE_FLAGS_FILE RABBITMQ_HOME
    RABBITMQ_KEEP_PID_FILE_ON_EXIT RABBITMQ_LOG RABBITMQ_LOGS RABBITMQ_LOG_BASE RABBITMQ_LOG_FF_REGISTRY
    RABBITMQ_MNESIA_BASE RABBITMQ_MNESIA_DIR RABBITMQ_MOTD_FILE RABBITMQ_NODENAME
    RABBITMQ_NODE_IP_ADDRESS RABBITMQ_NODE_PORT RABBITMQ_PID_FILE RABBITMQ_PLUGINS_DIR
    RABBITMQ_PLUGINS_EXPAND_DIR RABBITMQ_PRODUCT_NAME RABBITMQ_PRODUCT_VERSION RABBITMQ_QUORUM_DIR
    RABBITMQ_STREAM_DIR RABBITMQ_UPGRADE_LOG RABBITMQ_USE_LONGNAME SYS_PREFIX
"""
# What RabbitMQ's scripts set for themselves.
INTERNAL = {"RABBITMQ_ENV_LOADED", "RABBITMQ_IGNORE_SIGINT_FLAG", "RABBITMQ_START_RABBIT"}


def configured(text: str, folder: Path, **environment: str) -> Config:
    """The configuration of a file and of variables."""
    path = folder / "rabbitmq.conf"
    path.write_text(text)
    return load(str(path), environment)


def warning(**environment: str) -> str:
    """The one warning about variables."""
    (found,) = load("", environment).warnings
    return found


def test_the_default_user_and_its_virtual_host_prevail_over_the_file(tmp_path: Path) -> None:
    config = configured(
        "default_user = a\ndefault_pass = b\ndefault_vhost = c\ndefault_permissions.read = d\n",
        tmp_path,
        RABBITMQ_DEFAULT_USER="shop",
        RABBITMQ_DEFAULT_PASS="secret",
        RABBITMQ_DEFAULT_VHOST="store",
        RABBITMQ_DEFAULT_PERMISSIONS_READ="^s",
    )
    found = [
        config.get(setting)
        for setting in (
            settings.DEFAULT_USER, settings.DEFAULT_PASSWORD, settings.DEFAULT_VHOST, settings.DEFAULT_READ
        )
    ]  # fmt: skip
    assert found == ["shop", "secret", "store", "^s"]
    assert config.place("default_user") == "RABBITMQ_DEFAULT_USER"


def test_a_variable_of_warren_prevails_over_that_of_rabbitmq() -> None:
    config = load("", {"RABBITMQ_DEFAULT_USER": "a", "WARREN_DEFAULT_USER": "b"})
    assert config.get(settings.DEFAULT_USER) == "b"


def test_a_variable_may_name_a_file_with_the_value(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3 cret\n")
    named = {"RABBITMQ_DEFAULT_PASS_FILE": str(tmp_path / "secret")}
    assert load("", named).get(settings.DEFAULT_PASSWORD) == "s3 cret"
    with pytest.raises(
        ConfigError, match="RABBITMQ_DEFAULT_PASS and RABBITMQ_DEFAULT_PASS_FILE are both set"
    ):
        load("", named | {"RABBITMQ_DEFAULT_PASS": "x"})
    with pytest.raises(ConfigError, match=r"RABBITMQ_DEFAULT_USER_FILE: cannot read '/nosuch': No such file"):
        load("", {"RABBITMQ_DEFAULT_USER_FILE": "/nosuch"})


@pytest.mark.parametrize(
    ("port", "host", "address"),
    [("5673", "", Address("", 5673)), ("", "127.0.0.1", Address("127.0.0.1", 5672)),
     ("5673", "auto", Address("", 5673)), ("5673", "::1", Address("::1", 5673))],
)  # fmt: skip
def test_the_port_and_the_address_are_those_of_the_variables(port: str, host: str, address: Address) -> None:
    config = load("", {"RABBITMQ_NODE_PORT": port, "RABBITMQ_NODE_IP_ADDRESS": host})
    assert config.family(settings.TCP) == {"default": address}
    assert config.warnings == []


def test_listeners_of_the_file_prevail_over_the_port(tmp_path: Path) -> None:
    config = configured(
        "listeners.tcp.1 = 127.0.0.1:5674\n",
        tmp_path,
        RABBITMQ_NODE_PORT="5673",
        RABBITMQ_NODE_IP_ADDRESS="::1",
    )
    assert config.family(settings.TCP) == {"1": Address("127.0.0.1", 5674)}
    assert config.warnings == [
        "environment variables without effect: RABBITMQ_NODE_IP_ADDRESS, RABBITMQ_NODE_PORT: "
        "listeners.tcp is set elsewhere"
    ]


def test_an_invalid_port_is_refused_with_the_name_of_the_variable() -> None:
    with pytest.raises(ConfigError, match=r"RABBITMQ_NODE_PORT: listeners.tcp.default must be a port.*':x'"):
        load("", {"RABBITMQ_NODE_PORT": "x"})


def test_the_data_are_in_a_folder_of_the_directory_that_is_named(tmp_path: Path) -> None:
    base = {"RABBITMQ_MNESIA_BASE": "/data/base"}
    assert load("", base).get(settings.DATA_DIRECTORY) == "/data/base/warren"
    both = base | {"RABBITMQ_MNESIA_DIR": "/data/one"}
    assert load("", both).get(settings.DATA_DIRECTORY) == "/data/one/warren"
    assert configured("data_dir = /own\n", tmp_path, **both).get(settings.DATA_DIRECTORY) == "/own"


def test_the_file_with_the_process_id_is_where_scripts_wait_for_it(tmp_path: Path) -> None:
    file = {"RABBITMQ_PID_FILE": "/run/rabbitmq/pid"}
    assert load("", file).get(settings.PID_FILE) == "/run/rabbitmq/pid"
    assert configured("pid_file = /own\n", tmp_path, **file).get(settings.PID_FILE) == "/run/rabbitmq/pid"


def test_levels_and_outputs_of_the_log_are_taken_over(tmp_path: Path) -> None:
    config = configured(
        "log.default.level = error\n", tmp_path,
        RABBITMQ_LOG="warning,connection=debug,+color", RABBITMQ_LOGS="/var/log/r/a.log",
    )  # fmt: skip
    assert config.get(log_settings.LEVEL) == "WARNING"
    assert config.given("log.connection.level") == "debug"
    assert (config.get(log_settings.DIRECTORY), config.get(log_settings.FILE)) == ("/var/log/r", "a.log")
    assert load("", {"RABBITMQ_LOGS": "-"}).given("log.file") == "false"
    assert load("", {"RABBITMQ_LOG_BASE": "/var/log/r"}).get(log_settings.FILE) == "warren.log"


def test_certificates_of_the_image_open_the_ports_with_tls() -> None:
    config = load("", {
        "RABBITMQ_SSL_CA_FILE": "/ca", "RABBITMQ_SSL_CERTFILE": "/cert", "RABBITMQ_SSL_KEYFILE": "/key",
        "RABBITMQ_SSL_VERIFY": "verify_none", "RABBITMQ_MANAGEMENT_SSL_CERTFILE": "/own",
    })  # fmt: skip
    given = {key: config.given(key) for key in (
        "ssl_options.cacertfile", "ssl_options.certfile", "ssl_options.verify", "listeners.ssl.default",
        "management.ssl.cacertfile", "management.ssl.certfile", "management.ssl.port",
    )}  # fmt: skip
    assert list(given.values()) == ["/ca", "/cert", "verify_none", "5671", "/ca", "/own", "15671"]


@pytest.mark.parametrize(
    ("written", "key", "value"),
    [("0.5", "relative", "0.5"), ("50%", "relative", "0.5"), ("2GB", "absolute", "2GB"),
     ("1000000000", "absolute", "1000000000")],
)  # fmt: skip
def test_the_memory_limit_of_the_image_is_a_share_or_a_size(written: str, key: str, value: str) -> None:
    config = load("", {"RABBITMQ_VM_MEMORY_HIGH_WATERMARK": written})
    assert config.given(f"vm_memory_high_watermark.{key}") == value


def test_plugins_that_warren_lacks_are_named(tmp_path: Path) -> None:
    file = tmp_path / "enabled_plugins"
    file.write_text("[rabbitmq_management,rabbitmq_mqtt,\n rabbitmq_stomp].\n")
    named = {"RABBITMQ_ENABLED_PLUGINS_FILE": str(file)}
    assert warning(**named) == (
        "environment variables without effect: RABBITMQ_ENABLED_PLUGINS_FILE: of its plugins Warren lacks "
        "rabbitmq_mqtt, rabbitmq_stomp, and has the others built in"
    )
    assert load("", named | {"RABBITMQ_ENABLED_PLUGINS": "rabbitmq_management"}).warnings == []
    file.write_text("[rabbitmq_management,")
    with pytest.raises(ConfigError, match="enabled_plugins:1:"):
        load("", named)


def test_one_warning_names_all_variables_without_effect() -> None:
    assert warning(
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-rabbit x 1", RABBITMQ_IGNORE_SIGINT="true", RABBITMQ_X=""
    ) == (
        "environment variables without effect: RABBITMQ_IGNORE_SIGINT: Warren does not run on Erlang; "
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: Warren does not run on Erlang; settings among Erlang's "
        "arguments are keys of rabbitmq.conf"
    )


def test_variables_of_applications_are_not_those_of_rabbitmq() -> None:
    assert load("", {"RABBITMQ_HOST": "a", "RABBITMQ_PORT_5672_TCP": "b", "RABBITMQ_URL": "c"}).warnings == []


@pytest.mark.parametrize("name", READ_BY_RABBITMQ.split())
def test_each_variable_that_rabbitmq_reads_is_known(name: str) -> None:
    assert name in rabbitmq_environment.KNOWN


@pytest.mark.skipif(not SCRIPTS.exists(), reason="needs Debian's rabbitmq-server")
def test_each_variable_of_the_scripts_of_rabbitmq_is_known() -> None:
    text = "".join(
        (SCRIPTS / name).read_text() for name in ("rabbitmq-env", "rabbitmq-server", "rabbitmq-defaults")
    )
    read = set(re.findall(r"\$\{?(RABBITMQ_[A-Z_]+|ERL_[A-Z_]+)", text))
    assert read - INTERNAL - rabbitmq_environment.KNOWN == set()
