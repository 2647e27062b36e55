"""The topic exchange: patterns of words with `*` for one word and `#` for any number (0-9-1 §3.1.3.3).

The patterns stand in a trie, one edge per word. A routing key walks it with a set of nodes, all those that
its words so far can have led to. A node enters the set at most once per word, so the cost is bounded by
words times nodes, and patterns that share no beginning with the key are not visited at all.

    patterns a.*  a.#.b  #

    root +- a +- * (a.*)              A `#` node stays in the set for every further word, being a loop, and
         |    +- # - b (a.#.b)        is entered from its parent without a word, since it may stand for none.
         +- # (#)

A key for which very many nodes are visited is matched by all patterns at once instead (`pattern_bits`).

Words, as RabbitMQ 3.10.8 has them: the empty string has none, `a.` has two, the second of them empty.
"""

from collections.abc import Iterable

from warren.limits import TOPIC_NODES_VISITED_MAX
from warren.model.message import Message
from warren.routing.exchange import Binding, Exchange
from warren.routing.pattern_bits import PatternBits
from warren.routing.verdict import Verdict, shown

_ONE = "*"
_ANY = "#"


class TopicExchange(Exchange):
    """Routes to the bindings whose pattern matches the routing key."""

    __slots__ = ("_bits", "_root", "_turn")

    type_name = "topic"
    is_routed_by_copies = True

    def prepare(self) -> None:
        self._root = TrieNode(False)
        # The number of words matched so far; `#` nodes are marked with it when they are entered.
        self._turn = 0
        # All patterns together, created when the first key visits too many nodes of the trie.
        self._bits: PatternBits | None = None

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """The destinations of all patterns that match `routing_key`."""
        return [binding.destination for binding in self.matching(routing_key)]

    def matching(self, routing_key: str) -> list[Binding]:
        """The bindings whose patterns match `routing_key`."""
        words = split_words(routing_key)
        nodes = self._match(words)
        if nodes is None:
            patterns = self._all().match(words)
        else:
            patterns = [node.pattern for node in nodes if node.pattern is not None]
        return [binding for pattern in patterns for binding in self._bindings.get(pattern)]

    def explain(self, binding: Binding, routing_key: str, message: Message) -> Verdict:
        """Explains whether the pattern matches, and where the routing key deviates from it.

        Does not use the trie.
        """
        return TopicPattern(binding.key).explain(routing_key)

    def _match(self, words: list[str]) -> list["TrieNode"] | None:
        """The nodes that exactly `words` lead to; None if too many are visited on the way."""
        turn = self._turn + 1
        visited = 0
        nodes = [self._root]
        enter_loops(nodes, turn)
        for word in words:
            visited += len(nodes)
            if visited > TOPIC_NODES_VISITED_MAX:
                self._turn = turn
                return None
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

    def _all(self) -> PatternBits:
        """All patterns as `PatternBits`."""
        bits = self._bits
        if bits is None:
            bits = self._bits = PatternBits()
            for pattern in planted(self._root):
                bits.add(pattern)
        return bits

    def added(self, binding: Binding) -> None:
        """Add the pattern of a first binding to the trie."""
        if self._bindings.size(binding.key) == 1:
            insert_pattern(self._root, binding.key)
            if self._bits is not None:
                self._bits.add(binding.key)

    def removed(self, binding: Binding) -> None:
        """Remove the pattern of a last binding from the trie."""
        if self._bindings.size(binding.key) == 0:
            remove_pattern(self._root, binding.key)
            if self._bits is not None:
                self._bits.remove(binding.key)
                if self._bits.is_mostly_dead:
                    self._bits = None


