"""The exchange type `x-jms-topic` of RabbitMQ: a topic exchange whose bindings may have a selector of JMS.

The client compiles the selector from SQL to a term of Erlang, and gives it as an argument of the binding.
"""

from collections.abc import Iterable, Mapping

from warren.errors import PreconditionFailed
from warren.model.message import Message
from warren.routing.exchange import BY_PROPERTIES, Binding
from warren.routing.jms_selector import JmsSelector, SelectorError
from warren.routing.topic import TopicExchange
from warren.routing.verdict import Verdict

SELECTOR_ARGUMENT = "rjms_erlang_selector"


class JmsTopicExchange(TopicExchange):
    """Routes to the bindings whose pattern matches the routing key, and whose selector the headers."""

    __slots__ = ("_selectors",)

    type_name = "x-jms-topic"

    def prepare(self) -> None:
        TopicExchange.prepare(self)
        # Of the bindings that have one.
        self._selectors: dict[Binding, JmsSelector] = {}

    @property
    def decides(self) -> int:
        """BY_PROPERTIES: messages with the same key may have other headers."""
        return BY_PROPERTIES

    def validate_binding(self, key: str, arguments: Mapping[str, object]) -> None:
        """Raise PreconditionFailed if the selector cannot be read."""
        try:
            _selector(arguments)
        except SelectorError as error:
            raise PreconditionFailed(f"invalid {SELECTOR_ARGUMENT}: {error}") from None

    def added(self, binding: Binding) -> None:
        """Keep the selector of `binding` beside its pattern."""
        TopicExchange.added(self, binding)
        selector = _selector(binding.arguments)
        if selector is not None:
            self._selectors[binding] = selector

    def removed(self, binding: Binding) -> None:
        """Forget the selector of `binding`."""
        TopicExchange.removed(self, binding)
        self._selectors.pop(binding, None)

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """The destinations of all patterns that match `routing_key`, whose selectors match the headers."""
        found = self.matching(routing_key)
        if not self._selectors:
            return [binding.destination for binding in found]
        headers = message.headers()
        return [
            binding.destination
            for binding in found
            if (selector := self._selectors.get(binding)) is None or selector.selects(headers)
        ]

    def explain(self, binding: Binding, routing_key: str, message: Message) -> Verdict:
        """Explains whether the pattern matches, and then the selector."""
        verdict = TopicExchange.explain(self, binding, routing_key, message)
        selector = self._selectors.get(binding)
        if not verdict.is_match or selector is None or selector.selects(message.headers()):
            return verdict
        return Verdict(False, "the selector of the binding is not true for the headers")


def _selector(arguments: Mapping[str, object]) -> JmsSelector | None:
    """Return the selector in the arguments of a binding; None without one. Raises SelectorError."""
    if SELECTOR_ARGUMENT not in arguments:
        return None
    text = arguments[SELECTOR_ARGUMENT]
    if not isinstance(text, str):
        raise SelectorError("it must be a string")
    return JmsSelector(text)
