"""One broker and one browser for all tests; each test has its own tab and names."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import sync_playwright
from tests.browser.browsing import AXE, CHROMIUM, IS_BUILT
from tests.integration.broker_process import BrokerProcess, broker


@pytest.fixture(scope="session", autouse=True)
def needed() -> None:
    """Skip if there is no browser, or the interface is not built."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    if not IS_BUILT or not AXE.exists():
        pytest.skip("the web interface is not built: make ui")


@pytest.fixture(scope="session")
def chromium(needed: None) -> Iterator[Chromium]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def node(needed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker("--data-dir", str(tmp_path_factory.mktemp("data"))) as started:
        yield started