class TrieNode:
    """A node of the trie: the words that lead on from it, and the pattern that ends at it."""

    __slots__ = ("any", "children", "is_loop", "one", "pattern", "turn")

    def __init__(self, is_loop: bool) -> None:
        self.children: dict[str, TrieNode] | None = None
        self.one: TrieNode | None = None
        self.any: TrieNode | None = None
        self.pattern: str | None = None
        self.is_loop = is_loop
        self.turn = 0

    def get_or_add_child(self, word: str) -> "TrieNode":
        """The child for `word`, created if it does not exist."""
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

    def remove_child(self, word: str) -> None:
        """Remove the child for `word`."""
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
        """True if no pattern ends here and it has no children."""
        return self.pattern is None and self.children is None and self.one is None and self.any is None


class TopicPattern:
    """A single pattern, matched by a bit for each place that the words so far can have reached."""

    __slots__ = ("_any", "_end", "_literal", "_one", "_words", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        # `##` is equivalent to `#`: merged, so that no place is entered from one that was just entered.
        words = split_words(text)
        self._words = [
            word for at, word in enumerate(words) if word != _ANY or not at or words[at - 1] != _ANY
        ]
        self._one = self._any = 0
        self._literal: dict[str, int] = {}
        place = 1
        for word in self._words:
            if word == _ANY:
                self._any |= place
            elif word == _ONE:
                self._one |= place
            else:
                self._literal[word] = self._literal.get(word, 0) | place
            place += place
        self._end = place

    def explain(self, key: str) -> Verdict:
        """Whether `key` matches, and if not, at which of its words it deviates."""
        words = split_words(key)
        places = self._entered(1)
        for at, word in enumerate(words):
            led = places & (self._one | self._literal.get(word, 0))
            reached = self._entered(led << 1 | places & self._any)
            if not reached:
                return self._parted(places, at, words)
            places = reached
        if places & self._end:
            return Verdict(True, f"the pattern {shown(self.text)} matches {shown(key)}")
        return self._parted(places, len(words), words)

    def _entered(self, places: int) -> int:
        """`places` with those behind a `#`, which can stand for no word."""
        return places | (places & self._any) << 1

    def _parted(self, places: int, at: int, words: list[str]) -> Verdict:
        """The verdict for a key that matches up to the word `at`."""
        wanted = []
        for word in self._words:
            if places & 1 and word != _ANY:
                wanted.append(word)
            places >>= 1
        expected = " or ".join(shown(word) for word in dict.fromkeys(wanted)) or "its end"
        found = f"is {shown(words[at])}" if at < len(words) else "is missing"
        reason = f"the pattern {shown(self.text)} wants {expected} as word {at + 1}, which {found}"
        fixed = len(self._words) - self._any.bit_count()
        return Verdict(False, reason, at / (max(len(words), fixed) + 1))


def enter_loops(nodes: list[TrieNode], turn: int) -> None:
    """Add to `nodes` the `#` nodes that they lead to without a word."""
    for node in nodes:
        loop = node.any
        if loop is not None and loop.turn != turn:
            loop.turn = turn
            nodes.append(loop)


def insert_pattern(root: TrieNode, pattern: str) -> None:
    """Add `pattern` to the trie."""
    node = root
    for word in split_words(pattern):
        node = node.get_or_add_child(word)
    node.pattern = pattern


def planted(root: TrieNode) -> list[str]:
    """All patterns in the trie."""
    patterns = []
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if node.pattern is not None:
            patterns.append(node.pattern)
        nodes += [child for child in (node.one, node.any) if child is not None]
        if node.children is not None:
            nodes += node.children.values()
    return patterns


def remove_pattern(root: TrieNode, pattern: str) -> None:
    """Remove `pattern` from the trie, with all nodes that only it needed."""
    node = root
    words = split_words(pattern)
    path = [node]
    for word in words:
        node = node.get_or_add_child(word)
        path.append(node)
    node.pattern = None
    depth = len(words)
    while depth > 0 and node.is_bare():
        depth -= 1
        node = path[depth]
        node.remove_child(words[depth])


def split_words(key: str) -> list[str]:
    """The words of a key or a pattern."""
    return key.split(".") if key else []
