"""Authentication with a real OpenLDAP directory: AMQP and HTTP, groups, servers that are down, slow or
invalid.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pika
import pytest
import trustme
from pika.exceptions import ChannelClosedByBroker, ProbableAccessDeniedError, ProbableAuthenticationError
from tests.integration import slapd
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker, refusal
from tests.integration.slapd import SERVICE, SERVICE_PASSWORD, SUFFIX, Slapd, group, person

pytestmark = pytest.mark.skipif(not slapd.is_there(), reason=slapd.MISSING)

ENTRIES = slapd.directory_entries(
    person("alice", "wonder land"),
    person("bob", "builder"),
    person("carol", "singer"),
    person("guest", "not the guest"),
    person("o\\,reilly", "books"),
    person("both", "in the directory"),
    group("admins", "alice"),
    group("orders", "bob"),
    group("shop-users", "carol", "bob"),
    f"dn: cn=posix,ou=groups,{SUFFIX}\nobjectClass: posixGroup\ngidNumber: 7\nmemberUid: carol\n",
)

RULES = f"""\
auth_ldap.user_dn_pattern = uid=${{username}},ou=people,{SUFFIX}
auth_ldap.group_lookup_base = ou=groups,{SUFFIX}
auth_ldap.tags.administrator = cn=admins,ou=groups,{SUFFIX}
auth_ldap.tags.management = everybody
auth_ldap.grants.1.group = CN=Admins, ou=groups,{SUFFIX}
auth_ldap.grants.2.group = cn=orders,ou=groups,{SUFFIX}
auth_ldap.grants.2.vhost = /
auth_ldap.grants.2.configure = ^${{username}}\\.
auth_ldap.grants.2.write = ^(${{username}}\\.|amq\\.topic$)
auth_ldap.grants.2.read = ^${{username}}\\.
auth_ldap.grants.3.group = cn=${{vhost}}-users,ou=groups,{SUFFIX}
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    started = Slapd(tmp_path_factory.mktemp("ldap"), ENTRIES)
    yield started
    started.stop()


@contextmanager
def node_of(directory: Slapd, folder: Path, text: str) -> Iterator[BrokerProcess]:
    config = folder / "warren.conf"
    config.write_text(
        f"auth_ldap.servers.1 = 127.0.0.1\nauth_ldap.port = {directory.port}\n"
        f"login_failures.allowed = infinity\n{text}"
    )
    with broker(config=config) as started:
        yield started


@pytest.fixture(scope="module")
def node(directory: Slapd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    text = f"auth_backends.1 = internal\nauth_backends.2 = ldap\nauth_cache.cache_ttl = 0\n{RULES}"
    with node_of(directory, tmp_path_factory.mktemp("node"), text) as started:
        boss = HttpClient(started)
        for name in ("shop", "closed"):
            assert boss.status(f"PUT /vhosts/{name}") == 201
        assert boss.status("PUT /users/both", {"password": "inside", "tags": ""}) == 201
        yield started


def connected(node: BrokerProcess, name: str, password: str, vhost: str = "/") -> pika.BlockingConnection:
    credentials = pika.PlainCredentials(name, password)
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", node.port, vhost, credentials=credentials, heartbeat=0)
    )


def logged(node: BrokerProcess, text: str) -> str:
    """The log up to a line with `text`."""
    node.wait_for(text)
    return "".join(node.lines)


def test_a_group_grants_permissions_over_amqp(node: BrokerProcess) -> None:
    connection = connected(node, "bob", "builder")
    channel = connection.channel()
    channel.queue_declare("bob.1", exclusive=True)
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.queue_declare("alice.1")
    assert caught.value.reply_text == (
        "ACCESS_REFUSED - access to queue 'alice.1' in vhost '/' refused for user 'bob'"
    )
    connection.close()


