"""A `.pxd` and the `.py` beside it agree: a module is compiled if, and only if, it has a header."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.tidy.sources import SOURCE, files, functions, place, report, text, tree

CLASS = re.compile(r"cdef class (\w+)(?:\((\w+)\))?")
MEMBER = re.compile(r"c(?:p)?def (?!extern )(?:inline |public |readonly )*(.*)")
FUNCTION = re.compile(r"(\w+)\(")
CIMPORT = re.compile(r"from (warren[\w.]*) cimport (.*)")


class Header:
    """What a `.pxd` declares."""

    def __init__(self, path: Path) -> None:
        self.bases: dict[str, str | None] = {}
        self.attributes: dict[str, set[str]] = {}
        # Those that only compiled code can store.
        self.closed: dict[str, set[str]] = {}
        self.methods: dict[str, set[str]] = {}
        self.names: set[str] = set()
        self.imported: dict[str, Path] = {}
        owner = ""
        for line in text(path).splitlines():
            if found := CIMPORT.match(line):
                source = SOURCE.joinpath(*found[1].split(".")).with_suffix(".pxd")
                self.imported |= {name.strip(): source for name in found[2].strip("()").split(",")}
            elif found := CLASS.match(line):
                owner = found[1]
                self.bases[owner] = found[2]
                self.attributes[owner] = set()
                self.closed[owner] = set()
                self.methods[owner] = set()
            elif found := MEMBER.match(line.strip()):
                is_public = " public " in line
                self._declare(owner if line.startswith(" ") else "", found[1], is_public=is_public)

    def _declare(self, owner: str, declaration: str, *, is_public: bool) -> None:
        function = FUNCTION.search(declaration)
        if function:
            (self.methods[owner] if owner else self.names).add(function[1])
            return
        names = {part.split()[-1].lstrip("*") for part in declaration.split("=")[0].split(",")}
        (self.attributes[owner] if owner else self.names).update(names)
        if owner and not is_public:
            self.closed[owner] |= names

    def known_attributes(self, owner: str) -> set[str] | None:
        """Attributes of the class and its bases; None if a base is not in this project."""
        base = self.bases[owner]
        if base is None:
            return self.attributes[owner]
        home = self if base in self.bases else header(self.imported[base]) if base in self.imported else None
        inherited = home.known_attributes(base) if home else None
        return None if inherited is None else self.attributes[owner] | inherited

    def closed_attributes(self, owner: str) -> set[str]:
        """Attributes of the class and its bases, as far as they are known, that only compiled code stores."""
        base = self.bases[owner]
        home = self if base in self.bases else header(self.imported[base]) if base in self.imported else None
        return self.closed[owner] | (home.closed_attributes(base) if home and base else set())


@cache
def header(path: Path) -> Header:
    """The header at `path`, read once."""
    return Header(path)


def headers() -> list[Path]:
    return [path for path in files() if path.suffix == ".pxd"]


def classes(path: Path) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in tree(path).body if isinstance(node, ast.ClassDef)}


def stored_on_self(node: ast.ClassDef) -> set[str]:
    """The attributes that the methods store on `self`."""
    return {
        child.attr
        for child in ast.walk(node)
        if isinstance(child, ast.Attribute)
        and isinstance(child.ctx, ast.Store)
        and isinstance(child.value, ast.Name)
        and child.value.id == "self"
    }


def assigned_on_self(node: ast.ClassDef) -> set[str]:
    """The attributes that the methods store on `self`, and those of the class body."""
    slots = {
        element.value
        for statement in node.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__slots__"
        for element in ast.walk(statement.value)
        if isinstance(element, ast.Constant) and isinstance(element.value, str)
    }
    annotated = {
        ast.unparse(statement.target) for statement in node.body if isinstance(statement, ast.AnnAssign)
    }
    return stored_on_self(node) | slots | annotated


def test_every_header_is_beside_its_module() -> None:
    found = [place(path) for path in headers() if not path.with_suffix(".py").exists()]
    assert not found, report(found)


def test_every_class_method_and_attribute_of_a_header_exists_in_the_module() -> None:
    found = []
    for path in headers():
        defined = classes(path.with_suffix(".py"))
        for name in header(path).bases:
            if name not in defined:
                found.append(f"{place(path)}: there is no class {name}")
                continue
            methods = {node.name for node in ast.walk(defined[name]) if isinstance(node, ast.FunctionDef)}
            properties = assigned_on_self(defined[name]) | methods
            missing = (header(path).methods[name] - methods) | (header(path).attributes[name] - properties)
            found += [f"{place(path)}: {name} has no {one}" for one in sorted(missing)]
    assert not found, report(found)


def test_every_attribute_that_a_compiled_class_stores_is_declared() -> None:
    found = []
    for path in headers():
        for name, node in classes(path.with_suffix(".py")).items():
            if name not in header(path).bases:
                continue
            declared = header(path).known_attributes(name)
            if declared is not None:
                setters = {child.name for child in ast.walk(node) if isinstance(child, ast.FunctionDef)}
                missing = assigned_on_self(node) - declared - setters - {"__dict__", "__weakref__"}
                found += [f"{place(path)}: {name}.{one} is not declared" for one in sorted(missing)]
    assert not found, report(found)


def test_an_interpreted_class_stores_no_attribute_that_only_its_compiled_base_can_store() -> None:
    compiled = {name: header(path) for path in headers() for name in header(path).bases}
    found = []
    for path in files():
        if path.suffix != ".py" or path.with_suffix(".pxd").exists():
            continue
        for name, node in classes(path).items():
            for base in (ast.unparse(one) for one in node.bases):
                closed = compiled[base].closed_attributes(base) if base in compiled else set()
                stored = sorted(stored_on_self(node) & closed)
                found += [f"{place(path)}: {name} stores {one} of {base}" for one in stored]
    assert not found, report(found)


def test_every_function_and_constant_of_a_header_exists_in_the_module() -> None:
    found = []
    for path in headers():
        module = path.with_suffix(".py")
        stored = {
            node.id
            for node in ast.walk(tree(module))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        known = stored | {node.name for node in functions(module)}
        found += [f"{place(path)}: there is no {name}" for name in sorted(header(path).names - known)]
    assert not found, report(found)
