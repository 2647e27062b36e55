"""Names that were renamed, of a running broker: the old ones do and answer the same as the new ones."""

import re
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result
from tests.integration.broker_process import BrokerProcess, broker

from warren.cli.main import main


@pytest.fixture(scope="module")
def node() -> Iterator[BrokerProcess]:
    with broker() as started:
        yield started


def ask(node: BrokerProcess, *words: str) -> Result:
    uri = f"http://127.0.0.1:{node.ports['http']}"
    return CliRunner().invoke(main, ["--uri", uri, *words], prog_name="warren")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("queues", "return", "renamed", "--all"), ("queues", "requeue", "renamed", "--all")),
        (("leases", "give-back", "renamed"), ("leases", "release", "renamed")),
        (("nodes", "attempts"), ("nodes", "auth-attempts")),
        (("nodes", "forget-attempts"), ("nodes", "reset-auth-attempts")),
        (("nodes", "rename-cluster", "renamed"), ("nodes", "set-cluster-name", "renamed")),
        (("log", "level", "info"), ("log", "set-level", "info")),
        (("streams", "delete-super", "renamed"), ("streams", "delete-super-stream", "renamed")),
        (
            ("dead-letters", "redrive", "renamed", "--died-in", "a", "--came-by=b", "--dry-run"),
            ("dead-letters", "redrive", "renamed", "--first-death-queue", "a", "--first-death-exchange=b",
             "--dry-run"),
        ),
        (
            ("exchanges", "route", "amq.direct", "k", "--misses", "1"),
            ("exchanges", "route", "amq.direct", "k", "--unmatched", "1"),
        ),
    ],
    ids=lambda words: " ".join(words[:2]),
)  # fmt: skip
def test_a_renamed_command_does_the_same_under_its_old_name_with_a_note(
    node: BrokerProcess, old: tuple[str, ...], new: tuple[str, ...]
) -> None:
    assert ask(node, "queues", "declare", "renamed").exit_code == 0
    was, now = ask(node, *old), ask(node, *new)
    # What counts logins has counted one more.
    assert (was.exit_code, re.sub(r" *\d+", "", was.stdout)) == (
        now.exit_code,
        re.sub(r" *\d+", "", now.stdout),
    )
    notes = [line for line in was.stderr.splitlines() if "is deprecated: use" in line]
    assert notes
    assert [line for line in was.stderr.splitlines() if line not in notes] == now.stderr.splitlines()