def test_a_group_named_after_a_vhost_opens_only_that_vhost(node: BrokerProcess) -> None:
    connected(node, "carol", "singer", "shop").close()
    for vhost in ("/", "closed"):
        with pytest.raises(ProbableAccessDeniedError, match=f"access to vhost '{vhost}' refused"):
            connected(node, "carol", "singer", vhost)


def test_an_administrator_group_grants_everything(node: BrokerProcess) -> None:
    for vhost in ("/", "shop", "closed"):
        connected(node, "alice", "wonder land", vhost).close()
    assert HttpClient(node, "alice:wonder land").get("/whoami") == {
        "name": "alice",
        "tags": ["administrator", "management"],
    }
    assert HttpClient(node, "alice:wonder land").status("GET /users") == 200


def test_the_api_shows_what_the_tags_allow(node: BrokerProcess) -> None:
    client = HttpClient(node, "carol:singer")
    assert client.get("/whoami") == {"name": "carol", "tags": ["management"]}
    assert client.status("GET /users") == 401
    assert [vhost["name"] for vhost in client.get("/vhosts")] == ["shop"]
    assert HttpClient(node, "carol:wrong").status("GET /whoami") == 401


def test_a_web_session_needs_no_user_in_the_metadata(node: BrokerProcess) -> None:
    browser = HttpClient(node, user=None)
    login = {"username": "alice", "password": "wonder land"}
    answer = browser.ask("POST /warren/session", login, {"x-warren-ui": "1"})
    assert answer.status in (200, 201, 204)
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    assert browser.ask("GET /whoami", headers={"cookie": cookie}).value["name"] == "alice"


def test_topic_permissions_come_from_the_metadata(node: BrokerProcess) -> None:
    rule = {"exchange": "amq.topic", "write": "^bob\\.", "read": ".*"}
    boss = HttpClient(node)
    assert boss.status("PUT /users/bob", {"password_hash": "", "tags": ""}) == 201
    assert boss.status("PUT /topic-permissions/%2F/bob", rule) == 201
    connection = connected(node, "bob", "builder")
    channel = connection.channel()
    channel.confirm_delivery()
    channel.basic_publish("amq.topic", "bob.news", b"")
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.basic_publish("amq.topic", "news", b"")
    assert "access to topic 'news' in exchange 'amq.topic'" in caught.value.reply_text
    connection.close()
    assert boss.status("DELETE /users/bob") == 204


def test_internal_is_asked_before_the_directory(node: BrokerProcess) -> None:
    for password in ("inside", "in the directory"):
        # Neither user has a permission; what counts is that both are authenticated.
        with pytest.raises(ProbableAccessDeniedError, match="access to vhost '/' refused for user 'both'"):
            connected(node, "both", password)


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("bob", "wrong"),
        ("nobody", "builder"),
        # A server treats a name without a password as anonymous, and accepts the bind.
        ("bob", ""),
        ("*", "builder"),
        ("bob,ou=people", "builder"),
        (f"bob,ou=people,{SUFFIX}", "builder"),
        ("bob)(uid=*", "builder"),
        ("b*b", "builder"),
        ("bob\\", "builder"),
        ("bob+cn=bob", "builder"),
        ("", "builder"),
        ("bob", "builder "),
    ],
)
def test_other_credentials_are_refused(node: BrokerProcess, name: str, password: str) -> None:
    with pytest.raises(ProbableAuthenticationError):
        connected(node, name, password)


def test_a_name_with_a_comma_is_escaped(node: BrokerProcess) -> None:
    with pytest.raises(ProbableAccessDeniedError, match="refused for user 'o,reilly'"):
        connected(node, "o,reilly", "books")


def test_the_log_contains_the_reason_and_no_password(directory: Slapd, tmp_path: Path) -> None:
    with node_of(directory, tmp_path, f"auth_backends.1 = ldap\n{RULES}") as node:
        with pytest.raises(ProbableAuthenticationError):
            connected(node, "bob", "a secret word")
        text = logged(node, "LDAP refused user 'bob'")
        assert "invalidCredentials" in text
        assert "secret" not in text


