"""Streams by rbfly, a client in Cython: publishing, all forms of offset, filters, TLS, a wrong password."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.harness import brokers, certificates, fetching
from tests.clients.harness.brokers import BrokerEndpoints
from tests.clients.harness.catalogue import Suite
from tests.patience import patient

PROGRAM = Path(__file__).with_name("with_rbfly.py")
RBFLY = Suite(name="rbfly", kind="sdist", package="rbfly", version="0.10.0")
RUN_S_MAX = patient(90)
# The first test that runs builds the client, which compiles it.
pytestmark = pytest.mark.timeout(900)
MESSAGES = (
    [f"one {n}" for n in range(3)] + [f"fast {n}" for n in range(3)] + [{"number": n} for n in range(3)]
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerEndpoints]:
    with brokers.started_warren(tmp_path_factory.mktemp("warren") / "data") as started:
        yield started


def ran(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(fetching.environment_of(RBFLY)), str(PROGRAM), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=RUN_S_MAX, check=False)


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
def test_every_feature_of_the_client_works(broker: BrokerEndpoints, is_tls: bool) -> None:
    login = f"{broker.user}:{broker.password}@localhost"
    if is_tls:
        authority = str(certificates.issue_server() / "ca.pem")
        done = ran(f"rabbitmq-stream+tls://{login}:{broker.stream_tls_port}", authority)
    else:
        done = ran(f"rabbitmq-stream://{login}:{broker.stream_port}")
    assert done.returncode == 0, done.stderr
    numbered = [list(one) for one in enumerate(MESSAGES)]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        ["first", numbered], ["offset", numbered[7:]], ["timestamp", numbered[:1]], ["last", numbered[6:7]],
        ["reference", numbered[5:7]], ["filter", [[10, "filtered 1"], [12, "filtered 1"]]],
        ["deleted", True],
    ]  # fmt: skip


def test_a_wrong_password_is_refused(broker: BrokerEndpoints) -> None:
    done = ran(f"rabbitmq-stream://{broker.user}:wrong@127.0.0.1:{broker.stream_port}")
    assert done.returncode
    assert "Authentication failure" in done.stderr
