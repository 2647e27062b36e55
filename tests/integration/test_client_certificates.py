"""Commands against a broker that requires client certificates."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner, Result
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_http_tls import config, files
from tests.patience import patient

from warren.cli.main import main
from warren.management import rabbitmqadmin

TIMEOUT_S = patient(60)


@dataclass(frozen=True, slots=True)
class Place:
    """A started broker, and a directory with certificates of its clients."""

    node: BrokerProcess
    folder: Path

    @property
    def uri(self) -> str:
        return f"https://localhost:{self.node.ports['https']}"

    @property
    def amqps(self) -> str:
        return f"amqps://localhost:{self.node.ports['amqp/ssl']}"

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def known(self) -> tuple[str, ...]:
        """The options with which a command is authenticated."""
        files = {"--cacert": "ca.pem", "--cert": "client.pem", "--key": "client.key"}
        return tuple(word for flag, name in files.items() for word in (flag, self.file(name)))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    lines = {"listeners.ssl.default": "127.0.0.1:0"}
    lines |= files(folder, authority, "management.ssl")
    for prefix in ("management.ssl", "ssl_options"):
        of_port = {key.replace("management.ssl", prefix): lines[key] for key in lines if "file" in key}
        lines |= of_port | {f"{prefix}.verify": "verify_peer", f"{prefix}.fail_if_no_peer_cert": "true"}
    for name, who in (("client", authority), ("stranger", trustme.CA())):
        certificate = who.issue_cert("somebody")
        certificate.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
        certificate.private_key_pem.write_to_path(folder / f"{name}.key")
    with broker("--in-memory", config=config(folder, lines)) as started:
        yield Place(started, folder)


def asks(*arguments: str, environment: Mapping[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="warren", env=environment)


def failure(result: Result, status: int) -> str:
    """The one line that a failing command prints."""
    assert result.exit_code == status, result.output
    (line,) = result.stderr.splitlines()
    return line


def test_commands_present_a_certificate(place: Place) -> None:
    result = asks("whoami", "--uri", place.uri, *place.known(), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["name"] == "guest"
    assert asks("health", "answering", "--uri", place.uri, *place.known()).exit_code == 0


def test_environment_variables_name_the_files(place: Place) -> None:
    encrypted = place.file("encrypted.key")
    command = ["openssl", "pkey", "-in", place.file("client.key"), "-aes256", "-passout", "pass:opens"]
    subprocess.run([*command, "-out", encrypted], check=True, timeout=TIMEOUT_S)
    environment = {
        "WARREN_URI": place.uri,
        "WARREN_CACERT": place.file("ca.pem"),
        "WARREN_CERT": place.file("client.pem"),
        "WARREN_KEY": encrypted,
    }
    why = failure(asks("whoami", environment=environment), 2)
    assert "the key is encrypted and needs WARREN_KEY_PASSWORD" in why
    environment["WARREN_KEY_PASSWORD"] = "opens"
    assert asks("whoami", environment=environment).exit_code == 0
    del environment["WARREN_CACERT"]
    assert asks("whoami", environment=environment).exit_code == 3
    assert asks("whoami", environment=environment | {"WARREN_INSECURE": "true"}).exit_code == 0


def test_a_missing_or_wrong_certificate_is_reported_with_advice(place: Place) -> None:
    at = ("whoami", "--uri", place.uri, "--cacert", place.file("ca.pem"))
    assert "set it with --cert and --key" in failure(asks(*at), 3)
    stranger = ("--cert", place.file("stranger.pem"), "--key", place.file("stranger.key"))
    assert f"the certificate of --cert {place.file('stranger.pem')}" in failure(asks(*at, *stranger), 3)
    mixed = ("--cert", place.file("client.pem"), "--key", place.file("stranger.key"))
    assert "not the key of the certificate" in failure(asks(*at, *mixed), 2)
    assert "set the trusted certificates with --cacert" in failure(asks("whoami", "--uri", place.uri), 3)


def test_perf_verifies_the_broker_and_presents_a_certificate(place: Place) -> None:
    load = ("perf", "churn", "--processes", "1", "--duration", "0.2", "--quiet", "--uri", place.amqps)
    result = asks(*load, *place.known())
    assert result.exit_code == 0, result.output
    why = failure(asks(*load, "--cacert", place.file("ca.pem")), 1)
    assert "set it with --cert and --key" in why
    assert "set the trusted certificates with --cacert" in failure(asks(*load), 1)


def test_rabbitmqadmin_presents_a_certificate(place: Place) -> None:
    def admin(*more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, rabbitmqadmin.__file__, "-U", place.uri, *more, "list", "vhosts", "name"],
            cwd=place.folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip

    trust = ("--ssl-ca-cert-file", "ca.pem")
    known = admin(*trust, "--ssl-cert-file", "client.pem", "--ssl-key-file", "client.key")
    assert (known.returncode, known.stderr) == (0, "")
    assert "| / " in known.stdout
    for more, why in (
        (trust, "set it with --ssl-cert-file and --ssl-key-file"),
        ((*trust, "--ssl-cert-file", "stranger.pem", "--ssl-key-file", "stranger.key"), "may not trust"),
        ((*trust, "--ssl-cert-file", "client.pem", "--ssl-key-file", "stranger.key"), "KEY_VALUES_MISMATCH"),
        ((*trust, "--ssl-cert-file", "none.pem"), "--ssl-cert-file none.pem: there is no such file"),
        ((), "set the trusted CA certificates"),
    ):
        refused = admin(*more)
        assert refused.returncode == 1
        assert why in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1
