"""Files, functions and parameter lists stay small enough to be read at once."""

import ast

from tests.tidy.sources import Function, functions, is_generated, modules, place, report, text, tree

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
POSITIONAL_MAX = 4


def test_no_file_is_longer_than_six_hundred_lines() -> None:
    found = [
        f"{place(path)}: {lines} lines"
        for path in modules()
        if (lines := text(path).count("\n")) > FILE_LINES_MAX and not is_generated(path)
    ]
    assert not found, report(found)


def test_no_function_is_longer_than_a_screen() -> None:
    found = [
        f"{place(path, node.lineno)}: {node.name} has {lines} lines"
        for path in modules()
        if not is_generated(path)
        for node in functions(path)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert not found, report(found)


def test_no_function_takes_more_than_four_positional_parameters() -> None:
    found = [
        f"{place(path, node.lineno)}: {node.name} takes {count}"
        for path in modules()
        if not is_generated(path)
        for node, is_method in _with_owner(tree(path))
        if (count := _positional(node, is_method=is_method)) > POSITIONAL_MAX
    ]
    assert not found, report(found)


def _with_owner(module: ast.Module) -> list[tuple[Function, bool]]:
    methods = {
        child
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef)
        for child in node.body
        if isinstance(child, Function)
    }
    return [(node, node in methods) for node in ast.walk(module) if isinstance(node, Function)]


def _positional(node: Function, *, is_method: bool) -> int:
    """The number of positional parameters, without `self` and those that pytest and hypothesis pass
    by name.
    """
    if node.name.startswith("test_") or any(_is_fixture(decorator) for decorator in node.decorator_list):
        return 0
    is_static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in node.decorator_list)
    count = len(node.args.posonlyargs) + len(node.args.args)
    return count - 1 if is_method and not is_static else count


def _is_fixture(decorator: ast.expr) -> bool:
    """Parameters of fixtures and of commands are passed by name as well."""
    return any(word in ast.unparse(decorator) for word in ("fixture", "given", "click.", "rule("))
