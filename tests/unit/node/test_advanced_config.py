"""The file advanced.config: where it is looked for, and what becomes of each of its sections."""

from pathlib import Path

import pytest

from warren.metadata.commands import OPERATOR
from warren.node import advanced_config, settings
from warren.node.config import Config, load
from warren.node.config_file import ConfigError
from warren.node.static_shovels import static_shovels
from warren.node.values import Address

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


def test_what_has_no_key_is_named_in_a_warning(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """[{rabbit, [{collect_statistics_interval, 5000},
            {ssl_options, [{ciphers, [{rsa, aes_128_cbc, sha}]}]}, {heartbeat, {a, b, c}},
            {default_users, [{<<"a">>, []}]}]},
         {kernel, [something]}].""",
    )
    found = advanced_config.read(file)
    assert found.entries == ()
    assert [warning.removeprefix(f"{file}: ").split(" has no effect: ") for warning in found.warnings] == [
        ["rabbit.collect_statistics_interval", "statistics are always collected"],
        [
            "rabbit.ssl_options.ciphers",
            "rabbit.ssl_options.ciphers: {rsa,aes_128_cbc,sha} cannot be read as a value",
        ],
        ["rabbit.heartbeat", "rabbit.heartbeat: {a,b,c} cannot be read as a value"],
        ["rabbit.default_users", "no key of the configuration stands for it"],
        ["kernel.something", "no key of the configuration stands for it"],
    ]


CLASSIC = """[
 {rabbit, [
   {tcp_listeners, [5673, {"::1", 5674}]}, {ssl_listeners, []}, {heartbeat, 30}, {loopback_users, []},
   {default_user, <<"bob">>}, {default_pass, <<"s3cret">>}, {default_user_tags, [monitoring]},
   {default_permissions, [<<"^a">>, <<"^b">>, <<"^c">>]},
   {auth_mechanisms, ['EXTERNAL', 'PLAIN']},
   {auth_backends, [rabbit_auth_backend_internal, {rabbit_auth_backend_ldap, rabbit_auth_backend_internal}]},
   {vm_memory_high_watermark, {absolute, "1GB"}}, {disk_free_limit, {mem_relative, 1.5}},
   {ssl_options, [{certfile, "/c.pem"}, {verify, verify_peer}, {versions, ['tlsv1.3']}]},
   {tcp_listen_options, [{backlog, 5}, {linger, {true, 0}}, {nodelay, true}]}]},
 {rabbitmq_management, [{listener, [{port, 12345}, {ssl, true}, {ssl_opts, [{certfile, "/m.pem"}]}]}]},
 {rabbitmq_auth_backend_ldap, [{dn_lookup_bind, {"cn=a", "pw"}}, {other_bind, anon}]}
]."""


def test_the_classic_format_is_read_as_the_keys_that_stand_for_it(tmp_path: Path) -> None:
    file = written(tmp_path, CLASSIC, "rabbitmq.config")
    config = load(file, {})
    assert config.warnings == []
    assert config.family(settings.TCP) == {"1": Address("", 5673), "2": Address("::1", 5674)}
    assert config.family(settings.TLS) == config.family(settings.LOOPBACK_USERS) == {}
    assert config.family(settings.DEFAULT_TAGS) == {"monitoring": True}
    assert list(config.family(settings.MECHANISMS).values()) == ["EXTERNAL", "PLAIN"]
    assert config.family(settings.LISTENER_TLS.versions) == {"1": "tlsv1.3"}
    assert {
        key: config.given(key)
        for key in (
            "heartbeat", "default_user", "default_pass", "default_permissions.write", "auth_backends.1",
            "auth_backends.2.authn", "auth_backends.2.authz", "disk_free_limit.relative",
            "vm_memory_high_watermark.absolute", "ssl_options.certfile", "ssl_options.verify",
            "tcp_listen_options.backlog", "tcp_listen_options.linger.on", "management.ssl.port",
            "management.ssl.certfile", "management.tcp.port", "auth_ldap.dn_lookup_bind.password",
            "auth_ldap.other_bind",
        )
    } == {
        "heartbeat": "30", "default_user": "bob", "default_pass": "s3cret", "default_permissions.write": "^b",
        "auth_backends.1": "rabbit_auth_backend_internal",
        "auth_backends.2.authn": "rabbit_auth_backend_ldap",
        "auth_backends.2.authz": "rabbit_auth_backend_internal",
        "disk_free_limit.relative": "1.5", "vm_memory_high_watermark.absolute": "1GB",
        "ssl_options.certfile": "/c.pem", "ssl_options.verify": "verify_peer",
        "tcp_listen_options.backlog": "5", "tcp_listen_options.linger.on": "true",
        "management.ssl.port": "12345", "management.ssl.certfile": "/m.pem", "management.tcp.port": None,
        "auth_ldap.dn_lookup_bind.password": "pw", "auth_ldap.other_bind": "anon",
    }  # fmt: skip
    assert config.place("heartbeat") == file
    assert load("", {"RABBITMQ_CONFIG_FILE": file.removesuffix(".config")}).get(settings.HEARTBEAT) == 30


def test_the_advanced_file_overrides_the_configuration_and_the_environment_both(tmp_path: Path) -> None:
    written(tmp_path, "[{rabbit, [{heartbeat, 30}, {channel_max, 7}]}].")
    conf = written(tmp_path, "heartbeat = 20\nframe_max = 8192\n", "rabbitmq.conf")
    config = load(conf, {"WARREN_CHANNEL_MAX": "9"})
    values = [config.get(one) for one in (settings.HEARTBEAT, settings.CHANNELS, settings.FRAME_SIZE)]
    assert values == [30, 9, 8192]


def test_wrong_and_encrypted_values_are_refused_with_the_file(tmp_path: Path) -> None:
    for text, error in (
        ("{heartbeat, often}", "heartbeat must be a number from 0 to 65535, not 'often'"),
        ("{default_pass, {encrypted, <<1>>}}", "default_pass is encrypted by RabbitMQ"),
    ):
        file = written(tmp_path, f"[{{rabbit, [{text}]}}].", "rabbitmq.config")
        with pytest.raises(ConfigError) as caught:
            load(file, {})
        assert str(caught.value).startswith(f"{file}: {error}")


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
