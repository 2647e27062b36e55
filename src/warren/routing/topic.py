"""The topic exchange: patterns of words with `*` for one word and `#` for any number (0-9-1 §3.1.3.3).

The patterns stand in a trie, one edge per word. A routing key walks it with a set of nodes, all those that
its words so far can have led to. A node enters the set at most once per word, so the cost is bounded by
words times nodes, and patterns that share no beginning with the key are not visited at all.

    patterns a.*  a.#.b  #

    root +- a +- * (a.*)              A `#` node stays in the set for every further word, being a loop, and
         |    +- # - b (a.#.b)        is entered from its parent without a word, since it may stand for none.
         +- # (#)

Words, as RabbitMQ 3.10.8 has them: the empty string has none, `a.` has two, the second of them empty.
"""

from collections.abc import Iterable

from warren.model.message import Message
from warren.routing.exchange import Binding, Exchange

_ONE = "*"
_ANY = "#"


class TopicExchange(Exchange):
    """To every binding whose pattern matches the routing key."""

    __slots__ = ("_root", "_turn")

    type_name = "topic"
    is_routed_by_copies = True

    def prepare(self) -> None:
        self._root = TrieNode(False)
        # Counts the words of all keys ever matched: what a `#` node was last marked with.
        self._turn = 0

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """The destinations of all patterns that match `routing_key`."""
        return [
            binding.destination
            for node in self._match(split_words(routing_key))
            if node.pattern is not None
            for binding in self._bindings.get(node.pattern)
        ]

    def _match(self, words: list[str]) -> list["TrieNode"]:
        """The nodes that exactly `words` lead to."""
        turn = self._turn + 1
        nodes = [self._root]
        enter_loops(nodes, turn)
        for word in words:
            turn += 1
            reached: list[TrieNode] = []
            for node in nodes:
                if node.children is not None:
                    child = node.children.get(word)
                    if child is not None:
                        reached.append(child)
                if node.one is not None:
                    reached.append(node.one)
                # Its parent may have entered it for this word already.
                if node.is_loop and node.turn != turn:
                    node.turn = turn
                    reached.append(node)
            enter_loops(reached, turn)
            nodes = reached
            if not nodes:
                break
        self._turn = turn
        return nodes

    def added(self, binding: Binding) -> None:
        """The pattern of a first binding is planted."""
        if self._bindings.size(binding.key) == 1:
            plant(self._root, binding.key)

    def removed(self, binding: Binding) -> None:
        """The pattern of a last binding is cut out."""
        if self._bindings.size(binding.key) == 0:
            prune(self._root, binding.key)


class TrieNode:
    """A place in the trie: the words that lead on from it, and the pattern that ends at it."""

    __slots__ = ("any", "children", "is_loop", "one", "pattern", "turn")

    def __init__(self, is_loop: bool) -> None:
        self.children: dict[str, TrieNode] | None = None
        self.one: TrieNode | None = None
        self.any: TrieNode | None = None
        self.pattern: str | None = None
        self.is_loop = is_loop
        self.turn = 0

    def grow(self, word: str) -> "TrieNode":
        """The node that `word` leads to, made if there is none."""
        if word == _ANY:
            if self.any is None:
                self.any = TrieNode(True)
            return self.any
        if word == _ONE:
            if self.one is None:
                self.one = TrieNode(False)
            return self.one
        if self.children is None:
            self.children = {}
        node = self.children.get(word)
        if node is None:
            node = self.children[word] = TrieNode(False)
        return node

    def cut(self, word: str) -> None:
        """Remove the node that `word` leads to."""
        if word == _ANY:
            self.any = None
        elif word == _ONE:
            self.one = None
        else:
            assert self.children is not None
            del self.children[word]
            if not self.children:
                self.children = None

    def is_bare(self) -> bool:
        """True when nothing ends here and nothing leads on."""
        return self.pattern is None and self.children is None and self.one is None and self.any is None


def enter_loops(nodes: list[TrieNode], turn: int) -> None:
    """Add to `nodes` the `#` nodes that they lead to without a word."""
    for node in nodes:
        loop = node.any
        if loop is not None and loop.turn != turn:
            loop.turn = turn
            nodes.append(loop)


def plant(root: TrieNode, pattern: str) -> None:
    """Let `pattern` end in the trie."""
    node = root
    for word in split_words(pattern):
        node = node.grow(word)
    node.pattern = pattern


def prune(root: TrieNode, pattern: str) -> None:
    """Take `pattern` out of the trie, with all nodes that only it needed."""
    node = root
    words = split_words(pattern)
    path = [node]
    for word in words:
        node = node.grow(word)
        path.append(node)
    node.pattern = None
    depth = len(words)
    while depth > 0 and node.is_bare():
        depth -= 1
        node = path[depth]
        node.cut(words[depth])


def split_words(key: str) -> list[str]:
    """The words of a key or a pattern."""
    return key.split(".") if key else []
