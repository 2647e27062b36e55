"""The vocabulary of the project: no forbidden names, one class for each name, and a correct glossary."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.sources import ROOT, SOURCE, modules, place, report, text, tree

GLOSSARY = ROOT / "docs" / "glossary.md"
LINK = "glossary.md"
# Metaphors that the code once used: no part of any name may be one of them.
FORBIDDEN = frozenset((
    "bury", "buried", "doorman", "errand", "grave", "guest", "hall", "heed", "labour", "lane", "lighten",
    "looking", "manner", "shelf", "shelves", "sieve", "telling", "tending", "world",
))  # fmt: skip
# RabbitMQ's default user.
FORBIDDEN_BUT = frozenset(("is_guest",))
# `has_room` and `make_room` are English; as the name of a class or a module the word is a metaphor.
FORBIDDEN_AS_NOUNS = frozenset(("entrance", "gate", "keeping", "people", "room"))
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# Commands of the stream protocol have the names that RabbitMQ gives them.
SAME_CLASSES = {"Heartbeat", "Metadata", "Route"}
# Packages whose modules are named alike because they show the same object from two sides.
MIRRORED = (
    ("management/api", "management/views"),
    ("management/api", "metadata"),
    ("management/api", "cli/operator"),
    ("management/api", "management"),
    ("management/views", "metadata"),
    ("cli/spark", "pipelines"),
    ("session", "session/streams"),
    ("wire", "wire/streams"),
    ("store", "store/streams"),
)
# Others with the role that they share.
SAME_MODULES = {
    "batches": "messages together, in a queue and in a read of Spark",
    "channel": "a channel, of the broker and of the client",
    "cluster_controls": "operations on the cluster, and how the API uses them",
    "columns": "columns of a table: of Arrow, and of what a command prints",
    "command": "the click command of a group",
    "commands": "the commands of a protocol: of the metadata, of streams",
    "config": "what is configured, and the command that shows it",
    "confirms": "publisher confirms, of the broker and of the client",
    "link_rights": "what the user of a link may do: of any link, and of one that publishes here",
    "connection": "a connection: AMQP, stream, of the client, of the load generator",
    "consumers": "the consumers of a queue, and how the API shows them",
    "controls": "what can be changed in a running node, and how the API does it",
    "declarations": "declaring queues and exchanges: a handler, and what a load needs",
    "disk": "the port, and its implementation",
    "errors": "errors: of AMQP, of a client, of starting a node",
    "expiry": "what expires: in a queue, and its timer in the node",
    "jobs": "the jobs of a node, and how the API shows them",
    "limits": "bounds: of the code, and those that a user sets for a virtual host",
    "login": "the login of a client: as the broker knows it, and as the client does",
    "machine": "replicated state, of the metadata and of a quorum queue; the computer of the broker",
    "openapi": "the document, and the command that prints it",
    "options": "the options of a command or of a data source",
    "quarantine": "the quarantine, its paths of the API and its commands",
    "recovery": "what is read at start: from the journal, from a store",
    "server": "what all connections share, and the command that runs it",
    "session": "of a command: the connection to the broker or to Spark",
    "sources": "where metrics or messages come from",
    "streams": "streams: in the API, in commands, in the connector",
    "tls": "TLS of listeners, of the client and of commands",
}


def identifiers(path: Path) -> Iterator[tuple[str, int]]:
    """Every name that a module defines or uses, with its line."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.Name):
            yield node.id, node.lineno


def words(name: str) -> set[str]:
    """The words of an identifier, in lower case."""
    return {word.lower() for word in WORD.findall(name)}


def test_no_name_is_of_the_forbidden_vocabulary() -> None:
    found = {
        f"{place(path, line)}: {name}"
        for path in modules("src")
        for name, line in identifiers(path)
        if words(name) & FORBIDDEN and name not in FORBIDDEN_BUT
    }
    assert not found, report(sorted(found))


def test_no_class_and_no_module_is_a_metaphor() -> None:
    nouns = FORBIDDEN | FORBIDDEN_AS_NOUNS
    found = [place(path) for path in modules("src") if words(path.stem) & nouns]
    found += [
        f"{place(path, node.lineno)}: {node.name}"
        for path in modules("src")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and words(node.name) & nouns
    ]
    assert not found, report(found)


def test_a_public_class_has_a_unique_name() -> None:
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in modules("src"):
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                by_name[node.name].append(place(path, node.lineno))
    shared = {name: where for name, where in by_name.items() if len(where) > 1}
    found = [f"{name}: {', '.join(where)}" for name, where in shared.items() if name not in SAME_CLASSES]
    assert not found, report(found)
    assert set(shared) >= SAME_CLASSES, report(sorted(SAME_CLASSES - set(shared)))


def test_modules_of_one_name_have_one_role() -> None:
    by_name: dict[str, list[Path]] = defaultdict(list)
    for path in modules("src"):
        if path.name != "__init__.py":
            by_name[path.stem].append(path)
    shared = {name for name, paths in by_name.items() if len(paths) > 1 and not _are_mirrored(paths)}
    assert not shared - set(SAME_MODULES), report(sorted(shared - set(SAME_MODULES)))


def _are_mirrored(paths: list[Path]) -> bool:
    folders = {"/".join(path.relative_to(SOURCE).parts[1:-1]) for path in paths}
    mirrors = {one: {other for pair in MIRRORED if one in pair for other in pair} for one in folders}
    return any(folders <= mirrors[one] for one in folders)


def nouns() -> list[tuple[str, str]]:
    """Each noun of the glossary with the class or module that its line names."""
    rows = [line.split("|") for line in text(GLOSSARY).splitlines() if line.startswith("| ")]
    return [(row[1].strip(), row[3].strip(" `")) for row in rows if row[1].strip() != "noun"]


def test_classes_and_modules_in_the_glossary_exist() -> None:
    classes = {
        node.name
        for path in modules("src")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
    }
    known = classes | {part for path in modules("src") for part in (path.stem, path.parent.name)}
    found = [f"{noun}: {where}" for noun, where in nouns() if where not in known]
    assert nouns()
    assert not found, report(found)


def test_the_glossary_is_in_alphabetical_order_and_lists_each_noun_once() -> None:
    sections = text(GLOSSARY).split("\n## ")[1:]
    for section in sections:
        listed = [noun for noun, _ in nouns() if f"\n| {noun} |" in section]
        assert listed == sorted(set(listed)), report(listed)


def test_the_glossary_is_linked_from_other_documents() -> None:
    for page in (ROOT / "ARCHITECTURE.md", ROOT / "docs" / "guide" / "README.md", ROOT / "docs" / "style.md"):
        assert LINK in text(page), place(page)
