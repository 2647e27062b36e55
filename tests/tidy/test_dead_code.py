"""No code is kept that only tests use, or that is not used at all."""

import ast
import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.tidy.sources import ROOT, SOURCE, Function, files, is_generated, modules, place, report, text, tree

CALLED_BY_ASYNCIO = {*dir(asyncio.Protocol), *dir(asyncio.BufferedProtocol)}
# Methods that aiohttp calls on a connection, on a resource and on the writer of a response.
CALLED_BY_AIOHTTP = {
    "_match", "add_prefix", "canonical", "enable_chunking", "get_info", "handle_error", "raw_match",
    "url_for", "write_headers",
}  # fmt: skip
# Methods that Spark looks up on a source and on its reader.
CALLED_BY_SPARK = {
    "getDefaultReadLimit", "initialOffset", "prepareForTriggerAvailableNow", "pushFilters",
    "reportLatestOffset", "streamReader", "streamWriter",
}  # fmt: skip
# A method that click calls on a group of commands.
CALLED_BY_CLICK = {"format_commands"}
CALLED_BY_OTHERS = CALLED_BY_ASYNCIO | CALLED_BY_AIOHTTP | CALLED_BY_SPARK | CALLED_BY_CLICK
# Tables that are kept complete: the reply codes of the specification, and the settings, which are collected
# by their type. Constants of one statement (`HEADER, ANNOTATIONS, BODY = range(3)`) are a table, too.
WHOLE = {
    SOURCE / "warren" / "errors.py",
    SOURCE / "warren" / "node" / "settings.py",
    SOURCE / "warren" / "node" / "cluster_settings.py",
}
# Packages and modules that only tests drive until the groups exist that use them.
WITHOUT_USERS = (
    SOURCE / "warren" / "cluster" / "groups",
    SOURCE / "warren" / "cluster" / "membership",
    SOURCE / "warren" / "queues" / "quorum" / "group.py",
    SOURCE / "warren" / "replication",
    SOURCE / "warren" / "simulation" / "linearizability.py",
    SOURCE / "warren" / "store" / "group_log.py",
    SOURCE / "warren" / "store" / "group_record.py",
)
# Users of code in src/: what is shipped, measured, shown or generated, and the files that control a build.
USERS = tuple(ROOT / folder for folder in ("src", "tools", "bench", "demo", "deploy"))
WORD = re.compile(r"\w+")
PRIVATE = re.compile(r"^ *(?:async def|def|class) (_[a-zA-Z]\w*)", re.MULTILINE)
CONSTANT = re.compile(r"_*[A-Z][A-Z0-9_]*")


def test_every_private_name_is_used_in_its_module() -> None:
    found = [
        f"{place(path, line)}: {name}"
        for path in modules("src")
        for name, line in _defined(tree(path))
        if name.startswith("_") and not name.startswith("__") and name not in CALLED_BY_OTHERS
        if not _used_inside(path)[name]
    ]
    assert not found, report(found)


def test_every_private_name_of_a_test_is_used_in_its_module() -> None:
    # Most names occur in many places, which is found without a syntax tree.
    found = [
        f"{place(path)}: {name}"
        for path in modules("tests", "tools", "bench", "demo")
        for name in PRIVATE.findall(text(path))
        if len(re.findall(rf"\b{name}\b", text(path))) < 2
    ]
    assert not found, report(found)


def test_every_public_name_of_the_broker_is_used_by_more_than_tests() -> None:
    found = [
        f"{place(path, line)}: {name}"
        for path in modules("src")
        if path not in WHOLE and not is_generated(path)
        if not any(path.is_relative_to(package) for package in WITHOUT_USERS)
        for name, line in _defined(tree(path))
        if not name.startswith("_") and name not in CALLED_BY_OTHERS and not _used()[name]
    ]
    assert not found, report(found)


def _defined(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Functions, classes, methods and constants, except those that a decorator may call."""
    for node in module.body:
        match node:
            case ast.ClassDef():
                yield node.name, node.lineno
                for child in node.body:
                    if isinstance(child, Function) and not child.decorator_list:
                        yield child.name, child.lineno
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not node.decorator_list:
                yield node.name, node.lineno
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if CONSTANT.fullmatch(name):
                    yield name, node.lineno


@cache
def _used_inside(path: Path) -> Counter[str]:
    """How often each name is used in the module: read, imported, or named in a string."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree(path)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                found[name] += 1
            case ast.Constant(value=str() as value):
                # A forward reference to a type, or an argument of getattr.
                found.update(WORD.findall(value) if len(value) < 200 else ())
            case ast.ImportFrom(names=names):
                # An import alone is not a use, unless it re-exports the name.
                if path.name == "__init__.py":
                    found.update(alias.name for alias in names)
    return found


@cache
def _used() -> Counter[str]:
    """How often each name is used outside tests."""
    found: Counter[str] = Counter()
    for path in files():
        if not any(path.is_relative_to(user) for user in USERS) and path.parent != ROOT:
            continue
        if path.suffix == ".py":
            found.update(_used_inside(path))
        elif path.suffix in {".toml", ".c", ".pyi"}:
            found.update(WORD.findall(text(path)))
    return found