def test_authentication_and_authorization_can_use_different_backends(
    directory: Slapd, tmp_path: Path
) -> None:
    text = f"auth_backends.1.authn = ldap\nauth_backends.1.authz = internal\n{RULES}"
    with node_of(directory, tmp_path, text) as node:
        with pytest.raises(ProbableAuthenticationError):
            connected(node, "bob", "builder")
        with pytest.raises(ProbableAuthenticationError):
            connected(node, "guest", "guest")
        # The directory's user guest has the tags and permissions of the internal guest.
        connected(node, "guest", "not the guest").close()
        assert HttpClient(node, "guest:not the guest").get("/whoami")["tags"] == ["administrator"]


LOOKED_UP = f"""\
auth_ldap.user_dn_pattern = ${{username}}@example.org
auth_ldap.dn_lookup_attribute = mail
auth_ldap.dn_lookup_base = ou=people,{SUFFIX}
auth_ldap.dn_lookup_bind.user_dn = {SERVICE}
auth_ldap.dn_lookup_bind.password = {SERVICE_PASSWORD}
auth_ldap.other_bind.user_dn = {SERVICE}
auth_ldap.other_bind.password = {SERVICE_PASSWORD}
auth_ldap.group_lookup_base = ou=groups,{SUFFIX}
auth_ldap.grants.1.group = cn=admins,ou=groups,{SUFFIX}
auth_ldap.grants.2.group = everybody
auth_ldap.grants.2.vhost = nowhere
"""


def test_a_name_is_searched_before_it_is_bound(directory: Slapd, tmp_path: Path) -> None:
    with node_of(directory, tmp_path, f"auth_backends.1 = ldap\n{LOOKED_UP}") as node:
        connected(node, "alice", "wonder land").close()
        for name in ("*", "a*", "alice)(mail=*", "nobody"):
            with pytest.raises(ProbableAuthenticationError):
                connected(node, name, "wonder land")
        assert "no entry has the mail '*@example.org'" in logged(node, "no entry has the mail 'nobody")


def test_groups_may_have_logins_as_members(directory: Slapd, tmp_path: Path) -> None:
    text = (
        f"auth_backends.1 = ldap\nauth_ldap.user_dn_pattern = uid=${{username}},ou=people,{SUFFIX}\n"
        f"auth_ldap.group_lookup_base = ou=groups,{SUFFIX}\nauth_ldap.group_attribute = memberUid\n"
        f"auth_ldap.grants.1.group = cn=posix,ou=groups,{SUFFIX}\n"
    )
    with node_of(directory, tmp_path, text) as node:
        connected(node, "carol", "singer").close()
        with pytest.raises(ProbableAccessDeniedError):
            connected(node, "bob", "builder")


def test_a_successful_answer_is_cached_and_a_refusal_is_not(directory: Slapd, tmp_path: Path) -> None:
    text = f"auth_backends.1 = cache\nauth_cache.cached_backend = ldap\nauth_cache.cache_ttl = 60000\n{RULES}"
    with node_of(directory, tmp_path, text) as node:
        client = HttpClient(node, "alice:wonder land")
        client.get("/whoami")
        before = directory.log.count(" BIND dn=")
        for _ in range(5):
            client.get("/whoami")
        assert directory.log.count(" BIND dn=") == before
        wrong = HttpClient(node, "alice:wrong")
        for _ in range(2):
            assert wrong.status("GET /whoami") == 401
        assert directory.log.count(" BIND dn=") >= before + 2


def test_logins_are_refused_while_the_server_is_down_and_work_when_it_returns(tmp_path: Path) -> None:
    (tmp_path / "slapd").mkdir()
    own = Slapd(tmp_path / "slapd", ENTRIES)
    text = f"auth_backends.1 = ldap\nauth_backends.2 = internal\nauth_cache.cache_ttl = 0\n{RULES}"
    try:
        with node_of(own, tmp_path, text) as node:
            connected(node, "alice", "wonder land").close()
            own.stop()
            with pytest.raises(ProbableAuthenticationError):
                connected(node, "alice", "wonder land")
            assert f"127.0.0.1:{own.port}" in logged(node, "cannot authenticate user 'alice'")
            # A user of another backend is authenticated.
            connected(node, "guest", "guest").close()
            own.start()
            connected(node, "alice", "wonder land").close()
    finally:
        own.stop()


