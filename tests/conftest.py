"""What holds for all tests: which build is tested, and no time limit on a single example."""

import os

import pytest
from hypothesis import HealthCheck, settings

from warren.wire import table

# Other work may share the processor.
settings.register_profile("warren", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("warren")


def pytest_configure() -> None:
    """Refuse to test the wrong build: WARREN_COMPILED=1 asks for the compiled one."""
    is_compiled = not table.__file__.endswith(".py")
    if os.environ.get("WARREN_COMPILED") == "1" and not is_compiled:
        pytest.exit(f"WARREN_COMPILED=1, but {table.__file__} is imported", returncode=4)
