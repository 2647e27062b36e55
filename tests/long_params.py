"""Parameters of tests that are left to `make test-long`."""

import pytest
from _pytest.mark import ParameterSet


def long_params(*values: object) -> list[ParameterSet]:
    """Return `values` as parameters with which a test counts as `long`: others prove the same code path."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]
