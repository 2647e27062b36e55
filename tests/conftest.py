"""Configuration of all tests: the tested build, the seeds, and the selection of tests that take long."""

import gc
import os
import resource
import tomllib
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from tests.part import parsed
from tests.patience import patient
from tests.seeds import SEED_S_MAX, SEEDS, SEEDS_FROM, TEST_S_MAX

from warren.wire import table

ROOT = Path(__file__).resolve().parent.parent
# Test modules and tests that take long, with the reasons.
LISTED_AS_LONG = tomllib.loads((ROOT / "tests" / "long.toml").read_text(encoding="utf-8"))
# Examples of each property that does not have its own number: Hypothesis' default.
EXAMPLES = 100
# The CPU time before a test.
USED_BEFORE = pytest.StashKey[float]()
# After so many seeds of a test what they have left is collected: simulated disks are megabytes, in cycles of
# few objects, and the interpreter counts objects.
SEEDS_COLLECTED = 100
# Other examples and seeds than those that the gate has tried.
IS_FRESH = os.environ.get("FRESH") == "1"
# Other processes may use the processor meanwhile.
settings.register_profile(
    "warren",
    deadline=None,
    max_examples=int(os.environ.get("EXAMPLES", EXAMPLES)),
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not IS_FRESH,
)
settings.load_profile("warren")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--part`, which selects tests that take long, and `--seed`, which selects a seed of simulations."""
    group = parser.getgroup("warren")
    group.addoption(
        "--part",
        type=parsed,
        default="all",
        metavar="PART",
        help="gate: all but the tests that take long; long: those alone; or a part of those such as 2/8",
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
    """Deselect tests according to `--part`, name each in the report, and set its time limit."""
    part = config.getoption("--part")
    long = sorted((item for item in items if takes_long(item)), key=lambda item: item.nodeid)
    wanted = set(part.chosen(long))
    if part.has_gate:
        wanted |= set(items) - set(long)
    elif IS_FRESH:
        wanted |= {item for item in items if item not in set(long) and is_by_chance(item)}
    left_out = [item for item in items if item not in wanted]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item in wanted]
    for item in items:
        item.user_properties.append(("node", item.nodeid))
        if config.pluginmanager.hasplugin("timeout"):
            limit_time(item)


def limit_time(item: pytest.Item) -> None:
    """Set the time limit of a test: its own or the usual one, and more on a busy machine."""
    marker = item.get_closest_marker("timeout")
    seconds = (
        marker.args[0] if marker else item.config.getoption("--timeout") or item.config.getini("timeout")
    )
    if seeds := seeds_of(item):
        # A simulation whose runs take longer has a limit of its own.
        seconds = max(marker.args[0] if marker else 0, TEST_S_MAX + SEED_S_MAX * len(seeds))
    item.add_marker(pytest.mark.timeout(patient(float(seconds))), append=False)


def takes_long(item: pytest.Item) -> bool:
    """True if the test is marked `long`, or it or its module is listed as such."""
    is_listed = not LISTED_AS_LONG.keys().isdisjoint((item.nodeid, item.nodeid.partition("::")[0]))
    return is_listed or bool(item.get_closest_marker("long"))


def is_by_chance(item: pytest.Item) -> bool:
    """True if the test tries something else with each seed."""
    return bool(item.get_closest_marker("seeds")) or is_hypothesis_test(getattr(item, "obj", None))


@pytest.fixture
def seed() -> int:
    """Return any seed for a test marked `seeds`, since it is called with each of them."""
    return SEEDS_FROM


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure what the test uses of the processors, with the processes that it waits for."""
    item.stash[USED_BEFORE] = used()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Write it into the report, from which the tests of the gate are chosen."""
    yield
    item.user_properties.append(("processor", f"{used() - item.stash[USED_BEFORE]:.3f}"))


def used() -> float:
    """Return the seconds of CPU time of this process, and of those that it has waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Call a test that is marked `seeds` with each of its seeds."""
    seeds = seeds_of(pyfuncitem)
    if not seeds:
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    pyfuncitem.user_properties.append(("seeds", len(seeds)))
    for number, seed in enumerate(seeds, 1):
        if number % SEEDS_COLLECTED == 0:
            gc.collect()
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
