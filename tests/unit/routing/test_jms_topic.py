"""The exchange `x-jms-topic`: which selectors are true, as RabbitMQ 3.10.8's plugin has it (measured)."""

import pytest
from tests.unit.routing.samples import sent

from warren.errors import PreconditionFailed
from warren.routing.exchange import Binding, ExchangeSettings
from warren.routing.jms_selector import JmsSelector, SelectorError
from warren.routing.jms_topic import SELECTOR_ARGUMENT, JmsTopicExchange

HEADERS = {"a": 1, "s": "abc", "b": True, "f": 2.5, "t": {}}
TRUE = (
    "{'=',{'ident',<<\"a\">>},1}.",
    "{'=',{'ident',<<\"a\">>},1.0}.",
    "{'>',{'ident',<<\"a\">>},0}.",
    "{'=',{'ident',<<\"s\">>},<<\"abc\">>}.",
    "{'like',{'ident',<<\"s\">>},<<\"a%\">>,no_escape}.",
    "{'like',{'ident',<<\"s\">>},<<\"a_c\">>,no_escape}.",
    "{'like',{'ident',<<\"s\">>},<<\"%b%c\">>,no_escape}.",
    "{'not_like',{'ident',<<\"s\">>},<<\"b%\">>,no_escape}.",
    "{'is_null',{'ident',<<\"zz\">>}}.",
    "{'not_null',{'ident',<<\"a\">>}}.",
    "{'or',{'=',{'ident',<<\"zz\">>},1},{'=',{'ident',<<\"a\">>},1}}.",
    "{'between',{'ident',<<\"a\">>},0,2}.",
    "{'between',{'ident',<<\"a\">>},{range,0,2}}.",
    "{'not_between',{'ident',<<\"a\">>},{range,5,6}}.",
    "{'not_between',{'ident',<<\"a\">>},5,6}.",
    '{\'in\',{\'ident\',<<"s">>},[<<"x">>,<<"abc">>]}.',
    "{'not_in',{'ident',<<\"s\">>},[<<\"x\">>]}.",
    "{'in',{'ident',<<\"a\">>},[1]}.",
    "{'=',{'+',{'ident',<<\"a\">>},1},2}.",
    "{'=',{'/',{'ident',<<\"a\">>},2},0.5}.",
    "{'=',{'-',{'ident',<<\"a\">>}},-1}.",
    "{'<>',{'*',{'ident',<<\"f\">>},2},{'+',4}}.",
    "{'ident',<<\"b\">>}.",
    "true.",
    # Numbers are before true and false, and these before strings.
    "{'>',{'ident',<<\"s\">>},5}.",
    "{'<',{'ident',<<\"b\">>},<<\"a\">>}.",
    "{'=',{'ident',<<\"b\">>},true}.",
)
NOT_TRUE = (
    '{\'like\',{\'ident\',<<"s">>},<<"a!%">>,<<"!">>}.',
    "{'like',{'ident',<<\"s\">>},<<\"a\">>,no_escape}.",
    "{'like',{'ident',<<\"a\">>},<<\"%\">>,no_escape}.",
    "{'not',{'=',{'ident',<<\"zz\">>},1}}.",
    "{'and',{'=',{'ident',<<\"zz\">>},1},{'=',{'ident',<<\"a\">>},1}}.",
    "{'between',{'ident',<<\"zz\">>},0,2}.",
    "{'in',{'ident',<<\"zz\">>},[1]}.",
    "{'in',{'ident',<<\"a\">>},[1.0]}.",
    "{'=',{'+',{'ident',<<\"s\">>},1},2}.",
    "{'=',{'/',{'ident',<<\"a\">>},0},0}.",
    "{'=',{'-',{'ident',<<\"s\">>}},0}.",
    "{'=',{'ident',<<\"t\">>},0}.",
    "{'nosuch',1,2}.",
    "false.",
    "other.",
    '<<"x">>.',
)


@pytest.mark.parametrize(
    ("text", "is_true"), [*((text, True) for text in TRUE), *((text, False) for text in NOT_TRUE)]
)
def test_a_selector_is_true_for_headers(text: str, is_true: bool) -> None:
    assert JmsSelector(text).selects(HEADERS) is is_true


@pytest.mark.parametrize("text", ["", "nonsense", "{'=',", "true. false.", "{1, 2}.", "{'=',{},1}.", "#{}."])
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        JmsSelector(text)
    with pytest.raises(PreconditionFailed, match="invalid rjms_erlang_selector"):
        made().validate_binding("k", {SELECTOR_ARGUMENT: text})


def test_a_pattern_with_many_wildcards_is_matched_in_bounded_time() -> None:
    pattern = "a%" * 2_000 + "b"
    assert not JmsSelector(f'{{like,{{ident,<<"s">>}},<<"{pattern}">>,no_escape}}.').selects(
        {"s": "a" * 4_000}
    )


def made() -> JmsTopicExchange:
    return JmsTopicExchange("jms", ExchangeSettings())


def test_a_message_goes_where_both_the_pattern_and_the_selector_match() -> None:
    exchange = made()
    chosen = Binding(exchange, "k.*", {SELECTOR_ARGUMENT: "{'=',{'ident',<<\"a\">>},1}."}, "chosen")
    other = Binding(exchange, "k.*", {SELECTOR_ARGUMENT: "{'=',{'ident',<<\"a\">>},2}."}, "other")
    plain = Binding(exchange, "k.#", None, "plain")
    message = sent({"a": 1})
    for binding in (chosen, other, plain):
        exchange.validate_binding(binding.key, binding.arguments)
        assert exchange.bind(binding)
    assert sorted(map(str, exchange.route("k.x", message))) == ["chosen", "plain"]
    assert list(exchange.route("x", message)) == []
    assert exchange.explain(chosen, "k.x", message).is_match
    assert "selector" in exchange.explain(other, "k.x", message).reason
    assert not exchange.explain(chosen, "x", message).is_match
    for binding in (chosen, other):
        assert exchange.unbind(binding)
    assert list(exchange.route("k.x", message)) == ["plain"]
    with pytest.raises(PreconditionFailed, match="must be a string"):
        exchange.validate_binding("k", {SELECTOR_ARGUMENT: 5})
