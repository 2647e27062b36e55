"""Decision records: one form for all, supersessions stated on both sides, and an index that is complete."""

import re
from pathlib import Path
from typing import NamedTuple

from tests.tidy.sources import ROOT, place, report, text

FOLDER = ROOT / "docs" / "decisions"
INDEX = FOLDER / "README.md"
TITLE = re.compile(r"# (\d{4}): (\S.{3,88}[^\s.])")
DATE = re.compile(r"- Date: \d{4}-\d{2}-\d{2}")
STATUS = re.compile(r"- Status: (?:accepted|(partly )?superseded by (.+))")
SUPERSEDES = re.compile(r"- Supersedes( in part)?: (.+)")
EXTENDS = re.compile(r"- Extends: (.+)")
REFERENCE = re.compile(r"\[(\d{4})\]\((\d{4})-[a-z0-9-]+\.md\)(?: \(((?:[^()]|\([^()]*\))+)\))?")
SECTIONS = ["Context", "Choice", "What we gave up"]
ENTRY = re.compile(r"- \[(\d{4}: [^\]]+)\]\(([^)]+)\)\. (\S.*\.)")


class Supersession(NamedTuple):
    newer: str
    older: str
    is_partial: bool
    what: str


def records() -> list[Path]:
    return sorted(FOLDER.glob("[0-9]*.md"))


def header(path: Path) -> list[str]:
    """The lines between the title and the first section."""
    return [line for line in text(path).split("\n## ")[0].splitlines()[1:] if line]


def prose(path: Path) -> str:
    """The text without blocks of code."""
    return re.sub(r"```.*?```", "", text(path), flags=re.DOTALL)


def sections(path: Path) -> list[str]:
    return re.findall(r"^## (.*)$", prose(path), re.MULTILINE)


def references(listed: str) -> list[tuple[str, str]] | None:
    """Number and explanation of each linked record; None if anything else stands there."""
    found = list(REFERENCE.finditer(listed))
    if ", ".join(match[0] for match in found) != listed or any(match[1] != match[2] for match in found):
        return None
    return [(match[1], match[3] or "") for match in found]


def is_in_form(path: Path) -> bool:
    title = TITLE.fullmatch(text(path).splitlines()[0])
    lines = header(path)
    if title is None or title[1] != path.name[:4] or len(lines) < 2 or sections(path) != SECTIONS:
        return False
    status = STATUS.fullmatch(lines[1])
    if not DATE.fullmatch(lines[0]) or status is None or (status[2] and not references(status[2])):
        return False
    rest = lines[2:]
    for pattern in (SUPERSEDES, EXTENDS):
        if rest and (match := pattern.fullmatch(rest[0])) and references(match[match.re.groups]):
            rest = rest[1:]
    return not rest


def test_every_record_has_a_title_a_date_a_status_and_three_sections() -> None:
    found = [place(path) for path in records() if not is_in_form(path)]
    assert records()
    assert not found, report(found)


def test_no_two_records_have_one_number() -> None:
    numbers = [path.name[:4] for path in records()]
    found = sorted({number for number in numbers if numbers.count(number) > 1})
    assert not found, report(found)


def stated_by_older(path: Path) -> set[Supersession]:
    status = next(filter(None, map(STATUS.fullmatch, header(path))))
    return {
        Supersession(newer, path.name[:4], status[1] is not None, what)
        for newer, what in references(status[2] or "") or []
    }


def stated_by_newer(path: Path) -> set[Supersession]:
    return {
        Supersession(path.name[:4], older, match[1] is not None, what)
        for match in filter(None, map(SUPERSEDES.fullmatch, header(path)))
        for older, what in references(match[2]) or []
    }


def test_every_supersession_is_stated_in_both_records() -> None:
    by_older = {item for path in records() for item in stated_by_older(path)}
    by_newer = {item for path in records() for item in stated_by_newer(path)}
    found = [f"{item.newer} supersedes {item.older}: {item.what!r}" for item in by_older ^ by_newer]
    assert not found, report(sorted(found))
    assert all(item.what for item in by_newer if item.is_partial), by_newer


def test_no_record_supersedes_one_of_a_later_date() -> None:
    """Numbers are assigned in ranges, so they do not tell which record is newer."""
    dates = {path.name[:4]: header(path)[0] for path in records()}
    items = {item for path in records() for item in stated_by_newer(path)}
    found = [item.newer for item in items if dates[item.newer] < dates[item.older]]
    assert not found, report(found)


def test_the_index_lists_every_record_once_under_its_title() -> None:
    entries = [match for match in map(ENTRY.fullmatch, prose(INDEX).splitlines()) if match]
    listed = sorted((match[2], match[1]) for match in entries)
    assert listed == [(path.name, text(path).splitlines()[0].removeprefix("# ")) for path in records()]


def test_the_index_is_in_order_of_number_within_each_subject() -> None:
    found = []
    for section in prose(INDEX).split("\n## ")[1:]:
        subject, *lines = section.splitlines()
        entries = [ENTRY.fullmatch(line) for line in lines if line]
        numbers = [match[1][:4] for match in entries if match]
        if None in entries or not numbers or numbers != sorted(numbers):
            found.append(subject)
    assert not found, report(found)
