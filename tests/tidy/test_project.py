"""The files around the broker agree: commands, pinned packages, news fragments, links."""

import re
import subprocess
import tomllib
from pathlib import Path

from tests.tidy.sources import ROOT, files, place, report, text

REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r'(?:src|srcset)="([^"]+)"|!\[[^\]]*\]\(([^)\s]+)\)')
PICTURE_BYTES_MAX = 200_000
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
LISTS = ("build", "runtime", "guide", "test", "lint", "spark")
FRAGMENT = re.compile(r"[a-z0-9][a-z0-9-]*\.(?:added|changed|fixed|removed|security)\.md")


def test_help_lists_every_command() -> None:
    makefile = text(ROOT / "Makefile")
    phony = set(
        re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)[1].replace("\\\n", " ").split()
    )  # type: ignore[index]
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = {line.split()[0] for line in shown.splitlines()}
    assert listed == phony


def test_every_package_is_pinned_once() -> None:
    pins = [pin for name in LISTS for pin in _pins(name)]
    assert all("==" in pin for pin in pins), pins
    names = [_canonical(pin) for pin in pins]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)


def test_the_list_of_an_older_spark_pins_a_release_of_it_and_nothing_else() -> None:
    lists = sorted((ROOT / "requirements").glob("spark-*.txt"))
    assert lists
    for path in lists:
        (pin,) = _pins(path.stem)
        assert re.fullmatch(rf"pyspark=={re.escape(path.stem.removeprefix('spark-'))}\.\d+", pin), pin
    oldest = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]["spark"][0]
    assert oldest == f"pyspark>={lists[0].stem.removeprefix('spark-')}"


def test_every_package_that_pyproject_names_is_pinned() -> None:
    project = tomllib.loads(text(ROOT / "pyproject.toml"))
    runtime = {_canonical(line) for line in project["project"]["dependencies"]}
    extras = project["project"]["optional-dependencies"]["dev"]
    build = {_canonical(line) for line in project["build-system"]["requires"]}
    everything = {_canonical(pin) for name in LISTS for pin in _pins(name)}
    assert runtime <= {_canonical(pin) for pin in _pins("runtime")}
    assert build == {_canonical(pin) for pin in _pins("build")}
    assert {_canonical(line) for line in extras} <= everything


def test_the_distribution_has_the_same_name_everywhere() -> None:
    name = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]["name"]
    wheel = f"{name.replace('-', '_')}-*.whl"
    assert wheel in text(ROOT / "tools" / "environment.py")
    assert wheel in text(ROOT / "README.md")
    # `warren` on PyPI is another project.
    wrong = re.compile(rf"pip install [\"']?warren(?!{re.escape(name.removeprefix('warren'))})")
    found = [place(path) for path in files() if path.suffix == ".md" and wrong.search(text(path))]
    assert found == ["docs/decisions/0191-the-distribution-is-called-warren-broker.md"], report(found)


def test_no_list_of_packages_names_a_host() -> None:
    names = (*LISTS, *(path.stem for path in (ROOT / "requirements").glob("spark-*.txt")))
    found = [line for name in names for line in _pins(name) if "/" in line or "-i" in line.split()]
    assert not found, report(found)


def test_every_news_fragment_is_one_paragraph_of_whole_sentences() -> None:
    found = []
    for path in sorted((ROOT / "changes").glob("*")):
        if path.name == "README.md":
            continue
        body = text(path).strip()
        if not FRAGMENT.fullmatch(path.name) or not body or "\n\n" in body or body[-1] != ".":
            found.append(place(path))
    assert not found, report(found)


def test_every_file_that_a_command_names_exists() -> None:
    named = re.findall(r"\b(?:tests|tools|bench|requirements)/[\w./*%-]+", text(ROOT / "Makefile"))
    found = [name for name in named if not any(ROOT.glob(name.replace("%", "*")))]
    assert not found, report(found)


def test_every_page_of_the_guide_is_linked_from_the_readme() -> None:
    folder = ROOT / "docs" / "guide"
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        for link in LINK.findall(_without_code(text(page))):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.parent == folder and target not in reached:
                reached.add(target)
                waiting.append(target)
    assert reached == set(folder.glob("*.md"))


def test_every_picture_of_the_documents_exists_is_small_and_is_used() -> None:
    found, shown = [], set()
    for path in files():
        if path.suffix == ".md":
            for name in map("".join, PICTURE.findall(_without_code(text(path)))):
                picture = (path.parent / name).resolve()
                shown.add(picture)
                if not picture.is_file() or picture.stat().st_size > PICTURE_BYTES_MAX:
                    found.append(f"{place(path)}: {name}")
    assert shown
    assert not found, report(found)
    assert shown == set((ROOT / "docs" / "images").iterdir())


def test_every_link_of_the_documents_has_a_target() -> None:
    found = []
    for path in files():
        if path.suffix == ".md":
            found += [
                f"{place(path)}: {link}"
                for link in LINK.findall(_without_code(text(path)))
                if not link.startswith(("http://", "https://", "mailto:"))
                and not _leads_somewhere(path, link)
            ]
    assert not found, report(found)


def _pins(name: str) -> list[str]:
    lines = text(ROOT / "requirements" / f"{name}.txt").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _canonical(requirement: str) -> str:
    """The package's name as indexes compare it."""
    found = REQUIREMENT.match(requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def _without_code(markdown: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", markdown, flags=re.DOTALL)


def _leads_somewhere(document: Path, link: str) -> bool:
    target, _, anchor = link.partition("#")
    path = (document.parent / target).resolve() if target else document
    if not path.exists():
        return False
    if not anchor or path.suffix != ".md":
        return True
    headings = (
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text(path))
    )
    return anchor in headings
