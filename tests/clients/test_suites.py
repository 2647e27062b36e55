"""Runs each third-party client's own test suite as one pytest test."""

import pytest
from tests.clients.harness import brokers, catalogue, running

SUITES = [suite for suite in catalogue.suites() if suite.kind != "local" and not suite.is_long]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_the_suite_of_the_client_passes(suite: catalogue.Suite, broker_uri: str) -> None:
    verdict = running.run_suite(suite, brokers.named(broker_uri, None, None), catalogue.excuses())
    if not verdict.passed and verdict.skipped:
        pytest.skip(verdict.skipped[0])
    assert verdict.is_good(), verdict.trouble or verdict.failed
