"""What nobody calls is not kept."""

import ast
import asyncio
import re
from collections import Counter
from functools import cache
from pathlib import Path

from tests.tidy.sources import SOURCE, Function, files, is_generated, modules, place, report, text, tree

CALLED_BY_ASYNCIO = {*dir(asyncio.Protocol), *dir(asyncio.BufferedProtocol)}
# Methods that aiohttp calls on a connection and on a resource.
CALLED_BY_AIOHTTP = {
    "_match", "add_prefix", "canonical", "get_info", "handle_error", "raw_match", "url_for",
}  # fmt: skip
# Methods that Spark looks for on a source and on its reader.
CALLED_BY_SPARK = {
    "getDefaultReadLimit", "initialOffset", "prepareForTriggerAvailableNow", "pushFilters",
    "reportLatestOffset", "streamReader", "streamWriter",
}  # fmt: skip
WORD = re.compile(r"\w+")
# A table of the specification, kept whole.
WHOLE = SOURCE / "warren" / "errors.py"


def test_every_private_function_and_class_is_used_where_it_stands() -> None:
    found = [
        f"{place(path, node.lineno)}: {node.name}"
        for path in modules()
        for node in _definitions(tree(path))
        if node.name.startswith("_")
        and not node.name.startswith("__")
        and node.name not in _used_inside(path) | CALLED_BY_AIOHTTP
    ]
    assert not found, report(found)


def test_every_public_function_and_class_of_the_broker_is_named_somewhere_else() -> None:
    found = [
        f"{place(path, node.lineno)}: {node.name}"
        for path in modules("src")
        if path != WHOLE and not is_generated(path)
        for node in _definitions(tree(path))
        if not node.name.startswith("_")
        and not node.decorator_list
        and node.name not in CALLED_BY_ASYNCIO | CALLED_BY_AIOHTTP | CALLED_BY_SPARK
        if _words()[node.name] < 2
    ]
    assert not found, report(found)


def _definitions(module: ast.Module) -> list[ast.ClassDef | Function]:
    """Module-level functions and classes, and the methods of the latter."""
    top = [node for node in module.body if isinstance(node, ast.ClassDef | Function)]
    inner = [
        child
        for node in top
        if isinstance(node, ast.ClassDef)
        for child in node.body
        if isinstance(child, Function)
    ]
    return top + inner


@cache
def _used_inside(path: Path) -> set[str]:
    """Every name, attribute and string of the module that is not a definition."""
    found = set()
    for node in ast.walk(tree(path)):
        match node:
            case ast.Name():
                found.add(node.id)
            case ast.Attribute():
                found.add(node.attr)
            case ast.Constant(value=str() as value):
                found.add(value)
    return found


@cache
def _words() -> Counter[str]:
    """How often each word stands in code; a definition alone makes one."""
    code = (path for path in files() if path.suffix in {".py", ".toml"})
    return Counter(word for path in code for word in WORD.findall(text(path)))
