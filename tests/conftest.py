"""Configuration of all tests: the tested build, the seeds, and the selection of tests that take long."""

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from tests.long import checked, chosen
from tests.seeds import SEED_S_MAX, SEEDS, SEEDS_FROM, TEST_S_MAX

from warren.wire import table

# Examples of each property that does not have its own number: Hypothesis' default.
EXAMPLES = 100
# Other processes may use the processor meanwhile.
settings.register_profile(
    "warren",
    deadline=None,
    max_examples=int(os.environ.get("EXAMPLES", EXAMPLES)),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("warren")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--long`, which selects tests that take long, and `--seed`, which selects a seed of simulations."""
    group = parser.getgroup("warren")
    group.addoption(
        "--long",
        type=checked,
        default="all",
        metavar="WHICH",
        help="tests marked `long`: none, all, or a part such as 2/4",
    )
    group.addoption("--seed", type=int, help="the only seed that simulations try")


def pytest_configure() -> None:
    """Refuse to test the wrong build: WARREN_COMPILED=1 requires the compiled one."""
    is_compiled = not table.__file__.endswith(".py")
    if os.environ.get("WARREN_COMPILED") == "1" and not is_compiled:
        pytest.exit(f"WARREN_COMPILED=1, but {table.__file__} is imported", returncode=4)


def seeds_of(item: pytest.Item) -> range:
    """Return the seeds with which a test is called; none if it takes no seed."""
    marker = item.get_closest_marker("seeds")
    if marker is None:
        return range(0)
    only = item.config.getoption("--seed")
    if only is not None:
        return range(only, only + 1)
    # A simulation that runs several times as many seeds as others begins as many times as far behind them.
    count = marker.args[0]
    first = SEEDS_FROM * max(count // SEEDS, 1)
    return range(first, first + count)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that take long, according to `--long`, and extend the timeout of tests with seeds."""
    long = sorted((item for item in items if item.get_closest_marker("long")), key=lambda item: item.nodeid)
    wanted = set(chosen(long, config.getoption("--long")))
    left_out = [item for item in long if item not in wanted]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    for item in items:
        if seeds := seeds_of(item):
            item.add_marker(pytest.mark.timeout(TEST_S_MAX + SEED_S_MAX * len(seeds)))


@pytest.fixture
def seed() -> int:
    """Return any seed for a test marked `seeds`, since it is called with each of them."""
    return SEEDS_FROM


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Call a test that is marked `seeds` with each of its seeds."""
    seeds = seeds_of(pyfuncitem)
    if not seeds:
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    pyfuncitem.user_properties.append(("seeds", len(seeds)))
    for seed in seeds:
        with pytest.MonkeyPatch.context() as monkeypatch:
            own = {"seed": seed, "monkeypatch": monkeypatch}
            try:
                pyfuncitem.obj(**given | {name: value for name, value in own.items() if name in given})
            except BaseException as error:
                error.add_note(f"with seed {seed}; to run it alone: pytest {pyfuncitem.nodeid} --seed {seed}")
                raise
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many seeds were run in each module, since they are what a simulation proves."""
    counts = Counter[str]()
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, value in report.user_properties:
            if name == "seeds":
                counts[report.location[0].rpartition("/")[2]] += value
    if counts:
        parts = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        terminalreporter.write_line(f"{counts.total()} seeds: {parts}")
