"""What is run and what is excused: the two TOML files as values."""

import dataclasses
import fnmatch
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parents[1]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One row of `suites.toml`; that file's header says what each field means."""

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
    is_extra: bool = False
    is_alone: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Excuse:
    """A test that may fail, by name, and why; `excuses.toml` says what each field means."""

    suite: str
    test: str
    reason: str
    needs: str = ""
    is_race: bool = False
    difference: str = ""

    def covers(self, suite: str, test: str) -> bool:
        """Whether this excuse is for `test` of `suite`; `*` in its own name stands for anything."""
        pattern = self.test.replace("[", "[[]")
        return fnmatch.fnmatchcase(suite, self.suite) and fnmatch.fnmatchcase(test, pattern)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Tests of a suite that are not run, and why; `excuses.toml` says what each field means."""

    suite: str
    reason: str
    test: str = ""
    words: tuple[str, ...] = ()


def suites() -> list[Suite]:
    """Every suite, in the order of the file."""
    rows = tomllib.loads((HERE / "suites.toml").read_text())["suite"]
    return [suite_of(row) for row in rows]


def suite_of(row: dict[str, object]) -> Suite:
    """One table of the file, its lists made immutable."""
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return Suite(**fields)  # type: ignore[arg-type]


def excuses() -> list[Excuse]:
    """Every excuse of `excuses.toml`."""
    rows = tomllib.loads((HERE / "excuses.toml").read_text()).get("excuse", [])
    return [Excuse(**row) for row in rows]


def left_out() -> list[LeftOut]:
    """What `excuses.toml` says is not run."""
    rows = tomllib.loads((HERE / "excuses.toml").read_text()).get("left_out", [])
    return [LeftOut(**{**row, "words": tuple(row.get("words", ()))}) for row in rows]
