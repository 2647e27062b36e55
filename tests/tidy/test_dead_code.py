"""What nobody calls is not kept."""

import ast

from tests.tidy.sources import Function, modules, place, report, tree


def test_every_private_function_and_class_is_used_where_it_stands() -> None:
    found = [
        f"{place(path, node.lineno)}: {node.name}"
        for path in modules()
        for node in _definitions(tree(path))
        if node.name.startswith("_")
        and not node.name.startswith("__")
        and not _is_used_inside(tree(path), node.name)
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


def _is_used_inside(module: ast.Module, name: str) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id == name)
        or (isinstance(node, ast.Attribute) and node.attr == name)
        or (isinstance(node, ast.Constant) and node.value == name)
        for node in ast.walk(module)
    )
