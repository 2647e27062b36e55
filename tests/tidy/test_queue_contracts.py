"""No package but `queues` tests for the class of a queue: `queues/capabilities` knows what it can do."""

import ast

from tests.tidy.sources import SOURCE, modules, place, report, tree

QUEUES = {"Queue", "VhostQueue", "TakingQueue", "ClassicQueue", "StreamQueue", "ReplyQueue"}


def test_the_class_of_a_queue_is_tested_in_its_own_package_only() -> None:
    found = [
        f"{place(path, node.lineno)}: ask queues/capabilities, or a method of the queue"
        for path in modules()
        if path.is_relative_to(SOURCE) and path.parent.name != "queues"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("isinstance", "issubclass", "type")
        and any(isinstance(one, ast.Name) and one.id in QUEUES for one in ast.walk(node))
    ]
    assert not found, report(found)
