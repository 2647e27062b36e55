"""The suites and excuses, read from the two TOML files."""

import dataclasses
import fnmatch
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parents[1]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One row of `suites.toml`, whose header describes the fields."""

    name: str
    kind: str
    package: str = ""
    version: str = ""
    requirements: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    plugin: str = ""
    certificates: str = ""
    settings: tuple[str, ...] = ()
    seconds_max: int = 300
    is_long: bool = False
    is_alone: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Excuse:
    """A test that may fail, by name, with the reason; `excuses.toml` describes the fields."""

    suite: str
    test: str
    reason: str
    needs: str = ""
    is_race: bool = False
    difference: str = ""

    def covers(self, suite: str, test: str) -> bool:
        """True if this excuse applies to `test` of `suite`; `*` in its test name matches anything."""
        pattern = self.test.replace("[", "[[]")
        return fnmatch.fnmatchcase(suite, self.suite) and fnmatch.fnmatchcase(test, pattern)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Tests of a suite that are not run, with the reason; `excuses.toml` describes the fields."""

    suite: str
    reason: str
    test: str = ""
    words: tuple[str, ...] = ()


def suites() -> list[Suite]:
    """Return every suite, in the order of the file."""
    rows = tomllib.loads((HERE / "suites.toml").read_text())["suite"]
    return [suite_of(row) for row in rows]


def suite_of(row: dict[str, object]) -> Suite:
    """Return the suite of one table of the file, with its lists made immutable."""
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return Suite(**fields)  # type: ignore[arg-type]


def excuses(*, is_away: bool = False) -> list[Excuse]:
    """Return the excuses in `excuses.toml`; those in `excuses_away.toml` too if queues are on other nodes."""
    files = ["excuses.toml", "excuses_away.toml"] if is_away else ["excuses.toml"]
    rows = [row for file in files for row in tomllib.loads((HERE / file).read_text()).get("excuse", [])]
    return [Excuse(**row) for row in rows]


def left_out() -> list[LeftOut]:
    """Return the tests that `excuses.toml` leaves out."""
    rows = tomllib.loads((HERE / "excuses.toml").read_text()).get("left_out", [])
    return [LeftOut(**{**row, "words": tuple(row.get("words", ()))}) for row in rows]