def test_a_silent_server_times_out_without_delaying_other_logins(tmp_path: Path) -> None:
    (tmp_path / "slapd").mkdir()
    own = Slapd(tmp_path / "slapd", ENTRIES)
    text = f"auth_backends.1 = internal\nauth_backends.2 = ldap\nauth_ldap.timeout = 1000\n{RULES}"
    try:
        with node_of(own, tmp_path, text) as node:
            own.freeze()
            began = time.monotonic()
            with pytest.raises(ProbableAuthenticationError):
                connected(node, "alice", "wonder land")
            assert time.monotonic() - began >= 1
            assert "no answer from LDAP within 1000 ms" in logged(node, "cannot authenticate user 'alice'")
            connected(node, "guest", "guest").close()
            own.thaw()
            connected(node, "alice", "wonder land").close()
    finally:
        own.stop()


def test_another_server_is_used_if_the_first_is_unreachable(directory: Slapd, tmp_path: Path) -> None:
    # Nothing listens at that address, on the port of the other.
    text = (
        f"auth_backends.1 = ldap\nauth_ldap.servers.1 = 127.0.0.2\nauth_ldap.servers.2 = 127.0.0.1\n{RULES}"
    )
    with node_of(directory, tmp_path, text) as node:
        connected(node, "alice", "wonder land").close()


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_the_server_certificate_is_verified_with_tls(tmp_path: Path, is_asked_for: bool) -> None:
    authority = trustme.CA(key_type=trustme.KeyType.RSA)
    certificate = authority.issue_cert("127.0.0.1", key_type=trustme.KeyType.RSA)
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    files = (
        f"TLSCertificateFile {tmp_path}/cert.pem\nTLSCertificateKeyFile {tmp_path}/key.pem\n"
        f"TLSCACertificateFile {tmp_path}/ca.pem\n"
    )
    (tmp_path / "slapd").mkdir()
    own = Slapd(tmp_path / "slapd", ENTRIES, tls=files, is_tls_at_once=not is_asked_for)
    how = "use_starttls" if is_asked_for else "use_ssl"
    text = f"auth_backends.1 = ldap\nauth_ldap.{how} = true\n{RULES}auth_ldap.ssl_options.cacertfile = "
    try:
        with node_of(own, tmp_path, f"{text}{tmp_path}/ca.pem\n") as node:
            connected(node, "alice", "wonder land").close()
        with node_of(own, tmp_path, f"{text}{tmp_path}/other.pem\n") as node:
            with pytest.raises(ProbableAuthenticationError):
                connected(node, "alice", "wonder land")
            assert "certificate verify failed" in logged(node, "cannot authenticate user 'alice'").lower()
    finally:
        own.stop()


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ("", "auth_ldap.servers.1 is not set"),
        ("auth_ldap.servers.1 = a\nauth_ldap.dn_lookup_attribute = uid\n", "dn_lookup_base is not set"),
        ("auth_ldap.servers.1 = a\nauth_ldap.grants.1.vhost = a\n", r"grants.1.group is not set"),
        ("auth_ldap.servers.1 = a\nauth_ldap.tag_queries = []\n", "unknown key 'auth_ldap.tag_queries'"),
    ],
)
def test_an_inconsistent_configuration_prevents_the_start(tmp_path: Path, settings: str, text: str) -> None:
    (tmp_path / "warren.conf").write_text(f"auth_backends.1 = ldap\n{settings}")
    status, errors = refusal("--config", str(tmp_path / "warren.conf"))
    assert status != 0
    assert text in errors
