"""Modules: names, docstrings, imports, and the place of unit tests."""

import ast
import os
import sys
from pathlib import Path

from tests.tidy.sources import ROOT, SOURCE, files, modules, place, report, text, tree

# Names without meaning: the contents of such a module belong elsewhere.
EMPTY_NAMES = {"base", "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
# Built for or by this interpreter: belongs only into build/ and the environments.
BUILT = {".so", ".c", ".pyd", ".pyx", ".html"}
# The modules in C, written by hand.
IN_C = {
    SOURCE / "warren" / "runtime" / "mapped_file.c",
    SOURCE / "warren" / "runtime" / "write_thread.c",
    SOURCE / "warren" / "arrow" / "shape_columns.c",
}
# The first contains the version, and Spark looks up its source in the second.
EXPORTING = {SOURCE / "warren", SOURCE / "pyspark_warren"}
# The folders of unit tests, and what they mirror: tests that need Spark run in another environment.
MIRRORS = {
    ROOT / "tests" / "unit": SOURCE / "warren",
    ROOT / "tests" / "spark" / "unit": SOURCE / "pyspark_warren",
}


def test_no_module_has_a_meaningless_name() -> None:
    found = [place(path) for path in modules() if path.stem in EMPTY_NAMES or path.parent.name in EMPTY_NAMES]
    assert not found, report(found)


def test_every_module_has_a_docstring() -> None:
    found = [place(path) for path in modules() if text(path) and not ast.get_docstring(tree(path))]
    assert not found, report(found)


def test_every_public_class_and_function_of_the_broker_has_a_docstring() -> None:
    found = [
        f"{place(path, node.lineno)}: {node.name}"
        for path in modules("src")
        for node in tree(path).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert not found, report(found)


def test_a_package_contains_its_docstring_and_nothing_else() -> None:
    found = [
        place(path)
        for path in modules("src")
        if path.name == "__init__.py" and path.parent not in EXPORTING and len(tree(path).body) != 1
    ]
    version = tree(SOURCE / "warren" / "__init__.py").body[1:]
    assert not found, report(found)
    assert [ast.unparse(node).split(" =")[0] for node in version] == ["__version__"]


def test_every_folder_with_modules_is_a_package() -> None:
    found = [
        place(path.parent) for path in modules("src/warren") if not (path.parent / "__init__.py").exists()
    ]
    assert not found, report(found)


def test_no_module_imports_cython() -> None:
    found = [
        place(path, node.lineno)
        for path in modules("src")
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.Import) and any(one.name.split(".")[0] == "cython" for one in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cython")
    ]
    assert not found, report(found)


def test_c_sources_are_in_the_repository() -> None:
    assert {path.with_suffix(".c") for path in SOURCE.rglob("*.pyi")} == IN_C
    # A file that is not in the repository is missing in every clone.
    tracked = files()
    assert not [place(path) for path in IN_C if path not in tracked]


def test_no_compiled_file_is_among_the_sources() -> None:
    found = [
        place(Path(folder) / name)
        for folder, _, names in os.walk(SOURCE)
        for name in names
        if Path(name).suffix in BUILT - ({".html"} if "management" in folder else set())
        and Path(folder) / name not in IN_C
    ]
    found += [place(path) for path in files() if path.suffix == ".pyx"]
    assert not found, report(found)


def test_every_unit_test_mirrors_a_module() -> None:
    found = [
        f"{place(path)}: there is no {place(module)}"
        for folder in MIRRORS
        for path in modules(str(folder.relative_to(ROOT)))
        if path.name.startswith("test_") and not (module := _mirrored(path, folder)).exists()
    ]
    assert not found, report(found)


def _mirrored(test: Path, folder: Path) -> Path:
    """The module that a unit test is about; a second word group after `__` names one aspect of it."""
    inside = test.relative_to(folder)
    stem = test.stem.removeprefix("test_").split("__")[0]
    return MIRRORS[folder] / inside.parent / f"{stem}.py"


def test_standard_library_names_are_not_shadowed_at_the_top() -> None:
    found = [
        place(path)
        for path in (SOURCE / "warren").iterdir()
        if path.stem in sys.stdlib_module_names - {"errors"}
    ]
    assert not found, report(found)
