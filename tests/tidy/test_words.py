"""Text that no file may contain: unfinished marks, paths of one machine, bounds without a reason."""

import re
from pathlib import Path

from tests.tidy.sources import ROOT, SOURCE, files, modules, place, report, text

TEXT = {".py", ".pxd", ".md", ".toml", ".txt", ".yml", ".yaml", ".json", ".conf", ".sh", ".js", ""}
# In pieces, so that this file passes its own test.
UNFINISHED = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK")) + r")\b")
MACHINE = re.compile(
    r"(?<![\w.-])/(?:" + "|".join(("work", "root", "home/[a-z]", "Users", "tmp/wt", "opt/pypi")) + ")/?"
)
LIMITS = tuple(
    SOURCE / "warren" / f"{name}.py"
    for name in (
        "limits",
        "limits_raft",
        "limits_http",
        "limits_metadata",
        "limits_relay",
        "limits_cluster",
        "limits_access",
    )
)
ASSIGNMENT = re.compile(r"^([A-Z][A-Z0-9_]*)\b.*=")


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    """Every line of every text file in which `pattern` is found, with its place."""
    return [
        f"{place(path, number)}: {line.strip()}"
        for path in files()
        if path.suffix in TEXT and path.name not in ("LICENSE", "package-lock.json")
        if pattern.search(text(path))
        for number, line in enumerate(text(path).splitlines(), 1)
        if pattern.search(line)
    ]


def test_nothing_is_marked_as_unfinished() -> None:
    found = lines_with(UNFINISHED)
    assert not found, report(found)


def test_no_path_of_one_machine_is_written_down() -> None:
    found = lines_with(MACHINE)
    assert not found, report(found)


def bounds(paths: tuple[Path, ...] = LIMITS) -> list[str]:
    """The names of all."""
    return [
        match[1] for path in paths for line in text(path).splitlines() if (match := ASSIGNMENT.match(line))
    ]


def test_every_bound_has_a_comment_with_its_reason() -> None:
    found = []
    for path in LIMITS:
        all_lines = text(path).splitlines()
        found += [
            f"{place(path, number)}: {match[1]}"
            for number, line in enumerate(all_lines, 1)
            if (match := ASSIGNMENT.match(line))
            and "#" not in line
            and not re.match(r"# [^-]", all_lines[number - 2])
        ]
    assert not found, report(found)


def test_every_bound_is_used() -> None:
    used = {word for path in modules("src") if path not in LIMITS for word in re.findall(r"\w+", text(path))}
    found = [bound for bound in bounds() if bound not in used]
    assert not found, report(found)


def test_every_bound_that_the_threat_model_names_exists() -> None:
    named = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", text(ROOT / "THREAT_MODEL.md")))
    assert named
    assert not named - set(bounds()), report(sorted(named - set(bounds())))


def test_the_threat_model_names_every_bound_of_http() -> None:
    """Whatever is bounded there, a client can reach."""
    model = text(ROOT / "THREAT_MODEL.md")
    found = [bound for bound in bounds(LIMITS[2:]) if f"`{bound}`" not in model]
    assert not found, report(found)


def test_the_licence_is_apache_2() -> None:
    assert "Apache License" in text(ROOT / "LICENSE")
