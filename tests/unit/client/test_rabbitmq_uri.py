"""URIs of shovels and upstreams: what RabbitMQ 3.10.8 accepts, refuses and shows of them (measured)."""

import pytest

from warren.client.rabbitmq_uri import parse_target, uri_refusal, uri_without_credentials, without_passwords
from warren.client.uri import ClientTls


def test_a_uri_without_a_query_means_what_it_means_to_other_clients() -> None:
    target = parse_target("amqp://us%65r:p%40ss@broker:10000/v%2fhost")
    assert (target.host, target.port, target.user, target.password) == ("broker", 10000, "user", "p@ss")
    assert (target.vhost, target.is_tls, target.is_local) == ("v/host", False, False)


def test_missing_parts_have_the_defaults_of_rabbitmq_but_no_user_and_password() -> None:
    target = parse_target("AMQPS://broker")
    assert (target.port, target.user, target.password, target.vhost) == (5671, "", "", "/")
    assert (target.mechanisms, target.heartbeat_s, target.timeout_ms) == (("PLAIN",), None, None)


@pytest.mark.parametrize(("uri", "vhost"), [("amqp://", "/"), ("amqp:///v", "v"), ("amqp:///", "")])
def test_a_uri_without_a_host_is_the_node_itself(uri: str, vhost: str) -> None:
    target = parse_target(uri)
    assert (target.is_local, target.vhost, target.user, target.port) == (True, vhost, "", 0)


@pytest.mark.parametrize("uri", ["amqp://[::1]:5673/v", "amqp://[::1:5673/v"])
def test_an_ipv6_address_is_in_brackets(uri: str) -> None:
    assert parse_target(uri).host.startswith("::1")


def test_the_query_sets_the_login_and_the_limits() -> None:
    uri = (
        "amqp://h?heartbeat=5&connection_timeout=2000&channel_max=7&frame_max=8192"
        "&auth_mechanism=amqplain&auth_mechanism=external&auth_mechanism=plain&unknown=1&heartbeat=9"
    )
    target = parse_target(uri)
    assert (target.heartbeat_s, target.timeout_ms) == (5, 2000)
    assert (target.channels_max, target.frame_size_max) == (7, 8192)
    assert target.mechanisms == ("EXTERNAL", "PLAIN")


def test_the_query_sets_the_tls_files_and_the_verification() -> None:
    uri = (
        "amqps://h?cacertfile=/a%20b.pem&certfile=c.pem&keyfile=k.pem&password=s%26cret&verify=verify_none"
        "&server_name_indication=broker&fail_if_no_peer_cert=true&depth=2"
    )
    assert parse_target(uri).tls == ClientTls(
        ca_file="/a b.pem",
        cert_file="c.pem",
        key_file="k.pem",
        key_password="s&cret",
        is_verified=False,
        server_name="broker",
    )


