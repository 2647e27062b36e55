"""Modules, classes and bounds that documents and docstrings name exist."""

import re

from tests.tidy.sources import ROOT, SOURCE, files, place, report, text
from tests.tidy.test_words import bounds

PACKAGE = SOURCE / "warren"
DOCUMENTS = (
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs" / "internals").glob("*.md")),
)
PACKAGES = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
MODULE = re.compile(rf"(?<![\w/.-])((?:{'|'.join(PACKAGES)})(?:/\w+)+)(\.(?:py|pxd|c|h)\b)?")
FILE = re.compile(r"`(\w+\.(?:py|pxd|c|h))`")
BOUND = re.compile(r"`([A-Z]+(?:_[A-Z]+)*_(?:MAX|MIN|MS|S|SIZE))`")
# A class in a docstring or comment, with at least two words in its name.
CLASS = re.compile(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`")
IDENTIFIER = re.compile(r"\b[A-Z]\w+\b")
QUOTED = re.compile(r"`[^`\n]*`")
# Paths in a data directory whose first part has the name of a package.
DATA = {"metadata/metadata", "metadata/high", "metadata/stores"}


def exists(module: str, suffix: str) -> bool:
    path = PACKAGE / module
    if suffix:
        return path.with_name(path.name + suffix).exists()
    return path.is_dir() or any(path.with_name(path.name + kind).exists() for kind in (".py", ".c"))


def test_every_module_that_a_document_names_exists() -> None:
    names = {path.name for path in files()}
    found = []
    for path in DOCUMENTS:
        for module, suffix in MODULE.findall(text(path)):
            if module not in DATA and not exists(module, suffix):
                found.append(f"{place(path)}: {module}{suffix}")
        found += [f"{place(path)}: {name}" for name in FILE.findall(text(path)) if name not in names]
    assert not found, report(found)


def test_every_bound_that_a_document_names_exists() -> None:
    known = set(bounds())
    found = [
        f"{place(path)}: {name}"
        for path in DOCUMENTS
        for name in BOUND.findall(text(path))
        if name not in known
    ]
    assert not found, report(found)


def test_every_class_that_a_docstring_of_the_sources_names_exists() -> None:
    sources = [path for path in files() if path.is_relative_to(SOURCE) and path.suffix in {".py", ".pxd"}]
    known = {name for path in sources for name in IDENTIFIER.findall(QUOTED.sub("", text(path)))}
    found = [
        f"{place(path)}: {name}"
        for path in sources
        for name in CLASS.findall(text(path))
        if name not in known
    ]
    assert not found, report(found)
