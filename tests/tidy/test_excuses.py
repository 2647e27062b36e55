"""No test of a third-party client is skipped without a reason, and all reasons are in one file."""

import re
import tomllib

import pytest
from tests.clients.harness import catalogue
from tests.clients.harness.catalogue import Suite
from tests.clients.harness.running import without_left_out
from tests.tidy.sources import ROOT, report

SUITES = {suite.name: suite for suite in catalogue.suites()}
# Options with which pytest, node and mocha skip tests.
PASSES_OVER = re.compile(
    r"--(deselect|ignore|ignore-glob|grep|fgrep|invert|forbid-only|test-name-pattern|test-skip-pattern|markexpr)\b"
    r"|-[kmgfi]$"
)
# What an excuse may need; others always apply.
NEEDS = {"", "management", "tls", "host_name"}


def test_no_suite_skips_tests_by_an_option() -> None:
    found = [
        f"{suite.name}: {argument}"
        for suite in SUITES.values()
        for argument in suite.arguments
        if PASSES_OVER.match(argument)
    ]
    assert not found, f"declare it in excuses.toml with the reason:{report(found)}"


@pytest.mark.parametrize("option", ["--deselect=a", "--ignore=b", "-k", "--grep=x", "--invert", "-g", "-m"])
def test_options_that_skip_tests_are_known(option: str) -> None:
    assert PASSES_OVER.match(option)


def test_plugins_skip_tests_only_for_features_that_the_broker_lacks() -> None:
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted((ROOT / "tests" / "clients" / "plugins").iterdir())
        if path.is_file()
        for line in path.read_text().splitlines()
        if re.search(r"deselect|collect_ignore|mark\.skip|\.skip\(", line)
        and "the broker has no " not in line
    ]
    assert not found, report(found)


def test_every_excuse_is_for_a_suite_and_has_a_reason() -> None:
    document = tomllib.loads((catalogue.HERE / "excuses.toml").read_text())
    assert document.keys() == {"excuse", "left_out"}
    for one in catalogue.excuses():
        assert any(one.covers(name, one.test.replace("*", "")) for name in SUITES), one
        assert len(one.reason.split()) > 2, one
        assert one.needs in NEEDS, one
    for row in catalogue.left_out():
        assert row.suite in SUITES, row
        assert len(row.reason.split()) > 2, row
        assert bool(row.test) != bool(row.words), row


def test_tests_said_to_run_in_another_suite_run_there() -> None:
    for row in catalogue.left_out():
        said = re.search(r"; (\S+) runs (it|them)$", row.reason)
        if said is not None:
            other = SUITES[said[1]]
            assert other.package == SUITES[row.suite].package
            assert not row.test or any(row.test.startswith(argument) for argument in other.arguments), row


def test_a_difference_is_described_in_the_guide() -> None:
    guide = (ROOT / "docs" / "guide" / "differences.md").read_text()
    for one in catalogue.excuses():
        assert one.difference in guide, one


def test_left_out_tests_become_options_of_the_runner() -> None:
    def options(name: str) -> list[str]:
        return without_left_out(SUITES[name])

    assert options("celery") == [
        f"--deselect={row.test}" for row in catalogue.left_out() if row.suite == "celery"
    ]
    assert options("aio-pika")[0].startswith("--ignore=tests/")
    assert options("aiormq") == ["-k", "not amqps and not amqp-named"]
    assert options("stream-js") == without_left_out(Suite(name="other", kind="sdist")) == []