def test_a_broker_is_verified_unless_the_uri_says_otherwise() -> None:
    assert parse_target("amqps://h").tls.is_verified
    assert parse_target("amqps://h?verify=verify_peer").tls.is_verified
    assert parse_target("amqps://h?server_name_indication=disable").tls.server_name == ""


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("", "{unable_to_parse_uri,no_scheme},[]"),
        ("nonsense", '{unable_to_parse_uri,no_scheme},"nonsense"'),
        ("http://host", '{unexpected_uri_scheme,"http"},"http://host"'),
        ("amqp:host", '{case_clause,"host"},"amqp:host"'),
        ("amqp:/host", '{case_clause,undefined},"amqp:/host"'),
        ("amqp://:5672", 'port_requires_host,"amqp://:5672"'),
        ("amqp://host:0", '{port_out_of_range,0},"amqp://host:0"'),
        ("amqp://host/a/b", '{invalid_vhost,"a/b"},"amqp://host/a/b"'),
        ("amqp://host/%zz", "{invalid_entitiy,['%',122,122]},\"amqp://host/%zz\""),
        ("amqp://host/%2", "{unterminated_entity,['%',50]},\"amqp://host/%2\""),
        (
            "amqp://[::1]x",
            '{unable_to_parse_uri,{malformed_uri,"amqp://[::1]x",{invalid_port,"x"}}},"amqp://[::1]x"',
        ),
        ("amqp://h?auth_mechanism=a:b:c", '{not_mechanism,[a,b,c]},"amqp://h?auth_mechanism=a:b:c"'),
        (
            "amqp://h?heartbeat=x",
            '{invalid_amqp_params_parameter,heartbeat,"x",[{"heartbeat","x"}],{not_an_integer,"x"}},'
            '"amqp://h?heartbeat=x"',
        ),
        (
            "amqp://?node=x",
            '{invalid_amqp_params_parameter,node,"x",[{"node","x"}],'
            '{parameter_unconfigurable_in_query,node,"x"}},"amqp://?node=x"',
        ),
        (
            "amqps://h?fail_if_no_peer_cert=x",
            '{invalid_ssl_parameter,fail_if_no_peer_cert,"x",[{"fail_if_no_peer_cert","x"}],'
            '{require_boolean,x}},"amqps://h?fail_if_no_peer_cert=x"',
        ),
        ("ftp://€/", '{unexpected_uri_scheme,"ftp"},[102,116,112,58,47,47,226,130,172,47]'),
    ],
)
def test_a_uri_is_refused_in_the_words_of_rabbitmq(uri: str, reason: str) -> None:
    assert uri_refusal(uri) == f'"{uri}" not a valid URI: {{{reason}}}'


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("amqp://h?auth_mechanism=amqplain", "auth_mechanism=amqplain: plain and external are supported"),
        ("amqps://h?verify=maybe", "verify must be verify_peer or verify_none"),
        ("amqp://h?heartbeat=-1", "heartbeat=-1: must be at least 0 and at most 65535"),
        ("amqp://h?connection_timeout=0", "connection_timeout=0: must be at least 1"),
    ],
)
def test_what_no_connection_could_use_is_refused(uri: str, reason: str) -> None:
    assert uri_refusal(uri) == reason


@pytest.mark.parametrize(
    "uri",
    [
        "http://al:secret@host",
        "amqp://al:secret@host/a/b",
        "amqp://al:sec#secret@host",
        "amqp://al:secret/x@host",
        "amqp://al:%secret@host",
        "amqp://al:se?secret@host:port",
        "amqps://h?password=%secret&cacertfile=%zz",
        "amqp://h?heartbeat=x&password=secret",
    ],
)
def test_a_refusal_shows_no_password(uri: str) -> None:
    refusal = uri_refusal(uri)
    assert refusal is not None
    assert "sec" not in refusal


@pytest.mark.parametrize("uri", ["amqp://", "amqp://h?frame_max=12", "amqps://h?depth=3", "amqp://h?x"])
def test_a_uri_that_can_be_used_is_not_refused(uri: str) -> None:
    assert uri_refusal(uri) is None


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("amqp://al:secret@host:5673/v%2fw?heartbeat=5", "amqp://host:5673/v%2fw"),
        ("amqps://al:se@cret@host?password=secret", "amqps://host"),
        ("amqp://al:secret@[::1]:5672", "amqp://[::1]:5672"),
        ("amqp:///v", "amqp:///v"),
        ("amqp://", "amqp://"),
        ("amqp://al:secret/x@host:port?password=secret", "amqp://host:port"),
        ("nonsense?password=secret", "nonsense"),
    ],
)
def test_a_uri_is_shown_without_its_credentials(uri: str, shown: str) -> None:
    assert uri_without_credentials(uri) == shown


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        (
            "amqp://h?heartbeat=5&passwd=s3cret&verify=verify_none",
            "amqp://h?heartbeat=5&passwd=***&verify=verify_none",
        ),
        ("amqps://u:p@h?password=x&p=y", "amqps://u:***@h?password=***&p=***"),
        ("amqp://h?s3cret", "amqp://h?***"),
        ("amqp://h?heartbeat=5#s3cret", "amqp://h?heartbeat=***"),
    ],
)
def test_values_of_unknown_parameters_are_hidden_as_passwords_are(uri: str, shown: str) -> None:
    assert without_passwords(uri)[0] == shown
