"""Says how many seeds were tried: they are what a simulation proves."""

from collections import Counter

import pytest

_COUNTS = pytest.StashKey[Counter[str]]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Count the seeds of each simulation, once for all that is done with one seed."""
    seeds = {
        (item.path.stem.removeprefix("test_"), item.callspec.params["seed"])
        for item in session.items
        if isinstance(item, pytest.Function) and "seed" in getattr(item, "fixturenames", ())
    }
    session.config.stash[_COUNTS] = Counter(name for name, _ in seeds)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One line with all counts."""
    counts = config.stash.get(_COUNTS, Counter())
    if counts:
        parts = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        terminalreporter.write_line(f"{counts.total()} seeds: {parts}")
